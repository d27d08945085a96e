// Compiled plans of the C interface: the answers of the C++ ones, to the bit.
#include <gtest/gtest.h>
#include <stepcast.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "predictor/compiled_plan.h"
#include "predictor/search/allocations.h"
#include "tests/capi/support.h"
#include "tests/support/small_stacks.h"

namespace stepcast {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// More than what is worked on at once, and no multiple of it.
constexpr std::size_t kMany = 9000;

struct Both {
  CompiledHandle c;
  CompiledPlan cpp;
};

Both CompileBoth(const PlanHandle& plan, const Plan& same) {
  return {Compile(FittedPredictorHandle(), plan), CompiledPlan(FittedPredictor(), same)};
}
Both CompileBoth() { return CompileBoth(UnequalPlanHandle(), UnequalPlan()); }

Both CompileServers() {
  const PlanHandle plan = UnequalPlanHandle();
  SetText(plan, "strategy", "ps-sync");
  SetNumber(plan, "servers", 2);
  Plan same = UnequalPlan();
  same.strategy = Strategy::kPsSync;
  same.servers = 2;
  return CompileBoth(plan, same);
}

stepcast_query OwnQuery(const CompiledHandle& compiled) {
  auto query = Sized<stepcast_query>();
  EXPECT_EQ(stepcast_compiled_get_query(compiled.get(), &query), STEPCAST_OK);
  return query;
}

void ExpectSame(const stepcast_forecast& c, const Forecast& cpp) {
  EXPECT_PRED2(SameBits, c.step_time_s, cpp.step_time.si());
  EXPECT_PRED2(SameBits, c.low_s, cpp.low.si());
  EXPECT_PRED2(SameBits, c.high_s, cpp.high.si());
  EXPECT_PRED2(SameBits, c.log_sd, cpp.log_sd);
  EXPECT_EQ(c.limiter, static_cast<int>(cpp.limiter));
  EXPECT_EQ(c.status, static_cast<int>(cpp.status));
}

// Asks both, all that can be asked of one query.
void ExpectSameAnswers(const Both& both, const stepcast_query& query, const PlanQuery& same) {
  const Forecast expected = both.cpp.Predict(same);
  auto forecast = Sized<stepcast_forecast>();
  const bool answered = expected.status == QueryStatus::kOk;
  EXPECT_EQ(stepcast_compiled_predict(both.c.get(), &query, &forecast),
            answered ? STEPCAST_OK : STEPCAST_NO_ANSWER);
  ExpectSame(forecast, expected);
  EXPECT_PRED2(SameBits, stepcast_compiled_step_time_s(both.c.get(), &query),
               both.cpp.StepTime(same).si());
  EXPECT_EQ(stepcast_compiled_most_local_batch(both.c.get(), &query),
            both.cpp.MostLocalBatch(same));
}

// ---- One query

TEST(CapiCompiled, OwnQueryIsThePlan) {
  const Both both = CompileBoth();
  const stepcast_query query = OwnQuery(both.c);
  EXPECT_EQ(query.struct_size, sizeof query);
  EXPECT_EQ(query.workers, 10);
  EXPECT_EQ(query.nodes, 3);
  EXPECT_EQ(query.devices_per_node, 4);
  EXPECT_EQ(query.servers, 0);
  EXPECT_EQ(query.local_batch, 32);
  EXPECT_EQ(query.accumulation_steps, 1);
  for (const double link : {query.link_bandwidth_bytes_per_s, query.link_rtt_s,
                            query.link_loss_rate, query.server_link_bandwidth_bytes_per_s,
                            query.server_link_rtt_s, query.server_link_loss_rate}) {
    EXPECT_TRUE(std::isnan(link));
  }
  ExpectSameAnswers(both, query, QueryOf(UnequalPlan()));
  EXPECT_STREQ(stepcast_compiled_strategy(both.c.get()), "ring");
  EXPECT_EQ(stepcast_compiled_strategy(nullptr), nullptr);
}

TEST(CapiCompiled, EveryFieldOfAQueryCounts) {
  for (const Both& both : {CompileBoth(), CompileServers()}) {
    const bool servers = UsesServers(both.cpp.plan().strategy);
    stepcast_query query = OwnQuery(both.c);
    PlanQuery same = QueryOf(both.cpp.plan());
    double before = stepcast_compiled_step_time_s(both.c.get(), &query);
    const auto moves = [&](const char* what) {
      ExpectSameAnswers(both, query, same);
      const double after = stepcast_compiled_step_time_s(both.c.get(), &query);
      EXPECT_NE(after, before) << what << " changes nothing";
      before = after;
    };
    query.workers = same.workers = 8;
    query.nodes = same.nodes = 2;
    moves("nodes");
    query.workers = same.workers = 6;
    query.devices_per_node = same.devices_per_node = 3;
    moves("devices_per_node");
    query.local_batch = same.local_batch = 48;
    moves("local_batch");
    query.accumulation_steps = same.accumulation_steps = 3;
    moves("accumulation_steps");
    query.link_bandwidth_bytes_per_s = 1e8;
    same.link.bandwidth = BytesPerSecond(1e8);
    moves("link_bandwidth_bytes_per_s");
    query.link_rtt_s = 0.01;
    same.link.rtt = Seconds(0.01);
    moves("link_rtt_s");
    query.link_loss_rate = 0.02;
    same.link.loss = 0.02;
    moves("link_loss_rate");
    if (!servers) continue;
    query.servers = same.servers = 1;
    moves("servers");
    query.server_link_bandwidth_bytes_per_s = 2e7;
    same.server_link.bandwidth = BytesPerSecond(2e7);
    moves("server_link_bandwidth_bytes_per_s");
    query.server_link_rtt_s = 0.5;
    same.server_link.rtt = Seconds(0.5);
    moves("server_link_rtt_s");
    query.server_link_loss_rate = 0.2;
    same.server_link.loss = 0.2;
    moves("server_link_loss_rate");
  }
}

TEST(CapiCompiled, NamesWhatIsWrongWithAQuery) {
  const Both both = CompileBoth();
  const auto check = [&](const stepcast_query& query) {
    return
        [&, query](char** error) { return stepcast_compiled_check(both.c.get(), &query, error); };
  };
  stepcast_query query = OwnQuery(both.c);
  ExpectWorks(check(query));
  query.accumulation_steps = 0;
  ExpectFails(STEPCAST_NO_ANSWER,
              "accumulation_steps: '0' is out of range; allowed: a whole number from 1 to 1000000",
              check(query));
  query = OwnQuery(both.c);
  query.link_loss_rate = 1;
  ExpectFails(STEPCAST_NO_ANSWER,
              "link_loss_rate: '1' is out of range; allowed: 0, or from 1e-15 to below 1",
              check(query));
  query = OwnQuery(both.c);
  query.server_link_rtt_s = -2;
  ExpectFails(STEPCAST_NO_ANSWER, "server_link_rtt_s: '-2' is out of range", check(query));
  const struct {
    const char* name;
    double stepcast_query::*field;
  } of_links[] = {
      {"link_bandwidth_bytes_per_s", &stepcast_query::link_bandwidth_bytes_per_s},
      {"link_rtt_s", &stepcast_query::link_rtt_s},
      {"server_link_bandwidth_bytes_per_s", &stepcast_query::server_link_bandwidth_bytes_per_s},
      {"server_link_loss_rate", &stepcast_query::server_link_loss_rate}};
  for (const auto& [name, field] : of_links) {
    query = OwnQuery(both.c);
    query.*field = -3;
    char* error = nullptr;
    EXPECT_EQ(check(query)(&error), STEPCAST_NO_ANSWER);
    const Text owned(error);
    ASSERT_NE(error, nullptr);
    EXPECT_EQ(std::string(error).rfind(std::string(name) + ": '-3' is out of range", 0), 0U)
        << error;
  }
  ExpectFails(STEPCAST_BAD_ARGUMENT, "query is NULL",
              [&](char** error) { return stepcast_compiled_check(both.c.get(), nullptr, error); });
  query.struct_size = 1;
  ExpectFails(STEPCAST_BAD_ARGUMENT, "struct_size of query", check(query));

  const int32_t workers[] = {8, 10, 10, 10};
  const int32_t batches[] = {1, 100'000'000, 32, 100'000'001};
  const double rates[] = {1e8, std::nan(""), 1e8, 1e8};
  auto queries = Sized<stepcast_query_arrays>();
  queries.count = 4;
  queries.workers = workers;
  queries.local_batch = batches;
  queries.link_bandwidth_bytes_per_s = rates;
  const auto check_many = [&](char** error) {
    return stepcast_compiled_check_many(both.c.get(), &queries, error);
  };
  ExpectFails(STEPCAST_NO_ANSWER,
              "local_batch[3]: '100000001' is out of range; allowed: a whole number from 1 to "
              "100000000",
              check_many);
  queries.count = 3;
  ExpectWorks(check_many);
  const double wrong[] = {1e8, 0, 1e8};
  queries.threads = 4;
  queries.link_bandwidth_bytes_per_s = wrong;
  ExpectFails(STEPCAST_NO_ANSWER, "link_bandwidth_bytes_per_s[1]: '0' is out of range", check_many);
  // The first of so many that forecasts of them would be shared out among threads.
  std::vector<int32_t> most(50'000, 32);
  most[20'001] = most[49'999] = 0;
  auto many = Sized<stepcast_query_arrays>();
  many.count = most.size();
  many.local_batch = most.data();
  many.threads = 4;
  ExpectFails(STEPCAST_NO_ANSWER, "local_batch[20001]: '0' is out of range", [&](char** error) {
    return stepcast_compiled_check_many(both.c.get(), &many, error);
  });
  queries.count = 0;
  ExpectWorks(check_many);
  ExpectFails(STEPCAST_BAD_ARGUMENT, "queries is NULL", [&](char** error) {
    return stepcast_compiled_check_many(both.c.get(), nullptr, error);
  });
  queries.struct_size = 1;
  ExpectFails(STEPCAST_BAD_ARGUMENT, "struct_size of queries", check_many);
}

TEST(CapiCompiled, APlacementIsSetAtOnce) {
  const Both both = CompileBoth();
  stepcast_query query = OwnQuery(both.c);
  const auto set = [&](const std::vector<int32_t>& devices) {
    return [&query, devices](char** error) {
      return stepcast_query_set_placement(&query, devices.data(), devices.size(), error);
    };
  };
  ExpectWorks(set({2, 4, 3, 1}));
  EXPECT_EQ(query.workers, 10);
  EXPECT_EQ(query.nodes, 4);
  EXPECT_EQ(query.devices_per_node, 4);
  EXPECT_EQ(query.local_batch, 32) << "all else stays";
  PlanQuery same = QueryOf(UnequalPlan());
  same.nodes = 4;
  ExpectSameAnswers(both, query, same);

  ExpectFails(STEPCAST_BAD_INPUT, "placement[1]: '0' is out of range; allowed: 1 to 1000000",
              set({2, 0}));
  ExpectFails(STEPCAST_BAD_INPUT, "placement[2]: '-3' is out of range", set({2, 1, -3}));
  ExpectFails(STEPCAST_BAD_INPUT, "placement: '1000001' workers are too many", set({1'000'000, 1}));
  const int32_t one[] = {1};
  ExpectFails(STEPCAST_BAD_INPUT, "placement: is empty",
              [&](char** error) { return stepcast_query_set_placement(&query, one, 0, error); });
  ExpectFails(STEPCAST_BAD_INPUT, "placement: '1000001' nodes are too many", [&](char** error) {
    return stepcast_query_set_placement(&query, one, 1'000'001, error);
  });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "query is NULL",
              [&](char** error) { return stepcast_query_set_placement(nullptr, one, 1, error); });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "devices is NULL", [&](char** error) {
    return stepcast_query_set_placement(&query, nullptr, 1, error);
  });
  EXPECT_EQ(query.workers, 10) << "what is refused changes nothing";
  stepcast_query of_no_size = {};
  ExpectFails(STEPCAST_BAD_ARGUMENT, "struct_size of query", [&](char** error) {
    return stepcast_query_set_placement(&of_no_size, one, 1, error);
  });
}

