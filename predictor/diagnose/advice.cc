#include "predictor/diagnose/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/plan/check.h"
#include "data/plan/limits.h"
#include "data/record/link_path.h"
#include "predictor/diagnose/text.h"
#include "predictor/report/terminal.h"
#include "predictor/search/one_worker.h"
#include "predictor/search/payoff.h"

namespace stepcast::internal {
namespace {

// NCCL opens so many connections to a peer where it is told to (NCCL_NSOCKS_PERTHREAD x
// NCCL_SOCKET_NTHREADS, at most 64); eight saturate what links of today carry.
constexpr int kMoreConnections = 8;
constexpr int kIntervals[] = {2, 8};
constexpr int kLess = 4;  // the batch of a device alone over the smaller one that is asked for
constexpr int kMeasuredAccumulation = 4;
constexpr double kPacketsCounted = 1e5;  // of one iperf3 run of some seconds

std::string RepairText(const Hypothesis& hypothesis, const Forecaster& model) {
  switch (hypothesis.cause) {
    case Cause::kLink:
      return fmt::format("links that deliver {} (cable, port, negotiated rate, other traffic)",
                         FormatRate(model.StatedRate()));
    case Cause::kFlow:
      return fmt::format(
          "{} connections to each peer instead of one "
          "(NCCL_NSOCKS_PERTHREAD, NCCL_SOCKET_NTHREADS)",
          kMoreConnections);
    case Cause::kDeviceLink:
      return fmt::format(
          "devices that exchange at {} (nvidia-smi topo -m: peer access, NVLink, "
          "slots of 16 lanes, ACS off; NCCL rather than Gloo)",
          DeviceRateText(model.DeviceRate()));
    case Cause::kLatency:
      return "a path without the long round trip (same rack, no tunnel, no overlay)";
    case Cause::kLoss:
      return "a path without loss";
    case Cause::kHost:
      return "the slow one as fast as the others (clocks, heat, other jobs)";
    case Cause::kOverlap:
      return "the exchange in buckets beside the backward pass";
    case Cause::kBatch:
      return "fewer and larger launches (fused kernels, graphs)";
    case Cause::kInput:
      return "input that keeps up (more loaders, cached or decoded samples)";
    case Cause::kServers:
      return hypothesis.form == kOnWorkers ? "servers on nodes of their own"
             : hypothesis.form == kOnOne   ? "the model shared out among all servers"
                                           : "the largest variables shared out evenly";
    default:
      return "";
  }
}

}  // namespace

std::vector<RemedyIdea> RemediesFor(const Hypothesis& hypothesis, const Predictor& predictor,
                                    const Forecaster& model) {
  std::vector<RemedyIdea> ideas;
  const Plan& plan = model.plan();
  const Cause cause = hypothesis.cause;
  if (cause != Cause::kNothing) ideas.push_back({RepairText(hypothesis, model), plan, true, true});
  const auto add = [&](std::string text, const Plan& other, bool cured = false) {
    ideas.push_back({std::move(text), other, cured, false});
  };
  const bool exchanges = WorkersExchange(plan);
  if (CrossesNodes(plan)) {
    DataRate<> rate = model.StatedRate();
    for (int i = 0; i < 2; ++i) {
      // From a rate to the next that is sold: 10, 25, 100 Gbit/s.
      constexpr double kNext = 2.5;
      constexpr double kBeyond = 4;
      rate = NominalRate(rate * (i == 0 ? kNext : kBeyond));
      if (rate <= model.StatedRate()) break;
      add(fmt::format("links of {}", FormatRate(rate)), WithLinks(plan, rate),
          cause == Cause::kLink);
    }
  }
  if (cause == Cause::kLoss && plan.link.congestion_control != CongestionControl::kBbr) {
    Plan bbr = plan;
    bbr.link.congestion_control = CongestionControl::kBbr;
    add("BBR as congestion control", bbr);
  }
  if (exchanges) {
    for (const int times : kIntervals) {
      Plan rarer = plan;
      if (plan.accumulation_steps > kMostCount / times) continue;
      rarer.accumulation_steps *= times;
      add(fmt::format("{} micro-steps accumulated (a global batch of {})", rarer.accumulation_steps,
                      FormatCount(rarer.global_batch())),
          rarer);
    }
    if (plan.bytes_per_parameter == 4 && !plan.compress.exists()) {
      Plan halved = plan;
      halved.bytes_per_parameter = 2;
      add("gradients exchanged in 16 bits", halved);
    }
    if (plan.overlap == Overlap::kNone && cause != Cause::kOverlap) {
      Plan hidden = plan;
      hidden.overlap = Overlap::kBuckets;
      add("the exchange in buckets beside the backward pass", hidden);
    }
    if (UsesServers(plan.strategy)) {
      add("a ring instead of servers", WithStrategy(plan, Strategy::kRing),
          cause == Cause::kServers);
      Plan more = plan;
      more.servers *= 2;
      add(fmt::format("{} servers", more.servers), more);
    } else if (plan.nodes() > 1 && DevicesOnFullestNode(plan.placement) > 1 &&
               plan.strategy != Strategy::kHierarchical && !TraitsOf(plan.strategy).helpers) {
      Plan by_node = plan;
      by_node.strategy = Strategy::kHierarchical;
      add("a hierarchical all-reduce", by_node);
    }
  }
  if (plan.largest_batch() <= kMostBatch / 2 && !predictor.workload().communication_only) {
    Plan larger = plan;
    larger.local_batch *= 2;
    if (larger.slow_local_batch) *larger.slow_local_batch *= 2;
    add(fmt::format("twice the local batch: {}", larger.local_batch), larger);
  }
  if (plan.nodes() > 1 && !UsesServers(plan.strategy) && plan.servers == 0) {
    const Plan node = OneNodeOf(plan);
    add("one node alone", node.workers() == 1 ? OneWorkerOf(plan) : node);
    if (cause == Cause::kHost && plan.nodes() > 2) {
      Placement fewer = plan.placement;
      fewer.pop_back();
      Plan without = WithPlacement(plan, fewer);
      if (!without.hosts.empty()) without.hosts.pop_back();
      add("the other hosts without the slow one", without, true);
    }
  }
  return ideas;
}

std::vector<Candidate> CandidatesFor(const Complaint& complaint, const Predictor& predictor) {
  std::vector<Candidate> all;
  const Plan& plan = complaint.plan;
  const auto add = [&](const Measurement& measurement, std::string text, std::string command) {
    const bool known =
        std::any_of(complaint.known.begin(), complaint.known.end(), [&](const Measurement& other) {
          return other.what == measurement.what && other.connections == measurement.connections &&
                 other.synthetic_input == measurement.synthetic_input &&
                 other.slowest_of_hosts == measurement.slowest_of_hosts &&
                 other.exchange_alone == measurement.exchange_alone &&
                 other.plan.strategy == measurement.plan.strategy &&
                 other.plan.servers == measurement.plan.servers &&
                 other.plan.placement == measurement.plan.placement &&
                 other.plan.local_batch == measurement.plan.local_batch &&
                 other.plan.accumulation_steps == measurement.plan.accumulation_steps;
        });
    if (!known) all.push_back({measurement, std::move(text), std::move(command)});
  };
  if (CrossesNodes(plan)) {
    add(Measurement::Rate({}, 1), "the rate of one connection between two nodes",
        "iperf3 -c HOST --json");
    add(Measurement::Rate({}, kMoreConnections),
        fmt::format("the rate of {} connections between two nodes", kMoreConnections),
        fmt::format("iperf3 -c HOST -P {} --json", kMoreConnections));
    add(Measurement::RoundTrip({}), "the round trip between two nodes", "ping -c 20 HOST");
    add(Measurement::Loss(0, kPacketsCounted), "the packets that get lost between two nodes",
        "stepcast probe network");
  }
  if (predictor.workload().communication_only) return all;
  const auto step = [&](const Plan& other) { return Measurement::Step(other, {}); };
  Plan alone = OneWorkerOf(plan);
  alone.overlap = Overlap::kBuckets;
  if (plan.workers() > 1) {
    add(step(alone), "a step of one device alone", "the same training on one device");
    if (alone.local_batch >= kLess) {
      Plan less = alone;
      less.local_batch /= kLess;
      add(step(less),
          fmt::format("a step of one device alone with a local batch of {}", less.local_batch),
          "the same training on one device with a quarter of the batch");
    }
    Measurement slowest = step(alone);
    slowest.slowest_of_hosts = true;
    add(slowest,
        plan.nodes() > 1 ? "a step of each host alone, the longest of them"
                         : "a step of each device alone, the longest of them",
        "the same training on one device, host by host");
  }
  if (plan.nodes() > 1 && DevicesOnFullestNode(plan.placement) > 1 && !UsesServers(plan.strategy) &&
      plan.servers == 0) {
    add(step(OneNodeOf(plan)), "a step of one node", "the same training on one node");
  }
  if (UsesServers(plan.strategy)) {
    Plan more = plan;
    more.servers *= 2;
    add(step(more), fmt::format("a step with {} servers", more.servers),
        fmt::format("the same training with {} servers", more.servers));
    Plan ring = WithStrategy(plan, Strategy::kRing);
    add(step(ring), "a step with a ring instead of servers",
        "the same training by all-reduce, without servers");
  } else if (WorkersExchange(plan)) {
    Measurement exchange = step(plan);
    exchange.exchange_alone = true;
    add(exchange,
        fmt::format("the exchange of {} by all workers, without a training",
                    FormatSize(predictor.Facts(plan).gradient)),
        plan.nodes() > 1
            ? "all_reduce_perf of nccl-tests, its line of that size"
            : "all_reduce_perf of nccl-tests, its line of that size (p2pBandwidthLatencyTest and "
              "nvidia-smi topo -m tell which path it takes)");
  }
  Measurement made_up = step(plan);
  made_up.synthetic_input = true;
  add(made_up, "a step whose samples are made up in memory",
      "the same training on random tensors instead of its data");
  if (plan.local_batch > 1) {
    Plan half = plan;
    half.local_batch = plan.local_batch / 2;
    if (half.slow_local_batch) half.slow_local_batch = std::max(1, *plan.slow_local_batch / 2);
    add(step(half), fmt::format("a step with a local batch of {}", half.local_batch),
        "the same training with half the batch");
  }
  if (WorkersExchange(plan) && plan.accumulation_steps <= kMostCount / kMeasuredAccumulation) {
    Plan rarer = plan;
    rarer.accumulation_steps *= kMeasuredAccumulation;
    add(step(rarer), fmt::format("a step of {} accumulated micro-steps", rarer.accumulation_steps),
        fmt::format("the same training, synchronising every {} micro-steps",
                    rarer.accumulation_steps));
  }
  return all;
}

}  // namespace stepcast::internal
