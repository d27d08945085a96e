// A whole step against its formula written out again, its limits, and what it promises not to do.
#include "model/step/step.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <ctime>
#include <iostream>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "data/record/machine.h"
#include "data/workloads/catalog.h"
#include "model/exchange/async_step.h"
#include "model/exchange/exchange.h"
#include "model/exchange/growth.h"
#include "model/exchange/sharding.h"
#include "model/exchange/traffic.h"
#include "model/statistics/normal.h"
#include "model/step/answer.h"
#include "tests/model/support.h"

namespace stepcast {
namespace {

using Parameters = ClusterParameters<double>;
using Buckets = std::shared_ptr<const std::vector<Bucket>>;

Buckets OneBucket(DataSize<> gradient) {
  return std::make_shared<const std::vector<Bucket>>(std::vector<Bucket>{{gradient, 1.0}});
}

// Four buckets in the shares of a convolutional network.
Buckets FourBuckets(DataSize<> gradient) {
  return std::make_shared<const std::vector<Bucket>>(std::vector<Bucket>{
      {gradient * 0.1, 0.1}, {gradient * 0.3, 0.4}, {gradient * 0.4, 0.8}, {gradient * 0.2, 1.0}});
}

// A workload of which nothing but the bytes is known.
Workload Message(DataSize<> gradient) {
  Workload workload;
  workload.name = "message";
  workload.gradient_bytes = gradient;
  return workload;
}

Plan MakePlan(Placement placement, Strategy strategy, int servers = 0) {
  Plan plan;
  plan.placement = std::move(placement);
  plan.strategy = strategy;
  plan.servers = servers;
  plan.local_batch = 32;
  return plan;
}

// Every server holds an equal part of every bucket.
StepFacts Facts(const Plan& plan, DataSize<> gradient = Megabytes(100.0)) {
  StepFacts facts = MakeStepFacts(Cluster(), plan, Message(gradient), FourBuckets(gradient));
  if (plan.servers > 0) facts.held_buckets = FourBuckets(gradient / plan.servers);
  return facts;
}

StepTime<double> Step(const StepFacts& facts, const Parameters& cluster = PriorCluster(),
                      const WorkloadParameters<double>& workload = PriorWorkload()) {
  return EvaluateStep(facts, cluster, workload);
}

double Total(const Plan& plan, const Parameters& cluster = PriorCluster()) {
  return Step(Facts(plan), cluster).total().si();
}

const std::vector<Strategy> kSynchronous = {
    Strategy::kAllreduce,    Strategy::kRing,   Strategy::kTree,  Strategy::kHalvingDoubling,
    Strategy::kHierarchical, Strategy::kBytePs, Strategy::kPsSync};

// Every strategy that exchanges something; kAuto is resolved before a step is evaluated.
const std::vector<Strategy> kExchanging = {
    Strategy::kAllreduce,    Strategy::kRing,   Strategy::kTree,   Strategy::kHalvingDoubling,
    Strategy::kHierarchical, Strategy::kBytePs, Strategy::kPsSync, Strategy::kPsAsync};

constexpr int kServers = 2;

bool TakesServers(Strategy strategy) {
  return UsesServers(strategy) || strategy == Strategy::kBytePs;
}

Plan PlanOf(Strategy strategy, const Placement& placement) {
  return MakePlan(placement, strategy, TakesServers(strategy) ? kServers : 0);
}

// Every parameter somewhere within a factor of three of its prior.
template <class P, class Specs>
P AnyParameters(const Specs& specs) {
  P parameters{};
  for (std::size_t i = 0; i < specs.size(); ++i) {
    parameters.si[i] = specs[i].prior * specs[i].si_per_unit * *LogUniform(1.0 / 3, 3);
  }
  return parameters;
}

Parameters AnyCluster() {
  Parameters cluster = AnyParameters<Parameters>(kClusterParameterSpecs);
  cluster.si[kOverlapShare] = *LogUniform(0.3, 0.8);
  if (*Whole(1, 4) == 1) cluster.node_link_si = *LogUniform(1e8, 1e10);
  return cluster;
}

WorkloadParameters<double> AnyWorkload() {
  return AnyParameters<WorkloadParameters<double>>(kWorkloadParameterSpecs);
}

bool Flip() { return *rc::gen::arbitrary<bool>(); }

// ---- The formula, once more and in plain numbers, from the headers.

double Norm(double a, double b, double q) {
  return std::pow(std::pow(a, q) + std::pow(b, q), 1 / q);
}

// A flow's limits as seconds a byte: those of its window and of loss; 0 where there is none.
struct FlowByHand {
  double rtt = 0;
  double loss = 0;
  double window = 0;
  double timeout = 0;
  double burst = 0;
  CongestionControl congestion = CongestionControl::kCubic;

  double Window() const {
    double rounds = 1;
    for (int j = 1; j <= 48 && loss > 0; ++j) {
      rounds += 1 - std::pow(1 - std::pow(loss, j), window / 1448);
    }
    return rtt * rounds / window;
  }
  // Loss events a segment: p / (1 + burst / s) with s = K R sqrt(p_e), by iteration.
  double Events() const {
    if (burst == 0) return loss;
    double events = loss;
    for (int i = 0; i < 500; ++i) {
      const double pace = std::sqrt(2.0 / 3) * rtt * std::sqrt(events);
      events = std::sqrt(events * loss * pace / (pace + burst));
    }
    return std::max(events, loss * 1448 / 65536);
  }
  double Avoidance() const {
    const double reno = rtt * std::sqrt(2 * Events() / 3);
    if (congestion == CongestionControl::kReno) return reno;
    // The window at which CUBIC's time between losses is that of p_e, in segments.
    const double cubic = std::pow(0.4 * 3.7 / 1.2, 0.25) * std::pow(rtt / Events(), 0.75);
    return std::min(reno, rtt / cubic);
  }
  double Segment() const { return Avoidance() + rtt * Events() + loss * Events() * timeout; }
  // The slowest of `flows`, each with `message` bytes.
  double Loss(double flows, double message) const {
    if (loss == 0 || congestion == CongestionControl::kBbr) return 0;
    const double n = message / 1448;
    double wait = 0;
    if (flows > 1) {
      const double z = NormalQuantile((flows - 0.375) / (flows + 0.25));
      const double rare = loss * Events();
      wait = std::hypot(z * Avoidance() / (2 * std::sqrt(1 + n * Events())),
                        timeout * std::min(z * std::sqrt(rare / n), (flows - 1) * rare));
    }
    return (Segment() + wait) / 1448;
  }
};

struct ByHand {
  StepFacts facts;
  Parameters c{};
  WorkloadParameters<double> x{};

  double w() const { return facts.workers; }
  double nodes() const { return facts.nodes; }
  double g() const { return facts.devices_per_node; }
  double n() const { return facts.servers; }
  double cards() const { return std::min(facts.devices_per_node, facts.nics); }
  double bytes() const { return facts.gradient.si(); }
  double buckets() const { return static_cast<double>(facts.buckets->size()); }

  // Servers on the fullest node; a worker with a server of its own has none.
  double Beside() const { return facts.server.colocated && w() > 1 ? std::ceil(n() / nodes()) : 0; }
  double Micro() const {
    const double line = x.si[kSampleTime] * facts.batch;
    return (x.si[kFixedTime] + Norm(x.si[kFloorTime], line, 4)) *
           (1 + c.si[kHostContention] * (std::log2(g()) + Beside()));
  }
  double Backward() const { return Micro() * c.si[kOverlapShare]; }

  FlowByHand Flow(const LinkFacts& stated) const {
    FlowByHand flow;
    flow.rtt = stated.rtt ? stated.rtt->si() : 0;
    flow.loss = stated.loss.value_or(0);
    // With loss, what the hosts add to the round trip counts.
    if (flow.loss > 0) flow.rtt += 2 * Latency(stated);
    flow.window = c.si[kFlowWindow];
    flow.timeout = c.si[kLossTimeout];
    flow.burst = stated.loss_burst ? stated.loss_burst->si() : 0;
    flow.congestion = stated.congestion_control.value_or(CongestionControl::kCubic);
    return flow;
  }
  double Latency(const LinkFacts& link) const {
    return c.si[link.rdma() ? kRdmaLatency : kLinkLatency];
  }
  // The line rate of a node that is named, else that of all nodes.
  double NodeLine() const {
    return c.node_link_si && !facts.link.bandwidth ? *c.node_link_si * 1448 / 1538
                                                   : Line(facts.link);
  }
  double Line(const LinkFacts& stated) const {
    return (stated.bandwidth ? stated.bandwidth->si() : c.si[kLinkBandwidth]) * 1448 / 1538;
  }
  // Seconds a byte to `peers` peers over `connections`; `knee` joins the window, and the slowest of
  // `flows` flows of `message` bytes is waited for.
  double Path(const LinkFacts& stated, double line, double peers, double connections, double knee,
              double flows, double message, double spread = 1) const {
    const FlowByHand flow = Flow(stated);
    if (stated.rdma()) {
      const double flight = line * flow.rtt / 1448;
      return (1 + flow.loss * flight / (1 - flow.loss)) / line;
    }
    double time = Norm(1 / line, spread / (peers * c.si[kFlowBandwidth]), 4);
    if (flow.rtt > 0) time = Norm(time, flow.Window() / connections, knee);
    const double loss = flow.Loss(flows, message);
    if (loss > 0) time = Norm(time, loss / connections, 4);
    return time / (1 - flow.loss);
  }
  double Hop(double path) const {
    return Norm(path, (1 + c.si[kHostSharing] * (g() - 1)) / c.si[kHostBandwidth], 4);
  }
  // What the slowest of all hops of a ring takes longer.
  double Spread() const {
    return 1 + c.si[kHopSpread] * NormalQuantile((nodes() - 0.375) / (nodes() + 0.25));
  }
  // A hop of a ring, with a connection to each of one or two neighbours, of which one is sent to.
  // BytePS has one to each machine and helper.
  double RingHop() const {
    const double message = bytes() / buckets() / w();
    if (facts.strategy == Strategy::kBytePs) {
      const double peers = nodes() - 1 + n();
      const LinkFacts link = OfMachines();
      return Hop(Path(link, NodeLine() * Mesh(link), peers, peers, 4, nodes(), message));
    }
    const bool pair = nodes() == 2;
    const bool adds =
        pair && facts.strategy != Strategy::kTree && facts.strategy != Strategy::kHalvingDoubling;
    return Hop(
        Path(facts.link, NodeLine(), pair ? 1 : 2, 1, adds ? 1 : 2, nodes(), message, Spread()));
  }
  double HelperHop() const {
    return Path(ServerLink(), Line(ServerLink()) * Mesh(ServerLink()), nodes(), nodes(), 4, nodes(),
                bytes() / buckets() / nodes());
  }
  // What is left of a line where all send to all.
  double Mesh(const LinkFacts& link) const { return link.rdma() ? 1 : c.si[kMeshShare]; }
  // Between a worker and a server, on nodes of its own or not.
  LinkFacts Between() const { return facts.server.colocated ? facts.link : ServerLink(); }
  double Wires(double line, double peers) const {
    if (Between().rdma()) return Path(Between(), line, peers, 0, 4, 1, 0);
    return Norm(1 / line, 1 / (peers * c.si[kFlowBandwidth]), 4) / (1 - Between().loss.value_or(0));
  }
  double WorkerHop() const {
    return AtHome() ? 1 / c.si[kHostBandwidth] : Hop(Wires(NodeLine(), n()));
  }
  double ServerHop() const {
    return facts.server.colocated ? WorkerHop() : Wires(Line(ServerLink()), Clients());
  }
  double Connection() const {
    if (Between().rdma() || OnOneNode()) return 0;
    const FlowByHand flow = Flow(Between());
    const double window = flow.rtt > 0 ? flow.Window() : 0;
    const double loss = flow.Loss(Clients() * n(), bytes() / buckets() / n());
    return std::max(window, loss) / (1 - flow.loss);
  }
  LinkFacts ServerLink() const {
    const LinkFacts& over = facts.server_link;
    LinkFacts link = facts.link;
    if (over.bandwidth) link.bandwidth = over.bandwidth;
    if (over.rtt) link.rtt = over.rtt;
    // Packets cross both links.
    if (over.loss) link.loss = std::max(facts.link.loss.value_or(0), *over.loss);
    if (over.congestion_control) link.congestion_control = over.congestion_control;
    if (over.loss_burst) link.loss_burst = over.loss_burst;
    if (over.transport && facts.link.rdma()) link.transport = over.transport;
    return link;
  }
  // Machines of BytePS exchange with each other and with helpers, and wait for the farther.
  LinkFacts OfMachines() const {
    LinkFacts link = facts.link;
    if (n() == 0) return link;
    const LinkFacts helper = ServerLink();
    if (helper.rtt) link.rtt = std::max(link.rtt.value_or(Duration<>()), *helper.rtt);
    link.loss = helper.loss;
    link.transport = helper.transport;
    return link;
  }
  static double HalfRtt(const LinkFacts& link) { return link.rtt ? link.rtt->si() / 2 : 0; }
  double Alpha() const {
    const LinkFacts link = facts.strategy == Strategy::kBytePs ? OfMachines() : facts.link;
    return Latency(link) + HalfRtt(link);
  }