TEST(CapiCompiled, SaysWhyThereIsNoAnswer) {
  const Both both = CompileBoth();
  const auto ask = [&](void (*change)(stepcast_query*)) {
    stepcast_query query = OwnQuery(both.c);
    change(&query);
    auto forecast = Sized<stepcast_forecast>();
    forecast.step_time_s = 1;
    EXPECT_EQ(stepcast_compiled_predict(both.c.get(), &query, &forecast), STEPCAST_NO_ANSWER);
    EXPECT_TRUE(std::isnan(forecast.step_time_s));
    EXPECT_TRUE(std::isnan(forecast.low_s));
    EXPECT_TRUE(std::isnan(forecast.high_s));
    EXPECT_TRUE(std::isnan(forecast.log_sd));
    EXPECT_TRUE(std::isnan(stepcast_compiled_step_time_s(both.c.get(), &query)));
    return forecast.status;
  };
  EXPECT_EQ(ask([](stepcast_query* q) { q->workers = 0; }), STEPCAST_QUERY_BAD_PLACEMENT);
  EXPECT_EQ(ask([](stepcast_query* q) { q->workers = 13; }), STEPCAST_QUERY_BAD_PLACEMENT);
  EXPECT_EQ(ask([](stepcast_query* q) { q->nodes = -3; }), STEPCAST_QUERY_BAD_PLACEMENT);
  EXPECT_EQ(ask([](stepcast_query* q) { q->servers = 1; }), STEPCAST_QUERY_BAD_SERVERS);
  EXPECT_EQ(ask([](stepcast_query* q) { q->local_batch = 0; }), STEPCAST_QUERY_BAD_BATCH);
  EXPECT_EQ(ask([](stepcast_query* q) { q->accumulation_steps = INT32_MAX; }),
            STEPCAST_QUERY_BAD_BATCH);
  EXPECT_EQ(ask([](stepcast_query* q) { q->workers = q->nodes = q->devices_per_node = INT32_MIN; }),
            STEPCAST_QUERY_BAD_PLACEMENT);
  // A query that is cleared rather than asked for states a link without bandwidth.
  EXPECT_EQ(
      ask([](stepcast_query* q) { *q = {sizeof *q, 4, 1, 4, 0, 32, 1, 0, 0, 0, 0, 0, 0, 0}; }),
      STEPCAST_QUERY_BAD_LINK);
  EXPECT_EQ(ask([](stepcast_query* q) { q->slow_nodes = 1; }), STEPCAST_QUERY_BAD_SLOW_NODES);
}

