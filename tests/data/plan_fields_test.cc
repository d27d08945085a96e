// The parts of a plan as flags and as columns, and the one check that every plan passes.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "data/plan/bucket_words.h"
#include "data/plan/check.h"
#include "data/plan/fields.h"
#include "data/plan/key.h"
#include "data/plan/limits.h"
#include "data/plan/si_range.h"
#include "tests/support/changed_plans.h"
#include "tests/support/input_error.h"
#include "tests/support/members.h"

namespace stepcast {
namespace {

const InputPlace kPlace{"runs.csv", 7, "column"};

Plan ReadFlag(const std::string& flag, const std::string& text, Plan plan = {}) {
  FindPlanField(flag)->read_flag(text, kPlace, &plan);
  return plan;
}

Plan ReadColumn(const std::string& flag, const std::string& text, Plan plan = {}) {
  FindPlanField(flag)->read_column(text, kPlace, &plan);
  return plan;
}

Plan With(Strategy strategy, int servers = 0) {
  Plan plan;
  plan.placement = {2, 2};
  plan.strategy = strategy;
  plan.servers = servers;
  return plan;
}

TEST(PlanFields, NamesAreUniqueAndSpelledAlike) {
  std::set<std::string> flags;
  std::set<std::string> columns;
  for (const PlanField& field : PlanFields()) {
    const std::string flag = field.flag;
    const std::string column = field.column;
    EXPECT_TRUE(flags.insert(flag).second) << flag;
    EXPECT_TRUE(columns.insert(column).second) << column;
    EXPECT_EQ(flag.find('_'), std::string::npos) << flag;
    EXPECT_EQ(column.find('-'), std::string::npos) << column;
    EXPECT_FALSE(std::string(field.help).empty()) << flag;
    EXPECT_EQ(FindPlanField(flag), &field);
    // A column with a unit says it in its name.
    if (field.unit != nullptr && *field.unit != '\0') {
      EXPECT_NE(column.rfind('_'), std::string::npos) << column;
    }
  }
  EXPECT_EQ(FindPlanField("workers"), nullptr);
  EXPECT_EQ(FindPlanField(""), nullptr);
}

TEST(PlanFields, AnErrorOfAPlanIsOneOfTheColumnWhereARowStatesIt) {
  const InputError error({"", 0, "rtt"}, "-1", "is out of range", "at least 0");
  EXPECT_STREQ(InRow(error, {"runs.csv", 7, "else"}).what(),
               "runs.csv:7: rtt_ms: '-1' is out of range; allowed: at least 0");
  const auto column = [](const std::string& key) {
    return InRow(InputError({"f", 1, key}, "", "is wrong"), {"r", 2, ""}).place().key;
  };
  EXPECT_EQ(column("--local-batch"), "local_batch");
  EXPECT_EQ(column("--device"), "device") << "no field of a plan";
  EXPECT_EQ(column("link.rtt"), "link.rtt");
}

// The members of a plan that listed fields are, or are parts of; and how many are parts.
struct Listed {
  Plan plan;
  std::set<const void*> members;
  std::size_t parts = 0;

