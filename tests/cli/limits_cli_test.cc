// `stepcast limits` in words: each sentence and each cell beside the command's own numbers.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "predictor/report/terminal.h"
#include "tests/cli/program.h"

namespace stepcast::program {
namespace {

std::string WorkersText(const Json& count) {
  return FormatCount(count.get<double>()) + (count == 1 ? " worker" : " workers");
}
std::string PercentOf(const Json& share) { return FormatPercent(share.get<double>()); }
std::string DurationOf(const Json& seconds) {
  return FormatDuration(Seconds(seconds.get<double>()));
}
std::string ThroughputOf(const Json& rate) {
  return FormatThroughput(Samples(rate.get<double>()) / Seconds(1.0));
}
std::string RateOf(const Json& gigabits) {
  return FormatRate(GigabitsPerSecond(gigabits.get<double>()));
}

// A count, or "-" for none.
std::string Cell(const Json& count) {
  return count.is_null() ? "-" : FormatCount(count.get<double>());
}
// A closed form, which may say that there is no such limit, or say nothing.
std::string ClosedCell(const Json& closed, const std::string& guide = "") {
  if (closed.is_null()) return "-";
  if (closed.is_string()) return closed;
  const double value = closed;
  return guide + (value < 100 ? FormatNumber(value) : FormatCount(std::round(value)));
}

std::string PointLine(const Json& point) {
  return fmt::format("{} {} {} {}", FormatCount(point.at("workers").get<double>()),
                     DurationOf(point.at("step_time_s")),
                     ThroughputOf(point.at("throughput_samples_per_s")),
                     PercentOf(point.at("efficiency")));
}

// What the machines that there are give.
void ExpectGiven(const Json& json, const std::string& text) {
  const Json& given = json.at("given");
  ExpectSaid(text, "the throughput of one: ", !given.is_null());
  if (given.is_null()) return;
  ExpectLine(text, PointLine(given));
  const double factor = given.at("times_one_worker");
  ExpectSaid(text,
             fmt::format("{} give {} the throughput of one: {} at {} efficiency.",
                         WorkersText(given.at("workers")), FormatFactor(factor),
                         ThroughputOf(given.at("throughput_samples_per_s")),
                         PercentOf(given.at("efficiency"))),
             true);
  const Json& pays = given.at("pays_from");
  ASSERT_EQ(pays.is_object(), factor < 1);
  const bool any = pays.is_object() && !(pays.at("link_gbit_per_s").is_null() &&
                                         pays.at("accumulation_steps").is_null());
  ExpectSaid(text, "Neither a faster network nor accumulation makes them worth it.",
             factor < 1 && !any);
  ExpectSaid(text, "They are worth it with ", factor < 1 && any);
  if (!any) return;
  std::string with;
  if (!pays.at("link_gbit_per_s").is_null()) {
    with = "links of " + RateOf(pays.at("link_gbit_per_s")) + " or more";
  }
  if (!pays.at("accumulation_steps").is_null()) {
    const double steps = pays.at("accumulation_steps");
    const double batch =
        json.at("plan").at("local_batch").get<double>() * given.at("workers").get<double>() * steps;
    with += fmt::format("{}{} micro-steps accumulated (a global batch of {})",
                        with.empty() ? "" : ", or ", FormatCount(steps), FormatCount(batch));
  }
  ExpectSaid(text, "They are worth it with " + with + ".", true);
}

// From where on more workers pay, and from where on they wait.
void ExpectSentences(const Json& json, const std::string& text) {
  const std::string most = FormatCount(json.at("most_workers").get<double>());
  const Json& first = json.at("worth_it_workers");
  const Json& from = json.at("worth_it_from_workers");
  ExpectSaid(text, "No number of workers up to " + most + " is faster than one.", first.is_null());
  ExpectSaid(text, "More than one worker pays from ", !first.is_null() && first == from);
  ExpectSaid(text, "The fewest that are faster than one are ", !first.is_null() && first != from);
  if (!first.is_null() && first == from) {
    ExpectSaid(text, "More than one worker pays from " + WorkersText(first) + " on.", true);
  } else if (!first.is_null()) {
    ExpectSaid(text,
               "The fewest that are faster than one are " + WorkersText(first) + "; " +
                   (from.is_null() ? most + " are not." : "all are from " + Cell(from) + " on."),
               true);
  }

  const Json& crossing = json.at("crossing_workers");
  ExpectSaid(text, "on the exposed synchronisation takes longer than compute.",
             !crossing.is_null());
  ExpectSaid(text,
             "On " + WorkersText(json.at("most_workers")) +
                 " compute takes longer than the exposed synchronisation.",
             crossing.is_null());
  if (!crossing.is_null()) {
    ExpectSaid(text,
               "From " + WorkersText(crossing) +
                   " on the exposed synchronisation takes longer than compute.",
               true);
  }

  const Json& used = json.at("half_utilisation_workers");
  const Json& efficient = json.at("half_efficiency_workers");
  const std::string at_most = PercentOf(json.at("efficiency_at_most"));
  ExpectSaid(
      text,
      "At " + WorkersText(json.at("most_workers")) + " the efficiency is still " + at_most + ".",
      used.is_null());
  ExpectSaid(text, "on less than half of the devices' work is used", !used.is_null());
  const std::string against = "; efficiency, which is against one worker and its servers, is ";
  ExpectSaid(text, against, !used.is_null() && used != efficient);
  if (!used.is_null()) {
    ExpectSaid(
        text,
        "From " + WorkersText(used) + " on less than half of the devices' work is used" +
            (used == efficient     ? "."
             : efficient.is_null() ? against + "still " + at_most + " on " + most + "."
                                   : against + "below one half from " + Cell(efficient) + " on."),
        true);
  }

  ExpectSaid(text,
             "Highest throughput within the search: " + WorkersText(json.at("best_workers")) +
                 ". On " + most + " ",
             true);
  const Json& strong = json.at("strong_scaling");
  ExpectSaid(text,
             fmt::format("A fixed step of {} samples is fastest on {}: {}. ",
                         Cell(strong.at("global_batch")), WorkersText(strong.at("best_workers")),
                         DurationOf(strong.at("step_time_s"))),
             true);
}

// Each limit in closed form beside the search; a limit of which neither is known has no row.
void ExpectLimitTable(const Json& json, const std::string& text) {
  const Json& closed = json.at("closed_form");
  const std::string there = " on " + WorkersText(json.at("reference_workers"));
  const std::string within = " (within 1 %)";
  std::string buckets = "-";
  if (const Json& least = json.at("buckets"); !least.is_null()) {
    const Json& most = json.at("most_buckets");
    buckets = Cell(least) +
              (most.is_null()  ? " or more"
               : most == least ? ""
                               : " to " + Cell(most)) +
              within;
  }
  const struct {
    std::string name;
    const char* key;
    std::string searched;
    const char* guide = "";
  } rows[] = {
      {"workers for half of the ceiling", "half_ceiling_workers",
       Cell(json.at("half_ceiling_workers"))},
      {"workers for half efficiency", "half_efficiency_workers",
       Cell(json.at("half_efficiency_workers"))},
      {"workers for transfer beyond compute", "crossing_workers",
       Cell(json.at("crossing_workers"))},
      {"best workers for the fixed step", "strong_best_workers",
       Cell(json.at("strong_scaling").at("best_workers"))},
      {"workers at the knee of the queues", "knee_workers", "-"},
      {"accumulation for " + PercentOf(json.at("target_efficiency")) + " compute" + there,
       "accumulation", Cell(json.at("accumulation"))},
      {"buckets that suffice" + there, "buckets", buckets, "up to "},
      {"servers that suffice" + there, "servers", Cell(json.at("servers"))},
  };
  for (const auto& row : rows) {
    const std::string cell = ClosedCell(closed.at(row.key), row.guide);
    const bool any = cell != "-" || row.searched != "-";
    ExpectSaid(text, row.name + " ", any);
    if (any) ExpectLine(text, row.name + " " + cell + " " + row.searched);
  }
  const Json& ceiling = closed.at("ceiling_samples_per_s");
  ExpectSaid(text, "throughput ceiling", !ceiling.is_null());
  if (ceiling.is_null()) return;
  double best = 0;
  for (const Json& point : json.at("curve")) {
    if (point.at("workers") == json.at("best_workers")) best = point.at("throughput_samples_per_s");
  }
  if (best == 0) return;  // a number of workers that is not in the table
  ExpectLine(text, fmt::format("throughput ceiling {} {} on {}",
                               ceiling.is_string() ? "none" : ThroughputOf(ceiling),
                               ThroughputOf(best), WorkersText(json.at("best_workers"))));
}

// What would bring each utilisation, with all else as it is.
void ExpectReaches(const Json& json, const std::string& text) {
  const Json& inverse = json.at("inverse");
  const int most = json.at("most_workers");
  for (const Json& reach : inverse.at("reaches")) {
    const auto cell = [&](const char* key, const auto& text_of) -> std::string {
      return reach.at(key).is_null() ? "-" : text_of(reach.at(key));
    };
    ExpectLine(text,
               fmt::format("{} {} {} {} {} {} {}", PercentOf(reach.at("utilisation")),
                           cell("link_gbit_per_s", RateOf),
                           cell("rtt_ms",
                                [](const Json& ms) {
                                  return FormatDuration(Milliseconds(ms.get<double>()));
                                }),
                           cell("loss_rate", PercentOf), cell("accumulation_steps", Cell),
                           cell("local_batch", Cell), cell("workers", [&](const Json& workers) {
                             return Cell(workers) + (workers == most ? " or more" : "");
                           })));
  }
  const int asked = json.at("reference_workers");
  ExpectSaid(text,
             WorkersText(asked) + " do " + PercentOf(inverse.at("utilisation")) +
                 " of the work of as many devices that exchange nothing.",
             true);
}

const Words kOnT4 = {"limits", "--device", "t4", "--workload"};

// A job of each kind: that scales; that loses and can be mended, or cannot; that never pays, pays
// with gaps, or pays on few; whose servers are one's own; that is alone.
TEST(LimitsCli, EachSentenceAndCellHasItsNumbers) {
  const std::vector<Words> jobs = {
      {"limits", "--cluster", "gce-t4", "--workload", "resnet50", "--local-batch", "64",
       "--workers", "8"},
      {"limits", "--cluster", "ec2-g3-ps", "--workload", "vgg16", "--local-batch", "32",
       "--strategy", "ps-sync", "--servers", "1", "--workers", "4", "--target-efficiency", "0.8"},
      kOnT4 + Words{"vgg16", "--local-batch", "4", "--workers", "2", "--bandwidth", "100 Mbit/s"},
      kOnT4 + Words{"vgg16", "--local-batch", "2", "--workers", "2", "--bandwidth", "1 Mbit/s",
                    "--most-workers", "4"},
      kOnT4 + Words{"vgg16", "--local-batch", "32", "--placement", "4-4", "--bandwidth", "1 Gbit/s",
                    "--most-workers", "64"},
      kOnT4 + Words{"vgg16", "--local-batch", "32", "--placement", "4-4", "--bandwidth", "1 Gbit/s",
                    "--most-workers", "16"},
      kOnT4 + Words{"vgg16", "--local-batch", "16"},
      kOnT4 + Words{"resnet50", "--local-batch", "32", "--strategy", "ps-async", "--servers", "2",
                    "--workers", "4", "--most-workers", "8", "--global-batch", "96"},
  };
  int losing = 0;
  int gaps = 0;
  int never = 0;
  for (const Words& job : jobs) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(job, " ")));
    const Json json = JsonOf(job);
    const std::string text = Stepcast(job).out;
    ExpectGiven(json, text);
    ExpectSentences(json, text);
    ExpectLimitTable(json, text);
    ExpectReaches(json, text);
    for (const Json& point : json.at("curve")) ExpectLine(text, PointLine(point));
    for (const char* key : {"findings", "flags"}) {
      for (const Json& sentence : json.at(key)) ExpectSaid(text, sentence, true);
    }
    const Json& given = json.at("given");
    losing += given.is_object() && given.at("times_one_worker") < 1 ? 1 : 0;
    never += json.at("worth_it_workers").is_null() ? 1 : 0;
    gaps += json.at("worth_it_workers") != json.at("worth_it_from_workers") ? 1 : 0;
  }
  EXPECT_GE(losing, 3);
  EXPECT_GE(never, 2);
  EXPECT_GE(gaps, 2);
}