// Programs that were built before queries had slow nodes ask for the plan's own.
TEST(CapiCompiled, AsksForAnyNumberOfSlowNodes) {
  const PlanHandle plan = UnequalPlanHandle();
  SetText(plan, "slow_nodes", "1");
  SetText(plan, "slow_speed", "0.5");
  const CompiledHandle compiled = Compile(FittedPredictorHandle(), plan);
  stepcast_query query = OwnQuery(compiled);
  EXPECT_EQ(query.slow_nodes, 1);
  const auto time_s = [&] { return stepcast_compiled_step_time_s(compiled.get(), &query); };
  const double own_s = time_s();
  query.slow_nodes = 0;
  const double none_s = time_s();
  EXPECT_LT(none_s, own_s);
  Plan same = UnequalPlan();
  EXPECT_NEAR(none_s / FittedPredictor().Predict(same).step_time.si(), 1, 1e-12);
  query.struct_size = offsetof(stepcast_query, slow_nodes);
  EXPECT_EQ(time_s(), own_s);

  const int32_t slow_nodes[] = {0, 1, 4, 3};
  double times_s[4];
  int32_t status[4];
  auto arrays = Sized<stepcast_query_arrays>();
  arrays.count = 4;
  arrays.slow_nodes = slow_nodes;
  auto answers = Sized<stepcast_forecast_arrays>();
  answers.step_time_s = times_s;
  answers.status = status;
  std::size_t unanswered = 0;
  ASSERT_EQ(stepcast_compiled_predict_many(compiled.get(), &arrays, &answers, &unanswered),
            STEPCAST_OK);
  EXPECT_EQ(unanswered, 1U);
  EXPECT_EQ(times_s[0], none_s);
  EXPECT_NEAR(times_s[1] / own_s, 1, 1e-12);
  EXPECT_EQ(status[2], STEPCAST_QUERY_BAD_SLOW_NODES);
  arrays.struct_size = offsetof(stepcast_query_arrays, slow_nodes);
  ASSERT_EQ(stepcast_compiled_predict_many(compiled.get(), &arrays, &answers, &unanswered),
            STEPCAST_OK);
  EXPECT_EQ(unanswered, 0U);
  EXPECT_NEAR(times_s[0] / own_s, 1, 1e-12);

  auto allocations = Sized<stepcast_allocation_arrays>();
  allocations.count = 2;
  allocations.slow_nodes = slow_nodes;
  stepcast_batch_search search = Sized<stepcast_batch_search>();
  ASSERT_EQ(stepcast_batch_search_init(&search), STEPCAST_OK);
  search.least_local_batch = search.most_local_batch = 32;
  search.accumulate = 0;
  auto choices = Sized<stepcast_batch_choice_arrays>();
  choices.step_time_s = times_s;
  ASSERT_EQ(stepcast_compiled_choose_batches(compiled.get(), &allocations, &search, &choices,
                                             &unanswered),
            STEPCAST_OK);
  EXPECT_NEAR(times_s[0] / none_s, 1, 1e-12);
  EXPECT_NEAR(times_s[1] / own_s, 1, 1e-12);
}