  template <auto Member>
  void Add(FieldAt<Member> /*field*/) {
    members.insert(&(plan.*Member));
  }
  template <auto Part, auto Member>
  void Add(FieldAt<Part, Member> /*field*/) {
    members.insert(&(plan.*Part));
    ++parts;
  }
};

TEST(PlanFields, EachMemberOfAPlanIsListed) {
  Listed listed;
  ForEachField([&](const FieldFacts& /*facts*/, auto field) { listed.Add(field); });
  EXPECT_EQ(listed.members.size(), CountMembers<Plan>())
      << "data/plan/field_list.h lacks a member of a plan";
  EXPECT_EQ(listed.parts, 2 * CountMembers<LinkFacts>() + CountMembers<ServerOptions>())
      << "data/plan/field_list.h lacks a fact of a link, or an option of servers";
}

TEST(PlanFields, TheContractOfNames) {
  const char* const flags[] = {"placement",
                               "hosts",
                               "strategy",
                               "servers",
                               "local-batch",
                               "accumulation",
                               "bandwidth",
                               "server-bandwidth",
                               "rtt",
                               "loss",
                               "congestion-control",
                               "transport",
                               "loss-burst",
                               "bucket",
                               "overlap",
                               "backup-workers",
                               "bytes-per-parameter",
                               "colocated-servers",
                               "sharding",
                               "pipelined-servers",
                               "multicast",
                               "in-network-aggregation",
                               "local-aggregation",
                               "staleness-bound"};
  for (const char* flag : flags) EXPECT_NE(FindPlanField(flag), nullptr) << flag;
  const char* const columns[] = {"placement",
                                 "hosts",
                                 "strategy",
                                 "servers",
                                 "local_batch",
                                 "accumulation_steps",
                                 "link_gbit_per_s",
                                 "server_link_gbit_per_s",
                                 "rtt_ms",
                                 "loss_rate",
                                 "congestion_control",
                                 "loss_burst_ms",
                                 "bucket_mib",
                                 "overlap",
                                 "backup_workers",
                                 "bytes_per_parameter",
                                 "colocated_servers",
                                 "sharding",
                                 "pipelined_servers",
                                 "multicast",
                                 "in_network_aggregation",
                                 "local_aggregation",
                                 "staleness_bound"};
  std::set<std::string> known;
  for (const PlanField& field : PlanFields()) known.insert(field.column);
  for (const char* column : columns) EXPECT_EQ(known.count(column), 1U) << column;
}

TEST(PlanFields, AStrategyComesBeforeWhatDependsOnIt) {
  bool seen = false;
  for (const PlanField& field : PlanFields()) {
    const std::string flag = field.flag;
    if (flag == "strategy") seen = true;
    if (flag == "servers" || flag == "staleness-bound" || flag == "multicast") {
      EXPECT_TRUE(seen) << flag;
    }
  }
}

TEST(PlanFields, FlagsCarryTheirUnitAndColumnsHaveIt) {
  EXPECT_EQ(ReadFlag("bandwidth", "10 Gbit/s").link.bandwidth, GigabitsPerSecond(10.0));
  EXPECT_EQ(ReadColumn("bandwidth", "10").link.bandwidth, GigabitsPerSecond(10.0));
  EXPECT_EQ(ReadFlag("server-bandwidth", "100 Mbit/s").server_link.bandwidth,
            MegabitsPerSecond(100.0));
  EXPECT_EQ(ReadFlag("rtt", "500 us").link.rtt, Microseconds(500.0));
  EXPECT_EQ(ReadColumn("rtt", "2").link.rtt, Milliseconds(2.0));
  EXPECT_EQ(ReadFlag("loss-burst", "1 ms").link.loss_burst, Milliseconds(1.0));
  EXPECT_EQ(ReadColumn("loss-burst", "1.5").link.loss_burst, Milliseconds(1.5));
  EXPECT_EQ(ReadColumn("loss-burst", "0").link.loss_burst, Milliseconds(0.0)) << "0 is known";
  EXPECT_EQ(ReadFlag("bucket", "25 MiB").bucket, Mebibytes(25.0));
  EXPECT_TRUE(
      Says(ErrorOf([] { ReadFlag("loss-burst", "1"); }), "runs.csv:7: column: '1' has no unit"));
  EXPECT_TRUE(Says(ErrorOf([] { ReadColumn("loss-burst", "1 ms"); }), "'1 ms' is not a number"));
  EXPECT_TRUE(Says(ErrorOf([] { ReadColumn("bucket", "0"); }),
                   "'0' is out of range; allowed: a number from 9.53674e-07 to 1e+09, or tensor: "
                   "each tensor by itself; one-message: all gradients together"));
  for (const BucketWord& word : kBucketWords) {
    const std::string text(word.word);
    EXPECT_EQ(ReadFlag("bucket", text).bucket, word.cap);
    EXPECT_EQ(ReadColumn("bucket", text).bucket, word.cap);
    EXPECT_EQ(ReadColumn("bucket", FindPlanField("bucket")->write(ReadFlag("bucket", text))).bucket,
              word.cap);
    EXPECT_TRUE(Says(ErrorOf([] { ReadFlag("bucket", "0 MiB"); }), text));
  }
  EXPECT_EQ(ReadFlag("bucket", "Tensor").bucket, kBucketPerTensor.cap);
  EXPECT_EQ(ReadColumn("bucket", "One message").bucket, kOneMessage.cap);
  EXPECT_TRUE(Says(ErrorOf([] { ReadColumn("bandwidth", "-1"); }), "'-1' is out of range"));
  // The largest bucket is the word for all gradients together; nothing is larger.
  EXPECT_NO_THROW(ReadFlag("bucket", "1000000000 MiB"));
  EXPECT_TRUE(Says(ErrorOf([] { ReadFlag("bucket", "1000000001 MiB"); }),
                   "'1000000001 MiB' is out of range; allowed: from 1 B to 10^9 MiB"));
}

TEST(PlanFields, Words) {
  EXPECT_EQ(ReadFlag("congestion-control", " bbr ").link.congestion_control,
            CongestionControl::kBbr);
  EXPECT_EQ(ReadFlag("overlap", "p-norm").overlap, Overlap::kPNorm);
  EXPECT_EQ(ReadFlag("sharding", "even").server.sharding, Sharding::kEven);
  EXPECT_EQ(ReadFlag("strategy", "byteps").strategy, Strategy::kBytePs);
  EXPECT_EQ(ReadFlag("strategy", "auto").strategy, Strategy::kAuto);
  EXPECT_TRUE(Says(ErrorOf([] { ReadFlag("congestion-control", "vegas"); }),
                   "runs.csv:7: column: 'vegas' is not a known congestion control; allowed: reno, "
                   "cubic, bbr"));
  EXPECT_TRUE(Says(ErrorOf([] { ReadFlag("overlap", "full"); }),
                   "'full' is not a way to overlap; allowed: buckets, none, p-norm"));
  EXPECT_TRUE(
      Says(ErrorOf([] { ReadFlag("sharding", "tensors"); }),
           "'tensors' is not a way to shard (did you mean tensor?); allowed: tensor, even"));
}

TEST(PlanFields, YesAndNo) {
  const struct {
    const char* flag;
    std::function<bool(const Plan&)> value;
  } fields[] = {
      {"colocated-servers", [](const Plan& p) { return p.server.colocated; }},
      {"pipelined-servers", [](const Plan& p) { return p.server.pipelined; }},
      {"multicast", [](const Plan& p) { return p.server.multicast; }},
      {"in-network-aggregation", [](const Plan& p) { return p.server.in_network_aggregation; }},
      {"local-aggregation", [](const Plan& p) { return p.server.local_aggregation; }}};
  for (const auto& field : fields) {
    EXPECT_EQ(FindPlanField(field.flag)->placeholder, nullptr) << "a flag without a value";
    EXPECT_FALSE(field.value(Plan())) << field.flag;
    const Plan yes = ReadColumn(field.flag, " yes ");
    EXPECT_TRUE(field.value(yes)) << field.flag;
    EXPECT_FALSE(field.value(ReadColumn(field.flag, "no", yes))) << field.flag;
    EXPECT_EQ(FindPlanField(field.flag)->write(yes), "yes");
    EXPECT_EQ(FindPlanField(field.flag)->write(Plan()), "");
    EXPECT_TRUE(field.value(ReadColumn(field.flag, "Yes"))) << field.flag;
    EXPECT_FALSE(field.value(ReadColumn(field.flag, "NO", yes))) << field.flag;
    for (const char* word : {"true", "1", "y", "", "yesno"}) {
      EXPECT_TRUE(Says(ErrorOf([&] { ReadColumn(field.flag, word); }),
                       "is neither yes nor no; allowed: yes, no"))
          << field.flag << " " << word;
    }
  }
}

TEST(PlanFields, Counts) {
  EXPECT_EQ(ReadFlag("staleness-bound", "0").server.staleness_bound, 0);
  EXPECT_EQ(ReadFlag("backup-workers", "3").backup_workers, 3);
  EXPECT_EQ(FindPlanField("staleness-bound")->write(ReadFlag("staleness-bound", "0")), "0")
      << "a bound of 0 is a bound";
  for (const char* flag : {"staleness-bound", "backup-workers"}) {
    for (const char* text : {"-1", "1.5", "many", "1000001"}) {
      EXPECT_TRUE(Says(ErrorOf([&] { ReadFlag(flag, text); }), std::string("'") + text + "'"))
          << flag << " " << text;
    }
  }
}

// What is written is what a plan says beyond the defaults.
TEST(PlanFields, ADefaultPlanWritesOnlyWhatEveryPlanHas) {
  std::set<std::string> written;
  for (const PlanField& field : PlanFields()) {
    if (!field.write(Plan()).empty()) written.insert(field.flag);
  }
  EXPECT_EQ(written, (std::set<std::string>{"placement", "strategy", "servers", "local-batch"}));
}

// ---- The check.

TEST(CheckPlan, EveryStrategyHasAPlan) {
  for (int i = 0; i < kStrategyCount; ++i) {
    const auto strategy = static_cast<Strategy>(i);
    EXPECT_NO_THROW(CheckPlan(With(strategy, UsesServers(strategy) ? 2 : 0)));
  }
  EXPECT_NO_THROW(CheckPlan(With(Strategy::kBytePs, 3))) << "helpers";
  EXPECT_NO_THROW(CheckPlan(Plan()));
}

TEST(CheckPlan, OptionsOfServersNeedServers) {
  const struct {
    const char* flag;
    void (*set)(Plan*);
    bool sync;
    bool async;
  } options[] = {
      {"colocated-servers", [](Plan* p) { p->server.colocated = true; }, true, true},
      {"sharding", [](Plan* p) { p->server.sharding = Sharding::kEven; }, true, true},
      {"pipelined-servers", [](Plan* p) { p->server.pipelined = true; }, true, false},
      {"multicast", [](Plan* p) { p->server.multicast = true; }, true, false},
      {"in-network-aggregation", [](Plan* p) { p->server.in_network_aggregation = true; }, true,
       false},
      {"local-aggregation", [](Plan* p) { p->server.local_aggregation = true; }, true, false},
      {"staleness-bound", [](Plan* p) { p->server.staleness_bound = 0; }, false, true}};
  for (const auto& option : options) {
    for (int i = 0; i < kStrategyCount; ++i) {
      const auto strategy = static_cast<Strategy>(i);
      Plan plan = With(strategy, UsesServers(strategy) ? 2 : 0);
      option.set(&plan);
      const bool allowed = (strategy == Strategy::kPsSync && option.sync) ||
                           (strategy == Strategy::kPsAsync && option.async);
      if (allowed) {
        EXPECT_NO_THROW(CheckPlan(plan)) << option.flag << " " << StrategyName(strategy);
        continue;
      }
      const auto error = ErrorOf([&] { CheckPlan(plan); });
      EXPECT_TRUE(Says(error, std::string(option.flag) + ":"));
      EXPECT_TRUE(Says(error, std::string("with strategy ") + StrategyName(strategy)));
      EXPECT_TRUE(Says(error, "allowed: strategy ps-"));
    }
  }
}

// Whatever a plan says, with any strategy the check finds nothing that the strategy cannot have.
RC_GTEST_PROP(WithStrategy, DropsWhatTheCheckRefuses, ()) {
  Plan plan;
  plan.placement = {4, 4};
  plan.strategy = static_cast<Strategy>(*rc::gen::inRange(0, kStrategyCount));
  plan.servers = *rc::gen::inRange(0, 4);
  plan.backup_workers = *rc::gen::inRange(0, 8);
  plan.server.colocated = *rc::gen::arbitrary<bool>();
  plan.server.pipelined = *rc::gen::arbitrary<bool>();
  plan.server.multicast = *rc::gen::arbitrary<bool>();
  plan.server.in_network_aggregation = *rc::gen::arbitrary<bool>();
  plan.server.local_aggregation = *rc::gen::arbitrary<bool>();
  if (*rc::gen::arbitrary<bool>()) plan.server.sharding = Sharding::kEven;
  if (*rc::gen::arbitrary<bool>()) plan.server.staleness_bound = 2;
  if (!plan.server.colocated && *rc::gen::arbitrary<bool>()) {
    plan.server_link.bandwidth = GigabitsPerSecond(1.0);
  }
  if (!plan.server.pipelined) {
    plan.overlap = static_cast<Overlap>(*rc::gen::inRange(0, kOverlapCount));
  }
  const auto strategy = static_cast<Strategy>(*rc::gen::inRange(0, kStrategyCount));
  Plan changed = WithStrategy(plan, strategy);
  RC_ASSERT(changed.strategy == strategy);
  if (UsesServers(strategy) && changed.servers == 0) changed.servers = 1;
  CheckPlan(changed);
  // A plan that is right as it is stays as it is.
  const Plan same = WithStrategy(changed, strategy);
  for (const PlanField& field : PlanFields()) RC_ASSERT(field.write(same) == field.write(changed));
}

TEST(WithStrategy, KeepsWhatTheStrategyCanHave) {
  Plan plan = With(Strategy::kAllreduce, 2);
  plan.server.multicast = true;
  plan.server.colocated = true;
  plan.backup_workers = 1;
  EXPECT_TRUE(WithStrategy(plan, Strategy::kPsSync).server.multicast);
  EXPECT_EQ(WithStrategy(plan, Strategy::kPsSync).backup_workers, 1);
  const Plan async = WithStrategy(plan, Strategy::kPsAsync);
  EXPECT_TRUE(async.server.colocated && !async.server.multicast);
  EXPECT_EQ(async.servers, 2);
  EXPECT_EQ(async.backup_workers, 0);
  EXPECT_EQ(WithStrategy(plan, Strategy::kBytePs).servers, 2) << "helpers";
  EXPECT_EQ(WithStrategy(plan, Strategy::kRing).servers, 0);
  plan.server.colocated = false;
  plan.server_link.bandwidth = GigabitsPerSecond(1.0);
  EXPECT_TRUE(WithStrategy(plan, Strategy::kBytePs).server_link.bandwidth);
  plan.servers = 0;
  EXPECT_TRUE(WithStrategy(plan, Strategy::kPsSync).server_link.bandwidth) << "they are to come";
  EXPECT_FALSE(WithStrategy(plan, Strategy::kBytePs).server_link.bandwidth);
}

TEST(CheckPlan, BackupWorkersAreFewerThanWorkersOfASynchronousStep) {
  Plan plan = With(Strategy::kRing);
  plan.backup_workers = 3;
  EXPECT_NO_THROW(CheckPlan(plan));
  plan.backup_workers = 4;
  EXPECT_TRUE(Says(ErrorOf([&] { CheckPlan(plan); }),
                   "backup-workers: '4' is out of range; allowed: a whole number from 0 to 3"));
  plan.backup_workers = 1;
  plan.strategy = Strategy::kNone;
  EXPECT_TRUE(Says(ErrorOf([&] { CheckPlan(plan); }), "allowed: a synchronous strategy"));
  plan.strategy = Strategy::kPsAsync;
  plan.servers = 1;
  EXPECT_TRUE(Says(ErrorOf([&] { CheckPlan(plan); }), "with strategy ps-async"));
}

// What no forecast reads is not passed over in silence.
TEST(CheckPlan, RefusesWhatNobodyReads) {
  const auto refused = [](const Plan& plan, const std::string& says) {
    EXPECT_TRUE(Says(ErrorOf([&] { CheckPlan(plan); }), says));
  };
  for (const Strategy strategy : {Strategy::kPsSync, Strategy::kPsAsync}) {
    Plan plan = With(strategy, 2);
    plan.server_link.bandwidth = GigabitsPerSecond(1.0);
    EXPECT_NO_THROW(CheckPlan(plan));
    plan.server.colocated = true;
    refused(plan, "server-bandwidth: with colocated-servers; allowed: none: such servers have");
  }
  Plan helped = With(Strategy::kBytePs, 2);
  helped.server_link.bandwidth = GigabitsPerSecond(1.0);
  EXPECT_NO_THROW(CheckPlan(helped));
  helped.servers = 0;
  refused(helped, "server-bandwidth: with strategy byteps and no servers; allowed: servers, at");
  for (const Overlap overlap : {Overlap::kNone, Overlap::kPNorm}) {
    Plan plan = With(Strategy::kPsSync, 2);
    plan.server.pipelined = true;
    EXPECT_NO_THROW(CheckPlan(plan));
    plan.overlap = overlap;
    refused(plan, std::string("pipelined-servers: with overlap ") +
                      kOverlapNames[static_cast<int>(overlap)] + "; allowed: overlap buckets");
    plan.server.pipelined = false;
    EXPECT_NO_THROW(CheckPlan(plan));
  }
  Plan async = With(Strategy::kPsAsync, 2);
  async.overlap = Overlap::kNone;
  EXPECT_NO_THROW(CheckPlan(async));
  async.overlap = Overlap::kPNorm;
  refused(async, "overlap: 'p-norm' with strategy ps-async; allowed: buckets or none");
}

// Who keeps a part of the model needs the others at each step.
TEST(CheckPlan, APartOfTheModelCannotGoOnByItself) {
  Plan plan = With(Strategy::kRing);
  plan.shard = Shard::kOptimizer;
  ASSERT_NO_THROW(CheckPlan(plan));
  const auto refused = [&](auto change, const std::string& says) {
    Plan other = plan;
    change(&other);
    EXPECT_TRUE(Says(ErrorOf([&] { CheckPlan(other); }), says));
    other.shard = Shard::kNone;
    EXPECT_NO_THROW(CheckPlan(other)) << says;
  };
  const std::string with = std::string(" with shard ") + kShardNames[static_cast<int>(plan.shard)];
  refused([](Plan* p) { p->local_steps = 2; }, "local-steps: '2'" + with + "; allowed: 1: who");
  refused([](Plan* p) { p->backup_workers = 1; }, "backup-workers: '1'" + with + "; allowed: 0:");
  refused([](Plan* p) { p->overlap = Overlap::kPNorm; }, "overlap: 'p-norm'" + with);
}

// Within nodes a model is shared out where each has as many devices.
TEST(CheckPlan, NodesThatShareTheModelOutAreEqual) {
  Plan plan = With(Strategy::kRing);
  plan.shard = Shard::kHybrid;
  for (const Placement& placement :
       {Placement{1}, Placement{8}, Placement{1, 1}, Placement{4, 4}}) {
    plan.placement = placement;
    EXPECT_NO_THROW(CheckPlan(plan));
  }
  plan.placement = {4, 4, 2};
  EXPECT_TRUE(Says(ErrorOf([&] { CheckPlan(plan); }),
                   "shard: 'hybrid' with placement 4-4-2, whose nodes are not equal; allowed: as "
                   "many devices on each node, like 4-4, or another shard"));
  plan.shard = Shard::kParameters;
  EXPECT_NO_THROW(CheckPlan(plan));
}

// A node that is not full is left out where all have to be equal.
TEST(OnFilledNodes, LeavesOutWhatMayNotBe) {
  Plan plan = With(Strategy::kRing);
  const auto on = [&](int workers) { return OnFilledNodes(plan, workers, 4).placement; };
  EXPECT_EQ(on(10), Placement({4, 4, 2}));
  plan.shard = Shard::kHybrid;
  EXPECT_EQ(on(10), Placement({4, 4}));
  EXPECT_EQ(on(8), Placement({4, 4}));
  EXPECT_EQ(on(5), Placement({4}));
  EXPECT_EQ(on(3), Placement({3}));
  EXPECT_EQ(on(1), Placement({1}));
}

// Gradients are what is compressed, in float32 and one by one.
TEST(CheckPlan, GradientsAloneAreCompressed) {
  Plan plan = With(Strategy::kRing);
  plan.compress = {Compressor::kTopK, 0.01};
  ASSERT_NO_THROW(CheckPlan(plan));
  const auto refused = [&](auto change, const std::string& says) {
    Plan other = plan;
    change(&other);
    EXPECT_TRUE(Says(ErrorOf([&] { CheckPlan(other); }), says));
    other.compress = {};
    EXPECT_NO_THROW(CheckPlan(other)) << says;
  };
  const std::string with = " with compress topk=0.01";
  refused([](Plan* p) { p->shard = Shard::kOptimizer; }, "shard: 'optimizer'" + with);
  refused([](Plan* p) { p->local_steps = 2; }, "local-steps: '2'" + with + "; allowed: 1: what");
  refused([](Plan* p) { p->bytes_per_parameter = 2; }, "bytes-per-parameter: '2'" + with);
  refused([](Plan* p) { p->strategy = Strategy::kTree; },
          "compress: 'topk=0.01' with strategy tree; allowed: strategy allreduce, ring or "
          "hierarchical, which gather");
  plan.compress = {Compressor::kPowerSgd, 4};
  refused([](Plan* p) { p->strategy = Strategy::kPsSync, p->servers = 1; },
          "compress: 'powersgd=4' with strategy ps-sync; allowed: strategy allreduce, ring, tree");
  refused([](Plan* p) { p->compress.kept = 1.5; }, "'1.5'");
  for (int i = 0; i < kStrategyCount; ++i) {
    const auto strategy = static_cast<Strategy>(i);
    Plan half = With(strategy, UsesServers(strategy) ? 2 : 0);
    half.compress = {Compressor::kFp16};
    const bool goes = strategy != Strategy::kNone && strategy != Strategy::kPsAsync &&
                      strategy != Strategy::kBytePs;
    if (goes) {
      EXPECT_NO_THROW(CheckPlan(half)) << StrategyName(strategy);
    } else {
      EXPECT_TRUE(Says(ErrorOf([&] { CheckPlan(half); }), "compress: "));
    }
    for (const Compression& kept :
         {Compression{Compressor::kTopK, 0.1}, Compression{Compressor::kPowerSgd, 4}}) {
      half.compress = kept;
      Plan changed = WithStrategy(half, strategy);
      EXPECT_EQ(changed.compress.is_factored(),
                kept.is_factored() && goes && !UsesServers(strategy))
          << StrategyName(strategy);
      if (UsesServers(strategy)) changed.servers = 2;
      EXPECT_NO_THROW(CheckPlan(changed)) << StrategyName(strategy);
    }
  }
}

TEST(PlanFields, WaysToCompress) {
  const auto read = [](const std::string& text) { return ReadFlag("compress", text).compress; };
  EXPECT_EQ(read("none"), Compression());
  EXPECT_EQ(read(" bf16 "), Compression{Compressor::kBf16});
  EXPECT_EQ(read("BFloat16"), Compression{Compressor::kBf16});
  EXPECT_EQ(read("half"), Compression{Compressor::kFp16});
  EXPECT_EQ(read("float-16"), Compression{Compressor::kFp16});
  EXPECT_EQ(read("PowerSGD=4"), (Compression{Compressor::kPowerSgd, 4}));
  EXPECT_EQ(read("topk=0.01"), (Compression{Compressor::kTopK, 0.01}));
  EXPECT_TRUE(Says(ErrorOf([&] { read("pf16"); }),
                   "'pf16' is not a way to compress (did you mean fp16?); allowed: none, fp16, "
                   "bf16, int8, topk=SHARE, powersgd=RANK"));
  EXPECT_TRUE(Says(ErrorOf([&] { read("topk"); }), "'topk' does not say how much is kept"));
  EXPECT_TRUE(Says(ErrorOf([&] { read("topk=2"); }), "is out of range"));
  EXPECT_EQ(read("powersgd=4"), (Compression{Compressor::kPowerSgd, 4}));
  EXPECT_TRUE(Says(ErrorOf([&] { read("powersgd"); }), "'powersgd' does not say how much is kept"));
  EXPECT_TRUE(Says(ErrorOf([&] { read("powersgd=0"); }), "allowed: a whole number from 1 to 1024"));
  EXPECT_TRUE(Says(ErrorOf([&] { read("powersgd=1.5"); }), "'1.5'"));
  EXPECT_TRUE(Says(ErrorOf([&] { read("fp16=2"); }), "'fp16=2' takes no number; allowed: fp16"));
  EXPECT_TRUE(Says(ErrorOf([&] { read("none=1"); }), "'none=1' takes no number; allowed: none"));
  // What is named as allowed is a way to compress by what was asked for.
  for (const char* name : {"topk", "powersgd"}) {
    const std::optional<InputError> error = ErrorOf([&] { read(name); });
    ASSERT_TRUE(error) << name;
    EXPECT_TRUE(error->allowed().starts_with(name)) << error->allowed();
    EXPECT_GT(read(error->allowed()).kept, 0) << error->allowed();
  }
  for (const char* text : {"none", "fp16", "bf16", "int8", "topk=0.001", "topk=1", "powersgd=4"}) {
    EXPECT_EQ(FindPlanField("compress")->text(ReadFlag("compress", text)), text);
  }
}

TEST(PlanFields, SamplesOfANode) {
  EXPECT_EQ(ReadFlag("input-rate", "2000 samples/s").input_rate, SampleRate<>::FromSi(2000.0));
  EXPECT_TRUE(Says(ErrorOf([] { ReadFlag("input-rate", "2000"); }), "'2000' has no unit"));
  EXPECT_TRUE(Says(ErrorOf([] { ReadFlag("input-rate", "0 samples/s"); }), "is out of range"));
}

TEST(CheckPlan, ServersAreThereWhereTheyAreUsed) {
  for (const Strategy strategy : {Strategy::kPsSync, Strategy::kPsAsync}) {
    EXPECT_TRUE(Says(ErrorOf([&] { CheckPlan(With(strategy)); }),
                     std::string("servers: are required with strategy ") + StrategyName(strategy) +
                         "; allowed: at least 1"));
  }
  for (const Strategy strategy : {Strategy::kNone, Strategy::kAllreduce, Strategy::kAuto}) {
    EXPECT_TRUE(Says(ErrorOf([&] { CheckPlan(With(strategy, 2)); }),
                     "allowed: 0, or strategy ps-sync, ps-async or byteps"));
  }
  EXPECT_TRUE(Says(ErrorOf([&] { CheckPlan(With(Strategy::kPsSync, -1)); }),
                   "servers: '-1' is out of range"));
}

TEST(CheckPlan, NumbersThatNoReaderLetsThrough) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const struct {
    const char* says;
    void (*set)(Plan*, double nan);
  } cases[] = {{"placement: is empty", [](Plan* p, double) { p->placement.clear(); }},
               {"placement: '0' is out of range",
                [](Plan* p, double) {
                  p->placement = {2, 0};
                }},
               {"local-batch: '0'", [](Plan* p, double) { p->local_batch = 0; }},
               {"accumulation: '0'", [](Plan* p, double) { p->accumulation_steps = 0; }},
               {"bandwidth: ", [](Plan* p, double) { p->link.bandwidth = BytesPerSecond(0.0); }},
               {"bandwidth: ", [](Plan* p, double x) { p->link.bandwidth = BytesPerSecond(x); }},
               {"server-bandwidth: ",
                [](Plan* p, double) { p->server_link.bandwidth = BytesPerSecond(-1.0); }},
               {"rtt: ", [](Plan* p, double) { p->link.rtt = Seconds(-1.0); }},
               {"loss: ", [](Plan* p, double) { p->link.loss = 1.0; }},
               {"loss: ", [](Plan* p, double x) { p->link.loss = x; }},
               {"loss-burst: ", [](Plan* p, double) { p->link.loss_burst = Seconds(-1.0); }},
               {"bucket: ", [](Plan* p, double) { p->bucket = Bytes(0.0); }},
               {"staleness-bound: '-1'",
                [](Plan* p, double) {
                  p->strategy = Strategy::kPsAsync;
                  p->servers = 1;
                  p->server.staleness_bound = -1;
                }},
               {"placement: ", [](Plan* p, double) { p->placement.assign(3000, kMostCount); }}};
  for (const auto& c : cases) {
    Plan plan = With(Strategy::kRing);
    c.set(&plan, nan);
    EXPECT_TRUE(Says(ErrorOf([&] { CheckPlan(plan); }), c.says)) << c.says;
  }
}

TEST(CheckPlan, ErrorsStandWhereTheFieldWasRead) {
  Plan plan = With(Strategy::kRing);
  plan.server.multicast = true;
  const auto error = ErrorOf([&] {
    CheckPlan(plan, [](const FieldFacts& field) { return InputPlace{"a.csv", 3, field.column}; });
  });
  EXPECT_TRUE(Says(error, "a.csv:3: multicast: with strategy ring; allowed: strategy ps-sync"));
}

// ---- Whatever is written is read, field by field.

RC_GTEST_PROP(PlanFields, WhatIsWrittenIsRead, ()) {
  Plan plan;
  plan.placement = *rc::gen::nonEmpty(rc::gen::container<Placement>(rc::gen::inRange(1, 17)));
  plan.strategy = static_cast<Strategy>(*rc::gen::inRange(0, kStrategyCount));
  plan.servers = *rc::gen::inRange(0, 100);
  plan.local_batch = *rc::gen::inRange(1, kMostBatch);
  plan.accumulation_steps = *rc::gen::inRange(1, kMostCount);
  plan.backup_workers = *rc::gen::inRange(0, kMostCount);
  plan.overlap = static_cast<Overlap>(*rc::gen::inRange(0, kOverlapCount));
  plan.server.sharding = static_cast<Sharding>(*rc::gen::inRange(0, kShardingCount));
  plan.server.colocated = *rc::gen::arbitrary<bool>();
  plan.server.pipelined = *rc::gen::arbitrary<bool>();
  plan.server.multicast = *rc::gen::arbitrary<bool>();
  plan.server.in_network_aggregation = *rc::gen::arbitrary<bool>();
  plan.server.local_aggregation = *rc::gen::arbitrary<bool>();
  if (*rc::gen::arbitrary<bool>()) plan.server.staleness_bound = *rc::gen::inRange(0, 9);
  if (*rc::gen::arbitrary<bool>()) {
    plan.link.congestion_control =
        static_cast<CongestionControl>(*rc::gen::inRange(0, kCongestionControlCount));
  }
  if (*rc::gen::arbitrary<bool>()) plan.link.loss = *rc::gen::inRange(0, 1000) * 1e-3;
  Plan read;
  for (const PlanField& field : PlanFields()) {
    const std::string text = field.write(plan);
    if (!text.empty()) field.read_column(text, kPlace, &read);
  }
  for (const PlanField& field : PlanFields()) {
    RC_ASSERT(field.write(read) == field.write(plan));
  }
  RC_ASSERT(read.server.staleness_bound == plan.server.staleness_bound);
  RC_ASSERT(read.link.congestion_control == plan.link.congestion_control);
  RC_ASSERT(read.link.loss == plan.link.loss);
  RC_ASSERT(read.server.pipelined == plan.server.pipelined);
}

// A flag and a column of one field have one range, which the check of every plan holds too: what a
// flag takes, a row that is written of it gives back.
RC_GTEST_PROP(PlanFields, WhatAFlagTakesAColumnTakes, ()) {
  const struct {
    const char* flag;
    const char* unit;
    double si;
  } kinds[] = {{"bandwidth", " bit/s", 0.125},
               {"bandwidth", " Tbit/s", 1.25e11},
               {"rtt", " h", 3600},
               {"rtt", " ns", 1e-9},
               {"loss-burst", " s", 1},
               {"bucket", " B", 1},
               {"bucket", " TiB", 1099511627776.0},
               {"loss", "", 1}};
  const auto& kind = kinds[*rc::gen::inRange<std::size_t>(0, std::size(kinds))];
  const PlanField& field = *FindPlanField(kind.flag);
  // Around both ends of the range, and over all of it.
  const double unit = field.unit == std::string("ms")       ? 1e-3
                      : field.unit == std::string("MiB")    ? 1048576
                      : field.unit == std::string("Gbit/s") ? 1.25e8
                                                            : 1;
  const double end = *rc::gen::element(field.range.least, field.range.most);
  double number = end * unit / kind.si * (1 + *rc::gen::inRange(-3, 4) * 1e-16);
  if (*rc::gen::arbitrary<bool>()) number = std::pow(10.0, *rc::gen::inRange(-25, 20));
  const std::string text = fmt::format("{}{}", number, kind.unit);
  Plan plan;
  plan.placement = {2};
  try {
    field.read_flag(text, kPlace, &plan);
  } catch (const InputError&) {
    RC_ASSERT(number * kind.si <= field.range.least * unit * (1 + 1e-14) ||
              number * kind.si >= field.range.most * unit * (1 - 1e-14));
    return;
  }
  CheckPlan(plan);
  const Plan read = ReadColumn(kind.flag, field.write(plan), plan);
  CheckPlan(read);
  RC_ASSERT(field.write(ReadColumn(kind.flag, field.write(read), Plan(plan))) == field.write(read));
}

TEST(PlanFields, ATimeThatNoColumnTakesIsNoFlagEither) {
  EXPECT_TRUE(Says(ErrorOf([] { ReadFlag("rtt", "1 h"); }),
                   "'1 h' is out of range; allowed: 0, or from 1e-09 to 1e+06 ms"));
  EXPECT_TRUE(Says(ErrorOf([] { ReadColumn("rtt", "3600000"); }), "is out of range"));
  Plan plan;
  plan.link.rtt = Seconds(3600.0);
  EXPECT_TRUE(Says(ErrorOf([&] { CheckPlan(plan); }),
                   "rtt: '3600' is out of range; allowed: 0, or from 1e-12 to 1000 s"));
}

// A million milliseconds are 1000 s, and a million Gbit/s 125 TB/s; a bit a second is the least.
TEST(SiRange, IsThatOfTheColumnInSeconds) {
  const auto holds = [](const char* flag, double si) { return SiRangeOf(flag).Holds(si); };
  for (const char* flag : {"rtt", "loss-burst"}) {
    for (const double seconds : {0.0, 1e-12, 1000.0}) EXPECT_TRUE(holds(flag, seconds)) << flag;
    for (const double seconds : {-1.0, 0.9e-12, 1001.0}) EXPECT_FALSE(holds(flag, seconds)) << flag;
  }
  for (const double bytes : {0.125, 1.25e14}) EXPECT_TRUE(holds("bandwidth", bytes)) << bytes;
  for (const double bytes : {0.0, 0.12, 1.26e14}) EXPECT_FALSE(holds("bandwidth", bytes)) << bytes;
}

// ---- What follows from the list knows each field of it: plans that differ in one alone.

TEST(EveryPlanField, PassesTheCheckAndGoesWithItsStrategy) {
  for (const ChangedPlan& plan : ChangedPlans()) {
    EXPECT_NO_THROW(CheckPlan(plan.before)) << plan.facts.state;
    EXPECT_NO_THROW(CheckPlan(plan.after)) << plan.facts.state;
    if (plan.facts.with == GoesWith::kAll) continue;
    EXPECT_EQ(OptionsKey(WithStrategy(plan.after, Strategy::kNone)),
              OptionsKey(WithStrategy(plan.before, Strategy::kNone)))
        << plan.facts.state;
  }
}

// Where a plan runs is no part of the key: its callers count that.
TEST(EveryPlanField, TellsPlansApartByTheKey) {
  const auto key_of = [](const Plan& plan) {
    PlanKey key = StatedKey(plan);
    return key;
  };
  for (const ChangedPlan& plan : ChangedPlans()) {
    const bool is_where =
        plan.facts.state == std::string("placement") || plan.facts.state == std::string("hosts");
    EXPECT_EQ(key_of(plan.before) == key_of(plan.after), is_where) << plan.facts.state;
  }
}

// Whoever knows the cap that a plan without one has does not tell it from one that states it.
TEST(EveryPlanField, ADefaultIsTheSameAsItsStatement) {
  Plan silent;
  Plan stated;
  stated.bucket = Mebibytes(25.0);
  EXPECT_EQ(OptionsKey(silent, Mebibytes(25.0)), OptionsKey(stated, Mebibytes(25.0)));
  EXPECT_EQ(OptionsKey(silent, Mebibytes(25.0)), OptionsKey(stated));
  EXPECT_EQ(OptionsKey(stated, Mebibytes(4.0)), OptionsKey(stated));
  EXPECT_NE(OptionsKey(silent), OptionsKey(stated));
}

// Whoever states that workers are no step ahead, or that no packet is lost, has stated something.
TEST(EveryPlanField, NoughtIsAStatement) {
  const Plan silent = With(Strategy::kPsAsync, 2);
  Plan in_step = silent;
  in_step.server.staleness_bound = 0;
  EXPECT_NE(StatedKey(in_step), StatedKey(silent));
  Plan lossless = silent;
  lossless.link.loss = 0.0;
  EXPECT_NE(StatedKey(lossless), StatedKey(silent));
}

TEST(EveryPlanField, SurvivesItsColumn) {
  for (const ChangedPlan& plan : ChangedPlans()) {
    if (plan.facts.flag == nullptr) continue;
    Plan read = plan.before;
    const PlanField& field = *FindPlanField(plan.facts.flag);
    field.read_column(field.text(plan.after), kPlace, &read);
    EXPECT_EQ(field.text(read), field.text(plan.after)) << field.column;
    EXPECT_NE(field.text(read), field.text(plan.before)) << field.column;
    EXPECT_EQ(OptionsKey(read), OptionsKey(plan.after)) << field.column;
  }
}

// A link of a plan has all that is known of one.
TEST(EveryPlanField, ThereIsOneForEachFactOfBothLinks) {
  int facts = 0;
  LinkFacts::ForEach([&](const char*, auto) { ++facts; });
  int fields = 0;
  ForEachField(
      [&](const FieldFacts&, auto field) { fields += decltype(field)::kIsOfLink ? 1 : 0; });
  EXPECT_EQ(fields, 2 * facts);
}

}  // namespace
}  // namespace stepcast