  // An all-reduce's cost of a call and of a byte, with its rounds one after another.
  std::pair<double, double> Rounds() const {
    const double within = c.si[kDeviceLatency] + facts.device_rtt.si() / 2;
    const double device = 1 / c.si[kHostBandwidth];
    const bool one = nodes() == 1;
    const double ranks = one ? w() : nodes();  // that exchange over the outer hop
    const double alpha = one ? within : Alpha();
    const double hop = one ? device : RingHop() / cards();
    // Around the devices of a node first.
    const double around_call = one ? 0 : 2 * (g() - 1) * within;
    const double around_byte = one ? 0 : 2 * (g() - 1) / g() * device;
    const double levels = std::ceil(std::log2(ranks));
    const double whole = std::pow(2, std::floor(std::log2(ranks)));
    switch (facts.strategy) {
      case Strategy::kTree: {
        const double outer = std::min(2.0, ranks / 2) * hop;
        const double chain = one ? 0 : std::min(2.0, g() - 1) * device;
        return {2 * levels * alpha + around_call, std::max(outer, chain)};
      }
      case Strategy::kHalvingDoubling:
        return {2 * levels * alpha + around_call,
                (2 * (whole - 1) / whole + (ranks > whole ? 2 : 0)) * hop + around_byte};
      case Strategy::kHierarchical:
        return {2 * (ranks - 1) * alpha + around_call, 2 * (ranks - 1) / ranks * hop + around_byte};
      case Strategy::kBytePs: {
        if (one) return {2 * (w() - 1) * within, 2 * (w() - 1) / w() * device};
        const double k = std::min(nodes(), n() * hop / HelperHop());
        const double passes =
            2 * nodes() * (nodes() - 1) / (nodes() * nodes() + k * nodes() - 2 * k);
        return {2 * alpha + around_call, passes * hop + around_byte};
      }
      default: {
        // The longest way of a piece leaves out two hops of two laps, inner ones if they can be.
        const double between = one ? 0 : 2 * nodes() - std::max(0.0, 3 - g());
        const double call = between * Alpha() + (2 * (w() - 1) - between) * within;
        return {call, 2 * (w() - 1) / w() * std::max(hop, one || g() == 1 ? 0 : device)};
      }
    }
  }
  bool IsRing() const {
    return facts.strategy == Strategy::kAllreduce || facts.strategy == Strategy::kRing;
  }
  // Rings in pieces that follow each other, on each level by itself; other rounds do not.
  double Collective(double message) const {
    const double within = c.si[kDeviceLatency] + facts.device_rtt.si() / 2;
    const auto ring = [&](double call, double byte, double slowest) {
      return std::max(std::min(call, 4 * slowest) + byte * message, call + byte * message / 2);
    };
    auto [call, byte] = Rounds();
    const bool levels = nodes() > 1 && g() > 1 && !IsRing() && facts.strategy != Strategy::kTree;
    double inside = 0;
    if (levels) {
      const double around_call = 2 * (g() - 1) * within;
      const double around_byte = 2 * (g() - 1) / g() / c.si[kHostBandwidth];
      inside = ring(around_call, around_byte, within);
      call -= around_call;
      byte -= around_byte;
    }
    const bool outer_ring = IsRing() || facts.strategy == Strategy::kHierarchical ||
                            (facts.strategy == Strategy::kBytePs && nodes() == 1);
    if (!outer_ring) return inside + call + byte * message;
    return inside + ring(call, byte, nodes() > 1 ? Alpha() : within);
  }

  // Slow start of a burst that leaves at `rate` over `flows` flows.
  double SlowStart(double burst, double flows, double rate) const {
    const LinkFacts link = facts.strategy == Strategy::kPsSync   ? Between()
                           : facts.strategy == Strategy::kBytePs ? OfMachines()
                                                                 : facts.link;
    const FlowByHand flow = Flow(link);
    if (!link.rtt || link.rdma() || OnOneNode()) return 0;
    if (flow.rtt == 0) return 0;
    const double first = 14480;
    const double silence =
        facts.accumulation_steps * Micro() -
        (facts.overlap == Overlap::kBuckets ? (1 - facts.buckets->front().ready) * Backward() : 0);
    const double open = std::log2(rate * flow.rtt / (first * flows));
    const double k = std::min(open, silence / flow.timeout - 0.5);
    const double long_enough = std::log2((1 + burst / (first * flows)) / 2);
    if (open <= 0 || k <= 0 || long_enough <= 0) return 0;
    const double stalls = std::min(k, long_enough);
    double lost = flow.rtt * stalls;
    lost -= flow.rtt * (std::pow(2, stalls) - 1) * std::pow(2, -k);
    return lost;
  }

  double Wait() const {
    const double k = facts.backup_workers;
    if (facts.workers == 1) return 0;
    return x.si[kStragglerSpread] * Micro() * std::sqrt(facts.accumulation_steps) *
           std::max(0.0, NormalQuantile((w() - k - 0.375) / (w() + 0.25)));
  }

  // ---- Parameter servers.

  // Nodes whose devices add up first, or workers.
  bool ByNode() const { return facts.server.local_aggregation; }
  // A lone node's devices add up, and share out, as in half a ring around them.
  bool AtHome() const { return ByNode() && OnOneNode(); }
  // Servers and workers, behind no network.
  bool OnOneNode() const { return Colocated() && nodes() == 1 && UsesServers(facts.strategy); }
  double Clients() const { return ByNode() ? nodes() : w(); }
  double ClientsOfNode() const { return ByNode() ? 1 : g(); }

  double Share() const { return std::max(facts.server_share, 1 / n()); }
  bool Colocated() const { return facts.server.colocated; }
  double Passes() const {
    if (AtHome()) return (g() - 1) / g();
    return ClientsOfNode() * (Colocated() && n() >= nodes() ? (nodes() - 1) / nodes() : 1.0);
  }
  double Copies(bool one) const {
    const double remote = Colocated() ? Clients() - ClientsOfNode() : Clients();
    return one ? std::min(1.0, remote) : remote;
  }
  // A network that nothing crosses helps nobody.
  double Handled(bool one) const { return one && Copies(one) > 0 ? 1 : Clients(); }
  // The share of the model behind one link.
  double LinkShare() const {
    return Colocated() ? std::max(Share(), 1 / std::min(n(), nodes())) : Share();
  }
  // The latency of a phase, once for all of its buckets.
  double Calls() const {
    const double alpha = OnOneNode() ? c.si[kDeviceLatency] + facts.device_rtt.si() / 2
                                     : Latency(Between()) + HalfRtt(Between());
    return alpha * (1 + 2 * c.si[kRpcRounds] * facts.tensors);
  }
  struct Cost {
    double call;
    double byte;
  };
  // Asynchronous workers compute while a server beside them updates.
  double Update() const {
    const bool shares = facts.strategy == Strategy::kPsAsync && Beside() > 0;
    const double crowding = shares ? std::log2(g()) + Beside() : 0;
    return x.si[kUpdateTime] * (1 + c.si[kHostContention] * crowding) / bytes();
  }
  Cost AtWorker() const {
    return {n() * c.si[kTransferInitiation],
            Norm(Passes() * WorkerHop(), Share() * Connection(), 4)};
  }
  // The cost of a byte on the fullest server; `one`: the network adds up, or copies.
  Cost AtServer(bool one, bool push) const {
    const double handled = Handled(one);
    return {handled * c.si[kTransferInitiation],
            Norm(std::max(LinkShare() / Share() * Copies(one) * ServerHop(),
                          handled / c.si[kServerRate]),
                 Connection(), 4) +
                (push ? Update() : 0)};
  }
  // The cost of a byte of the model, everything together.
  Cost Phase(bool one, bool push) const {
    const double handled = Handled(one);
    const double bytes_time =
        std::max({Passes() * WorkerHop(), LinkShare() * Copies(one) * ServerHop(),
                  Share() * handled / c.si[kServerRate]});
    return {std::max(n(), handled) * c.si[kTransferInitiation],
            Norm(bytes_time, Share() * Connection(), 4) + (push ? Share() * Update() : 0)};
  }
  // A phase of every bucket; the flows of the first start slowly, as fast as `cost` lets them.
  std::vector<double> Times(const std::vector<Bucket>& all, const Cost& cost, double share) const {
    std::vector<double> times;
    for (const Bucket& bucket : all) times.push_back(cost.call + cost.byte * bucket.bytes.si());
    times[0] += SlowStart(all[0].bytes.si() / share * Passes(), n(), Passes() / cost.byte / share);
    return times;
  }
  // The two-machine flow shop as its closed form.
  static double Shop(const std::vector<Bucket>& buckets, double backward,
                     const std::vector<double>& push, const std::vector<double>& pull) {
    double most = 0;
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      for (std::size_t j = i; j < buckets.size(); ++j) {
        double end = buckets[i].ready * backward;
        for (std::size_t k = i; k <= j; ++k) end += push[k];
        for (std::size_t k = j; k < buckets.size(); ++k) end += pull[k];
        most = std::max(most, end);
      }
    }
    return most;
  }
  double ServerEnd(double backward) const {
    const bool sum = facts.server.in_network_aggregation;
    const bool copy = facts.server.multicast;
    const std::vector<Bucket>& whole = *facts.buckets;
    const std::vector<Bucket>& held = *facts.held_buckets;
    const std::vector<double> at_worker = Times(whole, AtWorker(), 1);
    const std::vector<double> push = Times(held, AtServer(sum, true), Share());
    const std::vector<double> pull = Times(held, AtServer(copy, false), Share());
    const auto all = [](const std::vector<double>& times) {
      return std::accumulate(times.begin(), times.end(), 0.0);
    };
    if (!facts.server.pipelined) {
      const std::vector<double> of_whole(whole.size());
      const std::vector<double> of_held(held.size());
      return std::max(Shop(whole, backward, at_worker, of_whole),
                      Shop(held, backward, push, of_held)) +
             std::max(all(at_worker), all(pull));
    }
    double end =
        std::max(Shop(whole, backward, at_worker, at_worker), Shop(held, backward, push, pull));
    if (Colocated()) {
      const double both =
          AtHome() ? 2 * Passes() : Passes() + LinkShare() * std::max(Copies(sum), Copies(copy));
      double link = 0;
      for (std::size_t k = whole.size(); k-- > 0;) {
        link += both * WorkerHop() * whole[k].bytes.si();
        end = std::max(end, whole[k].ready * backward + link);
      }
    }
    return end;
  }

  // Whole synchronisation, and the end of its last bucket from the start of a backward pass.
  std::pair<double, double> Sync() const {
    double all = 0;
    double end = 0;
    const double burst = facts.buckets->front().bytes.si();
    if (facts.strategy == Strategy::kPsSync) {
      const double first = std::max(burst, facts.held_buckets->front().bytes.si() / Share());
      for (const Cost& phase : {Phase(facts.server.in_network_aggregation, true),
                                Phase(facts.server.multicast, false)}) {
        all += buckets() * phase.call + bytes() * phase.byte +
               SlowStart(first * Passes(), n(), Passes() / phase.byte);
      }
      return {all + 2 * Calls(), ServerEnd(Backward()) + 2 * Calls()};
    }
    for (std::size_t k = facts.buckets->size(); k-- > 0;) {
      const Bucket& bucket = (*facts.buckets)[k];
      all += Collective(bucket.bytes.si());
      if (k == 0 && nodes() > 1) {
        all += SlowStart(burst / w(), 1, 2 * (w() - 1) / w() / Rounds().second);
      }
      end = std::max(end, bucket.ready * Backward() + all);
    }
    return {all, end};
  }