TEST(CapiCompiled, KeepsStrategiesAndBounds) {
  const PlanHandle plan = UnequalPlanHandle();
  SetText(plan, "strategy", "auto");
  const PredictorHandle predictor = FittedPredictorHandle();
  Plan same = UnequalPlan();
  same.strategy = Strategy::kAuto;
  EXPECT_STREQ(stepcast_compiled_strategy(Compile(predictor, plan).get()),
               StrategyName(FittedPredictor().Predict(same).algorithm));

  SetText(plan, "strategy", "ps-async");
  SetNumber(plan, "servers", 1);
  auto options = Sized<stepcast_compile_options>();
  ASSERT_EQ(stepcast_compile_options_init(&options), STEPCAST_OK);
  EXPECT_EQ(options.most_servers, CompileOptions().most_servers);
  options.most_servers = 2;
  const auto compiled = Get<CompiledHandle>([&](stepcast_compiled** made, char** error) {
    return stepcast_compiled_create(predictor.get(), plan.get(), &options, made, error);
  });
  stepcast_query query = OwnQuery(compiled);
  auto forecast = Sized<stepcast_forecast>();
  query.servers = 2;
  EXPECT_EQ(stepcast_compiled_predict(compiled.get(), &query, &forecast), STEPCAST_OK);
  query.servers = 3;
  EXPECT_EQ(stepcast_compiled_predict(compiled.get(), &query, &forecast), STEPCAST_NO_ANSWER);
  EXPECT_EQ(forecast.status, STEPCAST_QUERY_BAD_SERVERS);
}

TEST(CapiCompiled, NeedsNoOtherHandle) {
  CompiledHandle compiled;
  {
    const PredictorHandle predictor = FittedPredictorHandle();
    compiled = Compile(predictor, UnequalPlanHandle());
  }
  const stepcast_query query = OwnQuery(compiled);
  EXPECT_PRED2(SameBits, stepcast_compiled_step_time_s(compiled.get(), &query),
               CompileBoth().cpp.StepTime(QueryOf(UnequalPlan())).si());
}

// ---- What is refused

TEST(CapiCompiled, RefusesBadPlans) {
  const PredictorHandle predictor = FittedPredictorHandle();
  const PlanHandle plan = UnequalPlanHandle();
  SetText(plan, "strategy", "ps-sync");
  stepcast_compiled* made = nullptr;
  ExpectFails(STEPCAST_BAD_INPUT, "servers: are required", [&](char** error) {
    return stepcast_compiled_create(predictor.get(), plan.get(), nullptr, &made, error);
  });
  EXPECT_EQ(made, nullptr);
}

TEST(CapiCompiled, RefusesNull) {
  const PredictorHandle predictor = FittedPredictorHandle();
  const PlanHandle plan = UnequalPlanHandle();
  stepcast_compiled* made = nullptr;
  ExpectFails(STEPCAST_BAD_ARGUMENT, "predictor is NULL", [&](char** error) {
    return stepcast_compiled_create(nullptr, plan.get(), nullptr, &made, error);
  });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "plan is NULL", [&](char** error) {
    return stepcast_compiled_create(predictor.get(), nullptr, nullptr, &made, error);
  });
  ExpectFails(STEPCAST_BAD_ARGUMENT, "the place of the result is NULL", [&](char** error) {
    return stepcast_compiled_create(predictor.get(), plan.get(), nullptr, nullptr, error);
  });
  EXPECT_EQ(stepcast_compile_options_init(nullptr), STEPCAST_BAD_ARGUMENT);
  EXPECT_EQ(stepcast_batch_search_init(nullptr), STEPCAST_BAD_ARGUMENT);

  const CompiledHandle compiled = Compile(predictor, plan);
  stepcast_query query = OwnQuery(compiled);
  auto forecast = Sized<stepcast_forecast>();
  EXPECT_EQ(stepcast_compiled_get_query(nullptr, &query), STEPCAST_BAD_ARGUMENT);
  EXPECT_EQ(stepcast_compiled_get_query(compiled.get(), nullptr), STEPCAST_BAD_ARGUMENT);
  EXPECT_EQ(stepcast_compiled_predict(nullptr, &query, &forecast), STEPCAST_BAD_ARGUMENT);
  EXPECT_EQ(stepcast_compiled_predict(compiled.get(), nullptr, &forecast), STEPCAST_BAD_ARGUMENT);
  EXPECT_EQ(stepcast_compiled_predict(compiled.get(), &query, nullptr), STEPCAST_BAD_ARGUMENT);
  EXPECT_EQ(forecast.step_time_s, 0) << "what is refused fills nothing";
  EXPECT_TRUE(std::isnan(stepcast_compiled_step_time_s(nullptr, &query)));
  EXPECT_TRUE(std::isnan(stepcast_compiled_step_time_s(compiled.get(), nullptr)));
  EXPECT_EQ(stepcast_compiled_most_local_batch(nullptr, &query), -1);
  EXPECT_EQ(stepcast_compiled_most_local_batch(compiled.get(), nullptr), -1);

  const auto queries = Sized<stepcast_query_arrays>();
  const auto answers = Sized<stepcast_forecast_arrays>();
  std::size_t unanswered = 99;
  const auto many = [&](const auto* c, const auto* q, const auto* a) {
    return stepcast_compiled_predict_many(c, q, a, &unanswered);
  };
  const stepcast_compiled* none = nullptr;
  EXPECT_EQ(many(none, &queries, &answers), STEPCAST_BAD_ARGUMENT);
  EXPECT_EQ(many(compiled.get(), static_cast<stepcast_query_arrays*>(nullptr), &answers),
            STEPCAST_BAD_ARGUMENT);
  EXPECT_EQ(many(compiled.get(), &queries, static_cast<stepcast_forecast_arrays*>(nullptr)),
            STEPCAST_BAD_ARGUMENT);
  EXPECT_EQ(unanswered, 99U);
  EXPECT_EQ(many(compiled.get(), &queries, &answers), STEPCAST_OK) << "of none";
  EXPECT_EQ(unanswered, 0U);

  const auto allocations = Sized<stepcast_allocation_arrays>();
  const auto choices = Sized<stepcast_batch_choice_arrays>();
  auto search = Sized<stepcast_batch_search>();
  ASSERT_EQ(stepcast_batch_search_init(&search), STEPCAST_OK);
  const auto choose = [&](const auto* c, const auto* a, const auto* s, const auto* o) {
    return stepcast_compiled_choose_batches(c, a, s, o, nullptr);
  };
  EXPECT_EQ(choose(none, &allocations, &search, &choices), STEPCAST_BAD_ARGUMENT);
  EXPECT_EQ(
      choose(compiled.get(), static_cast<stepcast_allocation_arrays*>(nullptr), &search, &choices),
      STEPCAST_BAD_ARGUMENT);
  EXPECT_EQ(
      choose(compiled.get(), &allocations, static_cast<stepcast_batch_search*>(nullptr), &choices),
      STEPCAST_BAD_ARGUMENT);
  EXPECT_EQ(choose(compiled.get(), &allocations, &search,
                   static_cast<stepcast_batch_choice_arrays*>(nullptr)),
            STEPCAST_BAD_ARGUMENT);
  EXPECT_EQ(choose(compiled.get(), &allocations, &search, &choices), STEPCAST_OK) << "of none";
}

