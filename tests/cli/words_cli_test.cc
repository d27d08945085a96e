// How plans are called wherever they are named, and what a prediction says of servers, money,
// energy and failures.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
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
std::string Throughput(const Json& rate) {
  return FormatThroughput(Samples(rate.get<double>()) / Seconds(1.0));
}

// What is not told is the default.
TEST(PlanTexts, TellAllThatAPlanHas) {
  const auto hosts = [](int count) {
    Words names;
    for (int i = 0; i < count; ++i) names.push_back(fmt::format("h{}", i));
    return names;
  };
  const Words twenty = hosts(20);
  const struct {
    Words options;
    std::string told;
    std::string devices = "one device each";
  } plans[] = {
      {{"--workers", "1"}, "1 worker, local batch 32"},
      {{"--workers", "2"}, "2 workers (2 x 1), allreduce, local batch 32"},
      {{"--placement", "2"}, "2 workers, allreduce, local batch 32", "2 devices each"},
      {{"--placement", "2-2"}, "4 workers (2 x 2), allreduce, local batch 32", "2 devices each"},
      {{"--placement", "4-2"}, "6 workers (4-2), allreduce, local batch 32", "4 devices each"},
      {{"--placement", "3-2-2-2-2-2-2-2-2-2-2-2"},
       "25 workers (3-2-2-2-2-2-2-2-2-2-2-2), allreduce, local batch 32",
       "3 devices each"},
      {{"--placement", "3-2-2-2-2-2-2-2-2-2-2-2-2"},
       "27 workers on 13 nodes, allreduce, local batch 32",
       "3 devices each"},
      {{"--hosts", "a+b", "--accumulation", "4"},
       "2 workers (2 x 1) on a+b, allreduce, local batch 32 x 4 accumulated"},
      {{"--hosts", fmt::format("{}", fmt::join(twenty, "+"))},
       fmt::format("20 workers (20 x 1) on {}, allreduce, local batch 32", fmt::join(twenty, "+"))},
      {{"--hosts", fmt::format("{}", fmt::join(hosts(21), "+"))},
       "21 workers (21 x 1) on h0+h1+h2+h3+h4+h5+h6+h7+h8+h9+... (11 more), allreduce, local batch "
       "32"},
      {{"--workers", "4", "--strategy", "ps-sync", "--servers", "1"},
       "4 workers (4 x 1), ps-sync with 1 server, local batch 32"},
      {{"--workers", "4", "--strategy", "ps-sync", "--servers", "2", "--colocated-servers",
        "--sharding", "even", "--pipelined-servers"},
       "4 workers (4 x 1), ps-sync with 2 servers on the workers' nodes, sharding even, pipelined, "
       "local batch 32"},
      {{"--placement", "2-2", "--strategy", "ps-sync", "--servers", "2", "--local-aggregation",
        "--multicast", "--in-network-aggregation", "--backup-workers", "1", "--server-bandwidth",
        "40 Gbit/s"},
       "4 workers (2 x 2), ps-sync with 2 servers, one push a node, multicast, added up in the "
       "network, local batch 32, 1 of them backup, servers 40 Gbit/s",
       "2 devices each"},
      {{"--workers", "4", "--strategy", "ps-async", "--servers", "2", "--staleness-bound", "3"},
       "4 workers (4 x 1), ps-async with 2 servers, staleness bound 3, local batch 32"},
      {{"--workers", "4", "--overlap", "none", "--bucket", "tensor", "--bytes-per-parameter", "2"},
       "4 workers (4 x 1), allreduce, local batch 32, nothing overlaps, bucket tensor, 2 bytes a "
       "parameter"},
      {{"--workers", "4", "--overlap", "p-norm", "--bucket", "8 MiB"},
       "4 workers (4 x 1), allreduce, local batch 32, overlap by p-norm, bucket 8 MiB"},
      {{"--workers", "4", "--bucket", "one-message", "--strategy", "ring"},
       "4 workers (4 x 1), ring, local batch 32, bucket one-message"},
      {{"--workers", "4", "--slow-nodes", "1", "--slow-speed", "0.5"},
       "4 workers (4 x 1), allreduce, local batch 32, 1 node at 0.5 of the others' speed"},
      {{"--workers", "4", "--slow-nodes", "2", "--slow-speed", "0.5", "--slow-local-batch", "16"},
       "4 workers (4 x 1), allreduce, local batch 32, 2 nodes at 0.5 of the others' speed with a "
       "local batch of 16"},
      {{"--placement", "2-2", "--shard", "hybrid"},
       "4 workers (2 x 2), allreduce, local batch 32, parameters shared out within nodes",
       "2 devices each"},
      {{"--workers", "4", "--shard", "optimizer", "--local-steps", "1"},
       "4 workers (4 x 1), allreduce, local batch 32, optimizer shared out"},
      {{"--workers", "4", "--local-steps", "4"},
       "4 workers (4 x 1), allreduce, local batch 32, exchanged every 4 steps"},
      {{"--workers", "4", "--compress", "topk=0.01", "--compress-rate", "1 Gbit/s", "--input-rate",
        "500 samples/s"},
       "4 workers (4 x 1), allreduce, local batch 32, compressed topk=0.01 at 1 Gbit/s, 500 "
       "samples/s arrive at a node"},
      {{"--workers",
        "4",
        "--bandwidth",
        "10 Gbit/s",
        "--rtt",
        "2 ms",
        "--loss",
        "0.01",
        "--loss-burst",
        "3 ms",
        "--congestion-control",
        "cubic",
        "--transport",
        "tcp",
        "--link-others",
        "3",
        "--background",
        "1 Gbit/s",
        "--oversubscription",
        "4",
        "--nodes-per-switch",
        "2"},
       "4 workers (4 x 1), allreduce, local batch 32, 10 Gbit/s, round trip 2 ms, 1 % lost, 3 ms "
       "of "
       "it at once, cubic, tcp, shared with 3 others, 1 Gbit/s of other traffic, a core "
       "oversubscribed by 4, 2 nodes on a switch"},
      {{"--workers", "4", "--link-others", "0", "--background", "0 Gbit/s", "--oversubscription",
        "1", "--nodes-per-switch", "2"},
       "4 workers (4 x 1), allreduce, local batch 32"},
  };
  for (const auto& plan : plans) {
    const std::string text = Stepcast(Words{"predict", "--device", "t4", "--workload", "resnet50",
                                            "--local-batch", "32"} +
                                      plan.options)
                                 .out;
    ExpectLine(text, "resnet50 on nodes with " + plan.devices + " (t4): " + plan.told);
  }
  // With a file its name stands there, and how it is trained behind the workload.
  ExpectLine(Stepcast({"predict", "--cluster", "gce-t4", "--workload", "gpt2", "--local-batch", "2",
                       "--workers", "8", "--optimizer", "adam"})
                 .out,
             "gpt2 (adam) on gce-t4 (t4): 8 workers (2 x 4), allreduce, local batch 2");
}

