// Tables and sentences of diagnose, explain, models and the lists, each cell beside the command's
// own JSON.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "predictor/report/terminal.h"
#include "tests/cli/program.h"
#include "tests/support/temp_file.h"

namespace stepcast::program {
namespace {

std::string Number(const Json& value) { return FormatNumber(value.get<double>()); }
std::string Percent(const Json& share) { return FormatPercent(share.get<double>()); }
std::string Lasting(const Json& seconds) { return FormatDuration(Seconds(seconds.get<double>())); }
std::string Text(const Json& text) { return text.get<std::string>(); }

// ---- diagnose.

// Who is told to measure something learns what each cause would show; those that show the same are
// told together.
void ExpectForecasts(const Json& next, const std::string& text) {
  ExpectLine(text, "measure " + Text(next.at("text")));
  ExpectLine(text, "by " + Text(next.at("command")));
  std::map<std::string, std::set<std::string>> due;
  for (const auto& [cause, shows] : next.at("forecasts").items()) {
    due[Text(shows)].insert(cause == "nothing" ? "nothing is wrong" : "it is " + cause);
  }
  const std::string plain = Unwrapped(text);
  const std::size_t at = plain.find(" expect ");
  ASSERT_NE(at, std::string::npos) << text;
  std::map<std::string, std::set<std::string>> said;
  std::string rest = plain.substr(at + 8) + "; ";
  if (const std::size_t end = rest.find(" ; "); end != std::string::npos)
    rest.replace(end, 3, "; ");
  for (std::size_t end; (end = rest.find("; ")) != std::string::npos; rest = rest.substr(end + 2)) {
    const std::string group = rest.substr(0, end);
    const std::size_t split = group.find(" if ");
    ASSERT_NE(split, std::string::npos) << group;
    std::string causes = group.substr(split + 4) + " or ";
    for (std::size_t to; (to = causes.find(" or ")) != std::string::npos;
         causes = causes.substr(to + 4)) {
      EXPECT_TRUE(said[group.substr(0, split)].insert(causes.substr(0, to)).second) << group;
    }
  }
  EXPECT_EQ(said, due) << text;
}

TEST(DiagnoseTexts, EachCellIsTheDiagnosis) {
  const Words job = {"diagnose", "--workload",    "resnet50",  "--device",
                     "v100",     "--local-batch", "32",        "--placement",
                     "2-2",      "--bandwidth",   "10 Gbit/s", "--measured"};
  const struct {
    Words more;
    bool all_is_well;
  } complaints[] = {{{"500 ms"}, false},
                    {{"130 ms"}, true},
                    {{"3 s", "--compress", "topk=0.01", "--input-rate", "50 samples/s"}, false},
                    {{"900 ms", "--flow-rate", "9 Gbit/s", "--ping", "20 us"}, false}};
  for (const auto& complaint : complaints) {
    const Words words = job + complaint.more;
    SCOPED_TRACE(complaint.more.front());
    const Json json = JsonOf(words);
    const std::string text = Stepcast(words).out;
    const double measured = json.at("measured_s");
    ExpectLine(text, fmt::format("measured {}, {}", Lasting(measured),
                                 FormatThroughput(Samples(4 * 32) / Seconds(measured))));
    ExpectLine(text, fmt::format("should be {} (90 % interval of a healthy cluster {} to {})",
                                 Lasting(json.at("expected_s")), Lasting(json.at("low_s")),
                                 Lasting(json.at("high_s"))));
    ExpectSaid(text, "verdict " + Text(json.at("verdict")), true);
    const bool nothing = json.at("causes").at(0).at("cause") == "nothing";
    EXPECT_EQ(nothing, complaint.all_is_well);
    ExpectSaid(text, " Compute binds: ", complaint.all_is_well);
    ExpectSaid(text, "What would bring more", nothing && !json.at("remedies").empty());
    ExpectSaid(text, "What would help, if that is it", !nothing && !json.at("remedies").empty());
    for (const Json& cause : json.at("causes")) {
      ExpectLine(
          text,
          fmt::format("{} {} {} {}", Percent(cause.at("probability")), Text(cause.at("cause")),
                      Lasting(cause.at("step_time_s")), Text(cause.at("text"))),
          cause.at("probability") >= 0.005);
    }
    for (const Json& remedy : json.at("remedies")) {
      ExpectLine(text, fmt::format("{} {} {}", FormatFactor(remedy.at("gain").get<double>()),
                                   Lasting(remedy.at("step_time_s")), Text(remedy.at("text"))));
    }
    ExpectSaid(text, "What to measure next", !json.at("next").is_null());
    if (!json.at("next").is_null()) ExpectForecasts(json.at("next"), text);
    // Only what takes time has a part of the bar.
    const bool codes = complaint.more.size() > 1 && complaint.more[1] == "--compress";
    for (const char* part : {"exposed transfer", "exposed latency", "waiting for stragglers"}) {
      ExpectSaid(text, part, true);
    }
    ExpectSaid(text, " coding ", codes);
    ExpectSaid(text, "waiting for input", codes || json.at("causes").at(0).at("cause") == "input");
  }
}

TEST(DiagnoseTexts, RefusalsSayWhatIsAllowed) {
  const Words job = {"diagnose", "--workload",  "resnet50", "--device",   "t4", "--local-batch",
                     "32",       "--placement", "2-2",      "--measured", "1 s"};
  const struct {
    Words more;
    std::string said;
  } refusals[] = {
      {{"--also", ": 4 s"},
       "--also: ': 4 s' does not say what differs; allowed: KEY=V,...: T, like \"accumulation=4: "
       "1.2 s\"\n"},
      {{"--also", "accumulation=4"},
       "--also: 'accumulation=4' has no time; allowed: KEY=V,...: T, like"},
      {{"--also", "workers=2, accumulation: 4 s"},
       "--also: ' accumulation' has no value; allowed: KEY=V, like accumulation=4\n"},
      {{"--lost", "12"}, "--lost: '12' does not say of how many; allowed: K/N, like 12/100000\n"},
      {{"--one-node", "1 s", "--strategy", "ps-sync", "--servers", "1"},
       "--one-node: says nothing beside this plan; allowed: workers on several nodes, without "
       "parameter servers\n"},
      {{"--accumulation", "2", "--one-worker", "2 it/s"},
       "--one-worker: '2 it/s' may count micro-steps, of which a step has several; allowed: "
       "steps/s "
       "or s/step, of whole steps\n"},
      {{"--one-worker", "2 parsec"},
       "allowed: a time in s, ms, us, ns, min, h or d, like \"0.43 s\" or \"0.43 s/it\"; steps, "
       "like \"2.3 it/s\" (or steps/s); or samples of all workers, like \"240 samples/s\"\n"}};
  for (const auto& refusal : refusals) ExpectError(job + refusal.more, {refusal.said});
  const Words unnamed = {"diagnose", "--parameters", "1000", "--local-batch",
                         "1",        "--measured",   "1 s"};
  ExpectError(unnamed, {"--one-worker: is required with --parameters, or --one-node, or --also of "
                        "fewer workers; allowed: a step's time: nothing else tells how long it "
                        "computes\n"});
  // Eight connections fill the link, of which one has a part.
  const Json of_one = JsonOf(job + Words{"--flow-rate", "5 Gbit/s"});
  const Json of_eight = JsonOf(job + Words{"--link-rate", "5 Gbit/s"});
  EXPECT_NE(of_one.at("causes"), of_eight.at("causes"));
}

// ---- explain.

std::string ValueText(const Json& value) {
  const std::string name = Text(value.at("name"));
  const std::string symbol = Text(value.at("symbol"));
  const std::string unit = Text(value.at("unit"));
  return (name.empty() ? "" : name + " ") + (symbol.empty() ? "" : symbol + " = ") +
         Number(value.at("value")) + (unit.empty() ? "" : " " + unit);
}

TEST(ExplainTexts, EachTermAndParameterIsTheExplanations) {
  const Words job = {"explain",  "--cluster",     "gce-t4", "--workload",
                     "resnet50", "--local-batch", "32",     "--workers"};
  for (const char* workers : {"8", "1"}) {
    const Words words = job + Words{workers};
    const Json json = JsonOf(words);
    const std::string text = Stepcast(words).out;
    ExpectLine(text,
               fmt::format("step {} (90 % interval {} to {})", Lasting(json.at("step_time_s")),
                           Lasting(json.at("low_s")), Lasting(json.at("high_s"))));
    bool norms = false;
    for (const Json& term : json.at("terms")) {
      norms = norms || Text(term.at("formula")).find("||") != std::string::npos;
      ExpectLine(text,
                 Text(term.at("name")) + ": " + ValueText(term.at("result")) +
                     (term.at("is_part") ? " " + Percent(term.at("share")) + " of the step" : ""));
      std::string inputs;
      for (const Json& input : term.at("inputs")) {
        inputs += (inputs.empty() ? "" : ", ") + ValueText(input);
      }
      const std::string model = Text(term.at("model"));
      ExpectSaid(text,
                 "= " + Text(term.at("formula")) + " " + inputs + (inputs.empty() ? "" : " ") +
                     "[" + model + (model.empty() ? "" : ": ") + Text(term.at("source")) + "]",
                 true);
    }
    EXPECT_EQ(norms, workers == std::string("8"));
    ExpectLine(text, "||a, b||_q is (a^q + b^q)^(1/q), a soft maximum.", norms);
    ExpectLine(text, "parameter value +1 % changes the step by 90 % within from");
    for (const Json& parameter : json.at("parameters")) {
      const double log_sd = parameter.at("log_sd");
      const std::string unit = Text(parameter.at("unit"));
      ExpectLine(
          text,
          fmt::format(
              "{} {}{} {:+.3f} %{} {}", Text(parameter.at("name")), Number(parameter.at("value")),
              unit.empty() ? "" : " " + unit, parameter.at("elasticity").get<double>(),
              log_sd > 0 ? " x/ " + FormatNumber(std::exp(1.6448536269514722 * log_sd)) : "",
              Text(parameter.at("origin"))));
    }
    for (const Json& flag : json.at("flags")) ExpectSaid(text, "! " + Text(flag), true);
  }
}

// ---- models.

TEST(ModelTexts, EachLineIsTheModels) {
  const Json json = JsonOf({"models"});
  Words asked = {"models"};
  for (const Json& model : json.at("models")) asked.push_back(Text(model.at("id")));
  for (const Json& spec : json.at("parameters")) asked.push_back(Text(spec.at("name")));
  const std::string text = Stepcast(asked).out;
  const auto home = [](const Json& model) {
    return fmt::format(" code {}: {} derived in {} tested in {}", Text(model.at("header")),
                       Text(model.at("function")), Text(model.at("page")), Text(model.at("test")));
  };
  const auto line = [](const char* name, const Json& of) {
    return of == "" ? std::string() : fmt::format(" {} {}", name, Text(of));
  };
  std::map<std::string, const Json*> by_id;
  for (const Json& model : json.at("models")) {
    by_id[Text(model.at("id"))] = &model;
    ExpectSaid(text,
               line("says", model.at("sentence")) + line("formula", model.at("formula")) +
                   line("unit", model.at("unit")) + line("constants", model.at("constants")) +
                   line("holds for", model.at("validity")) + line("source", model.at("source")) +
                   home(model) + " ",
               true);
    for (const Json& input : model.at("inputs")) {
      const std::string result = Text(input.at("output"));
      ExpectSaid(text,
                 fmt::format(" {} [{}] {}, {:g} to {:g}: the result {}", Text(input.at("symbol")),
                             Text(input.at("unit")), Text(input.at("meaning")),
                             input.at("low").get<double>(), input.at("high").get<double>(),
                             result == "either" ? "grows or falls" : result),
                 true);
    }
    for (const Json& known : model.at("known")) {
      ExpectSaid(
          text,
          fmt::format("known: {}: gives {}{}", Text(known.at("says")), Number(known.at("expected")),
                      model.at("unit") == "1" ? "" : " " + Text(model.at("unit"))),
          true);
    }
  }
  for (const Json& spec : json.at("parameters")) {
    const Json& reader = *by_id.at(Text(spec.at("model")));
    const std::string unit = spec.at("unit") == "1" ? "" : " " + Text(spec.at("unit"));
    ExpectSaid(
        text,
        fmt::format(" is {} unit {} prior {:g}{} x/ {:.3g}, from {:g} to {:g} source {} "
                    "stated in model/step/parameters.h read by {}: {}{} ",
                    Text(spec.at("meaning")), Text(spec.at("unit")), spec.at("prior").get<double>(),
                    unit, std::exp(spec.at("prior_log_sd").get<double>()),
                    spec.at("low").get<double>(), spec.at("high").get<double>(),
                    Text(spec.at("source")), Text(reader.at("id")), Text(reader.at("formula")),
                    home(reader)),
        true);
  }
  // The list has the first part of each id once, as a heading, and then what each says.
  const std::string list = Stepcast({"models"}).out;
  std::map<std::string, int> headings;
  std::istringstream lines(list);
  for (std::string one; std::getline(lines, one);) ++headings[one];
  for (const Json& model : json.at("models")) {
    const std::string id = Text(model.at("id"));
    EXPECT_EQ(headings[id.substr(0, id.find('/'))], 1) << id;
    ExpectSaid(list, " " + id + " " + Text(model.at("sentence")) + " ", true);
  }
  EXPECT_EQ(headings["parameters"], 1);
  for (const Json& spec : json.at("parameters")) {
    ExpectSaid(list, " " + Text(spec.at("name")) + " " + Text(spec.at("meaning")) + " ", true);
  }
  ExpectError(
      {"models", "physics"},
      {"ID: 'physics' is not in the catalogue of models; allowed: an id of stepcast models, "
       "its first part, like collective, or the name of a parameter\n"});
}

// ---- The lists.

TEST(ListTexts, EachCellIsTheLists) {
  const TempFolder folder;
  const std::string own = folder.Write("own.yaml", "name: zzz\ntitle: Mine\nparameters: 1000\n");
  const Words workloads = {"workloads", "--workload-file", own};
  const std::string text = Stepcast(workloads).out;
  const Json networks = JsonOf(workloads).at("workloads");
  ExpectLine(text, "name parameters gradients forward [GFLOP] layers title");
  std::string before;
  for (const Json& w : networks) {
    EXPECT_LT(before, Text(w.at("name"))) << "by their names";
    before = w.at("name");
    std::string line =
        fmt::format("{} {} {}", before, FormatCount(w.at("parameters").get<double>()),
                    FormatSize(Bytes(w.at("gradient_bytes").get<double>())));
    if (w.at("layers") != 0) {
      line += fmt::format(" {} {}", FormatNumber(w.at("forward_flop").get<double>() / 1e9),
                          w.at("layers").get<int>());
    }
    ExpectLine(text, line + " " + Text(w.at("title")));
  }
  EXPECT_EQ(before, "zzz");
  ExpectLine(text, "zzz 1,000 3.91 KiB Mine");
  // Those that are named, as a file or as JSON.
  EXPECT_EQ(JsonOf({"workloads", "vgg16", "resnet50"}).at("workloads").size(), 2U);
  EXPECT_TRUE(Stepcast({"workloads", "vgg16"}).out.starts_with("name: vgg16\n"));
  ExpectError({"workloads", "--workload-file", own, "--workload-file", own},
              {own + ": name: 'zzz' is the name of two workload files; allowed: each name once\n"});

  const std::string machines = Stepcast({"machines"}).out;
  const Json json = JsonOf({"machines"});
  ExpectLine(machines, "cluster nodes devices device link title");
  for (const Json& c : json.at("clusters")) {
    const int nodes = c.at("nodes");
    const bool known = c.contains("link_gbit_per_s") && !c.at("link_gbit_per_s").is_null();
    ExpectLine(
        machines,
        fmt::format(
            "{} {} {} {} {}{}", Text(c.at("name")), nodes,
            nodes * c.at("devices_per_node").get<int>(), Text(c.at("device")),
            known ? FormatRate(GigabitsPerSecond(c.at("link_gbit_per_s").get<double>())) + " " : "",
            Text(c.at("title"))));
  }
  ExpectLine(machines,
             "device fp32 [TFLOP/s] tf32 [TFLOP/s] fp16 [TFLOP/s] memory bandwidth [GB/s] title");
  for (const Json& d : json.at("devices")) {
    std::string line = d.at("name");
    for (const char* key : {"fp32_tflop_per_s", "tf32_tflop_per_s", "fp16_tflop_per_s"}) {
      if (!d.at(key).is_null()) line += " " + Number(d.at(key));
    }
    if (!d.at("memory_bytes").is_null()) {
      line += " " + FormatSize(Bytes(d.at("memory_bytes").get<double>()));
    }
    if (!d.at("memory_bandwidth_gb_per_s").is_null()) {
      line += " " + Number(d.at("memory_bandwidth_gb_per_s"));
    }
    ExpectLine(machines, line + " " + Text(d.at("title")));
    if (d.at("name") == "t4") {
      EXPECT_EQ(d.at("fp32_tflop_per_s"), 8.1);
      EXPECT_EQ(d.at("fp16_tflop_per_s"), 65);
      EXPECT_TRUE(d.at("tf32_tflop_per_s").is_null());
      EXPECT_TRUE(d.at("bf16_tflop_per_s").is_null());
      EXPECT_TRUE(d.at("fp8_tflop_per_s").is_null());
    }
    if (d.at("name") == "a100") {
      EXPECT_EQ(d.at("tf32_tflop_per_s"), 156);
    }
    if (d.at("name") != "h200") continue;
    EXPECT_EQ(d.at("memory_bytes"), 141.0 * 1024 * 1024 * 1024);
    EXPECT_EQ(d.at("memory_bandwidth_gb_per_s"), 4800);
    EXPECT_EQ(d.at("power_w"), 700);
    EXPECT_EQ(d.at("fp8_tflop_per_s"), 2 * d.at("bf16_tflop_per_s").get<double>());
  }
}

}  // namespace
}  // namespace stepcast::program