// ---- Structs of other releases

TEST(Structs, OfAnotherSizeAreTakenOrRefused) {
  const PredictorHandle predictor = FittedPredictorHandle();
  const PlanHandle plan = UnequalPlanHandle();
  const CompiledHandle compiled = Compile(predictor, plan);

  Grown<stepcast_query> query{};
  query.known = OwnQuery(compiled);
  query.known.struct_size = sizeof query;
  Grown<stepcast_forecast> forecast{};
  forecast.known.struct_size = sizeof forecast;
  forecast.unknown = 7;
  EXPECT_EQ(stepcast_compiled_predict(compiled.get(), &query.known, &forecast.known), STEPCAST_OK);
  EXPECT_GT(forecast.known.step_time_s, 0);
  EXPECT_EQ(forecast.unknown, 0);
  EXPECT_EQ(forecast.known.struct_size, sizeof forecast);
  query.unknown = 1;  // something asked for that this library does not know
  EXPECT_EQ(stepcast_compiled_predict(compiled.get(), &query.known, &forecast.known),
            STEPCAST_BAD_ARGUMENT);
  EXPECT_TRUE(std::isnan(stepcast_compiled_step_time_s(compiled.get(), &query.known)));
  EXPECT_EQ(stepcast_compiled_most_local_batch(compiled.get(), &query.known), -1);

  Grown<stepcast_compile_options> options{};
  options.known.struct_size = sizeof options;
  options.unknown = 7;
  ASSERT_EQ(stepcast_compile_options_init(&options.known), STEPCAST_OK);
  EXPECT_EQ(options.unknown, 0) << "who begins with init asks for nothing unknown";
  stepcast_compiled* made = nullptr;
  ExpectWorks([&](char** error) {
    stepcast_compiled_free(made);
    return stepcast_compiled_create(predictor.get(), plan.get(), &options.known, &made, error);
  });
  stepcast_compiled_free(made);
  options.unknown = 1;
  ExpectFails(STEPCAST_BAD_ARGUMENT, "struct_size of options", [&](char** error) {
    return stepcast_compiled_create(predictor.get(), plan.get(), &options.known, &made, error);
  });

  auto own = OwnQuery(compiled);
  auto small = Sized<stepcast_forecast>();
  for (const std::size_t size :
       {std::size_t{0}, offsetof(stepcast_query, slow_nodes) - 8, ~std::size_t{0}}) {
    own.struct_size = size;
    EXPECT_EQ(stepcast_compiled_predict(compiled.get(), &own, &small), STEPCAST_BAD_ARGUMENT);
    EXPECT_EQ(stepcast_compiled_get_query(compiled.get(), &own), STEPCAST_BAD_ARGUMENT);
  }
  own = OwnQuery(compiled);
  small.struct_size = 0;
  EXPECT_EQ(stepcast_compiled_predict(compiled.get(), &own, &small), STEPCAST_BAD_ARGUMENT);

  Grown<stepcast_query_arrays> queries{};
  queries.known.struct_size = sizeof queries;
  Grown<stepcast_forecast_arrays> answers{};
  answers.known.struct_size = sizeof answers;
  EXPECT_EQ(stepcast_compiled_predict_many(compiled.get(), &queries.known, &answers.known, nullptr),
            STEPCAST_OK);
  queries.unknown = 1;
  EXPECT_EQ(stepcast_compiled_predict_many(compiled.get(), &queries.known, &answers.known, nullptr),
            STEPCAST_BAD_ARGUMENT);
  queries.unknown = 0;
  answers.unknown = 1;
  EXPECT_EQ(stepcast_compiled_predict_many(compiled.get(), &queries.known, &answers.known, nullptr),
            STEPCAST_BAD_ARGUMENT);
}

