// The HTTP interface without sockets: answers, and what is answered to wrong questions.
#include "predictor/serve/api.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "data/plan/fields.h"
#include "data/values/training_facts.h"
#include "predictor/json/json.h"
#include "tests/serve/mutations.h"
#include "tests/serve/seeds.h"
#include "tests/serve/support.h"
#include "tests/support/changed_plans.h"

namespace stepcast::serve {
namespace {

// A tenth of a percent of a million wrong requests, at some microseconds each.
constexpr int kMutations = 100'000;

constexpr const char* kGood =
    R"({"cluster":"gce-t4","workload":"resnet50","workers":8,"local_batch":32})";

// ---- One plan.

TEST(Predict, IsWhatTheProgramPrints) {
  const TestService test;
  const Reply reply = test.Post("/v1/predict", kGood);
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_STREQ(reply.content_type, "application/json");
  EXPECT_EQ(reply.snapshot, 1);
  const auto target = test.service.Current()->Find({"gce-t4", "resnet50", ""});
  const Predictor& predictor = target->predictor;
  Plan plan;
  plan.placement = {4, 4};
  plan.local_batch = 32;
  EXPECT_EQ(reply.body, PredictionJson(predictor.Predict(plan), plan,
                                       {predictor.cluster(), predictor.workload(),
                                        predictor.device(), target->facts})
                            .dump());
  const TestJson json = TestJson::parse(reply.body);
  for (const char* key : {"step_time_s", "low_s", "high_s", "throughput_samples_per_s", "breakdown",
                          "traffic", "memory", "flags"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
}

// A plan that an answer shows can be asked for again, field by field.
TEST(Predict, TakesEachFieldOfAPlan) {
  const TestService test;
  std::set<std::string> seen;
  for (const Seed& seed : Seeds()) {
    if (seed.path != "/v1/predict") continue;
    const TestJson asked = TestJson::parse(seed.body);
    if (asked.contains("job")) continue;  // which nobody has begun here
    const TestJson answer = test.JsonOf(seed.path, seed.body);
    TestJson again = answer["plan"];
    for (const auto& [key, value] : again.items()) seen.insert(key);
    again.erase("workers");
    again.erase("global_batch");
    for (const char* key : {"cluster", "workload", "device"}) again[key] = answer[key];
    EXPECT_EQ(test.JsonOf(seed.path, again.dump()), answer);
  }
  EXPECT_TRUE(seen.count("colocated_servers") && seen.count("rtt_ms") && seen.count("hosts"));
}

TEST(Predict, WordsOfYesAndNoMayBeBooleans) {
  const TestService test;
  const std::string body =
      R"({"cluster":"ec2-g3-ps","workload":"vgg16","workers":2,"local_batch":16,)"
      R"("strategy":"ps-sync","servers":1,"multicast":)";
  EXPECT_EQ(test.JsonOf("/v1/predict", body + "true}"),
            test.JsonOf("/v1/predict", body + "\"yes\"}"));
  EXPECT_NE(test.JsonOf("/v1/predict", body + "true}"),
            test.JsonOf("/v1/predict", body + "false}"));
  EXPECT_EQ(test.Post("/v1/predict", body + "null}").status, 422) << "null says nothing";
}

// ---- Errors.

TEST(Errors, NameKeyValueAndWhatIsAllowed) {
  const TestService test;
  const struct {
    const char* path;
    std::string body;
    int status;
    const char* key;
    const char* fragment;
  } cases[] = {
      {"/v1/predict", "", 400, nullptr, "body: is not JSON"},
      {"/v1/predict", "{", 400, nullptr, "byte "},
      {"/v1/predict", "[1]", 400, nullptr, "body: is not JSON that is read here"},
      {"/v1/predict", "7", 422, "body", "is a number; allowed: an object"},
      {"/v1/predict", "{}", 422, "cluster", "is required; allowed: gce-t4, ec2-g3-ps"},
      {"/v1/predict", R"({"cluster":"gce-t4","workload":"resnet50","workers":8})", 422,
       "local_batch", "is required"},
      {"/v1/predict", R"({"cluster":"gce-t4","workload":"x","local_batch":8})", 422, "workload",
       "'x' is not a known workload; allowed: alexnet"},
      {"/v1/predict", R"({"cluster":"gce-t4","workload":"llama3_1_8b@4096","local_batch":8})", 422,
       "workload", "is not a known workload (did you mean llama3.1_8b@4096?); allowed: alexnet"},
      {"/v1/predict", R"x({"cluster":"gce-t4","workload":"net (bf16)","local_batch":8})x", 422,
       "workload", "'net (bf16)' ends like net trained in a way of its own"},
      {"/v1/predict", R"({"cluster":"gce-t4","workload":"resnet50","local_bach":8})", 422,
       "local_bach",
       "is not a key (did you mean local_batch?); allowed: cluster, workload, device, job"},
      {"/v1/predict", R"({"cluster":"gce-t4","workload":"resnet50","local_batch":8,"rtt":1})", 422,
       "rtt", "rtt: is not a key (did you mean rtt_ms?); allowed: cluster"},
      {"/v1/predict", R"({"cluster":"gce-t4","workload":"resnet50","bandwidth":"10 Gbit/s"})", 422,
       "bandwidth", "bandwidth: is not a key (did you mean link_gbit_per_s?); allowed: cluster"},
      {"/v1/predict", R"({"cluster":"gce-t4","workload":"resnet50","input-rate":9})", 422,
       "input-rate", "input-rate: is not a key (did you mean input_samples_per_s?); allowed"},
      {"/v1/predict_batch",
       R"({"cluster":"gce-t4","workload":"resnet50","queries":{"bandwidth":[1]}})", 422,
       "queries.bandwidth", "queries.bandwidth: is not a key (did you mean link_gbit_per_s?)"},
      {"/v1/predict", R"({"cluster":"gce-t4","workload":"resnet50","local_batch":"8"})", 422,
       "local_batch", "local_batch: '8' is a text; allowed: a number"},
      {"/v1/predict", R"({"cluster":"gce-t4","workload":"resnet50","local_batch":8.5})", 422,
       "local_batch", "'8.5'"},
      {"/v1/predict", R"({"cluster":"gce-t4","workload":"resnet50","local_batch":8,"strategy":3})",
       422, "strategy", "strategy: '3' is a number; allowed: a text"},
      {"/v1/predict",
       R"({"cluster":"gce-t4","workload":"resnet50","local_batch":8,"strategy":"rings"})", 422,
       "strategy", "'rings'"},
      {"/v1/predict", R"({"cluster":"gce-t4","workload":"resnet50","local_batch":8,"loss_rate":1})",
       422, "loss_rate", "'1'"},
      {"/v1/predict", R"({"cluster":"gce-t4","workload":"resnet50","local_batch":8,"servers":3})",
       422, "servers", "with strategy allreduce"},
      {"/v1/predict_batch", R"({"cluster":"gce-t4","workload":"resnet50"})", 422, "queries",
       "says nothing"},
      {"/v1/predict_batch", R"({"cluster":"gce-t4","workload":"resnet50","queries":[1]})", 422,
       "queries", "is an array of numbers; allowed: an object"},
      {"/v1/predict_batch",
       R"({"cluster":"gce-t4","workload":"resnet50","queries":{"workers":[1.5]}})", 422,
       "queries.workers", "'1.5' is not a whole number"},
      {"/v1/predict_batch",
       R"({"cluster":"gce-t4","workload":"resnet50","queries":{"workers":[1,null]}})", 422,
       "queries.workers", "'null' is not a whole number"},
      {"/v1/predict_batch",
       R"({"cluster":"gce-t4","workload":"resnet50","queries":{"workers":[1]}})", 422,
       "plan.local_batch", "is required"},
      {"/v1/predict_batch",
       R"({"cluster":"gce-t4","workload":"resnet50","queries":{"wrkers":[1]}})", 422,
       "queries.wrkers", "is not a key (did you mean workers?); allowed: workers, nodes"},
      {"/v1/predict_batch",
       R"({"cluster":"gce-t4","workload":"resnet50","interval":1,"queries":{"workers":[1]}})", 422,
       "interval", "is a number; allowed: true or false"},
      {"/v1/recommend",
       R"({"cluster":"gce-t4","workload":"resnet50","allocations":{"workers":[1]},)"
       R"("search":{"most_global_batch":0}})",
       422, "search.most_global_batch", "is out of range"},
      {"/v1/predict", R"({"cluster":"gce-t4","workload":"resnet50","local_batch":null})", 422,
       "local_batch", "is null; allowed: a number"},
      {"/v1/reload", "{}", 400, nullptr, "takes no body"},
  };
  for (const auto& c : cases) {
    const Reply reply = test.Post(c.path, c.body);
    EXPECT_EQ(reply.status, c.status) << c.body << reply.body;
    EXPECT_STREQ(reply.content_type, "application/problem+json");
    const TestJson json = TestJson::parse(reply.body, nullptr, false);
    ASSERT_TRUE(json.is_object()) << reply.body;
    EXPECT_EQ(json["status"], c.status);
    EXPECT_NE(json["detail"].get<std::string>().find(c.fragment), std::string::npos) << json;
    EXPECT_EQ(json.value("key", ""), c.key == nullptr ? "" : c.key) << json;
  }
}

// Every key of a plan with values of other kinds than its own: those of no number where it is one,
// and what no key takes.
TEST(Errors, OfEveryKeyOfAPlan) {
  const TestService test;
  const char* const kNever[] = {"null",  "[]",      "{}",      "[1]",       "\"\"",
                                "-1",    "-0.5",    "1e400",   "-1e999",    "\"\\u0000\"",
                                "\"x\"", "\"nan\"", "\"1 x\"", "{\"a\":1}", "\"1e999\""};
  const std::map<std::string, const char*> own = {
      {"strategy", R"("ps-sync")"}, {"servers", "1"}, {"local_batch", "8"}, {"workers", "4"}};
  int refused = 0;
  for (const PlanField& field : PlanFields()) {
    if (std::string(field.column) == "hosts") continue;  // any text is a name
    for (const char* value : kNever) {
      std::string body = R"({"cluster":"ec2-g3-ps","workload":"resnet50")";
      for (const auto& [key, right] : own) {
        if (key == field.column || (key == "workers" && field.column == std::string("placement"))) {
          continue;
        }
        body += ",\"" + key + "\":" + right;
      }
      body += std::string(",\"") + field.column + "\":" + value + "}";
      const Reply reply = test.Post("/v1/predict", body);
      EXPECT_TRUE(reply.status == 422 || reply.status == 400) << body << reply.status;
      EXPECT_STREQ(reply.content_type, "application/problem+json") << body;
      const TestJson json = TestJson::parse(reply.body, nullptr, false);
      ASSERT_TRUE(json.is_object()) << body;
      if (reply.status == 422) {
        EXPECT_EQ(json.value("key", ""), field.column) << body << json;
        EXPECT_NE(json.value("allowed", ""), "") << body << json;
      }
      ++refused;
    }
  }
  EXPECT_GT(refused, 250);
}

// What a request says of a plan is what is asked, field by field, and what the answer repeats.
TEST(Predict, PassesEveryFieldOn) {
  const TestService test;
  const auto target = test.service.Current()->Find({"ec2-g3-ps", "resnet50", ""});
  for (const ChangedPlan& changed : ChangedPlans()) {
    if (changed.facts.column == nullptr) continue;
    TestJson body = {{"cluster", "ec2-g3-ps"}, {"workload", "resnet50"}};
    for (const PlanField& field : PlanFields()) {
      const std::string text = field.write(changed.after);
      if (text.empty()) continue;
      body[field.column] = field.unit != nullptr ? TestJson::parse(text) : TestJson(text);
    }
    const TestJson answer = test.JsonOf("/v1/predict", body.dump());
    const Prediction expected = target->predictor.Predict(changed.after);
    EXPECT_EQ(answer.at("step_time_s"), expected.step_time.in(kSeconds)) << body;
    EXPECT_EQ(answer.at("high_s"), expected.high.in(kSeconds)) << body;
    EXPECT_EQ(answer.at("flags"), expected.flags) << body;
    const auto repeated = answer.at("plan").find(changed.facts.column);
    ASSERT_NE(repeated, answer.at("plan").end()) << body;
    EXPECT_EQ(*repeated, body.value(changed.facts.column, TestJson())) << body;
  }
}

// What the model itself refuses is named in the request's words, not in those of the command line.
TEST(Errors, AreInTheWordsOfTheRequest) {
  Inventory inventory = ShippedInventory();
  Workload bare;
  bare.name = "bare";
  bare.parameters = bare.trainable_parameters = 1'000'000'000;
  bare.gradient_bytes = Gigabytes(4.0);
  bare.communication_only = true;
  inventory.workloads.push_back(bare);
  const TestService test([&] { return inventory; });
  const Reply reply = test.Post(
      "/v1/predict",
      R"({"cluster":"gce-t4","workload":"bare","workers":8,"local_batch":1,"bucket_mib":0.001})");
  EXPECT_EQ(reply.status, 422);
  EXPECT_EQ(TestJson::parse(reply.body)["key"], "bucket_mib") << reply.body;
}

TEST(Errors, OfPathMethodAndType) {
  const TestService test;
  EXPECT_EQ(test.Get("/").status, 404);
  EXPECT_EQ(test.Get("/v1/predict/").status, 404);
  EXPECT_EQ(test.Get("/healthz?x=1").status, 400);
  const Reply get = test.Get("/v1/predict");
  EXPECT_EQ(get.status, 405);
  EXPECT_STREQ(get.allow, "POST");
  const Reply post = test.Post("/metrics", "");
  EXPECT_EQ(post.status, 405);
  EXPECT_STREQ(post.allow, "GET, HEAD");
  EXPECT_EQ(test.Post("/v1/predict", kGood, "text/plain").status, 415);
  EXPECT_EQ(test.Post("/v1/predict", kGood, "").status, 415);
  EXPECT_EQ(test.Post("/v1/predict", kGood, "application/octet-stream").status, 415);
  EXPECT_EQ(test.Post("/v1/predict", kGood, "Application/JSON ; charset=utf-8").status, 200);
}

// Whoever sends much is not sent it back: what is wrong is quoted by its beginning.
TEST(Errors, QuoteSoMuch) {
  const TestService test;
  const auto problem = [](const Reply& reply) { return TestJson::parse(reply.body); };
  const std::string many(300, 'x');
  const std::string key = "{\"" + many + "\":1}";
  EXPECT_EQ(problem(test.Post("/v1/predict", key))["key"], many.substr(0, 60));
  const TestJson value = problem(test.Post("/v1/predict", "{\"cluster\":\"" + many + "\"}"));
  EXPECT_EQ(value["value"], many.substr(0, 200));
  EXPECT_NE(value["detail"].get<std::string>().find("'" + many.substr(0, 60) + "...'"),
            std::string::npos);
  EXPECT_EQ(problem(test.Get("/" + many))["detail"],
            "/" + many.substr(0, 59) + ": is not served; /openapi.yaml tells what is");
  EXPECT_EQ(problem(test.api.Answer({many, "/v1/predict", "application/json", ""}))["detail"],
            "/v1/predict: does not know the method " + many.substr(0, 20) + "; allowed: POST");
  for (const auto& [path, also] : {std::pair("/v1/predict", ""),
                                   std::pair("/v1/predict_batch", ", application/octet-stream")}) {
    EXPECT_EQ(
        problem(test.Post(path, "{}", many))["detail"],
        "Content-Type: '" + many.substr(0, 60) + "' is not read; allowed: application/json" + also);
  }
}

// As RFC 9110 and 6585 call them; what this service does not answer is a failure of its own.
TEST(Errors, HaveTheNamesOfHttp) {
  const std::map<int, std::string> names = {{200, "OK"},
                                            {400, "Bad Request"},
                                            {404, "Not Found"},
                                            {405, "Method Not Allowed"},
                                            {408, "Request Timeout"},
                                            {411, "Length Required"},
                                            {413, "Content Too Large"},
                                            {415, "Unsupported Media Type"},
                                            {417, "Expectation Failed"},
                                            {422, "Unprocessable Content"},
                                            {429, "Too Many Requests"},
                                            {431, "Request Header Fields Too Large"},
                                            {500, "Internal Server Error"},
                                            {503, "Service Unavailable"}};
  for (int status = 200; status < 600; ++status) {
    const auto known = names.find(status);
    EXPECT_EQ(StatusText(status), known == names.end() ? names.at(500) : known->second) << status;
  }
  const TestService test;
  EXPECT_EQ(TestJson::parse(test.Get("/v1/nothing").body),
            (TestJson{{"type", "about:blank"},
                      {"title", "Not Found"},
                      {"status", 404},
                      {"detail", "/v1/nothing: is not served; /openapi.yaml tells what is"}}));
}

// ---- Many plans.

TEST(Batch, IsManySinglePlans) {
  const TestService test;
  const TestJson batch = test.JsonOf(
      "/v1/predict_batch",
      R"({"cluster":"gce-t4","workload":"resnet50","plan":{"strategy":"tree","rtt_ms":2},)"
      R"("queries":{"workers":[1,8,16],"local_batch":[8,16,32],"link_gbit_per_s":[1,10,null]}})");
  EXPECT_EQ(batch["size"], 3);
  EXPECT_EQ(batch["failed"], 0);
  EXPECT_EQ(batch["device"], "t4");
  const char* single[] = {R"("workers":1,"local_batch":8,"link_gbit_per_s":1})",
                          R"("workers":8,"local_batch":16,"link_gbit_per_s":10})",
                          R"("workers":16,"local_batch":32})"};
  for (std::size_t i = 0; i < 3; ++i) {
    const TestJson one =
        test.JsonOf("/v1/predict",
                    R"({"cluster":"gce-t4","workload":"resnet50","strategy":"tree","rtt_ms":2,)" +
                        std::string(single[i]));
    for (const char* key : {"step_time_s", "low_s", "high_s"}) {
      const double expected = one[key];
      EXPECT_NEAR(batch[key][i].get<double>() / expected, 1, 1e-4) << key << i;
    }
    EXPECT_EQ(batch["memory"][i], one["memory"]["verdict"]) << i;
  }
}

// A step that no device holds is told as such, as are caveats, each once with its query.
TEST(Batch, TellsMemoryAndFlags) {
  const TestService test;
  const std::string target = R"({"cluster":"gce-t4","workload":"resnet50",)";
  const TestJson batch = test.JsonOf(
      "/v1/predict_batch",
      target + R"("queries":{"workers":[4,4,4,640,0],"local_batch":[1,32,100000,32,32]}})");
  EXPECT_EQ(batch["memory"], (TestJson{"fits", "fits", "out of memory", "fits", "unknown"}));
  ASSERT_FALSE(batch["flags"].empty());
  for (const TestJson& flag : batch["flags"]) {
    const auto i = flag["index"].get<std::size_t>();
    const int workers[] = {4, 4, 4, 640};
    const int batches[] = {1, 32, 100000, 32};
    ASSERT_LT(i, 4U);
    const TestJson one =
        test.JsonOf("/v1/predict", target + R"("workers":)" + std::to_string(workers[i]) +
                                       R"(,"local_batch":)" + std::to_string(batches[i]) + "}");
    const auto flags = one["flags"].get<std::vector<std::string>>();
    EXPECT_EQ(std::count(flags.begin(), flags.end(), flag["flag"].get<std::string>()), 1) << flag;
  }
  const auto told = [&](const char* text) {
    return std::any_of(batch["flags"].begin(), batch["flags"].end(), [&](const TestJson& flag) {
      return flag["flag"].get<std::string>().find(text) != std::string::npos;
    });
  };
  EXPECT_TRUE(told("the plan uses 160 nodes")) << batch["flags"];
}

// The link of helpers whose number the queries state.
TEST(Batch, OfHelpersWithALinkOfTheirOwn) {
  const TestService test;
  const auto answer = [&](const std::string& servers) {
    return test.Post("/v1/predict_batch",
                     R"({"cluster":"ec2-g3-ps","workload":"vgg16","plan":{"strategy":"byteps",)"
                     R"("local_batch":8,"server_link_gbit_per_s":10},)"
                     R"("queries":{"workers":[4,4],"nodes":[4,4],"devices_per_node":[1,1])" +
                         servers + "}}");
  };
  EXPECT_EQ(answer(R"(,"servers":[1,2])").status, 200) << answer(R"(,"servers":[1,2])").body;
  EXPECT_EQ(answer("").status, 422) << "there are none, and no link of theirs";
}

// Bodies that are wrong in one place each, by kind.
TEST(Errors, OfEverySpoiltKey) {
  const TestService test;
  const std::vector<std::pair<std::string, std::string>> plan = {{"workers", "4"},
                                                                 {"strategy", "\"ps-sync\""},
                                                                 {"servers", "1"},
                                                                 {"local_batch", "8"},
                                                                 {"accumulation_steps", "2"},
                                                                 {"link_gbit_per_s", "1"},
                                                                 {"rtt_ms", "1"},
                                                                 {"loss_rate", "0.01"},
                                                                 {"bucket_mib", "25"},
                                                                 {"overlap", "\"none\""},
                                                                 {"backup_workers", "1"},
                                                                 {"sharding", "\"even\""},
                                                                 {"multicast", "true"},
                                                                 {"congestion_control", "\"bbr\""},
                                                                 {"transport", "\"rdma\""},
                                                                 {"loss_burst_ms", "1"},
                                                                 {"server_link_gbit_per_s", "10"}};
  const auto body = [&](const std::string& key, const std::string& value) {
    std::string text = R"({"cluster":"ec2-g3-ps","workload":"vgg16")";
    for (const auto& [name, right] : plan) {
      text += ",\"" + name + "\":" + (name == key ? value : right);
    }
    return text + "}";
  };
  ASSERT_EQ(test.Post("/v1/predict", body("", "")).status, 200)
      << test.Post("/v1/predict", body("", "")).body;
  int refused = 0;
  for (const auto& [key, right] : plan) {
    const Reply array = test.Post("/v1/predict", body(key, "[1]"));
    EXPECT_EQ(array.status, 400);
    EXPECT_NE(array.body.find("key \\\"" + key + "\\\": is an array"), std::string::npos)
        << array.body;
    std::vector<std::string> values = {"null", "{}", "\"nonsense\"", "-1"};
    if (right[0] == '"' || right == "true") {
      values.insert(values.end(), {"\"\"", "3"});
    } else {
      values.insert(values.end(), {"true", "1e300", "\"1\"", "-0.5"});
      if (right.find('.') == std::string::npos && key.find("_ms") == std::string::npos &&
          key.find("gbit") == std::string::npos && key != "bucket_mib") {
        values.insert(values.end(), {"1.5", "2147483648"});
      }
    }
    for (const std::string& value : values) {
      const Reply reply = test.Post("/v1/predict", body(key, value));
      EXPECT_EQ(reply.status, 422) << key << ": " << value << reply.body;
      EXPECT_STREQ(reply.content_type, "application/problem+json");
      const TestJson json = TestJson::parse(reply.body, nullptr, false);
      ASSERT_TRUE(json.is_object()) << reply.body;
      EXPECT_EQ(json.value("key", ""), key) << json;
      EXPECT_FALSE(json.value("allowed", "").empty()) << json;
      ++refused;
    }
  }
  EXPECT_GT(refused, 120);
}

// A network that nobody knows is asked for by its size, before any step of it.
TEST(Targets, MayBeKnownByTheirSize) {
  const TestService test;
  const auto step = [&](const char* parameters) {
    return test.JsonOf("/v1/predict", R"({"cluster":"gce-t4","workload":"ours","workers":8,)"
                                      R"("local_batch":32,"parameters":)" +
                                          std::string(parameters) + "}");
  };
  const TestJson small = step("25000000");
  EXPECT_EQ(small["workload"], "ours");
  EXPECT_EQ(small["compute_source"], "prior");
  EXPECT_EQ(small["traffic"]["gradient_bytes"], 100'000'000);
  EXPECT_EQ(step("1.1e8")["traffic"]["gradient_bytes"], 440'000'000) << "another target";
  const TestJson chosen =
      test.JsonOf("/v1/recommend", R"({"cluster":"gce-t4","workload":"ours","parameters":25000000,)"
                                   R"("allocations":{"workers":[8]}})");
  EXPECT_TRUE(chosen["local_batch"][0].is_number()) << chosen;
  const auto refused = [&](const char* target, const char* sentence) {
    const Reply reply =
        test.Post("/v1/predict", R"({"workers":8,"local_batch":32,)" + std::string(target) + "}");
    EXPECT_EQ(reply.status, 422) << reply.body;
    EXPECT_NE(reply.body.find(sentence), std::string::npos) << reply.body;
  };
  refused(R"("cluster":"gce-t4","workload":"resnet50","parameters":1000)",
          "parameters: '1000' is not the size of resnet50, which is known");
  // In another spelling it may be somebody's own.
  const Reply own = test.Post(
      "/v1/predict",
      R"({"workers":8,"local_batch":32,"cluster":"gce-t4","workload":"ResNet-50","parameters":1000})");
  EXPECT_EQ(own.status, 200) << own.body;
  refused(R"("cluster":"gce-t4","workload":"ours","parameters":0)", "parameters: '0' is out of");
  refused(R"("cluster":"gce-t4","workload":"ours")", "or a name of its own, with its parameters");
  refused(R"("job":"a","parameters":1000)", "parameters: '1000' is what the job says");
}

// A whole number is one however it is written, alone as in columns.
TEST(Numbers, AreWholeWithAFractionOfNought) {
  const TestService test;
  const auto step = [&](const char* numbers) {
    return test.JsonOf("/v1/predict", R"({"cluster":"gce-t4","workload":"resnet50",)" +
                                          std::string(numbers) + "}")["step_time_s"];
  };
  const TestJson plain = step(R"("workers":8,"local_batch":100,"rtt_ms":2)");
  EXPECT_TRUE(plain.is_number());
  EXPECT_EQ(step(R"("workers":8.0,"local_batch":1e2,"rtt_ms":2.0)"), plain);
  const TestJson chosen =
      test.JsonOf("/v1/recommend", R"({"cluster":"gce-t4","workload":"resnet50","allocations":)"
                                   R"({"workers":[8.0]},"search":{"most_global_batch":5.12e2}})");
  EXPECT_LE(chosen["local_batch"][0].get<int>() * 8, 512) << chosen;
}

TEST(Batch, TellsWhichQueriesHaveNoAnswer) {
  const TestService test;
  const TestJson batch =
      test.JsonOf("/v1/predict_batch", R"({"cluster":"gce-t4","workload":"resnet50",)"
                                       R"("queries":{"workers":[1,0,4],"local_batch":[8,8,-1]}})");
  EXPECT_EQ(batch["failed"], 2);
  EXPECT_TRUE(batch["step_time_s"][0].is_number());
  EXPECT_TRUE(batch["step_time_s"][1].is_null());
  EXPECT_TRUE(batch["high_s"][2].is_null());
  ASSERT_EQ(batch["problems"].size(), 2U);
  EXPECT_EQ(batch["problems"][0]["index"], 1);
  EXPECT_EQ(batch["problems"][0]["problem"],
            "workers: '0' is out of range; allowed: a whole number from 1 to 1000000");
  EXPECT_EQ(batch["problems"][1]["problem"],
            "local_batch: '-1' is out of range; allowed: a whole number from 1 to 100000000");
  // Samples of slow nodes go with the layouts that queries state.
  const TestJson slow = test.JsonOf(
      "/v1/predict_batch",
      R"({"cluster":"gce-t4","workload":"resnet50","plan":{"slow_speed":0.5,"slow_nodes":1,)"
      R"("slow_local_batch":16,"local_batch":32},"queries":{"workers":[8,4],"slow_nodes":[1,1]}})");
  EXPECT_EQ(slow["failed"], 1) << slow;
  EXPECT_TRUE(slow["step_time_s"][0].is_number());
  EXPECT_EQ(slow["problems"][0]["index"], 1);
  EXPECT_EQ(slow["problems"][0]["problem"],
            "slow_nodes: '1' is out of range; allowed: a whole number from 0 to 0 of 1 nodes");
  const TestJson chosen = test.JsonOf(
      "/v1/recommend", R"({"cluster":"gce-t4","workload":"resnet50","plan":{"slow_speed":0.5,)"
                       R"("slow_local_batch":16},"allocations":{"workers":[8],"slow_nodes":[1]}})");
  EXPECT_TRUE(chosen["local_batch"][0].is_number()) << chosen;
  // What no plan may say of a link is the fault of that query alone.
  for (const char* links : {R"("loss_rate":[1e-16,0.01])", R"("rtt_ms":[1e7,1])",
                            R"("link_gbit_per_s":[1e7,10])", R"("link_gbit_per_s":[1e-10,10])"}) {
    const TestJson answer =
        test.JsonOf("/v1/predict_batch", R"({"cluster":"gce-t4","workload":"resnet50",)"
                                         R"("plan":{"local_batch":32,"workers":4},"queries":{)" +
                                             std::string(links) + "}}");
    EXPECT_EQ(answer["failed"], 1) << links;
    const std::string column = std::string(links).substr(1, std::string(links).find(':') - 2);
    const std::string why = answer["problems"][0].value("problem", "");
    EXPECT_EQ(why.find(column + ": '1"), 0U) << why << ", in the column's unit";
    EXPECT_NE(why.find("is out of range; allowed: "), std::string::npos) << why;
    EXPECT_TRUE(answer["step_time_s"][0].is_null()) << links;
    EXPECT_TRUE(answer["step_time_s"][1].is_number()) << links;
  }
}

TEST(Batch, WithoutIntervalHasStepTimesAlone) {
  const TestService test;
  const std::string tail = R"("cluster":"gce-t4","workload":"resnet50",)"
                           R"("queries":{"workers":[4,8],"local_batch":[8,8]}})";
  const TestJson without = test.JsonOf("/v1/predict_batch", R"({"interval":false,)" + tail);
  EXPECT_FALSE(without.contains("low_s"));
  const TestJson with = test.JsonOf("/v1/predict_batch", "{" + tail);
  ASSERT_EQ(without["step_time_s"].size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_DOUBLE_EQ(without["step_time_s"][i].get<double>(), with["step_time_s"][i].get<double>());
  }
}

// What would be kept or worked on for long is refused.
TEST(Batch, BoundsServersNamesAndTexts) {
  const TestService test;
  const auto refused = [&](const std::string& members) {
    const Reply reply = test.Post(
        "/v1/predict_batch",
        R"({"cluster":"gce-t4","queries":{"workers":[8],"local_batch":[1]},)" + members + "}");
    EXPECT_EQ(reply.status, 422) << members.substr(0, 100);
    return TestJson::parse(reply.body, nullptr, false)["key"].get<std::string>();
  };
  EXPECT_EQ(refused(R"("workload":"resnet50","plan":{"strategy":"ps-sync","servers":100000})"),
            "plan.servers");
  EXPECT_EQ(refused(R"("workload":"resnet50","device":")" + std::string(1000, 't') + '"'),
            "device");
  EXPECT_EQ(
      refused(R"("workload":"resnet50","plan":{"hosts":")" + std::string(100000, 'h') + "\"}"),
      "plan.hosts");
}

TEST(Batch, BoundsThePlansOfOneRequest) {
  ServiceOptions options;
  options.most_plans = 3;
  const TestService test(ShippedInventory, options);
  const std::string head = R"({"cluster":"gce-t4","workload":"resnet50","plan":{"local_batch":8},)"
                           R"("queries":{"workers":[)";
  EXPECT_EQ(test.Post("/v1/predict_batch", head + "1,2,3]}}").status, 200);
  EXPECT_EQ(test.Post("/v1/predict_batch", head + "1,2,3,4]}}").status, 400);
  EXPECT_EQ(test.Post("/v1/recommend",
                      R"({"cluster":"gce-t4","workload":"resnet50","allocations":{"workers":[1]},)"
                      R"("search":{"most_global_batch":64,"candidates":31}})")
                .status,
            422);
}

// The columns of a binary answer, with its head.
struct Columns {
  TestJson head;
  std::map<std::string, std::vector<double>> values;
};

Columns ReadAnswer(const std::string& body) {
  BinaryReader reader(body);
  Columns columns{TestJson::parse(reader.head()), {}};
  const std::size_t size = columns.head["size"];
  std::string names = columns.head["columns"];
  for (std::size_t at = 0; at < names.size();) {
    const std::size_t comma = std::min(names.find(',', at), names.size());
    const std::string name = names.substr(at, comma - at);
    if (name == "status" || name == "memory") {
      const std::vector<int> status = reader.Next<int>(name, size);
      columns.values[name].assign(status.begin(), status.end());
    } else {
      columns.values[name] = reader.Next<double>(name, size);
    }
    at = comma + 1;
  }
  reader.Finish();
  return columns;
}

TEST(Columns, AreTheNumbersOfTheTextToTheBit) {
  const TestService test;
  BinaryWriter writer(
      R"({"cluster":"gce-t4","workload":"resnet50","size":3,"columns":"workers,rtt_ms,local_batch"})",
      64);
  writer.Add(std::vector<int>{1, 8, 0});
  writer.Add(std::vector<double>{0, 2.5, std::nan("")});
  writer.Add(std::vector<int>{8, 16, 32});
  const Reply reply = test.Post("/v1/predict_batch", writer.Take(), "application/octet-stream");
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_STREQ(reply.content_type, "application/octet-stream");
  const Columns columns = ReadAnswer(reply.body);
  EXPECT_EQ(columns.head["failed"], 1);
  const TestJson text = test.JsonOf(
      "/v1/predict_batch",
      R"({"cluster":"gce-t4","workload":"resnet50",)"
      R"("queries":{"workers":[1,8,0],"rtt_ms":[0,2.5,null],"local_batch":[8,16,32]}})");
  for (const char* key : {"step_time_s", "low_s", "high_s"}) {
    for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(columns.values.at(key)[i], text[key][i]);
    EXPECT_TRUE(std::isnan(columns.values.at(key)[2]));
  }
  EXPECT_EQ(columns.values.at("status"),
            (std::vector<double>{0, 0, static_cast<int>(QueryStatus::kBadPlacement)}));
  EXPECT_EQ(columns.values.at("memory"),
            (std::vector<double>{0, 0, static_cast<int>(MemoryVerdict::kUnknown)}));
}

TEST(Columns, CutOffOrTooLongIsAnError) {
  const TestService test;
  const std::string good = ColumnsSeed();
  EXPECT_EQ(test.Post("/v1/predict_batch", good, "application/octet-stream").status, 200);
  for (std::size_t length = 0; length < good.size(); ++length) {
    const Reply reply =
        test.Post("/v1/predict_batch", good.substr(0, length), "application/octet-stream");
    EXPECT_EQ(reply.status, 422) << length << reply.body;
  }
  EXPECT_EQ(test.Post("/v1/predict_batch", good + '\0', "application/octet-stream").status, 422);
  std::string endless = good;
  std::memset(endless.data(), 0xff, 4);
  EXPECT_EQ(test.Post("/v1/predict_batch", endless, "application/octet-stream").status, 422);
}

// ---- Batches for allocations.

TEST(RecommendAnswer, HasAChoiceForEachAllocation) {
  const TestService test;
  const TestJson json =
      test.JsonOf("/v1/recommend",
                  R"({"cluster":"gce-t4","workload":"resnet50","allocations":{"workers":[1,8,0]},)"
                  R"("search":{"most_global_batch":1024,"noise_scale":1000,"initial_batch":32}})");
  EXPECT_EQ(json["size"], 3);
  EXPECT_EQ(json["failed"], 1);
  for (const char* key :
       {"local_batch", "accumulation_steps", "step_time_s", "throughput_samples_per_s",
        "statistical_efficiency", "goodput_samples_per_s"}) {
    ASSERT_EQ(json[key].size(), 3U) << key;
    EXPECT_GT(json[key][1], 0) << key;
    EXPECT_TRUE(json[key][2].is_null()) << key;
  }
  // Each number is that of the search.
  BatchSearch search;
  search.most_global_batch = 1024;
  search.noise_scale = 1000;
  search.initial_batch = 32;
  const auto snapshot = test.service.Current();
  const auto target = snapshot->Find({"gce-t4", "resnet50", ""});
  QueryColumns columns;
  columns.counts[kWorkers] = {1, 8};
  CheckColumns("allocations.", 10, &columns);
  Plan plan;
  const std::vector<BatchChoice> choices =
      Recommend(*snapshot, *target, plan, search, &columns).choices;
  ASSERT_EQ(choices.size(), 2U);
  for (std::size_t i = 0; i < choices.size(); ++i) {
    EXPECT_EQ(json["local_batch"][i], choices[i].local_batch);
    EXPECT_EQ(json["accumulation_steps"][i], choices[i].accumulation_steps);
    EXPECT_DOUBLE_EQ(json["step_time_s"][i].get<double>(), choices[i].step_time_s);
    EXPECT_DOUBLE_EQ(json["throughput_samples_per_s"][i].get<double>(), choices[i].throughput);
    EXPECT_DOUBLE_EQ(json["statistical_efficiency"][i].get<double>(),
                     choices[i].statistical_efficiency);
    EXPECT_DOUBLE_EQ(json["goodput_samples_per_s"][i].get<double>(), choices[i].goodput);
  }
  EXPECT_LT(choices[1].goodput, 0.999 * choices[1].throughput);
}

// What is recommended is told with what holds of it, and what is not with the reason.
TEST(RecommendAnswer, HasCaveatsAndReasons) {
  const TestService test;
  const TestJson json =
      test.JsonOf("/v1/recommend",
                  R"({"cluster":"gce-t4","workload":"resnet50","allocations":{"workers":[0,1,20]},)"
                  R"("search":{"least_global_batch":64}})");
  EXPECT_EQ(json["failed"], 1) << json;
  ASSERT_EQ(json["problems"].size(), 1U) << json;
  EXPECT_EQ(json["problems"][0]["index"], 0);
  EXPECT_EQ(json["problems"][0]["problem"],
            "workers: '0' is out of range; allowed: a whole number from 1 to 1000000");
  EXPECT_EQ(json["memory"], (TestJson{"unknown", "fits", "fits"})) << json;
  const TestJson beyond = {{"index", 2}, {"flag", "the plan uses 5 nodes, gce-t4 has 4"}};
  EXPECT_EQ(std::count(json["flags"].begin(), json["flags"].end(), beyond), 1) << json;
  const auto problem = [&](const char* workload, const char* search) {
    const TestJson answer = test.JsonOf(
        "/v1/recommend",
        std::string(R"({"cluster":"gce-t4","allocations":{"workers":[4]},"workload":")") +
            workload + R"(","search":{)" + search + "}}");
    EXPECT_TRUE(answer["local_batch"][0].is_null()) << answer;
    EXPECT_EQ(answer["memory"][0], "unknown") << answer;
    EXPECT_EQ(answer["flags"].size(), 0U) << answer;
    return answer["problems"][0].value("problem", "");
  };
  EXPECT_EQ(problem("llama2_70b", ""), "a device's memory holds not even one sample");
  EXPECT_EQ(problem("resnet50", R"("least_local_batch":100000)"),
            "no batch is within the limits of the search and of a device's memory");
}

// ---- What is served, and how it goes.

TEST(Lists, NameClustersAndWorkloads) {
  const TestService test;
  const TestJson clusters = TestJson::parse(test.Get("/v1/clusters").body)["clusters"];
  ASSERT_EQ(clusters.size(), 2U);
  EXPECT_EQ(clusters[0]["name"], "gce-t4");
  EXPECT_EQ(clusters[0]["calibrated"], false);
  const TestJson workloads = TestJson::parse(test.Get("/v1/workloads").body)["workloads"];
  EXPECT_GT(workloads.size(), 20U);
  EXPECT_EQ(workloads[0]["name"], "alexnet");
}

TEST(Health, ReadinessEndsBeforeHealth) {
  TestService test;
  EXPECT_EQ(test.Get("/healthz").status, 200);
  EXPECT_EQ(test.Get("/readyz").status, 200);
  EXPECT_EQ(test.api.Answer({"HEAD", "/readyz", "", ""}).status, 200);
  test.api.SetStopping();
  EXPECT_EQ(test.Get("/readyz").status, 503);
  EXPECT_EQ(test.Get("/healthz").status, 200);
}

TEST(Health, NothingIsAnsweredBeforeTheServiceIsReady) {
  TestService test;
  test.service.SetReady(false);
  EXPECT_EQ(test.Get("/healthz").status, 200);
  EXPECT_EQ(test.Get("/metrics").status, 200);
  EXPECT_EQ(test.Get("/openapi.yaml").status, 200);
  for (const char* path : {"/readyz", "/v1/jobs", "/v1/clusters", "/v1/workloads"}) {
    EXPECT_EQ(test.Get(path).status, 503) << path;
    EXPECT_TRUE(test.Get(path).retry_later) << path;
  }
  for (const char* path : {"/v1/predict", "/v1/predict_batch", "/v1/recommend", "/v1/observe",
                           "/v1/end_job", "/v1/reload"}) {
    const Reply reply = test.Post(path, kGood);
    EXPECT_EQ(reply.status, 503) << path;
    EXPECT_TRUE(reply.retry_later) << path;
    EXPECT_STREQ(reply.content_type, "application/problem+json") << path;
    EXPECT_NE(reply.body.find("still being read"), std::string::npos) << reply.body;
  }
  EXPECT_EQ(test.service.Current()->number(), 1) << "nothing was read anew";
  EXPECT_EQ(test.Get("/v1/nothing").status, 404);
  test.service.SetReady(true);
  EXPECT_EQ(test.Get("/readyz").status, 200);
  EXPECT_EQ(test.Post("/v1/predict", kGood).status, 200);
}

TEST(MetricsText, CountsPlansReloadsAndRequests) {
  TestService test;
  test.Post("/v1/predict", kGood);
  test.Post("/v1/predict_batch", R"({"cluster":"gce-t4","workload":"resnet50",)"
                                 R"("queries":{"workers":[4,8],"local_batch":[8,8]}})");
  test.Post("/v1/reload", "");
  test.metrics.Answered("/v1/predict", "200", 0.0002);
  test.metrics.Answered("/v1/predict", "200", 100);
  const std::string text = test.Get("/metrics").body;
  for (const char* line :
       {"stepcast_plans_total 3\n", "stepcast_reloads_total{outcome=\"done\"} 1\n",
        "stepcast_snapshot 2\n",
        "stepcast_requests_total{endpoint=\"/v1/predict\",code=\"200\"} 2\n",
        "stepcast_request_seconds_bucket{endpoint=\"/v1/predict\",le=\"0.0001\"} 0\n",
        "stepcast_request_seconds_bucket{endpoint=\"/v1/predict\",le=\"0.00025\"} 1\n",
        "stepcast_request_seconds_bucket{endpoint=\"/v1/predict\",le=\"5\"} 1\n",
        "stepcast_request_seconds_bucket{endpoint=\"/v1/predict\",le=\"+Inf\"} 2\n",
        "stepcast_request_seconds_count{endpoint=\"/v1/predict\"} 2\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << text << "lacks " << line;
  }
}

// Each batch that may be tried for an allocation is a plan.
TEST(MetricsText, CountsThePlansOfASearch) {
  const TestService test;
  const auto plans_of = [&](const std::string& search) {
    const auto before = test.metrics.plans.load();
    test.JsonOf("/v1/recommend", R"({"cluster":"gce-t4","workload":"resnet50",)"
                                 R"("allocations":{"workers":[1,2,0]},"search":)" +
                                     search + "}");
    return test.metrics.plans - before;
  };
  EXPECT_EQ(plans_of(R"({"most_global_batch":1024,"candidates":50})"), 3 * 50);
  EXPECT_EQ(plans_of(R"({"most_global_batch":1024,"candidates":7})"), 3 * 7);
  // One sample one to four times, two of them once or twice, and four.
  EXPECT_EQ(plans_of(R"({"most_global_batch":4})"), 3 * (4 + 2 + 1));
}

TEST(MetricsText, EachCountIsItsOwn) {
  Metrics metrics;
  metrics.plans = 11;
  metrics.observed = 12;
  metrics.changes = 13;
  metrics.reloads = 14;
  metrics.failed_reloads = 15;
  metrics.in_flight = 16;
  metrics.connections = 17;
  metrics.refused_connections = 18;
  metrics.closed_for_others = 19;
  metrics.timeouts = 20;
  metrics.failures = 21;
  const std::string text = metrics.Text(22, 23, 24);
  for (const char* line :
       {"plans_total 11", "observed_steps_total 12", "changes_total 13",
        "reloads_total{outcome=\"done\"} 14", "reloads_total{outcome=\"failed\"} 15",
        "in_flight 16", "connections 17", "connections_refused_total 18",
        "connections_closed_for_others_total 19", "timeouts_total 20", "failures_total 21",
        "snapshot 22", "compiled_plans 23", "jobs 24"}) {
    EXPECT_NE(text.find("\nstepcast_" + std::string(line) + "\n"), std::string::npos)
        << text << "lacks " << line;
  }
}

TEST(ReloadAnswer, SaysWhatIsWrongAndWhoStillAnswers) {
  bool broken = false;
  const TestService test([&] {
    if (broken) throw InputError({"c.yaml", 3, "nodes"}, "x", "is not a whole number");
    return ShippedInventory();
  });
  EXPECT_EQ(test.Post("/v1/reload", "").body, R"({"snapshot":2})");
  broken = true;
  const Reply reply = test.Post("/v1/reload", "");
  EXPECT_EQ(reply.status, 500);
  EXPECT_NE(reply.body.find("c.yaml:3: nodes: 'x' is not a whole number"), std::string::npos);
  EXPECT_EQ(reply.snapshot, 2);
  EXPECT_EQ(test.Post("/v1/predict", kGood).snapshot, 2);
}

TEST(Page, IsThatOfWhatIsServed) {
  Service service([] { return ShippedInventory(); }, {});
  Metrics metrics;
  const Api without(&service, &metrics);
  const Reply none = without.Answer({"GET", "/", "", ""});
  EXPECT_EQ(none.status, 404);
  EXPECT_NE(none.body.find("built without the page"), std::string::npos) << none.body;
  const Api with(&service, &metrics, [](const Inventory& inventory) {
    return std::to_string(inventory.clusters.size()) + " clusters";
  });
  const Reply page = with.Answer({"GET", "/", "", ""});
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.body, std::to_string(ShippedInventory().clusters.size()) + " clusters");
  EXPECT_EQ(page.snapshot, 1);
}

// The description that is served knows every path, every field of a plan and every column.
TEST(OpenApi, IsComplete) {
  const std::string text = TestService().Get("/openapi.yaml").body;
  for (const char* path :
       {"/v1/predict", "/v1/predict_batch", "/v1/recommend", "/v1/reload", "/v1/clusters",
        "/v1/workloads", "/healthz", "/readyz", "/metrics", "/openapi.yaml"}) {
    EXPECT_NE(text.find("\n  " + std::string(path) + ":\n"), std::string::npos) << path;
    EXPECT_NE(TestService().Get(path).status, 404) << path;
  }
  EXPECT_NE(text.find("\n  /:\n"), std::string::npos);
  const auto has_property = [&](const char* name) {
    return text.find("\n        " + std::string(name) + ":") != std::string::npos;
  };
  for (const PlanField& field : PlanFields())
    EXPECT_TRUE(has_property(field.column)) << field.column;
  for (const TrainingFact& fact : TrainingFacts()) {
    EXPECT_TRUE(has_property(fact.key)) << fact.key;
    for (const char* word : fact.words.names) {
      EXPECT_NE(text.find(word), std::string::npos) << word;
    }
  }
  for (const CountColumn& column : kCountColumns) EXPECT_TRUE(has_property(column.name));
  for (const NumberColumn& column : kNumberColumns) EXPECT_TRUE(has_property(column.name));
  for (const char* strategy : kStrategyNames) {
    EXPECT_NE(text.find(strategy), std::string::npos) << strategy;
  }
}

// ---- Requests that nobody would send on purpose.

// Whatever comes, the answer is good or says what is wrong: never a fault of the service, and never
// text that is not JSON.
TEST(Mutations, AreAnsweredOrRefused) {
  const TestService test([inventory = ShippedInventory()] { return inventory; });
  const std::vector<Seed> seeds = Seeds();
  std::mt19937 random(1);
  std::map<int, int> statuses;
  for (int i = 0; i < kMutations; ++i) {
    const Seed& seed = seeds[random() % seeds.size()];
    const bool other_path = random() % 64 == 0;
    const std::string path = other_path ? Mutate(seed.path, &random) : seed.path;
    const std::string body = Mutate(seed.body, &random);
    const Reply reply = test.api.Answer({seed.method, path, seed.type, body});
    ++statuses[reply.status];
    ASSERT_TRUE(reply.status == 200 || (reply.status >= 400 && reply.status < 500))
        << reply.status << " " << reply.body << "\nto " << path << " " << body;
    if (std::strstr(reply.content_type, "json") != nullptr) {
      ASSERT_TRUE(TestJson::accept(reply.body)) << reply.body << "\nto " << body;
    }
  }
  EXPECT_GT(statuses[200], kMutations / 100) << "or nothing behind the readers was reached";
  EXPECT_GT(statuses[400], kMutations / 100);
  EXPECT_GT(statuses[422], kMutations / 100);
  EXPECT_GT(statuses[404], 0);
  EXPECT_EQ(TestJson::parse(test.Post("/v1/predict", kGood).body)["cluster"], "gce-t4")
      << "and the next is answered";
}

}  // namespace
}  // namespace stepcast::serve