  double Total() const {
    const auto [all, end] = Sync();
    double exposed = all;
    if (facts.overlap == Overlap::kBuckets) exposed = std::max(Backward(), end) - Backward();
    if (facts.overlap == Overlap::kPNorm) exposed = Norm(Backward(), all, 3) - Backward();
    const bool servers = facts.strategy == Strategy::kPsSync;
    const double overhead =
        c.si[nodes() > 1 || (servers && !Colocated()) ? kNodeSyncOverhead : kDeviceSyncOverhead];
    return facts.accumulation_steps * Micro() +
           c.si[kOverlapContention] * std::min(all - exposed, Backward()) + exposed +
           (servers ? 0 : x.si[kUpdateTime]) + overhead + Wait();
  }
};

Placement AnyPlacement() {
  Placement placement;
  const int nodes = *Whole(1, 20);
  for (int i = 0; i < nodes; ++i) placement.push_back(*Whole(1, 8));
  if (Workers(placement) == 1) placement[0] = 2;
  return placement;
}

// Everything that a plan may say.
// Without what is shared out and what is rare, of which tests/model/sharded_test.cc tells.
Plan Plain(Plan plan) {
  plan.shard = Shard::kNone;
  plan.local_steps = 1;
  return plan;
}

Plan AnyPlan(Strategy strategy) {
  Plan plan = PlanOf(strategy, AnyPlacement());
  plan.local_batch = *Whole(1, 512);
  plan.accumulation_steps = *Whole(1, 16);
  plan.overlap = static_cast<Overlap>(*Whole(0, kOverlapCount - 1));
  if (UsesServers(strategy)) {
    plan.servers = *Whole(1, 16);
    plan.server.colocated = Flip();
    if (plan.server.colocated) plan.servers = *Whole(1, plan.nodes());
    plan.server.sharding = Flip() ? Sharding::kTensor : Sharding::kEven;
    if (strategy == Strategy::kPsAsync) {
      if (Flip()) plan.server.staleness_bound = *Whole(0, 20);
    } else {
      plan.server.pipelined = Flip();
      plan.server.multicast = Flip();
      plan.server.in_network_aggregation = Flip();
      plan.server.local_aggregation = Flip();
    }
  }
  if (strategy == Strategy::kBytePs) plan.servers = *Whole(0, 25);
  if (strategy != Strategy::kPsAsync && Flip()) {
    plan.backup_workers = *Whole(0, plan.workers() - 1);
  }
  const bool may_shard = plan.overlap != Overlap::kPNorm && plan.backup_workers == 0;
  if (TraitsOf(strategy).may_shard() && may_shard && Flip()) {
    plan.shard = static_cast<Shard>(*Whole(0, kShardCount - 1));
  } else if (TraitsOf(strategy).may_be_rare() && Flip()) {
    plan.local_steps = *Whole(1, 100);
  }
  if (Flip()) plan.link.bandwidth = BytesPerSecond(*LogUniform(1e7, 1e10));
  if (Flip()) {
    plan.link.rtt = Seconds(*LogUniform(1e-5, 0.1));
    if (Flip()) plan.link.loss = *LogUniform(1e-6, 0.1);
  }
  if (Flip()) {
    plan.link.congestion_control =
        static_cast<CongestionControl>(*Whole(0, kCongestionControlCount - 1));
  }
  if (Flip()) plan.link.loss_burst = Seconds(*LogUniform(1e-5, 1e-2));
  if (Flip()) plan.link.transport = Flip() ? Transport::kRdma : Transport::kTcp;
  if (TakesServers(strategy) && !plan.server.colocated && Flip()) {
    plan.server_link.bandwidth = BytesPerSecond(*LogUniform(1e7, 1e10));
    if (Flip()) plan.server_link.rtt = Seconds(*LogUniform(1e-5, 0.1));
    if (Flip()) plan.server_link.loss = *LogUniform(1e-6, 0.1);
  }
  return plan;
}

// A plan, with what a cluster file and a workload add to it.
StepFacts AnyFacts(const Plan& plan) {
  StepFacts facts = Facts(plan, Bytes(*LogUniform(1e3, 1e9)));
  facts.nics = *Whole(1, 4);
  facts.device_rtt = Microseconds(*LogUniform(0.1, 100));
  facts.tensors = *Whole(1, 200);
  if (plan.servers > 1 && Flip()) {  // one server has more than its part
    facts.server_share = *LogUniform(1.0 / plan.servers, 1);
    const DataSize<> held = facts.gradient * facts.server_share;
    facts.held_buckets = std::make_shared<const std::vector<Bucket>>(std::vector<Bucket>{
        {held * 0.4, 0.1}, {held * 0.1, 0.4}, {held * 0.2, 0.8}, {held * 0.3, 1.0}});
  }
  return facts;
}

// Uplinks of switches whose rate is known.
void SetCore(StepFacts* facts) {
  facts->uplinks_known = true;
  facts->link.oversubscription = *LogUniform(1, 50);
  facts->link.nodes_per_switch = *Whole(1, 4);
}

RC_GTEST_PROP(StepProperty, IsItsFormula, ()) {
  const Strategy strategy = *rc::gen::elementOf(kSynchronous);
  const StepFacts facts = AnyFacts(Plain(AnyPlan(strategy)));
  const Parameters cluster = AnyCluster();
  const WorkloadParameters<double> workload = AnyWorkload();
  const double total = Step(facts, cluster, workload).total().si();
  const double by_hand = ByHand{facts, cluster, workload}.Total();
  RC_LOG() << StrategyName(strategy) << " " << total << " by hand " << by_hand << "\n";
  RC_ASSERT(Near(total, by_hand, 1e-9));
}

// ---- No communication, no time for it.

bool NoCommunication(const StepTime<double>& step) {
  return step.exposed_latency.si() == 0 && step.exposed_transfer.si() == 0 &&
         step.straggler_wait.si() == 0 && step.synchronisation.si() == 0 &&
         step.limiter == Limiter::kNothing;
}

RC_GTEST_PROP(StepProperty, OneWorkerKnowsNoNetwork, ()) {
  const auto strategy = static_cast<Strategy>(*Whole(0, kStrategyCount - 2));
  Plan plan = MakePlan({1}, strategy);
  plan.accumulation_steps = *Whole(1, 16);
  plan.overlap = static_cast<Overlap>(*Whole(0, kOverlapCount - 1));
  // Its own server, where there has to be one.
  if (UsesServers(strategy)) plan.servers = 1;
  plan.server.colocated = UsesServers(strategy);
  const WorkloadParameters<double> workload = AnyWorkload();
  const Parameters cluster = AnyCluster();
  const StepTime<double> step = Step(Facts(plan), cluster, workload);
  RC_ASSERT(NoCommunication(step));
  RC_ASSERT(Near(step.total().si(),
                 plan.accumulation_steps * ByHand{Facts(plan), cluster, workload}.Micro() +
                     workload.si[kUpdateTime]));

  // The same bits on any other network.
  Parameters elsewhere = AnyCluster();
  elsewhere.si[kOverlapShare] = cluster.si[kOverlapShare];
  Plan with_link = plan;
  with_link.link = {.bandwidth = MegabitsPerSecond(1.0),
                    .rtt = Seconds(1.0),
                    .loss = 0.1,
                    .congestion_control = CongestionControl::kReno};
  RC_ASSERT(Step(Facts(with_link), elsewhere, workload).total() == step.total());
}

// Strategies with what each needs to exchange anything over two nodes.
TEST(StepFacts, ExchangeWhatThePlanSaysOfEachParameter) {
  const DataSize<> gradient = Megabytes(100.0);
  for (int i = 0; i < kStrategyCount; ++i) {
    const auto strategy = static_cast<Strategy>(i);
    Plan plan = MakePlan({2, 2}, strategy, UsesServers(strategy) ? 1 : 0);
    const StepFacts longer = Facts(plan, gradient * 1.5);
    plan.bytes_per_parameter = 6;
    const StepFacts six = Facts(plan, gradient);
    EXPECT_DOUBLE_EQ(six.gradient.si(), longer.gradient.si());
    ASSERT_EQ(six.buckets->size(), longer.buckets->size());
    for (std::size_t b = 0; b < six.buckets->size(); ++b) {
      EXPECT_DOUBLE_EQ((*six.buckets)[b].bytes.si(), (*longer.buckets)[b].bytes.si());
      EXPECT_EQ((*six.buckets)[b].ready, (*longer.buckets)[b].ready);
    }
  }
}

TEST(Step, StrategyNoneOnlyComputes) {
  for (const Placement& placement : {Placement{1}, Placement{8}, Placement{4, 4, 4}}) {
    const Plan plan = MakePlan(placement, Strategy::kNone);
    const StepTime<double> step = Step(Facts(plan));
    EXPECT_TRUE(NoCommunication(step));
    const ByHand hand{Facts(plan), PriorCluster(), PriorWorkload()};
    EXPECT_NEAR(step.total().si(), hand.Micro() + 1e-3, 1e-15);
  }
}

// A lone worker of an all-reduce exchanges nothing, whatever servers stand about.
TEST(Step, ALoneWorkerWithIdleServersIsFinite) {
  const Plan idle = MakePlan({1}, Strategy::kAllreduce, 2);
  EXPECT_EQ(Total(idle), Total(MakePlan({1}, Strategy::kAllreduce)));
}

// A message of a benchmark: no compute, no update, no framework, and all of the synchronisation is
// seen.
RC_GTEST_PROP(StepProperty, ABareMessageIsItsSynchronisation, ()) {
  const Strategy strategy = *rc::gen::elementOf(kSynchronous);
  StepFacts facts = AnyFacts(AnyPlan(strategy));
  facts.has_compute = false;
  facts.buckets = OneBucket(facts.gradient);
  if (facts.held_buckets) facts.held_buckets = OneBucket(facts.gradient * facts.server_share);
  const Parameters cluster = AnyCluster();
  const WorkloadParameters<double> workload = AnyWorkload();
  const StepTime<double> step = Step(facts, cluster, workload);
  RC_ASSERT(step.compute().si() == 0);
  RC_ASSERT(step.straggler_wait.si() == 0);
  RC_ASSERT(std::isfinite(step.total().si()));
  RC_ASSERT(step.total().si() > 0);
  Parameters other_framework = cluster;
  other_framework.si[kNodeSyncOverhead] *= 1000;
  other_framework.si[kDeviceSyncOverhead] *= 1000;
  RC_ASSERT(Step(facts, other_framework, workload).total() == step.total());
  if (facts.strategy != Strategy::kPsSync) {
    RC_ASSERT(Near(step.total().si(), step.synchronisation.si()));
  }
}

// ---- Parts.

RC_GTEST_PROP(StepProperty, PartsAddUpExactlyAndNoneIsNegative, ()) {
  const Strategy strategy = *rc::gen::elementOf(kExchanging);
  const StepTime<double> step = Step(AnyFacts(AnyPlan(strategy)), AnyCluster(), AnyWorkload());
  const Duration<> parts = step.forward + step.backward + step.update +
                           (step.exposed_latency + step.exposed_transfer) + step.straggler_wait;
  RC_ASSERT(step.total() == parts);
  RC_ASSERT(std::isfinite(parts.si()));
  const double rounding = -1e-12 * step.total().si();
  for (const Duration<> part : {step.forward, step.backward, step.update, step.exposed_latency,
                                step.exposed_transfer, step.straggler_wait}) {
    RC_ASSERT(part.si() >= rounding);
  }
  // Hidden or not, synchronisation takes at least what is seen of it.
  RC_ASSERT(step.synchronisation.si() >= step.exposed().si() * (1 - 1e-12));
}

// What is told of a step's inside is what the step is made of.
RC_GTEST_PROP(StepProperty, TermsAreThoseOfTheStep, ()) {
  const Strategy strategy = *rc::gen::elementOf(kSynchronous);
  const StepFacts facts = AnyFacts(AnyPlan(strategy));
  StepTerms<double> terms;
  const StepTime<double> step = EvaluateStep(facts, AnyCluster(), AnyWorkload(), &terms);
  const double a = facts.accumulation_steps;
  RC_ASSERT(Near((step.forward + step.backward - terms.contention).si(), a * terms.micro.si()));
  RC_ASSERT(std::abs((step.exposed() + terms.hidden - step.synchronisation).si()) <=
            1e-12 * step.synchronisation.si());
  RC_ASSERT(step.exposed_latency >= terms.overhead * (1 - 1e-12));
}

// What is said to have no part changes nothing but rounding, however far it is moved.
RC_GTEST_PROP(StepProperty, DependsOnNothingElse, ()) {
  const auto strategy = static_cast<Strategy>(*Whole(0, kStrategyCount - 2));  // all but auto
  StepFacts facts = AnyFacts(AnyPlan(strategy));
  if (Flip()) SetCore(&facts);
  Parameters cluster = AnyCluster();
  cluster.node_link_si.reset();
  const bool own_link = *Whole(0, 1) == 1;
  if (own_link) cluster.node_link_si = *LogUniform(1e7, 1e10);
  const WorkloadParameters<double> workload = AnyWorkload();
  const Duration<> step = Step(facts, cluster, workload).total();
  for (int column = 0; column < kPlanColumns; ++column) {
    if (MattersTo(facts, own_link, column)) continue;
    Parameters moved = cluster;
    if (column < kWorkloadColumn) {
      moved.si[static_cast<std::size_t>(column)] *= 7;
    } else if (column == kShareColumn) {
      moved.stated_share *= 7;
    } else {
      ASSERT_TRUE(column == kLinkColumn || column == kSlowdownColumn);
      if (column == kSlowdownColumn) moved.node_slowdown = 7;
      if (column == kLinkColumn && own_link) *moved.node_link_si *= 7;
    }
    RC_ASSERT(Near(Step(facts, moved, workload).total().si(), step.si()));
  }
}

// The answer joins its derivatives from those of parts; here one is carried through the whole step.
RC_GTEST_PROP(StepProperty, HasTheDerivativesThatTheWholeStepCarries, ()) {
  const auto strategy = static_cast<Strategy>(*Whole(0, kStrategyCount - 2));  // all but auto
  StepFacts facts = AnyFacts(AnyPlan(strategy));
  facts.has_compute =
      *Whole(0, 9) > 0 || internal::Alone(facts) || TraitsOf(strategy).asynchronous();
  if (Flip()) SetCore(&facts);
  PlanParameters at{AnyCluster(), AnyWorkload()};
  at.cluster.node_link_si.reset();
  if (Flip()) at.cluster.node_link_si = *LogUniform(1e7, 1e10);
  if (Flip()) at.cluster.node_slowdown = *LogUniform(0.2, 20);
  const PlanModel model(facts);
  const PlanAnswer answer = model.Answer(at, Derivatives::kAll);
  const PlanAnswer of_workload = model.Answer(at, Derivatives::kOfWorkload);
  for (std::size_t column = 0; column < std::size_t{kPlanColumns}; ++column) {
    ClusterParameters<Dual> cluster;
    WorkloadParameters<Dual> workload;
    std::copy(at.cluster.si.begin(), at.cluster.si.end(), cluster.si.begin());
    std::copy(at.workload.si.begin(), at.workload.si.end(), workload.si.begin());
    if (at.cluster.node_link_si) cluster.node_link_si = *at.cluster.node_link_si;
    if (at.cluster.node_slowdown) cluster.node_slowdown = *at.cluster.node_slowdown;
    Dual unused;
    Dual& parameter = column < kWorkloadColumn ? cluster.si[column]
                      : column < kLinkColumn   ? workload.si[column - kWorkloadColumn]
                      : column == kShareColumn ? cluster.stated_share
                      : column == kLinkColumn
                          ? (cluster.node_link_si ? *cluster.node_link_si : unused)
                          : (cluster.node_slowdown ? *cluster.node_slowdown : unused);
    parameter.slope = parameter.value;
    const StepTime<Dual> step = EvaluateStep(facts, cluster, workload);
    const Dual total = step.total().si();
    const Dual compute = step.compute().si();
    const Dual share = (step.exposed() + step.straggler_wait).si() / total;
    const auto is = [](double slope, double carried) { return std::abs(slope - carried) <= 1e-10; };
    RC_ASSERT(is(answer.log_step_gradient[column], total.slope / total.value));
    RC_ASSERT(is(answer.sync_share_gradient[column], share.slope));
    RC_ASSERT(is(answer.log_compute_gradient[column],
                 compute.value > 0 ? compute.slope / compute.value : 0));
    const bool workloads = column >= kWorkloadColumn && column < kLinkColumn;
    RC_ASSERT(is(of_workload.log_step_gradient[column], workloads ? total.slope / total.value : 0));
  }
}

// A host that computes q times as long is a device whose every time is q times as long.
RC_GTEST_PROP(StepProperty, ASlowHostIsASlowDevice, ()) {
  // A server's update is its own.
  const auto strategy =
      *rc::gen::element(Strategy::kNone, Strategy::kRing, Strategy::kTree, Strategy::kHierarchical);
  const StepFacts facts = AnyFacts(AnyPlan(strategy));
  const double q = *LogUniform(0.2, 20);
  const Parameters cluster = AnyCluster();
  Parameters slow_host = cluster;
  slow_host.node_slowdown = q;
  const WorkloadParameters<double> workload = AnyWorkload();
  WorkloadParameters<double> slow_device = workload;
  for (const int i : {kFixedTime, kFloorTime, kSampleTime, kUpdateTime}) slow_device.si[i] *= q;
  RC_ASSERT(Near(Step(facts, slow_host, workload).total().si(),
                 Step(facts, cluster, slow_device).total().si()));
  slow_host.node_slowdown = 1;
  RC_ASSERT(Step(facts, slow_host, workload).total() == Step(facts, cluster, workload).total());
}

// One more micro-step costs one micro-step, and the growth of the spread of their sum: only the
// last one synchronises. Flows that stay silent for longer start more slowly, so without round
// trips here.
RC_GTEST_PROP(StepProperty, AccumulationSynchronisesOnce, ()) {
  const Strategy strategy = *rc::gen::elementOf(kSynchronous);
  Plan plan = Plain(AnyPlan(strategy));
  plan.link.rtt.reset();
  plan.server_link.rtt.reset();
  const Parameters cluster = AnyCluster();
  const WorkloadParameters<double> workload = AnyWorkload();
  plan.accumulation_steps = 1;
  const StepTime<double> once = Step(Facts(plan), cluster, workload);
  const ByHand hand_once{Facts(plan), cluster, workload};
  plan.accumulation_steps = *Whole(2, 32);
  const StepTime<double> often = Step(Facts(plan), cluster, workload);
  const ByHand hand{Facts(plan), cluster, workload};
  RC_ASSERT(often.synchronisation == once.synchronisation);
  RC_ASSERT(often.exposed() == once.exposed());
  RC_ASSERT(often.update == once.update);
  RC_ASSERT(std::abs((often.total() - once.total()).si() -
                     ((plan.accumulation_steps - 1) * hand.Micro() + hand.Wait() -
                      hand_once.Wait())) < 1e-12 * often.total().si());
}

// ---- Overlap.

RC_GTEST_PROP(StepProperty, OverlapNeverHurts, ()) {
  StepFacts facts = AnyFacts(Plain(AnyPlan(*rc::gen::elementOf(kExchanging))));
  const Parameters cluster = AnyCluster();
  const WorkloadParameters<double> workload = AnyWorkload();
  const auto with = [&](Overlap overlap) {
    facts.overlap = overlap;
    return Step(facts, cluster, workload);
  };
  const StepTime<double> none = with(Overlap::kNone);
  RC_ASSERT(with(Overlap::kBuckets).total() <= none.total() * (1 + 1e-12));
  RC_ASSERT(with(Overlap::kPNorm).total() <= none.total() * (1 + 1e-12));
  RC_ASSERT(Near(none.exposed().si(), none.synchronisation.si()));
}

// Slow compute hides all but the last bucket; slow network is seen whole but for the first wait.
TEST(Step, OverlapHidesWhatItCan) {
  WorkloadParameters<double> slow = PriorWorkload();
  slow.si[kFixedTime] = 1000;
  const StepFacts facts = Facts(MakePlan({1, 1, 1, 1}, Strategy::kTree));
  const ByHand hand{facts, PriorCluster(), slow};
  EXPECT_NEAR(Step(facts, PriorCluster(), slow).exposed().si(), hand.Collective(20e6) + 0.6e-3,
              1e-9);
  EXPECT_NEAR(Step(facts, PriorCluster(), slow).synchronisation.si(),
              4 * hand.Collective(0) + hand.Rounds().second * 100e6 + 0.6e-3, 1e-12);
}

// A share of 0.6 leaves 0.4 for the forward pass; where half of that runs once more in the backward
// pass, they are 0.8 of 1.2. All of a micro-step is one or the other.
TEST(Step, RecomputationIsPartOfTheBackwardPass) {
  Parameters cluster = PriorCluster();
  cluster.si[kOverlapShare] = 0.6;
  StepFacts facts = Facts(MakePlan({1}, Strategy::kRing));
  const StepTime<double> kept = Step(facts, cluster);
  EXPECT_NEAR(kept.backward / (kept.forward + kept.backward), 0.6, 1e-12);
  facts.recomputing.of_forward = 0.5;
  const StepTime<double> step = Step(facts, cluster);
  EXPECT_NEAR(step.backward / (step.forward + step.backward), 0.8 / 1.2, 1e-12);
  EXPECT_NEAR((step.forward + step.backward) / (kept.forward + kept.backward), 1, 1e-12);
  // Half of the work is of a block.
  Workload workload = Message(Megabytes(100.0));
  workload.layers.resize(2);
  workload.layers[0].name = "h.0.dense";
  for (Layer& layer : workload.layers) layer.forward_flop = Flop(1e9);
  const auto recomputed = [&] {
    return MakeStepFacts(Cluster(), MakePlan({1}, Strategy::kRing), workload,
                         OneBucket(workload.gradient_bytes))
        .recomputing.of_forward;
  };
  EXPECT_EQ(recomputed(), 0);
  workload.recompute = Recompute::kFull;
  EXPECT_EQ(recomputed(), 0.5);
}

// What is hidden slows the pass that hides it, by a twentieth of its time.
TEST(Step, HidingIsNotFree) {
  Parameters cluster = PriorCluster();
  const StepFacts facts = Facts(MakePlan({4, 4}, Strategy::kRing));
  StepTerms<double> terms;
  const StepTime<double> step = EvaluateStep(facts, cluster, PriorWorkload(), &terms);
  EXPECT_GT(terms.hidden.si(), 0);
  EXPECT_NEAR(terms.contention.si(), 0.05 * terms.hidden.si(), 1e-15);
  cluster.si[kOverlapContention] = 0;
  EXPECT_NEAR((step.total() - Step(facts, cluster).total()).si(), 0.05 * terms.hidden.si(), 1e-15);
}

// ---- Placement.

// With one device a node, or with one node, there is one level: the ring.
RC_GTEST_PROP(StepProperty, OneLevelOfTheHierarchicalIsTheRing, ()) {
  const int workers = *Whole(1, 40);
  const Placement placement =
      Flip() ? Placement(static_cast<std::size_t>(workers), 1) : Placement{workers};
  const Parameters cluster = AnyCluster();
  const double ring = Step(Facts(MakePlan(placement, Strategy::kRing)), cluster).total().si();
  const double hierarchical =
      Step(Facts(MakePlan(placement, Strategy::kHierarchical)), cluster).total().si();
  RC_ASSERT(Near(ring, hierarchical));
}

TEST(Step, AllreduceIsTheRing) {
  EXPECT_EQ(Total(MakePlan({4, 4}, Strategy::kAllreduce)),
            Total(MakePlan({4, 4}, Strategy::kRing)));
}

// No helpers leave the bytes of a ring; beyond as many as nodes they do no more good. Lines alone
// bind here.
TEST(Step, HelpersHelpUpToTheNodes) {
  const Placement placement(8, 1);
  Parameters cluster = PriorCluster();
  cluster.si[kFlowBandwidth] = cluster.si[kHostBandwidth] = 1e18;
  cluster.si[kMeshShare] = 1;
  const auto transfer = [&](int helpers) {
    StepFacts facts = Facts(MakePlan(placement, Strategy::kBytePs, helpers));
    facts.overlap = Overlap::kNone;
    return Step(facts, cluster).exposed_transfer.si();
  };
  StepFacts ring = Facts(MakePlan(placement, Strategy::kRing));
  ring.overlap = Overlap::kNone;
  EXPECT_NEAR(transfer(0), Step(ring, cluster).exposed_transfer.si(), 1e-12);
  for (int helpers = 1; helpers <= 8; ++helpers) {
    EXPECT_LE(transfer(helpers), transfer(helpers - 1));
  }
  EXPECT_NEAR(transfer(8), transfer(9), 1e-12);
  EXPECT_NEAR(transfer(8) / transfer(0), 8.0 / 14, 1e-9) << "m/B against 2 (w-1)/w m/B";
}

// Flows of TCP collide where all nodes send to all; cards keep the line.
TEST(Step, CardsLoseNothingInAMesh) {
  Parameters whole = PriorCluster();
  whole.si[kMeshShare] = 1;
  Parameters half = whole;
  half.si[kMeshShare] = 0.5;
  Plan plan = MakePlan({1, 1, 1}, Strategy::kBytePs, 2);
  plan.link.bandwidth = GigabitsPerSecond(1.0);
  Plan slower = plan;
  slower.link.bandwidth = GigabitsPerSecond(0.5);
  EXPECT_DOUBLE_EQ(Total(plan, half), Total(slower, whole));
  plan.link.transport = Transport::kRdma;
  EXPECT_EQ(Total(plan, half), Total(plan, whole));
}

// Hosts and links so fast that flows, or their window, decide.
Parameters FastHosts() {
  Parameters cluster = PriorCluster();
  cluster.si[kLinkBandwidth] = 1e18;
  cluster.si[kFlowBandwidth] = 1e18;
  cluster.si[kHostBandwidth] = 1e18;
  cluster.si[kHopSpread] = 0;
  return cluster;
}

// The rates of the hops and of the servers' links of a plan.
StepTerms<double> Terms(const StepFacts& facts, const Parameters& cluster) {
  StepTerms<double> terms;
  EvaluateStep(facts, cluster, PriorWorkload(), &terms);
  return terms;
}

double HopRate(int nodes, const Parameters& cluster, const LinkFacts& link = {}) {
  Plan plan = MakePlan(Placement(static_cast<std::size_t>(nodes), 1), Strategy::kRing);
  plan.link = link;
  return Terms(Facts(plan), cluster).node_hop.bandwidth.in(kGigabytesPerSecond);
}

// Flows to one peer share 1 GB/s, to two 2; nothing else binds and no scaling with nodes.
TEST(Step, TwoNodesAreSpecial) {
  Parameters cluster = FastHosts();
  cluster.si[kFlowBandwidth] = 1e9;
  EXPECT_NEAR(HopRate(2, cluster), 1, 1e-6);
  for (const int nodes : {3, 4, 16}) EXPECT_NEAR(HopRate(nodes, cluster), 2, 1e-6) << nodes;
  // So that a third node makes the step faster where the flows bind.
  EXPECT_LT(Total(MakePlan({1, 1, 1}, Strategy::kRing), cluster),
            Total(MakePlan({1, 1}, Strategy::kRing), cluster));
}

// 2.9 MB in flight on 2.9 ms of round trip: 1 GB/s through the one connection to the next node,
// however many there are.
TEST(Step, ARingHasOneWindowAHop) {
  const LinkFacts far = {.rtt = Milliseconds(2.9)};
  for (const int nodes : {2, 3, 16}) EXPECT_NEAR(HopRate(nodes, FastHosts(), far), 1, 1e-6);
  // Beside a line of 1 GB/s: two nodes add the times, more have rounds to pipeline.
  Parameters cluster = FastHosts();
  cluster.si[kLinkBandwidth] = 1e9 * 1538 / 1448;
  EXPECT_NEAR(HopRate(2, cluster, far), 0.5, 1e-6);
  for (const int nodes : {3, 16}) {
    EXPECT_NEAR(HopRate(nodes, cluster, far), std::sqrt(0.5), 1e-6) << nodes;
  }
}

// Servers: a connection of each worker to each, however many there are of either, also where the
// network copies and adds.
TEST(Step, EveryWorkerHasAConnectionToEveryServer) {
  for (const int servers : {1, 2, 8}) {
    for (const int workers : {1, 4}) {
      Plan plan =
          MakePlan(Placement(static_cast<std::size_t>(workers), 1), Strategy::kPsSync, servers);
      plan.link.rtt = Milliseconds(2.9);
      const double one = 1e-9;  // 2.9 MB in 2.9 ms
      EXPECT_NEAR(Terms(Facts(plan), FastHosts()).servers.connection.si(), one, 1e-15);
      const double least =
          2 * 100e6 * one *
          LargestShare(Message(Megabytes(100.0)), servers, Sharding::kTensor).share;
      plan.overlap = Overlap::kNone;
      for (const bool help : {false, true}) {
        plan.server.multicast = plan.server.in_network_aggregation = help;
        EXPECT_GE(Step(Facts(plan), FastHosts()).exposed().si(), least);
      }
    }
  }
}

// A node that is named has a link of its own; the servers' and other nodes' are not touched.
TEST(Step, AHostsLinkIsNotTheServers) {
  Parameters cluster = PriorCluster();
  cluster.node_link_si = 1e8;
  Parameters all = PriorCluster();
  all.si[kLinkBandwidth] = 1e8;
  const Plan ring = MakePlan({1, 1, 1}, Strategy::kRing);
  EXPECT_EQ(Total(ring, cluster), Total(ring, all));
  const Plan servers = MakePlan({1, 1, 1}, Strategy::kPsSync, 2);
  const StepTerms<double> terms = Terms(Facts(servers), cluster);
  EXPECT_EQ(terms.servers.server_bandwidth,
            Terms(Facts(servers), PriorCluster()).servers.server_bandwidth);
  EXPECT_EQ(terms.node_hop.bandwidth, Terms(Facts(servers), all).node_hop.bandwidth);
  // What the plan states is said of all.
  Plan stated = servers;
  stated.link.bandwidth = GigabitsPerSecond(1.0);
  EXPECT_EQ(Total(stated, cluster), Total(stated));
}

// 8 devices on 2 nodes: 1.75 times the bytes over the hop. A piece goes 2 x 2 times between nodes
// and 10 within; of its 50 us and 10 us all but four of the slowest hop hide behind 100 MB.
TEST(Step, FlatRingCallsByHand) {
  const Parameters cluster = PriorCluster();
  Plan plan = MakePlan({4, 4}, Strategy::kRing);
  const auto facts_of = [&](DataSize<> bytes) {
    return MakeStepFacts(Cluster(), plan, Message(bytes), OneBucket(bytes));
  };
  const StepFacts facts = facts_of(Megabytes(100.0));
  const StepTime<double> step = Step(facts, cluster);
  const double rate = Terms(facts, cluster).node_hop.bandwidth.si();
  EXPECT_NEAR(step.exposed_transfer.si(), 1.75 * 100e6 / rate, 1e-12);
  EXPECT_NEAR(step.exposed_latency.si(), 4 * 50e-6 + 0.6e-3, 1e-12);
  EXPECT_NEAR(step.synchronisation.si(), step.exposed().si(), 1e-12);
  // A message of 1 kB has nothing to hide behind.
  const StepTime<double> small = Step(facts_of(Bytes(1000.0)), cluster);
  EXPECT_NEAR(small.synchronisation.si(), 4 * 50e-6 + 10 * 10e-6 + 1.75 * 1000 / rate / 2 + 0.6e-3,
              1e-9);
}

// ---- Loss and round trips.

TEST(Step, LossWithoutARoundTripMeetsTheLatencyOfTheLink) {
  Plan plan = MakePlan({1, 1}, Strategy::kRing);
  plan.link.loss = 0.01;
  const double unstated = Total(plan);
  plan.link.rtt = Milliseconds(0.0);
  EXPECT_EQ(Total(plan), unstated) << "none stated is none added";
  plan.link.loss = 0.0;
  EXPECT_LT(Total(plan), unstated) << "loss costs";
  plan.link = {.rtt = Milliseconds(10.0), .loss = 0.01};
  EXPECT_GT(Total(plan), 2 * unstated) << "and more on a long path";
}

TEST(Step, LossOfTheServersCountsToo) {
  Plan plan = MakePlan({1, 1}, Strategy::kPsSync, 1);
  const double without = Total(plan);
  plan.server_link.loss = 0.05;
  EXPECT_GT(Total(plan), without);
}

// BBR does not back off; packets that are lost together count once.
TEST(Step, CongestionControlAndBurstsMatterWithLossAlone) {
  Plan plan = MakePlan({1, 1, 1}, Strategy::kRing);
  plan.link = {.bandwidth = GigabitsPerSecond(1.0), .rtt = Milliseconds(2.0), .loss = 0.005};
  Plan bbr = plan;
  bbr.link.congestion_control = CongestionControl::kBbr;
  Plan burst = plan;
  burst.link.loss_burst = Milliseconds(1.0);
  EXPECT_LT(Total(bbr), Total(burst));
  EXPECT_LT(Total(burst), Total(plan));
  for (Plan* p : {&plan, &bbr, &burst}) p->link.loss = 0;
  EXPECT_EQ(Total(bbr), Total(plan));
  EXPECT_EQ(Total(burst), Total(plan));
}

TEST(Step, LossOfTheClusterIsAFact) {
  Cluster cluster;
  cluster.link.loss = 0.001;
  const Plan plan = MakePlan({1, 1}, Strategy::kRing);
  const DataSize<> gradient = Megabytes(1.0);
  EXPECT_EQ(MakeStepFacts(cluster, plan, Message(gradient), OneBucket(gradient)).link.loss, 0.001);
}

// A lost packet in a million is not what holds a slow link back.
TEST(Step, RareLossOnASlowLinkIsNotTheLimiter) {
  Plan plan = MakePlan({1, 1}, Strategy::kRing);
  plan.link = {.bandwidth = MegabitsPerSecond(100.0), .rtt = Milliseconds(0.05), .loss = 1e-9};
  EXPECT_EQ(Step(Facts(plan)).limiter, Limiter::kLink);
  plan.link.loss = 0.05;
  plan.link.rtt = Milliseconds(20.0);
  EXPECT_EQ(Step(Facts(plan)).limiter, Limiter::kLoss);
}

// The worst of the hosts that the plan names; a host of another run is none of its business.
TEST(Step, ANamedHostsRoundTripAndLossAreFacts) {
  Cluster cluster;
  cluster.link.rtt = Milliseconds(1.0);
  cluster.hosts = {{"near", {.rtt = Milliseconds(0.5)}},
                   {"far", {.rtt = Milliseconds(5.0), .loss = 0.01}}};
  Plan plan = MakePlan({1, 1}, Strategy::kRing);
  const DataSize<> gradient = Megabytes(1.0);
  const auto link = [&] {
    return MakeStepFacts(cluster, plan, Message(gradient), OneBucket(gradient)).link;
  };
  plan.hosts = {"near", "other"};
  EXPECT_EQ(link().rtt, Milliseconds(1.0));
  EXPECT_FALSE(link().loss.has_value());
  plan.hosts = {"near", "far"};
  EXPECT_EQ(link().rtt, Milliseconds(5.0));
  EXPECT_EQ(link().loss, 0.01);
  plan.link.rtt = Milliseconds(2.0);
  EXPECT_EQ(link().rtt, Milliseconds(2.0));
}

// Who waits for the worst of several hosts waits in the largest crowd, beside the largest copy,
// whichever host has them and in whatever order the file lists them.
TEST(Step, TheLargestCrowdOfTheNamedHostsCounts) {
  const Host busy = {"busy", {.others = 3.0, .background = MegabitsPerSecond(100.0)}};
  const Host quiet = {"quiet", {.others = 1.0, .background = MegabitsPerSecond(300.0)}};
  const DataSize<> gradient = Megabytes(1.0);
  Plan plan = MakePlan({1, 1}, Strategy::kRing);
  for (const std::vector<Host>& hosts :
       {std::vector<Host>{busy, quiet}, std::vector<Host>{quiet, busy}}) {
    Cluster cluster;
    cluster.link.others = 2.0;
    cluster.hosts = hosts;
    const auto link = [&](const std::vector<std::string>& named) {
      plan.hosts = named;
      return MakeStepFacts(cluster, plan, Message(gradient), OneBucket(gradient)).link;
    };
    EXPECT_EQ(link({"quiet", "busy"}).others, 3.0);
    EXPECT_EQ(link({"quiet", "busy"}).background, MegabitsPerSecond(300.0));
    EXPECT_EQ(link({"quiet", "unknown"}).others, 2.0);
    EXPECT_EQ(link({"busy", "unknown"}).others, 3.0);
    EXPECT_EQ(link({"unknown", "stranger"}).others, 2.0);
  }
}

// A plan may name every host of a file of a megabyte.
TEST(Step, ManyNamedHostsAreFoundInLittleTime) {
  constexpr int kHosts = 30'000;
  Cluster cluster;
  cluster.link.rtt = Milliseconds(1.0);
  Plan plan;
  for (int i = 0; i < kHosts; ++i) {
    LinkFacts own;
    own.rtt = Milliseconds(i == kHosts / 2 ? 5.0 : 0.5);
    cluster.hosts.push_back({"h" + std::to_string(i), own});
    plan.hosts.push_back("h" + std::to_string(kHosts - 1 - i));
  }
  const std::clock_t begun = std::clock();
  EXPECT_EQ(LinkOf(cluster, plan).rtt, Milliseconds(5.0));
  plan.hosts[kHosts / 2 - 1] = "other";  // the slow one is none of them any more
  EXPECT_EQ(LinkOf(cluster, plan).rtt, Milliseconds(1.0));
  constexpr double kMostSeconds = 0.5;
  EXPECT_LT(static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC, kMostSeconds);
}

// RDMA takes both ends.
TEST(Step, OneHostWithoutRdmaHasAllSpeakTcp) {
  Cluster cluster;
  LinkFacts rdma;
  rdma.transport = Transport::kRdma;
  LinkFacts tcp;
  tcp.transport = Transport::kTcp;
  cluster.hosts = {{"fast", rdma}, {"quick", rdma}, {"plain", tcp}, {"silent", {}}};
  Plan plan = MakePlan({1, 1}, Strategy::kRing);
  const DataSize<> gradient = Megabytes(1.0);
  const auto is_rdma = [&](const char* other) {
    plan.hosts = {"fast", other};
    return MakeStepFacts(cluster, plan, Message(gradient), OneBucket(gradient)).link.rdma();
  };
  EXPECT_TRUE(is_rdma("quick"));
  for (const char* other : {"plain", "silent", "unknown"}) EXPECT_FALSE(is_rdma(other)) << other;
  cluster.link.transport = Transport::kRdma;
  for (const char* other : {"quick", "silent", "unknown"}) EXPECT_TRUE(is_rdma(other)) << other;
  EXPECT_FALSE(is_rdma("plain"));
  plan.link.transport = Transport::kTcp;
  EXPECT_FALSE(is_rdma("quick")) << "the plan says otherwise";
}

// What a plan's exchange is recorded to have gone over is what its step goes over.
TEST(Step, GoesOverTheTransportOfItsPlan) {
  const DataSize<> gradient = Megabytes(1.0);
  const std::optional<Transport> transports[] = {std::nullopt, Transport::kTcp, Transport::kRdma};
  for (const auto& of_nodes : transports) {
    for (const auto& of_servers : transports) {
      for (const auto& stated : transports) {
        for (const Strategy strategy : {Strategy::kRing, Strategy::kPsSync, Strategy::kBytePs}) {
          for (const int servers : {0, 2}) {
            if (UsesServers(strategy) && servers == 0) continue;
            if (strategy == Strategy::kRing && servers > 0) continue;
            Cluster cluster;
            cluster.link.transport = of_nodes;
            cluster.server_link.transport = of_servers;
            Plan plan = MakePlan({1, 1}, strategy);
            plan.servers = servers;
            plan.link.transport = stated;
            for (const bool colocated : {false, true}) {
              plan.server.colocated = UsesServers(strategy) && colocated;
              const StepFacts facts =
                  MakeStepFacts(cluster, plan, Message(gradient), OneBucket(gradient));
              EXPECT_EQ(TransportOf(cluster, plan) == Transport::kRdma,
                        internal::ExchangeLink(facts)->rdma())
                  << StrategyName(strategy) << " " << servers << " " << colocated;
            }
          }
        }
      }
    }
  }
}

// Half of it one way, once for each bucket: of the 2 x 3 messages around four devices a pipelined
// ring, which the hierarchical all-reduce is on one node, sees four.
TEST(Step, ADeviceLinksRoundTripIsAFact) {
  const DataSize<> gradient = Megabytes(100.0);
  Cluster cluster;
  for (const auto& [strategy, messages] :
       {std::pair{Strategy::kHierarchical, 4}, std::pair{Strategy::kRing, 4}}) {
    const Plan plan = MakePlan({4}, strategy);
    const auto synchronisation = [&] {
      return Step(MakeStepFacts(cluster, plan, Message(gradient), OneBucket(gradient)))
          .synchronisation.si();
    };
    cluster.device_link.rtt.reset();
    const double before = synchronisation();
    cluster.device_link.rtt = Microseconds(100.0);
    EXPECT_NEAR(synchronisation() - before, messages * 50e-6, 1e-12);
  }
}

RC_GTEST_PROP(StepProperty, NoLossIsTheSameStatedOrNot, ()) {
  Plan silent = AnyPlan(*rc::gen::elementOf(kExchanging));
  silent.link.loss.reset();
  silent.server_link.loss.reset();
  Plan lossless = silent;
  lossless.link.loss = 0.0;
  lossless.server_link.loss = 0.0;
  const Parameters cluster = AnyCluster();
  RC_ASSERT(Total(lossless, cluster) == Total(silent, cluster));
}

// The cluster file's bandwidth is the centre of a prior; what the plan states is a fact.
TEST(Step, StatedBandwidthIsAFactOnlyInThePlan) {
  Cluster cluster;
  cluster.link = {.bandwidth = GigabitsPerSecond(1.0), .rtt = Milliseconds(2.0)};
  Plan plan = MakePlan({1, 1}, Strategy::kRing);
  const DataSize<> gradient = Megabytes(1.0);
  StepFacts facts = MakeStepFacts(cluster, plan, Message(gradient), OneBucket(gradient));
  EXPECT_FALSE(facts.link.bandwidth.has_value());
  EXPECT_EQ(facts.link.rtt, Milliseconds(2.0));
  plan.link.bandwidth = MegabitsPerSecond(100.0);
  facts = MakeStepFacts(cluster, plan, Message(gradient), OneBucket(gradient));
  EXPECT_EQ(facts.link.bandwidth, MegabitsPerSecond(100.0));
}

// Links are silent from one exchange to the next, but for what its first bucket waits within the
// last backward pass.
TEST(Step, SilenceLastsFromExchangeToExchange) {
  StepFacts facts = Facts(MakePlan({1, 1}, Strategy::kRing));
  facts.overlap = Overlap::kNone;
  const auto silence = [&] {
    return internal::IdleTime<double>(facts, Seconds(0.3), Seconds(0.2)).si();
  };
  facts.accumulation_steps = 3;
  EXPECT_NEAR(silence(), 3 * 0.3, 1e-12);
  facts.local_steps = 4;
  EXPECT_NEAR(silence(), 3 * 4 * 0.3, 1e-12);
  facts.overlap = Overlap::kBuckets;
  const double hidden = (1 - facts.buckets->front().ready) * 0.2;
  EXPECT_NEAR(silence(), 3 * 4 * 0.3 - hidden, 1e-12);
}

// Published hosts of eight devices compute some 4 % longer on all of them than on one: three
// doublings of 1.4 %, and not seven devices of 2 %. Servers count each.
TEST(Step, ComputeGrowsWithEachDoublingOfTheDevicesOfANode) {
  Parameters cluster = PriorCluster();
  cluster.si[kHostContention] = 0.1;
  const auto micro = [&](const StepFacts& facts) {
    StepTerms<double> t;
    EvaluateStep(facts, cluster, PriorWorkload(), &t);
    return t.micro;
  };
  const Duration<> alone = micro(Facts(MakePlan({1, 1}, Strategy::kRing)));
  const auto times = [&](const StepFacts& facts) { return micro(facts) / alone; };
  EXPECT_EQ(internal::Crowding(Facts(MakePlan({1, 1}, Strategy::kRing))), 0) << "exactly";
  EXPECT_NEAR(times(Facts(MakePlan({2, 1}, Strategy::kRing))), 1.1, 1e-12) << "the fullest node";
  EXPECT_NEAR(times(Facts(MakePlan({4}, Strategy::kRing))), 1.2, 1e-12);
  EXPECT_NEAR(times(Facts(MakePlan({6, 6}, Strategy::kRing))), 1.2584962500721156, 1e-12);
  EXPECT_NEAR(times(Facts(MakePlan({8, 8}, Strategy::kRing))), 1.3, 1e-12);
  Plan plan = MakePlan({4, 4}, Strategy::kPsSync);
  plan.servers = 3;
  plan.server.colocated = true;
  EXPECT_NEAR(times(Facts(plan)), 1.4, 1e-12) << "two servers on the fuller node";
}

// Asynchronous workers compute on while a server beside them updates: the node is as crowded for it
// as it is for each of them.
TEST(Step, AnUpdateIsSharedAsComputeIs) {
  StepFacts facts = Facts(MakePlan({4, 4}, Strategy::kRing));
  facts.strategy = Strategy::kPsAsync;
  facts.servers = 4;
  const auto times = [&] { return internal::UpdateSharing(facts, 0.1); };
  EXPECT_EQ(times(), 1) << "on a machine of its own";
  facts.server.colocated = true;
  EXPECT_NEAR(times(), 1 + 0.1 * (2 + 2), 1e-12) << "two doublings of the workers, two servers";
  facts.servers = 1;
  EXPECT_NEAR(times(), 1 + 0.1 * (2 + 1), 1e-12);
  facts.devices_per_node = 1;
  EXPECT_NEAR(times(), 1 + 0.1, 1e-12) << "one worker beside one server";
  facts.strategy = Strategy::kPsSync;
  EXPECT_EQ(times(), 1) << "they wait for it";
}

// Flows start slowly after a second of silence, once a step and with the first bucket; behind a
// long backward pass nobody sees it.
TEST(Step, SlowStartIsSeenWhereTheFirstBucketIs) {
  Plan plan = MakePlan({1, 1, 1, 1}, Strategy::kRing);
  plan.link = {.bandwidth = GigabitsPerSecond(10.0), .rtt = Milliseconds(10.0)};
  WorkloadParameters<double> slow = PriorWorkload();
  slow.si[kFixedTime] = 2;
  Parameters quick_timer = PriorCluster();
  Parameters patient = PriorCluster();
  patient.si[kLossTimeout] = 10;  // silence of 2 s is short
  const auto terms = [&](const StepFacts& facts, const Parameters& cluster) {
    StepTerms<double> t;
    EvaluateStep(facts, cluster, slow, &t);
    return t;
  };
  StepFacts facts = Facts(plan);
  facts.overlap = Overlap::kNone;
  const StepTerms<double> cold = terms(facts, quick_timer);
  EXPECT_GT(cold.slow_start.si(), 0.02) << "some round trips of 10 ms";
  EXPECT_EQ(terms(facts, patient).slow_start.si(), 0);
  EXPECT_NEAR((Step(facts, quick_timer, slow).total() - Step(facts, patient, slow).total()).si(),
              cold.slow_start.si(), 1e-12);
  facts.overlap = Overlap::kBuckets;
  EXPECT_GT(terms(facts, quick_timer).slow_start.si(), 0.02);
  EXPECT_EQ(Step(facts, quick_timer, slow).exposed(), Step(facts, patient, slow).exposed());
}

// ---- Monotone.

// The step of facts that differ in one thing.
struct Compared {
  StepFacts facts;
  Parameters cluster = AnyCluster();
  WorkloadParameters<double> workload = AnyWorkload();