// ---- Many queries

// Every kind of question, with and without an answer.
struct ManyQueries {
  std::vector<int32_t> workers, nodes, devices_per_node, servers, local_batch, accumulation_steps;
  std::vector<double> bandwidth, rtt, loss;

  ManyQueries() {
    for (int32_t i = 0; i < static_cast<int32_t>(kMany); ++i) {
      nodes.push_back(1 + i % 5);
      devices_per_node.push_back(1 + i % 3);
      workers.push_back(nodes.back() * devices_per_node.back() + (i % 11 == 0 ? 1 : 0));
      servers.push_back(i % 17 == 0 ? 1 : 0);
      local_batch.push_back(i % 13 == 0 ? 0 : 8 * (1 + i % 7));
      accumulation_steps.push_back(1 + i % 4);
      bandwidth.push_back(i % 2 == 0 ? kNan : 1e8 * (1 + i % 9));
      rtt.push_back(i % 3 == 0 ? kNan : 1e-4 * (1 + i % 5));
      loss.push_back(i % 5 == 0 ? kNan : i % 19 == 0 ? 2.0 : 1e-4 * (i % 6));
    }
  }
  stepcast_query_arrays c() const {
    return {sizeof(stepcast_query_arrays),
            kMany,
            workers.data(),
            nodes.data(),
            devices_per_node.data(),
            servers.data(),
            local_batch.data(),
            accumulation_steps.data(),
            bandwidth.data(),
            rtt.data(),
            loss.data(),
            nullptr,
            0};
  }
  QueryArrays cpp() const {
    return {kMany,
            workers.data(),
            nodes.data(),
            devices_per_node.data(),
            servers.data(),
            local_batch.data(),
            accumulation_steps.data(),
            bandwidth.data(),
            rtt.data(),
            loss.data()};
  }
};

struct ManyAnswers {
  std::vector<double> step = std::vector<double>(kMany + 1, -1), low = step, high = step,
                      log_sd = step;
  std::vector<int32_t> status = std::vector<int32_t>(kMany + 1, -1);
  std::vector<QueryStatus> cpp_status = std::vector<QueryStatus>(kMany);

  stepcast_forecast_arrays c() {
    return {sizeof(stepcast_forecast_arrays),
            step.data(),
            low.data(),
            high.data(),
            log_sd.data(),
            status.data()};
  }
  ForecastArrays cpp() {
    return {step.data(), low.data(), high.data(), log_sd.data(), cpp_status.data()};
  }
};

TEST(CapiCompiled, ManyAreThoseOfTheArrays) {
  const Both both = CompileBoth();
  const ManyQueries queries;
  ManyAnswers c, cpp;
  const stepcast_query_arrays q = queries.c();
  const stepcast_forecast_arrays a = c.c();
  std::size_t unanswered = 0;
  ASSERT_EQ(stepcast_compiled_predict_many(both.c.get(), &q, &a, &unanswered), STEPCAST_OK);
  EXPECT_EQ(unanswered, both.cpp.PredictMany(queries.cpp(), cpp.cpp()));
  EXPECT_GT(unanswered, 0U);
  EXPECT_LT(unanswered, kMany / 2);
  for (std::size_t i = 0; i < kMany; ++i) {
    EXPECT_PRED2(SameBits, c.step[i], cpp.step[i]) << i;
    EXPECT_PRED2(SameBits, c.low[i], cpp.low[i]) << i;
    EXPECT_PRED2(SameBits, c.high[i], cpp.high[i]) << i;
    EXPECT_PRED2(SameBits, c.log_sd[i], cpp.log_sd[i]) << i;
    EXPECT_EQ(c.status[i], static_cast<int>(cpp.cpp_status[i])) << i;
  }
  EXPECT_EQ(c.step[kMany], -1) << "nothing is written behind the end";
  EXPECT_EQ(c.status[kMany], -1);
}

// With statuses, which are translated in pieces, and without; and a caller that knows no threads.
// Those that there are have little stack.
TEST(CapiCompiled, ThreadsChangeNothing) {
  const SmallStacks small;
  constexpr std::size_t kCount = 3 * kQueriesOfAThread + 5;
  const Both both = CompileBoth();
  std::vector<int32_t> batches;
  for (std::size_t i = 0; i < kCount; ++i) batches.push_back(static_cast<int32_t>(i % 100));
  struct Answers {
    std::vector<double> step = std::vector<double>(kCount);
    std::vector<int32_t> status = std::vector<int32_t>(kCount, -1);
    std::size_t unanswered = 0;
  };
  const auto ask = [&](std::size_t threads, bool with_status) {
    auto queries = Sized<stepcast_query_arrays>();
    queries.count = kCount;
    queries.local_batch = batches.data();
    queries.threads = threads;
    if (threads == 0) queries.struct_size = offsetof(stepcast_query_arrays, threads);
    Answers got;
    auto answers = Sized<stepcast_forecast_arrays>();
    answers.step_time_s = got.step.data();
    if (with_status) answers.status = got.status.data();
    EXPECT_EQ(stepcast_compiled_predict_many(both.c.get(), &queries, &answers, &got.unanswered),
              STEPCAST_OK);
    return got;
  };
  for (const bool with_status : {false, true}) {
    const Answers alone = ask(0, with_status);
    EXPECT_EQ(alone.unanswered, (kCount + 99) / 100) << "batches of 0";
    for (const std::size_t threads : {std::size_t{1}, std::size_t{3}, SIZE_MAX}) {
      const Answers shared = ask(threads, with_status);
      EXPECT_EQ(shared.unanswered, alone.unanswered);
      EXPECT_EQ(shared.status, alone.status);
      for (std::size_t i = 0; i < kCount; ++i) {
        ASSERT_PRED2(SameBits, shared.step[i], alone.step[i]) << i << " on " << threads;
      }
    }
  }
}