const Words kOfServers = {"predict",       "--cluster", "ec2-g3-ps", "--workload", "vgg16",
                          "--local-batch", "32",        "--workers", "8"};

TEST(ServerTexts, HaveThePredictionsNumbers) {
  const Words sync = kOfServers + Words{"--strategy", "ps-sync", "--servers"};
  for (const Words& more : {Words{"2"}, Words{"2", "--multicast"},
                            Words{"2", "--in-network-aggregation"}, Words{"1"}}) {
    const Json json = JsonOf(sync + more);
    const std::string text = Stepcast(sync + more).out;
    const Json& times = json.at("server_times");
    const Json& phases = json.at("server_phases");
    ExpectLine(text, fmt::format("servers push {}, update {}, pull {} of the whole model",
                                 Lasting(times.at("push_s")), Lasting(times.at("update_s")),
                                 Lasting(times.at("pull_s"))));
    ExpectLine(text, fmt::format("aggregation {}{} after the backward pass, distribution {}",
                                 more.size() > 1 ? "without the network's help " : "",
                                 Lasting(phases.at("remaining_aggregation_s")),
                                 Lasting(phases.at("remaining_distribution_s"))));
    ExpectLine(text, fmt::format("network multicast saves {}, in-network aggregation {}, both {}",
                                 Lasting(phases.at("multicast_saves_s")),
                                 Lasting(phases.at("in_network_aggregation_saves_s")),
                                 Lasting(phases.at("both_save_s"))));
    const bool several = more.front() == "2";
    ExpectSaid(text, "more servers do not help", several);
    if (several) {
      ExpectLine(text, fmt::format("largest the tensor of fc1 puts {} of the model on one server: "
                                   "more servers do not help",
                                   Percent(json.at("largest_shard").at("share"))));
    }
    for (const char* undue : {" updates ", " staleness ", " paces ", " rounds ", "algorithm"}) {
      ExpectSaid(text, undue, false);
    }
  }
  // Shared out evenly no tensor is too large for a server.
  ExpectSaid(Stepcast(sync + Words{"2", "--sharding", "even"}).out, "more servers do not help",
             false);
}