// How far it searches, and what it shares out, where nobody says.
TEST(LimitsCli, TakesItsDefaults) {
  const Json json = JsonOf({"limits", "--cluster", "gce-t4", "--workload", "resnet50",
                            "--local-batch", "64", "--workers", "8"});
  EXPECT_EQ(json.at("most_workers"), 256);
  EXPECT_EQ(json.at("target_efficiency"), 0.9);
  EXPECT_EQ(json.at("strong_scaling").at("global_batch"), 4 * 64) << "of one full node";
}

// A node has 30 samples a second, of which its device takes less, or more.
TEST(LimitsCli, SaysWhatCompressionLoadersAndUplinksDo) {
  const Words job = kOnT4 + Words{"vgg16", "--local-batch",  "16", "--workers",
                                  "4",     "--most-workers", "16", "--bandwidth"};
  ExpectTold(
      {{job + Words{"1 Gbit/s", "--global-batch", "1"},
        {"A fixed step of 1 sample is fastest on 1 worker: "}},
       {job + Words{"1 Gbit/s"},
        {" Links twice as fast bring "},
        {"Compression to", "rate below which", "A node gets", "and uplinks"}},
       {job + Words{"1 Gbit/s", "--compress", "int8"},
        {"Compression to int8 makes a step of 4 workers shorter, whatever the links.",
         " Gbit/s of a hop any"}},
       {job + Words{"1 Gbit/s", "--input-rate", "3000 samples/s"},
        {"A node gets 3,000 samples/s and could take ",
         ": samples are there in time. That is on "
         "4 workers."},
        {"faster loaders"}},
       {job + Words{"1 Gbit/s", "--input-rate", "1 samples/s"},
        {"A node gets 1 samples/s and could take ",
         ": faster loaders or storage help, and no link, batch or accumulation does. That is on 4 "
         "workers."},
        {"in time"}},
       {job + Words{"1 Gbit/s", "--oversubscription", "4", "--nodes-per-switch", "2"},
        {" Links and uplinks twice as fast bring "},
        {" Links twice as fast"}}});
  const Words slow_coding =
      job + Words{"100 Gbit/s", "--compress", "powersgd=4", "--compress-rate", "1 Gbit/s"};
  const Json json = JsonOf(slow_coding);
  const std::string below = RateOf(json.at("compression_pays_below_gbit_per_s"));
  const std::string text = Stepcast(slow_coding).out;
  ExpectSaid(text,
             "Compression to powersgd=4 makes a step of 4 workers shorter on links of less than " +
                 below + ".",
             true);
  ExpectLine(text, "rate below which compression pays " +
                       RateOf(json.at("closed_form").at("compression_hop_gbit_per_s")) +
                       " of a hop " + below);
  const Words input = job + Words{"100 Gbit/s", "--input-rate", "1 samples/s"};
  ExpectSaid(Stepcast(input).out,
             "A node gets 1 samples/s and could take " +
                 ThroughputOf(JsonOf(input).at("input_needed_samples_per_s")) + ":",
             true);
}

}  // namespace
}  // namespace stepcast::program