TEST(CapiCompiled, ManyOfTheirOwn) {
  const Both both = CompileBoth();
  // Where nothing is given all is the plan's own, and where nothing is wanted nothing is written.
  auto queries = Sized<stepcast_query_arrays>();
  queries.count = kMany;
  auto answers = Sized<stepcast_forecast_arrays>();
  EXPECT_EQ(stepcast_compiled_predict_many(both.c.get(), &queries, &answers, nullptr), STEPCAST_OK);
  std::vector<double> step(kMany);
  answers.step_time_s = step.data();
  EXPECT_EQ(stepcast_compiled_predict_many(both.c.get(), &queries, &answers, nullptr), STEPCAST_OK);
  const double own = both.cpp.StepTime(QueryOf(UnequalPlan())).si();
  for (const double one : step) EXPECT_NEAR(one / own, 1, 1e-14);
}

// ---- Batches for allocations

TEST(CapiCompiled, ChoosesBatches) {
  const Both both = CompileBoth();
  std::vector<Allocation> same;
  std::vector<int32_t> workers, nodes, devices_per_node, servers;
  for (int32_t i = 0; i < static_cast<int32_t>(kMany); ++i) {
    same.push_back({1 + i % 16, 1 + i % 4, i % 5, i % 29 == 0 ? 1 : 0});
    workers.push_back(same.back().workers);
    nodes.push_back(same.back().nodes);
    devices_per_node.push_back(same.back().devices_per_node);
    servers.push_back(same.back().servers);
  }
  const stepcast_allocation_arrays allocations = {
      sizeof allocations,      kMany,          workers.data(), nodes.data(),
      devices_per_node.data(), servers.data(), nullptr};
  auto search = Sized<stepcast_batch_search>();
  ASSERT_EQ(stepcast_batch_search_init(&search), STEPCAST_OK);
  EXPECT_EQ(search.candidates, BatchSearch().candidates);
  EXPECT_EQ(search.accumulate, 1);
  EXPECT_TRUE(std::isnan(search.noise_scale_samples));
  EXPECT_TRUE(std::isnan(search.initial_batch_samples));
  search.least_global_batch = 64;
  search.most_global_batch = 2048;
  search.least_local_batch = 4;
  search.candidates = 12;
  BatchSearch same_search;
  same_search.least_global_batch = 64;
  same_search.most_global_batch = 2048;
  same_search.least_local_batch = 4;
  same_search.candidates = 12;

  std::vector<int32_t> local_batch(kMany + 1, -1), accumulation_steps(kMany);
  std::vector<double> step(kMany), throughput(kMany), efficiency(kMany), goodput(kMany);
  const stepcast_batch_choice_arrays out = {
      sizeof out,    local_batch.data(), accumulation_steps.data(),
      step.data(),   throughput.data(),  efficiency.data(),
      goodput.data()};
  std::vector<BatchChoice> choices(kMany);
  const auto expect_same = [&] {
    std::size_t unanswered = 0;
    ASSERT_EQ(
        stepcast_compiled_choose_batches(both.c.get(), &allocations, &search, &out, &unanswered),
        STEPCAST_OK);
    EXPECT_EQ(unanswered, ChooseBatches(both.cpp, same.data(), kMany, same_search, choices.data()));
    EXPECT_GT(unanswered, 0U);
    EXPECT_LT(unanswered, kMany);
    for (std::size_t i = 0; i < kMany; ++i) {
      EXPECT_EQ(local_batch[i], choices[i].local_batch) << i;
      EXPECT_EQ(accumulation_steps[i], choices[i].accumulation_steps) << i;
      EXPECT_PRED2(SameBits, step[i], choices[i].step_time_s) << i;
      EXPECT_PRED2(SameBits, throughput[i], choices[i].throughput) << i;
      EXPECT_PRED2(SameBits, efficiency[i], choices[i].statistical_efficiency) << i;
      EXPECT_PRED2(SameBits, goodput[i], choices[i].goodput) << i;
    }
    EXPECT_EQ(local_batch[kMany], -1) << "nothing is written behind the end";
  };
  expect_same();
  search.noise_scale_samples = 4000;
  search.initial_batch_samples = 64;
  same_search.noise_scale = 4000;
  same_search.initial_batch = 64;
  expect_same();
  search.accumulate = 0;
  search.most_local_batch = 16;
  same_search.accumulate = false;
  same_search.most_local_batch = 16;
  expect_same();
}

TEST(CapiCompiled, ChoosesForThePlanItself) {
  const Both both = CompileBoth();
  auto allocations = Sized<stepcast_allocation_arrays>();
  allocations.count = 2;
  auto search = Sized<stepcast_batch_search>();
  ASSERT_EQ(stepcast_batch_search_init(&search), STEPCAST_OK);
  search.most_global_batch = 1024;
  auto out = Sized<stepcast_batch_choice_arrays>();
  int32_t local_batch[2] = {};
  out.local_batch = local_batch;
  ASSERT_EQ(stepcast_compiled_choose_batches(both.c.get(), &allocations, &search, &out, nullptr),
            STEPCAST_OK);
  const Allocation own = {10, 3, 4, 0};
  BatchSearch same;
  same.most_global_batch = 1024;
  BatchChoice choice;
  ASSERT_EQ(ChooseBatches(both.cpp, &own, 1, same, &choice), 0U);
  EXPECT_EQ(local_batch[0], choice.local_batch);
  EXPECT_EQ(local_batch[1], choice.local_batch);
}