TEST(ServerTexts, OfWorkersAtTheirOwnPace) {
  const std::map<std::string, std::string> limiters = {
      {"compute", "compute sets the pace"},
      {"worker_link", "workers wait for their own links"},
      {"server_link", "workers queue for the servers' links"},
      {"server_rate", "workers queue for the servers' processors"},
      {"server_update", "workers queue for the servers' updates"}};
  const Words async = {"--strategy", "ps-async", "--servers"};
  const Words slow = {"--slow-nodes", "1", "--slow-speed", "0.5"};
  const Words fast = {"predict", "--device",  "t4", "--workload",  "resnet18",  "--local-batch",
                      "64",      "--workers", "2",  "--bandwidth", "100 Gbit/s"};
  const struct {
    Words words;
    std::string limiter;
  } jobs[] = {
      {kOfServers + async + Words{"2"}, "worker_link"},
      {kOfServers + async + Words{"2"} + slow, "worker_link"},
      {{"predict", "--device", "h100", "--workload", "resnet18", "--local-batch", "1", "--workers",
        "64", "--strategy", "ps-async", "--servers", "2", "--bandwidth", "400 Gbit/s"},
       "server_rate"},
      {kOfServers + async + Words{"1"}, "server_link"},
      {fast + async + Words{"2"}, "compute"}};
  for (const auto& job : jobs) {
    const Json json = JsonOf(job.words);
    const std::string text = Stepcast(job.words).out;
    const Json& a = json.at("async_servers");
    EXPECT_EQ(a.at("limiter"), job.limiter);
    ExpectLine(text, fmt::format("updates {}/s of all workers; {}", Number(a.at("updates_per_s")),
                                 limiters.at(job.limiter)));
    ExpectLine(
        text, fmt::format("busy fullest server: link {}, processor {}, update {}; worker's "
                          "link {}",
                          Percent(a.at("server_link_busy")), Percent(a.at("server_processor_busy")),
                          Percent(a.at("server_update_busy")), Percent(a.at("worker_link_busy"))));
    ExpectLine(text, fmt::format("staleness {} updates by others, give or take {}",
                                 Number(a.at("mean_staleness")), Number(a.at("staleness_sd"))));
    const bool paces = job.words.back() == "0.5";
    ExpectSaid(text, "a worker's cycle is ", paces);
    if (!paces) continue;
    ExpectSaid(text,
               fmt::format("paces a worker's cycle is {}, on slow nodes {}; {} of the updates are "
                           "theirs",
                           Lasting(a.at("fast_cycle_s")), Lasting(a.at("slow_cycle_s")),
                           Percent(a.at("slow_updates_share"))),
               true);
  }
}

// ---- Money, energy, jobs and failures.

std::string Money(const Json& usd) { return Number(usd) + " USD"; }
std::string Energy(const Json& joule) {
  const double j = joule;
  return j < 1e3     ? FormatNumber(j) + " J"
         : j < 3.6e6 ? FormatNumber(j / 1e3) + " kJ"
                     : FormatNumber(j / 3.6e6) + " kWh";
}