  double Of(const StepFacts& other) const { return Step(other, cluster, workload).total().si(); }
  double before() const { return Of(facts); }
};

RC_GTEST_PROP(StepProperty, BytesLossAndLatencyNeverHelp, ()) {
  const Strategy strategy = *rc::gen::elementOf(kExchanging);
  Plan plan = AnyPlan(strategy);
  plan.link.rtt = Seconds(*LogUniform(1e-5, 0.1));
  plan.link.loss = *LogUniform(1e-6, 0.1);
  const Compared compared{AnyFacts(plan)};
  const StepFacts& facts = compared.facts;
  const double factor = *LogUniform(1, 5);
  // Queues of asynchronous workers are solved to fewer digits.
  const double digits = strategy == Strategy::kPsAsync ? 1e-6 : 1e-12;
  const double least = compared.before() * (1 - digits);
  RC_LOG() << StrategyName(strategy) << " factor " << factor << "\n";
  StepFacts more = facts;
  const auto scaled = [&](const Buckets& buckets) {
    std::vector<Bucket> all = *buckets;
    for (Bucket& bucket : all) bucket.bytes = bucket.bytes * factor;
    return std::make_shared<const std::vector<Bucket>>(std::move(all));
  };
  more.gradient = more.gradient * factor;
  more.buckets = scaled(more.buckets);
  if (more.held_buckets) more.held_buckets = scaled(more.held_buckets);
  RC_ASSERT(compared.Of(more) >= least);
  StepFacts worse = facts;
  worse.link.loss = *facts.link.loss * factor;
  RC_ASSERT(compared.Of(worse) >= least);
  worse = facts;
  worse.link.rtt = *facts.link.rtt * factor;
  RC_ASSERT(compared.Of(worse) >= least);
  worse = facts;
  if (worse.server_link.rtt) worse.server_link.rtt = *worse.server_link.rtt * factor;
  if (worse.server_link.loss) worse.server_link.loss = *worse.server_link.loss * factor;
  RC_ASSERT(compared.Of(worse) >= least);
  worse = facts;
  worse.batch *= 2;
  RC_ASSERT(compared.Of(worse) >= least);
}

// The first round trip and the first loss that are stated cost as well.
RC_GTEST_PROP(StepProperty, StatingARoundTripOrALossNeverHelps, ()) {
  Plan plan = AnyPlan(*rc::gen::elementOf(kExchanging));
  plan.link.rtt.reset();
  plan.link.loss.reset();
  const Compared compared{AnyFacts(plan)};
  StepFacts worse = compared.facts;
  worse.link.rtt = Seconds(*LogUniform(1e-6, 0.1));
  const double far = compared.Of(worse);
  RC_ASSERT(far >= compared.before() * (1 - 1e-12));
  worse.link.loss = *LogUniform(1e-9, 0.1);
  RC_ASSERT(compared.Of(worse) >= far * (1 - 1e-12));
}

RC_GTEST_PROP(StepProperty, BandwidthNeverHurts, ()) {
  const Strategy strategy = *rc::gen::elementOf(kExchanging);
  Plan plan = AnyPlan(strategy);
  plan.link.bandwidth = BytesPerSecond(*LogUniform(1e7, 1e10));
  const bool apart = TakesServers(strategy) && !plan.server.colocated;
  if (apart) plan.server_link.bandwidth = BytesPerSecond(*LogUniform(1e7, 1e10));
  const Compared compared{AnyFacts(plan)};
  const double factor = *LogUniform(1, 5);
  const double most = compared.before() * (1 + 1e-12);
  StepFacts faster = compared.facts;
  faster.link.bandwidth = *faster.link.bandwidth * factor;
  RC_ASSERT(compared.Of(faster) <= most);
  if (apart) {
    faster = compared.facts;
    faster.server_link.bandwidth = *faster.server_link.bandwidth * factor;
    RC_ASSERT(compared.Of(faster) <= most);
  }
}

// Every parameter, in every plan. How long a timeout takes is left out: a long one makes a loss
// dear, and keeps windows open while the devices compute.
RC_GTEST_PROP(StepProperty, ParametersKeepTheirDirection, ()) {
  const StepFacts facts = AnyFacts(AnyPlan(*rc::gen::elementOf(kExchanging)));
  const Parameters cluster = AnyCluster();
  const WorkloadParameters<double> workload = AnyWorkload();
  const double before = Step(facts, cluster, workload).total().si();
  const double factor = *LogUniform(1, 3);
  for (int i = 0; i < kClusterParameterCount; ++i) {
    if (i == kLossTimeout || i == kOverlapShare) continue;
    Parameters other = cluster;
    other.si[static_cast<std::size_t>(i)] *= factor;
    if (i == kLinkBandwidth && other.node_link_si) *other.node_link_si *= factor;
    const double after = Step(facts, other, workload).total().si();
    const bool rate = i == kLinkBandwidth || i == kFlowBandwidth || i == kHostBandwidth ||
                      i == kServerRate || i == kFlowWindow || i == kMeshShare;
    RC_LOG() << kClusterParameterSpecs[static_cast<std::size_t>(i)].name << " "
             << StrategyName(facts.strategy) << " " << before << " " << after << "\n";
    const double worse = (rate ? before - after : after - before) + 1e-12 * before;
    RC_ASSERT(worse >= 0);
  }
  for (std::size_t i = 0; i < workload.si.size(); ++i) {
    WorkloadParameters<double> other = workload;
    other.si[i] *= factor;
    RC_ASSERT(Step(facts, cluster, other).total().si() >= before * (1 - 1e-12));
  }
}

// Between the path and the exchange within nodes, what is said to limit a collective is what speeds
// it up most.
RC_GTEST_PROP(StepProperty, TheLimiterOfACollectiveSpeedsItUpMost, ()) {
  Plan plan = AnyPlan(*rc::gen::elementOf(
      std::vector<Strategy>(kSynchronous.begin(), kSynchronous.end() - 1)));  // all but servers
  plan.link = plan.server_link = {};
  plan.overlap = Overlap::kNone;
  StepFacts facts = AnyFacts(plan);
  facts.buckets = std::make_shared<const std::vector<Bucket>>(1, Bucket{facts.gradient, 1.0});
  const Parameters cluster = AnyCluster();
  const auto step = [&](std::initializer_list<int> parameters) {
    Parameters faster = cluster;
    for (const int i : parameters) {
      faster.si[static_cast<std::size_t>(i)] *= 1.0001;
      if (i == kLinkBandwidth && faster.node_link_si) *faster.node_link_si *= 1.0001;
    }
    return Step(facts, faster);
  };
  const StepTime<double> now = step({});
  const auto saved = [&](std::initializer_list<int> parameters) {
    return (now.total() - step(parameters).total()).si();
  };
  const double path = saved({kLinkBandwidth, kFlowBandwidth, kFlowWindow});
  const double host = saved({kHostBandwidth});
  RC_PRE(std::abs(path - host) > 0.05 * (path + host));
  RC_PRE(now.limiter != Limiter::kLatency && now.limiter != Limiter::kNothing);
  RC_LOG() << StrategyName(facts.strategy) << " " << path << " " << host << "\n";
  RC_ASSERT((now.limiter == Limiter::kHost) == (path < host));
}

RC_GTEST_PROP(StepProperty, HelpFromTheNetworkNeverHurts, ()) {
  Plan plan = AnyPlan(Strategy::kPsSync);
  const Compared compared{AnyFacts(plan)};
  StepFacts facts = compared.facts;
  const auto with = [&](bool copies, bool adds, bool pipelined) {
    facts.server.multicast = copies;
    facts.server.in_network_aggregation = adds;
    facts.server.pipelined = pipelined;
    return compared.Of(facts);
  };
  for (const bool pipelined : {false, true}) {
    const double plain = with(false, false, pipelined) * (1 + 1e-12);
    RC_ASSERT(with(true, false, pipelined) <= plain);
    RC_ASSERT(with(false, true, pipelined) <= plain);
    RC_ASSERT(with(true, true, pipelined) <= with(true, false, pipelined) * (1 + 1e-12));
    RC_ASSERT(with(true, true, pipelined) <= with(false, true, pipelined) * (1 + 1e-12));
  }
}

RC_GTEST_PROP(StepProperty, BackupWorkersAndALongLeadNeverHurt, ()) {
  Plan plan = AnyPlan(*rc::gen::elementOf(kSynchronous));
  plan.backup_workers = *Whole(0, plan.workers() - 2);
  const Parameters cluster = AnyCluster();
  const double before = Total(plan, cluster);
  ++plan.backup_workers;
  RC_ASSERT(Total(plan, cluster) <= before);
  Plan async = AnyPlan(Strategy::kPsAsync);
  async.server.staleness_bound = *Whole(0, 20);
  const double bounded = Total(async, cluster);
  ++*async.server.staleness_bound;
  const double longer = Total(async, cluster);
  async.server.staleness_bound.reset();
  RC_ASSERT(longer <= bounded);
  RC_ASSERT(Total(async, cluster) <= longer);
}

// On the nodes that there are: more devices a node; and more nodes from three on, two being
// special. Halving-doubling is left out, which pays for what is beyond a power of two. Not with
// several cards, of which more devices use more.
RC_GTEST_PROP(StepProperty, MoreDevicesNeverMakeAStepFaster, ()) {
  const Strategy strategy =
      *rc::gen::element(Strategy::kRing, Strategy::kTree, Strategy::kHierarchical,
                        Strategy::kPsSync, Strategy::kPsAsync);
  const auto nodes = static_cast<std::size_t>(*Whole(1, 20));
  const int devices = *Whole(1, 8);
  const Parameters cluster = AnyCluster();
  const double before = Total(PlanOf(strategy, Placement(nodes, devices)), cluster) * (1 - 1e-12);
  RC_ASSERT(Total(PlanOf(strategy, Placement(nodes, devices + 1)), cluster) >= before);
  if (nodes >= 3) {
    RC_ASSERT(Total(PlanOf(strategy, Placement(nodes + 1, devices)), cluster) >= before);
  }
}

// A worker that starts one transfer more, in each phase of each bucket, is all that can be lost.
// Where the host's end costs nothing more for several devices, nodes that push once for all of them
// exchange what nodes of one device do. Only a worker that is alone with its servers has nobody to
// exchange with, where devices of a lone node have each other.
RC_GTEST_PROP(StepProperty, NodesThatAddUpFirstExchangeOnce, ()) {
  Parameters cluster = AnyCluster();
  cluster.si[kHostSharing] = 0;
  const int nodes = *Whole(1, 12);
  const int devices = *Whole(2, 8);
  Plan many = MakePlan(Placement(static_cast<std::size_t>(nodes), devices), Strategy::kPsSync,
                       *Whole(1, 6));
  many.server.colocated = nodes > 1 && Flip();
  many.server.pipelined = Flip();
  many.server.multicast = Flip();
  many.server.in_network_aggregation = Flip();
  if (Flip()) many.link.rtt = Milliseconds(*LogUniform(0.01, 20));
  if (Flip()) many.link.loss = *LogUniform(1e-5, 0.02);
  Plan same = many;
  same.placement.assign(static_cast<std::size_t>(nodes), 1);
  many.server.local_aggregation = true;
  RC_ASSERT(Near(Step(Facts(many), cluster).synchronisation.si(),
                 Step(Facts(same), cluster).synchronisation.si()));
  const Traffic traffic = CountTraffic(many, Megabytes(100.0));
  const Traffic expected = CountTraffic(same, Megabytes(100.0));
  RC_ASSERT(traffic.transfers == expected.transfers);
  RC_ASSERT(traffic.total.si() == expected.total.si());
}

// Nothing that is stated or fitted of a network is felt by a lone node with its servers on it,
// whose messages wait for its own latency.
RC_GTEST_PROP(StepProperty, ServersOnALoneNodeKnowNoNetwork, ()) {
  Parameters cluster = AnyCluster();
  const bool together = Flip();
  Plan plan = AnyPlan(together ? Strategy::kPsSync : Strategy::kPsAsync);
  plan.placement = {*Whole(2, 8)};
  plan.hosts.clear();
  plan.server.colocated = true;
  plan.servers = *Whole(1, 4);
  plan.backup_workers = 0;
  plan.overlap = Overlap::kNone;
  plan.link = plan.server_link = {};
  const auto step = [&](const Plan& of) { return Step(Facts(of), cluster).total().si(); };
  const double alone = step(plan);
  Plan far = plan;
  far.link.rtt = Milliseconds(30.0);
  far.link.loss = 0.01;
  far.link.bandwidth = MegabitsPerSecond(10.0);
  RC_ASSERT(Near(step(far), alone));
  for (const int i : {kLinkBandwidth, kFlowBandwidth, kLinkLatency, kNodeSyncOverhead}) {
    cluster.si[static_cast<std::size_t>(i)] *= 3;
  }
  RC_ASSERT(Near(step(far), alone));
  cluster.si[kDeviceLatency] += 0.1;
  RC_ASSERT(!together || step(far) > alone + 0.1);
}

// On a lone node with its server the devices add 100 MB up and share it out at 4 GB/s, 7/8 of it
// each way, 21.875 ms, while the server takes one copy of it in and gives one out: 80 ms at 1.25
// GB/s, for 2 devices as for 8.
TEST(Step, DevicesOfALoneNodeAddUpFirst) {
  Parameters cluster = PriorCluster();
  cluster.si[kHostBandwidth] = 4e9;
  cluster.si[kServerRate] = 1.25e9;
  cluster.si[kTransferInitiation] = cluster.si[kDeviceLatency] = 1e-30;
  WorkloadParameters<double> workload = PriorWorkload();
  for (double& value : workload.si) value = 1e-30;
  const auto exchange = [&](int devices, bool pipelined = false, double loss = 0) {
    Plan plan = PlanOf(Strategy::kPsSync, {devices});
    plan.servers = 1;
    plan.server.colocated = plan.server.local_aggregation = true;
    plan.server.pipelined = pipelined;
    plan.link.loss = loss;
    EXPECT_EQ(internal::LossScatter(Facts(plan, Megabytes(100.0))), 0);
    const StepFacts facts = Facts(plan, Megabytes(100.0));
    StepTerms<double> terms;
    EvaluateStep(facts, cluster, workload, &terms);
    return terms.end.in(kMilliseconds);
  };
  EXPECT_NEAR(exchange(2), 160, 1e-6);
  EXPECT_NEAR(exchange(8), 160, 1e-6);
  cluster.si[kServerRate] = 100e9;
  EXPECT_NEAR(exchange(2), 2 * 12.5, 1e-6);
  EXPECT_NEAR(exchange(8), 2 * 21.875, 1e-6);
  EXPECT_NEAR(exchange(8, true), 2 * 21.875, 1e-6);  // both ways over the same hops
  // What the link loses is of bytes that leave the node.
  EXPECT_NEAR(exchange(8, false, 0.02), 2 * 21.875, 1e-6);
  // What the network could do does not matter where nothing crosses it.
  Plan plan = PlanOf(Strategy::kPsSync, {8});
  plan.servers = 1;
  plan.server.colocated = true;
  for (const bool adds_up : {false, true}) {
    plan.server.local_aggregation = adds_up;
    const PhaseBenefit<double> benefit = EvaluateServerPhases(Facts(plan), cluster, workload);
    EXPECT_EQ(benefit.multicast_saves.si(), 0);
    EXPECT_EQ(benefit.in_network_aggregation_saves.si(), 0);
    EXPECT_EQ(benefit.both_save.si(), 0);
  }
}

// What the network loses holds back what crosses it, and not workers beside their server.
TEST(Step, LossCostsNothingWhereNothingLeavesTheNode) {
  for (const Strategy strategy : {Strategy::kPsSync, Strategy::kPsAsync}) {
    Plan plan = MakePlan({4}, strategy, 1);
    const auto lossy = [&](bool colocated, double loss) {
      plan.server.colocated = colocated;
      plan.link.loss = loss;
      return Step(Facts(plan)).total().si();
    };
    EXPECT_LT(lossy(true, 0.05), 1.06 * lossy(true, 0));
    EXPECT_EQ(internal::LossScatter(Facts(plan)), 0);
    EXPECT_GT(lossy(false, 0.05), 2 * lossy(false, 0));
    lossy(false, 0.05);
    EXPECT_GT(internal::LossScatter(Facts(plan)), 0);
  }
}

// A full node more costs the same by the law of growth and by the step.
TEST(StepLimits, ServersOfNodesThatAddUpFirstGrowByTheNode) {
  Plan plan = MakePlan({4, 4, 4, 4, 4, 4}, Strategy::kPsSync, 2);
  plan.server.local_aggregation = true;
  for (const double gigabits : {1.0, 100.0}) {
    plan.link.bandwidth = GigabitsPerSecond(gigabits);
    const StepFacts facts = Facts(plan);
    StepTerms<double> terms;
    EvaluateStep(facts, PriorCluster(), PriorWorkload(), &terms);
    const GrowthQuestion question{plan, plan.strategy, terms, *facts.buckets, facts.gradient, 4};
    const SyncGrowth<double> growth = ExchangeOf(plan.strategy).Growth(question);
    for (const int nodes : {2, 6, 12}) {
      Plan on = plan;
      on.placement.assign(static_cast<std::size_t>(nodes), 4);
      StepTerms<double> there;
      const double cost = Step(Facts(on)).synchronisation.si();
      EvaluateStep(Facts(on), PriorCluster(), PriorWorkload(), &there);
      EXPECT_NEAR(growth.Time(4.0 * nodes).si() / (cost - there.overhead.si()), 1, 0.02)
          << nodes << " nodes on " << gigabits << " Gbit/s";
    }
  }
}

RC_GTEST_PROP(StepProperty, MoreServersCostAnInitiationAtMost, ()) {
  const Placement placement = AnyPlacement();
  const int servers = *Whole(1, Workers(placement) - 1);
  Parameters cluster = AnyCluster();
  const auto total = [&](int n) {
    return Total(MakePlan(placement, Strategy::kPsSync, n), cluster);
  };
  const double one = 2 * 4 * cluster.si[kTransferInitiation];
  RC_ASSERT(total(servers + 1) <= total(servers) * (1 + 1e-12) + one);
  cluster.si[kTransferInitiation] = 1e-30;
  RC_ASSERT(total(servers + 1) <= total(servers) * (1 + 1e-12));
}

// ---- Networks of the catalogue, whole tensors on their servers.

RC_GTEST_PROP(StepProperty, RealNetworksKeepThePromises, ()) {
  static const std::vector<Workload> networks = {*FindWorkload("resnet50"), *FindWorkload("vgg16"),
                                                 *FindWorkload("bert_base")};
  const Workload& network = networks[static_cast<std::size_t>(*Whole(0, 2))];
  Plan plan = Plain(AnyPlan(*rc::gen::elementOf(kExchanging)));
  plan.link.bandwidth = BytesPerSecond(*LogUniform(1e7, 1e10));
  const auto buckets = std::make_shared<const std::vector<Bucket>>(
      MakeBuckets(network, DefaultBucket(plan.strategy)));
  const Compared compared{MakeStepFacts(Cluster(), plan, network, buckets)};
  const double before = compared.before();
  RC_ASSERT(std::isfinite(before));
  const double micro = (compared.facts.accumulation_steps) *
                       ByHand{compared.facts, compared.cluster, compared.workload}.Micro();
  RC_ASSERT(before >= micro);
  StepFacts faster = compared.facts;
  faster.link.bandwidth = *faster.link.bandwidth * *LogUniform(1, 5);
  RC_ASSERT(compared.Of(faster) <= before * (1 + 1e-12));
  if (compared.facts.strategy == Strategy::kPsAsync) return;
  const double by_hand = ByHand{compared.facts, compared.cluster, compared.workload}.Total();
  RC_LOG() << StrategyName(plan.strategy) << " " << before << " differs by " << by_hand - before;
  RC_ASSERT(Near(before, by_hand, 1e-9));
}

// ---- Limits.

Parameters PerfectNetwork() {
  Parameters cluster = PriorCluster();
  for (const int rate :
       {kLinkBandwidth, kFlowBandwidth, kHostBandwidth, kServerRate, kFlowWindow}) {
    cluster.si[static_cast<std::size_t>(rate)] = 1e30;
  }
  for (const int latency : {kLinkLatency, kDeviceLatency, kTransferInitiation}) {
    cluster.si[static_cast<std::size_t>(latency)] = 1e-30;
  }
  return cluster;
}

TEST(Step, APerfectNetworkLeavesComputeStragglersAndTheFixedCost) {
  for (const Strategy strategy : kSynchronous) {
    for (const Placement& placement : {Placement{4}, Placement{4, 4, 4}}) {
      const StepFacts facts = Facts(PlanOf(strategy, placement));
      WorkloadParameters<double> workload = PriorWorkload();
      workload.si[kUpdateTime] = 1e-30;
      const StepTime<double> step = Step(facts, PerfectNetwork(), workload);
      const ByHand hand{facts, PerfectNetwork(), workload};
      const double overhead = facts.nodes > 1 || UsesServers(strategy) ? 0.6e-3 : 0.3e-3;
      EXPECT_NEAR(step.total().si(), hand.Micro() + hand.Wait() + overhead, 1e-12)
          << StrategyName(strategy);
      EXPECT_NEAR(step.exposed().si(), overhead, 1e-12) << StrategyName(strategy);
    }
  }
}

// With the update, the servers' work, of each of eight: half the model and 1 ms of it all.
TEST(Step, AsynchronousOnAPerfectNetworkOnlyComputesAndUpdates) {
  StepFacts facts = Facts(PlanOf(Strategy::kPsAsync, {1}));
  facts.overlap = Overlap::kNone;
  const ByHand hand{facts, PerfectNetwork(), PriorWorkload()};
  EXPECT_NEAR(Step(facts, PerfectNetwork()).total().si(), hand.Micro() + 0.5e-3 + 0.6e-3, 1e-12);
  facts = Facts(PlanOf(Strategy::kPsAsync, {4, 4}));
  WorkloadParameters<double> no_update = PriorWorkload();
  no_update.si[kUpdateTime] = 0;
  EXPECT_NEAR(Step(facts, PerfectNetwork(), no_update).total().si(),
              (ByHand{facts, PerfectNetwork(), no_update}.Micro() + 0.6e-3), 1e-12);
}

// Compute, two messages with an initiation that is not the server's, twice 100 MB over the worker's
// hop, the narrower one here, the update of half the model and the fixed cost.
TEST(Step, ALoneAsynchronousWorkerByHand) {
  StepFacts facts = Facts(MakePlan({1}, Strategy::kPsAsync, 2));
  facts.overlap = Overlap::kNone;
  const ByHand hand{facts, PriorCluster(), PriorWorkload()};
  const StepTime<double> step = Step(facts);
  EXPECT_NEAR(
      step.total().si(),
      hand.Micro() + 2 * (hand.Calls() + 20e-6 + 100e6 * hand.WorkerHop()) + 0.5e-3 + 0.6e-3,
      1e-12);
  EXPECT_EQ(step.straggler_wait.si(), 0);
}

// Four micro-steps of 0.5 s that spread by 40 % each, on their own: 0.4 s of 2 s.
TEST(Step, MicroStepsOfAnAsynchronousWorkerSpreadIndependently) {
  StepFacts facts = Facts(PlanOf(Strategy::kPsAsync, {1, 1}));
  facts.accumulation_steps = 4;
  const AsyncWork<double> work =
      internal::WorkOf<double>(facts, Seconds(0.5), Seconds(0.3), Duration<>(), 0.4, Duration<>());
  EXPECT_NEAR((work.forward + work.backward).si(), 2, 1e-12);
  EXPECT_NEAR(((work.forward + work.backward) * work.spread).si(), 0.4, 1e-12);
}

// ---- What holds it back.

Limiter LimiterOf(const Plan& plan, const Parameters& cluster) {
  return Step(Facts(plan), cluster).limiter;
}

// Nothing binds: each case then slows one thing down.
Parameters FastCluster() {
  Parameters cluster = PriorCluster();
  cluster.si[kLinkBandwidth] = 1e11;
  cluster.si[kFlowBandwidth] = 1e11;
  cluster.si[kHostBandwidth] = 1e12;
  cluster.si[kServerRate] = 1e12;
  cluster.si[kHopSpread] = 1e-3;
  cluster.si[kNodeSyncOverhead] = cluster.si[kDeviceSyncOverhead] = 1e-6;
  return cluster;
}

TEST(StepLimiter, Link) {
  Parameters cluster = FastCluster();
  cluster.si[kLinkBandwidth] = 1e8;
  EXPECT_EQ(LimiterOf(MakePlan({1, 1, 1, 1}, Strategy::kRing), cluster), Limiter::kLink);
  // A stated bandwidth as well as a fitted one.
  Plan plan = MakePlan({1, 1, 1, 1}, Strategy::kRing);
  plan.link.bandwidth = MegabitsPerSecond(100.0);
  EXPECT_EQ(LimiterOf(plan, FastCluster()), Limiter::kLink);
}

TEST(StepLimiter, Flow) {
  Parameters cluster = FastCluster();
  cluster.si[kLinkBandwidth] = 1.5e9;
  cluster.si[kFlowBandwidth] = 1e9;
  EXPECT_EQ(LimiterOf(MakePlan({1, 1}, Strategy::kRing), cluster), Limiter::kFlow);
  // With two neighbours the flows carry more than the link.
  EXPECT_EQ(LimiterOf(MakePlan({1, 1, 1}, Strategy::kRing), cluster), Limiter::kLink);
}

TEST(StepLimiter, Host) {
  Parameters cluster = FastCluster();
  cluster.si[kHostBandwidth] = 1e8;
  EXPECT_EQ(LimiterOf(MakePlan({1, 1, 1, 1}, Strategy::kRing), cluster), Limiter::kHost);
  EXPECT_EQ(LimiterOf(MakePlan({8}, Strategy::kRing), cluster), Limiter::kHost);
}

TEST(StepLimiter, WindowAndLoss) {
  Plan window = MakePlan({1, 1, 1, 1}, Strategy::kTree);
  window.link.rtt = Milliseconds(50.0);
  EXPECT_EQ(LimiterOf(window, FastCluster()), Limiter::kWindow);
  Plan loss = MakePlan({1, 1, 1, 1}, Strategy::kRing);
  loss.link.rtt = Milliseconds(1.0);
  loss.link.loss = 0.01;
  EXPECT_EQ(LimiterOf(loss, FastCluster()), Limiter::kLoss);
}

TEST(StepLimiter, ServerLink) {
  for (const Strategy strategy : {Strategy::kPsSync, Strategy::kPsAsync}) {
    Parameters cluster = FastCluster();
    cluster.si[kLinkBandwidth] = 1e8;
    const Placement eight(8, 1);
    // Eight workers at the link of one server, or of eight that are slower than the workers' own.
    EXPECT_EQ(LimiterOf(MakePlan(eight, strategy, 1), cluster), Limiter::kServerLink);
    Plan slow = MakePlan(eight, strategy, 8);
    slow.server_link.bandwidth = BytesPerSecond(1e6);
    EXPECT_EQ(LimiterOf(slow, cluster), Limiter::kServerLink);
    // Four devices of a node share its link; four servers have one each.
    EXPECT_EQ(LimiterOf(MakePlan({4}, strategy, 4), cluster), Limiter::kLink);
    // A server that adds slowly.
    Parameters slow_servers = FastCluster();
    slow_servers.si[kServerRate] = 1e8;
    EXPECT_EQ(LimiterOf(MakePlan(eight, strategy, 1), slow_servers), Limiter::kServer);
  }
}

TEST(StepLimiter, WindowAtTheServers) {
  Plan plan = MakePlan(Placement(8, 1), Strategy::kPsSync, 1);
  plan.server_link.rtt = Milliseconds(50.0);
  EXPECT_EQ(LimiterOf(plan, FastCluster()), Limiter::kWindow);
}

// A phase that the network helps with is no longer the slower one, whatever the other costs.
TEST(StepLimiter, NetworkServices) {
  Parameters cluster = FastCluster();
  cluster.si[kLinkBandwidth] = 1e8;
  Plan plan = MakePlan(Placement(8, 1), Strategy::kPsSync, 1);
  plan.server_link.bandwidth = BytesPerSecond(4e8);
  // The servers' link carries eight copies each way at four times the rate; merged, one.
  EXPECT_EQ(LimiterOf(plan, cluster), Limiter::kServerLink);
  plan.server.multicast = true;
  EXPECT_EQ(LimiterOf(plan, cluster), Limiter::kServerLink);  // the push
  plan.server.in_network_aggregation = true;
  EXPECT_EQ(LimiterOf(plan, cluster), Limiter::kLink);
  plan.server.multicast = false;
  EXPECT_EQ(LimiterOf(plan, cluster), Limiter::kServerLink);  // the pull
}

// What limits the connections, and the flows of the link that binds, is told.
TEST(StepLimiter, OfTheLinkThatBinds) {
  for (const Strategy strategy : {Strategy::kPsSync, Strategy::kPsAsync}) {
    Plan plan = MakePlan({4}, strategy, 4);
    plan.link.rtt = Milliseconds(50.0);
    EXPECT_EQ(LimiterOf(plan, FastCluster()), Limiter::kWindow);
    plan.server_link.rtt = Milliseconds(500.0);
    EXPECT_EQ(LimiterOf(plan, FastCluster()), Limiter::kWindow);
    plan.server_link.loss = 0.01;
    EXPECT_EQ(LimiterOf(plan, FastCluster()), Limiter::kLoss);
    plan.link.rtt.reset();
    plan.server_link = {};
    Parameters slow_flows = FastCluster();
    slow_flows.si[kFlowBandwidth] = 1e8;
    EXPECT_EQ(LimiterOf(MakePlan({1}, strategy, 1), slow_flows), Limiter::kFlow);
    // Beside the workers a server has their link.
    Plan beside = MakePlan({4, 4}, strategy, 2);
    beside.server.colocated = true;
    beside.link.rtt = Milliseconds(50.0);
    EXPECT_EQ(LimiterOf(beside, FastCluster()), Limiter::kWindow);
  }
}

TEST(StepLimiter, Latency) {
  Parameters cluster = FastCluster();
  cluster.si[kLinkLatency] = 0.01;
  EXPECT_EQ(LimiterOf(MakePlan({1, 1, 1, 1}, Strategy::kTree), cluster), Limiter::kLatency);
  const StepFacts small = Facts(MakePlan({1, 1}, Strategy::kRing), Bytes(1000.0));
  EXPECT_EQ(Step(small).limiter, Limiter::kLatency);
}

// ---- The choice of an algorithm.

// What strategy auto means is the fastest step, where a single message shows all of its cost.
RC_GTEST_PROP(StepProperty, TheChoiceIsTheFastest, ()) {
  Plan plan = AnyPlan(Strategy::kRing);
  StepFacts facts = AnyFacts(plan);
  facts.buckets = OneBucket(facts.gradient);
  facts.overlap = Overlap::kNone;
  const Parameters cluster = AnyCluster();
  const Strategy best = EvaluateChoice(facts, cluster).best.algorithm;
  const auto total = [&](Strategy strategy) {
    facts.strategy = strategy;
    StepTerms<double> terms;
    const StepTime<double> step = EvaluateStep(facts, cluster, PriorWorkload(), &terms);
    return (step.total() - terms.slow_start).si();  // which the choice leaves out
  };
  const double chosen = total(best);
  for (const Strategy strategy :
       {Strategy::kRing, Strategy::kTree, Strategy::kHalvingDoubling, Strategy::kHierarchical}) {
    const double other = total(strategy);
    RC_ASSERT(chosen <= other + 1e-12 * std::abs(other));
  }
}

// ---- A million workers.

// The quickest of many evaluations, in seconds.
double EvaluationTime(const StepFacts& facts) {
  const Parameters cluster = PriorCluster();
  const WorkloadParameters<double> workload = PriorWorkload();
  double best = std::numeric_limits<double>::infinity();
  volatile double sink = 0;
  for (int round = 0; round < 50; ++round) {
    constexpr int kTimes = 10;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kTimes; ++i) sink = sink + Step(facts, cluster, workload).total().si();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    best = std::min(best, taken.count() / kTimes);
  }
  return best;
}