TEST(CapiCompiled, RefusesSearchesOfNothing) {
  const CompiledHandle compiled = CompileBoth().c;
  auto allocations = Sized<stepcast_allocation_arrays>();
  allocations.count = 1;
  auto out = Sized<stepcast_batch_choice_arrays>();
  int32_t local_batch = 99;
  constexpr double kLeft = -99;  // as the search has it by itself
  out.local_batch = &local_batch;
  const auto choose = [&](void (*change)(stepcast_batch_search*)) {
    auto search = Sized<stepcast_batch_search>();
    EXPECT_EQ(stepcast_batch_search_init(&search), STEPCAST_OK);
    change(&search);
    return stepcast_compiled_choose_batches(compiled.get(), &allocations, &search, &out, nullptr);
  };
  EXPECT_EQ(choose([](stepcast_batch_search* s) { s->least_global_batch = 0; }),
            STEPCAST_BAD_INPUT);
  EXPECT_EQ(choose([](stepcast_batch_search* s) { s->least_local_batch = 0; }), STEPCAST_BAD_INPUT);
  EXPECT_EQ(choose([](stepcast_batch_search* s) { s->most_local_batch = -1; }), STEPCAST_BAD_INPUT);
  EXPECT_EQ(choose([](stepcast_batch_search* s) { s->candidates = -1; }), STEPCAST_BAD_INPUT);
  const auto goodput = [&](double noise_scale, double initial_batch) {
    auto search = Sized<stepcast_batch_search>();
    EXPECT_EQ(stepcast_batch_search_init(&search), STEPCAST_OK);
    if (noise_scale != kLeft) search.noise_scale_samples = noise_scale;
    if (initial_batch != kLeft) search.initial_batch_samples = initial_batch;
    return stepcast_compiled_choose_batches(compiled.get(), &allocations, &search, &out, nullptr);
  };
  EXPECT_EQ(goodput(-1, 64), STEPCAST_BAD_INPUT);
  EXPECT_EQ(goodput(INFINITY, 64), STEPCAST_BAD_INPUT);
  EXPECT_EQ(goodput(4000, 0), STEPCAST_BAD_INPUT);
  EXPECT_EQ(goodput(4000, INFINITY), STEPCAST_BAD_INPUT);
  EXPECT_EQ(goodput(4000, kLeft), STEPCAST_BAD_INPUT) << "half of what goodput takes";
  EXPECT_EQ(goodput(kLeft, 64), STEPCAST_BAD_INPUT);
  EXPECT_EQ(local_batch, 99) << "what is refused fills nothing";
  EXPECT_EQ(choose([](stepcast_batch_search* s) { s->most_global_batch = 0; }), STEPCAST_BAD_INPUT);
  EXPECT_EQ(local_batch, 99);
  EXPECT_EQ(goodput(4000, 64), STEPCAST_OK);
  EXPECT_GT(local_batch, 0);
  EXPECT_EQ(goodput(0, 1), STEPCAST_OK) << "all gradients alike";
  EXPECT_EQ(goodput(0, 0.5), STEPCAST_BAD_INPUT) << "half a sample";
  // A range without a batch is a search that finds none.
  EXPECT_EQ(choose([](stepcast_batch_search* s) {
              s->least_global_batch = 10;
              s->most_global_batch = 9;
            }),
            STEPCAST_OK);
  EXPECT_EQ(local_batch, 0);
}

// ---- Threads

TEST(Threads, AskOneHandle) {
  const Both both = CompileBoth();
  const PredictorHandle predictor = FittedPredictorHandle();
  const PlanHandle plan = UnequalPlanHandle();
  const ManyQueries queries;
  stepcast_query_arrays q = queries.c();
  q.count = 500;
  ManyAnswers expected;
  const stepcast_forecast_arrays expected_arrays = expected.c();
  ASSERT_EQ(stepcast_compiled_predict_many(both.c.get(), &q, &expected_arrays, nullptr),
            STEPCAST_OK);
  const stepcast_query own = OwnQuery(both.c);
  auto own_forecast = Sized<stepcast_forecast>();
  ASSERT_EQ(stepcast_compiled_predict(both.c.get(), &own, &own_forecast), STEPCAST_OK);

  std::vector<int> wrong(8);
  std::vector<std::thread> threads;
  for (int& count : wrong) {
    threads.emplace_back([&] {
      for (int round = 0; round < 5; ++round) {
        ManyAnswers answers;
        const stepcast_forecast_arrays a = answers.c();
        if (stepcast_compiled_predict_many(both.c.get(), &q, &a, nullptr) != STEPCAST_OK) ++count;
        if (answers.status != expected.status) ++count;
        for (std::size_t i = 0; i < q.count; ++i) {
          if (!SameBits(answers.step[i], expected.step[i])) ++count;
        }
        stepcast_query query = Sized<stepcast_query>();
        auto forecast = Sized<stepcast_forecast>();
        if (stepcast_compiled_get_query(both.c.get(), &query) != STEPCAST_OK) ++count;
        if (stepcast_compiled_predict(both.c.get(), &query, &forecast) != STEPCAST_OK) ++count;
        if (!SameBits(forecast.step_time_s, own_forecast.step_time_s)) ++count;
        stepcast_prediction* made = nullptr;
        char* error = nullptr;
        if (stepcast_predictor_predict(predictor.get(), plan.get(), &made, &error) != STEPCAST_OK) {
          ++count;
        }
        stepcast_prediction_free(made);
        stepcast_text_free(error);
        stepcast_compiled* compiled = nullptr;
        if (stepcast_compiled_create(predictor.get(), plan.get(), nullptr, &compiled, nullptr) !=
            STEPCAST_OK) {
          ++count;
        }
        stepcast_compiled_free(compiled);
        stepcast_workload* none = nullptr;
        if (stepcast_workload_find("no such", &none, &error) != STEPCAST_NOT_FOUND) ++count;
        stepcast_text_free(error);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int count : wrong) EXPECT_EQ(count, 0);
}

}  // namespace
}  // namespace stepcast