TEST(JobTexts, HaveTheOutlooksNumbers) {
  const Words failing = {"--node-mtbf", "1 h", "--checkpoint-time", "10 s", "--data-set", "100000"};
  const Words restart = {"--restart-time", "20 s"};
  const Words target = {"--noise-scale", "8000", "--known-batch", "256", "--least-steps", "1000"};
  const Words sync = kOfServers + Words{"--strategy", "ps-sync", "--servers", "2"};
  const Words async = kOfServers + Words{"--strategy", "ps-async", "--servers", "2"};
  const struct {
    Words words;
    bool async;
  } jobs[] = {{sync + failing + restart, false},
              {kOfServers + failing + restart + target, false},
              {sync + failing, false},
              {async + failing + target, true},
              {async + failing + restart, true}};
  for (const auto& job : jobs) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(job.words, " ")));
    const Json json = JsonOf(job.words);
    const std::string text = Stepcast(job.words).out;
    const Json& spending = json.at("spending");
    const Json& outlook = json.at("outlook");
    const Json& failures = outlook.at("failures");
    const bool servers = json.contains("server_times");
    ExpectLine(text, fmt::format("price {} a step{}", Money(spending.at("price_usd")),
                                 servers ? ", without the servers' nodes" : ""));
    EXPECT_EQ(spending.at("servers_priced"), !servers);
    ExpectLine(text,
               fmt::format("energy at most {} a step (devices alone, taken as busy throughout "
                           "at 150 W)",
                           Energy(spending.at("energy_j"))));
    const char* unit = job.async ? "updates" : "steps";
    const auto stretch = [&](const Json& of, bool at_least) {
      return fmt::format(
          "{}{} {}, {} (90 % interval {} to {}), {}, {}{}{}; with failures {}, {}",
          at_least ? "at least " : "", FormatCount(of.at("updates").get<double>()), unit,
          Lasting(of.at("time_s")), Lasting(of.at("low_s")), Lasting(of.at("high_s")),
          Money(of.at("price_usd")), at_least ? "" : "at most ", Energy(of.at("energy_j")),
          at_least ? " with devices busy throughout" : "", Lasting(of.at("time_with_failures_s")),
          Money(of.at("price_with_failures_usd")));
    };
    ExpectSaid(text, " epoch " + stretch(outlook.at("epoch"), false), true);
    const bool has_target = !outlook.at("target").is_null();
    ExpectSaid(text, " target ", has_target);
    if (has_target) {
      ExpectSaid(text, " target " + stretch(outlook.at("target"), job.async), true);
      ExpectSaid(
          text,
          fmt::format(" goodput {}{} (90 % interval {} to {}), at {} statistical efficiency",
                      job.async ? "at most " : "", Throughput(outlook.at("goodput_samples_per_s")),
                      Throughput(outlook.at("goodput_low_samples_per_s")),
                      Throughput(outlook.at("goodput_high_samples_per_s")),
                      Percent(outlook.at("statistical_efficiency"))),
          true);
    }
    ExpectSaid(text,
               "what stale updates cost in samples is not counted: it is measured, not derived",
               has_target && job.async);

    const bool at_least = failures.at("at_least");
    const std::string bound = at_least ? "at least " : "";
    EXPECT_EQ(at_least,
              std::find(job.words.begin(), job.words.end(), "--restart-time") == job.words.end());
    ExpectSaid(
        text,
        fmt::format(
            " failures one in {}{}; save every {} of training (Daly; Young {})",
            Lasting(failures.at("between_failures_s")),
            job.async ? ", of a server's node one in " + Lasting(failures.at("between_restarts_s"))
                      : "",
            Lasting(failures.at("daly_interval_s")), Lasting(failures.at("young_interval_s"))),
        true);
    const double slowdown = failures.at("slowdown");
    ExpectLine(text, fmt::format("they cost {}{}: {}{}", bound,
                                 slowdown < 2 ? FormatPercent(slowdown - 1) + " more time"
                                              : FormatFactor(slowdown) + " the time",
                                 at_least ? "at most " : "",
                                 Throughput(failures.at("throughput_samples_per_s"))));
    const Json& loss = failures.at("worker_loss");
    ExpectSaid(
        text,
        fmt::format(
            " a lost {} costs all workers {}{}, a lost worker {}{}{}{}",
            job.async ? "server" : "chief", bound, Lasting(failures.at("chief_loss_s")),
            job.async ? "" : "that is replaced in place ", bound, Lasting(loss.at("stall_s")),
            job.async
                ? " of its own work (" + Percent(loss.at("stalled_share")) + " of the throughput)"
                : ""),
        true);
  }
}

// Twice the time is told by its factor, and a job that hardly goes on is no job.
TEST(JobTexts, TellHowMuchFailuresCost) {
  const auto job = [](const char* between, const char* saving) {
    return kOfServers + Words{"--node-mtbf", between,  "--checkpoint-time", saving,
                              "--data-set",  "100000", "--restart-time",    "20 s"};
  };
  ExpectTold({{job("1 h", "10 s"), {" more time: ", "; with failures "}, {" the time: "}},
              {job("10 min", "100 s"), {" the time: ", "; with failures "}, {" more time: "}},
              {job("1 min", "50 s"),
               {"they cost hardly any work gets done between failures"},
               {" more time: ", " the time: ", "; with failures "}}});
}

TEST(JobTexts, TellWhatEnergyAndPriceAreOf) {
  const TempFolder folder;
  const auto predict = [&](const std::string& facts, const Words& more = {}) {
    const std::string cluster =
        "name: lab\ndevice: t4\nnodes: 4\ndevices_per_node: 1\nlink: {bandwidth: 10 Gbit/s}\n" +
        facts;
    return Words{"predict",    "--cluster", folder.Write("lab.yaml", cluster),
                 "--workload", "resnet18",  "--local-batch",
                 "8",          "--workers", "2"} +
           more;
  };
  const std::string both = "power: {device: 70 W, device_idle: 30 W, node: 200 W}\n";
  const std::string busy = "power: {device: 70 W, node: 200 W}\n";
  const std::string devices = "power: {device: 70 W, device_idle: 30 W}\n";
  ExpectTold({{predict(both), {" J a step "}, {"at most", "devices alone", "USD"}}});
  ExpectTold({{predict(busy),
               {" J a step (devices, taken as busy throughout at 70 W)", "at most"},
               {"devices alone"}}});
  ExpectTold({{predict(devices), {" J a step (devices alone)"}, {"at most", "throughout"}}});
}

}  // namespace
}  // namespace stepcast::program