TEST(Step, AMillionWorkersAnswerAsFastAsTwo) {
  for (const Strategy strategy : kExchanging) {
    const auto facts_of = [&](std::size_t nodes) {
      Plan plan = PlanOf(strategy, Placement(nodes, 1));
      plan.link.rtt = Milliseconds(1.0);
      plan.link.loss = 1e-3;
      return Facts(plan);
    };
    const StepFacts many = facts_of(1000000);
    EXPECT_TRUE(std::isfinite(Step(many).total().si())) << StrategyName(strategy);
    const double two = EvaluationTime(facts_of(2));
    const double million = EvaluationTime(many);
    std::cout << StrategyName(strategy) << ": " << two * 1e6 << " us for 2 workers, "
              << million * 1e6 << " us for a million\n";
    EXPECT_LT(million, 1e-3) << StrategyName(strategy);
    if (strategy == Strategy::kPsAsync) {
      // The queues of up to 256 workers are counted one by one; beyond that nothing grows.
      EXPECT_LT(million, 3 * EvaluationTime(facts_of(300)) + 1e-6);
    } else {
      EXPECT_LT(million, 3 * two + 1e-6) << StrategyName(strategy);
    }
  }
}

// ---- Bounds of staleness.

// With a bound of nought every cycle is a synchronous step, whose phases follow each other.
// Latencies that hide with their bytes, calls, updates by each message and what overlap costs the
// compute are counted in other ways, and are next to nothing here.
TEST(BoundedStaleness, OfNoughtIsTheSynchronousStep) {
  Parameters cluster = PriorCluster();
  for (const int i : {kTransferInitiation, kLinkLatency, kDeviceLatency, kOverlapContention}) {
    cluster.si[static_cast<std::size_t>(i)] = 1e-12;
  }
  WorkloadParameters<double> workload = PriorWorkload();
  workload.si[kUpdateTime] = 1e-12;
  for (const Placement& placement :
       std::vector<Placement>{{1}, {1, 1}, {4, 4}, {3}, Placement(40, 1), Placement(7, 2)}) {
    for (const int servers : {1, 2, 5}) {
      for (const double gbit : {0.1, 1.0, 10.0, 400.0}) {
        for (const Overlap overlap : {Overlap::kNone, Overlap::kBuckets}) {
          for (const bool colocated : {false, true}) {
            Plan plan = MakePlan(placement, Strategy::kPsSync, servers);
            plan.server.colocated = colocated;
            plan.overlap = overlap;
            plan.link.bandwidth = GigabitsPerSecond(gbit);
            const StepTime<double> sync = Step(Facts(plan), cluster, workload);
            plan.strategy = Strategy::kPsAsync;
            const double free = Step(Facts(plan), cluster, workload).total().si();
            plan.server.staleness_bound = 0;
            const StepTime<double> bounded = Step(Facts(plan), cluster, workload);
            SCOPED_TRACE(std::to_string(plan.workers()) + " workers, " + std::to_string(servers) +
                         " servers, " + std::to_string(gbit) + (colocated ? ", colocated" : ""));
            const double step = sync.total().si();
            EXPECT_NEAR(bounded.total().si() / step, 1, 1e-6);
            EXPECT_NEAR(bounded.straggler_wait.si(), sync.straggler_wait.si(), 1e-6 * step);
            // And nobody is slower for waiting for nobody.
            EXPECT_LE(free, step * (1 + 1e-6));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace stepcast
