// The one list of what a plan says. All that treats every field follows from it: flags, columns of
// runs, keys of JSON, messages, Python's keywords, saved states, the check, and the key that tells
// plans apart. A new field is a member of data/record/plan.h and an entry here.
#ifndef STEPCAST_DATA_PLAN_FIELD_LIST_H_
#define STEPCAST_DATA_PLAN_FIELD_LIST_H_

#include <array>
#include <cstddef>
#include <type_traits>

#include "data/plan/bucket_words.h"
#include "data/plan/limits.h"
#include "data/record/link.h"
#include "data/record/plan.h"
#include "data/values/numbers.h"

namespace stepcast {

// The strategies beside which a field may say something else than its default.
enum class GoesWith {
  kAll,
  kServers,           // ps-sync, ps-async; byteps with its helpers
  kParameterServers,  // ps-sync, ps-async
  kPsSync,
  kPsAsync,
  kExchanging,   // all but none
  kSynchronous,  // all but none and ps-async
  kAllreduces,   // allreduce and its algorithms, auto
  kHalves,       // those of them that are a reduce-scatter and an all-gather
  kCompresses,   // allreduce and its algorithms, auto, ps-sync
};

// When a text of the plan tells the field: where it does not say the default; always in JSON; or
// always, which makes it a required column of runs.
enum class Told { kUnlessDefault, kInJson, kAlways };

struct FieldFacts {
  // Name in the runs CSV, JSON and messages, with the unit; nullptr: only C++ states the field.
  const char* column;
  const char* flag;         // of the command line; what errors name
  const char* placeholder;  // of the flag's value in help; nullptr for yes and no
  const char* meaning;
  const char* more = "";         // for the help of the flag: examples, names, the default
  const char* note = "";         // for the reference, whole sentences in Markdown
  const char* state = column;    // in saved states, in SI units
  const char* keyword = column;  // of Python, in SI units
  // Of a number, in the unit of the column, however it is given.
  NumberRange range = {0, kMostCount};
  GoesWith with = GoesWith::kAll;
  Told told = Told::kUnlessDefault;

  // Of a plain number: whether it is the probability of a loss, which may be nought and is below 1.
  constexpr bool is_probability() const { return range.or_nought; }

  constexpr FieldFacts Note(const char* text) const {
    FieldFacts facts = *this;
    facts.note = text;
    return facts;
  }
  constexpr FieldFacts InSi(const char* name) const { return InSi(name, name); }
  constexpr FieldFacts InSi(const char* in_states, const char* in_python) const {
    FieldFacts facts = *this;
    facts.state = in_states;
    facts.keyword = in_python;
    return facts;
  }
  constexpr FieldFacts Within(double low, double high) const {
    FieldFacts facts = *this;
    facts.range = {low, high};
    return facts;
  }
  constexpr FieldFacts NoughtOrWithin(double low, double high) const {
    FieldFacts facts = *this;
    facts.range = {low, high, true};
    return facts;
  }
  constexpr FieldFacts With(GoesWith strategies) const {
    FieldFacts facts = *this;
    facts.with = strategies;
    return facts;
  }
  constexpr FieldFacts Tell(Told when) const {
    FieldFacts facts = *this;
    facts.told = when;
    return facts;
  }
};

// The path from a plan to one of its fields.
template <auto... Path>
struct FieldAt;
template <auto Member>
struct FieldAt<Member> {
  static constexpr bool kIsOfLink = false;
  template <class SomePlan>
  static constexpr auto& Of(SomePlan& plan) {
    return plan.*Member;
  }
};
template <auto Part, auto Member>
struct FieldAt<Part, Member> {
  static constexpr bool kIsOfLink = std::is_same_v<decltype(Part), LinkFacts Plan::*>;
  template <class SomePlan>
  static constexpr auto& Of(SomePlan& plan) {
    return plan.*Part.*Member;
  }
};

namespace internal {

// The list itself, for ForEachField below. Inlined, so that whoever asks for a field's facts knows
// them when it is compiled.
template <class Visit>
[[gnu::always_inline]] constexpr void ListFields(const Visit& visit) {
  constexpr double kSlowestLink = 8e-9 * kLeastRate;  // Gbit/s
  constexpr double kFastestLink = 1e6;                // Gbit/s
  constexpr double kShortestTime = 1e3 * kLeastTime;  // ms
  constexpr double kLongestTime = 1e6;                // ms
  constexpr double kSmallestBucket = kBucketPerTensor.cap.in(kMebibytes);
  constexpr double kLargestBucket = kOneMessage.cap.in(kMebibytes);
  constexpr double kMostBytesPerParameter = 64;
  constexpr double kLeastSpeed = 1e-3;
  constexpr double kSlowestInput = 1e-6;  // samples/s
  constexpr double kFastestInput = 1e12;
  visit(FieldFacts{"placement", "placement", "P", "devices used on each node, like 4-4-2"}
            .Within(1, kMostCount)
            .Tell(Told::kAlways),
        FieldAt<&Plan::placement>());
  visit(FieldFacts{"hosts", "hosts", "A+B", "names of the nodes, in placement order"}.Note(
            "One for each node. With neither `--placement` nor `--workers` they also say how many "
            "nodes there are, each fully used"),
        FieldAt<&Plan::hosts>());
  visit(FieldFacts{"strategy", "strategy", "S", "how gradients are exchanged",
                   ": none, allreduce, ring, tree, halving-doubling, hierarchical, byteps, auto "
                   "(the fastest all-reduce), ps-sync, ps-async"}
            .Note("[What each is](cli.md#common-options). `auto` is a question, so not a strategy "
                  "of measured runs")
            .Tell(Told::kAlways),
        FieldAt<&Plan::strategy>());
  visit(
      FieldFacts{"servers", "servers", "N",
                 "parameter servers (ps-sync, ps-async), helpers (byteps)"}
          .Note("`ps-sync` and `ps-async` require one at least; a cell of runs may be empty where "
                "there are none")
          .With(GoesWith::kServers)
          .Tell(Told::kAlways),
      FieldAt<&Plan::servers>());
  visit(FieldFacts{"local_batch", "local-batch", "N", "samples of one micro-step on one device"}
            .Note("Commands and the service require it")
            .Within(1, kMostBatch)
            .Tell(Told::kAlways),
        FieldAt<&Plan::local_batch>());
  visit(
      FieldFacts{"accumulation_steps", "accumulation", "N", "micro-steps between synchronisations"}
          .Within(1, kMostCount)
          .Tell(Told::kInJson),
      FieldAt<&Plan::accumulation_steps>());
  visit(FieldFacts{"link_gbit_per_s", "bandwidth", "RATE", "line rate of a node's link, each way",
                   ", like \"1 Gbit/s\""}
            .Note("Taken as it is. Of nodes with several cards (`nics_per_node`) that of each")
            .InSi("link_bytes_per_s", "bandwidth_bytes_per_s")
            .Within(kSlowestLink, kFastestLink),
        FieldAt<&Plan::link, &LinkFacts::bandwidth>());
  visit(FieldFacts{"server_link_gbit_per_s", "server-bandwidth", "RATE",
                   "line rate of a server's link"}
            .Note("Servers beside workers have the links of their nodes, and none is stated")
            .InSi("server_link_bytes_per_s", "server_bandwidth_bytes_per_s")
            .Within(kSlowestLink, kFastestLink)
            .With(GoesWith::kServers),
        FieldAt<&Plan::server_link, &LinkFacts::bandwidth>());
  visit(FieldFacts{"rtt_ms", "rtt", "TIME", "round-trip time between nodes", ", like \"2 ms\""}
            .InSi("rtt_s")
            .NoughtOrWithin(kShortestTime, kLongestTime),
        FieldAt<&Plan::link, &LinkFacts::rtt>());
  visit(FieldFacts{"loss_rate", "loss", "P", "probability that a packet is lost, like 0.01"}
            .Note("State a round-trip time beside it")
            .NoughtOrWithin(kLeastLoss, 1),
        FieldAt<&Plan::link, &LinkFacts::loss>());
  visit(FieldFacts{"congestion_control", "congestion-control", "CC", "how TCP answers loss",
                   ": reno, cubic (the default), bbr"}
            .Note("`cubic` where nothing is stated"),
        FieldAt<&Plan::link, &LinkFacts::congestion_control>());
  visit(
      FieldFacts{"loss_burst_ms", "loss-burst", "TIME", "packets within so long are lost together",
                 ", like \"1 ms\" under tc netem on the sender"}
          .Note(
              "An emulator on the sender has a burst of about 1 ms. Each packet is lost by itself "
              "where nothing is stated")
          .InSi("loss_burst_s")
          .NoughtOrWithin(kShortestTime, kLongestTime),
      FieldAt<&Plan::link, &LinkFacts::loss_burst>());
  visit(FieldFacts{"transport", "transport", "T", "what carries bytes between nodes",
                   ": tcp (the default), rdma"}
            .Note("The kernel's TCP, or RDMA (InfiniBand, RoCE), which knows no windows and no "
                  "caps of flows. `tcp` where nothing is stated"),
        FieldAt<&Plan::link, &LinkFacts::transport>());
  visit(FieldFacts{"link_others", "link-others", "O",
                   "exchanges of other jobs on the link, on average",
                   ", like 0.4 of one that sends two fifths of the time"}
            .Note("A byte shares the link's rate with them "
                  "([how](../explanation/step-model.md#18-links-that-jobs-share)). None where "
                  "nothing is stated")
            .Within(0, kMostOthers),
        FieldAt<&Plan::link, &LinkFacts::others>());
  visit(FieldFacts{"background_gbit_per_s", "background", "TRAFFIC",
                   "other traffic on the link, each way", ", like \"200 Mbit/s\" of a copy"}
            .Note("Training has what it leaves of the line rate, and a share of it at least "
                  "([how](../explanation/step-model.md#18-links-that-jobs-share)). None where "
                  "nothing is stated, nor on a link of the servers that is stated apart")
            .InSi("background_bytes_per_s")
            .NoughtOrWithin(kSlowestLink, kFastestLink),
        FieldAt<&Plan::link, &LinkFacts::background>());
  visit(FieldFacts{"oversubscription", "oversubscription", "O",
                   "what the links of a switch's nodes carry over what its uplinks do",
                   ", like 4; with --nodes-per-switch"}
            .Note("A job's nodes fill one switch after another "
                  "([how](../explanation/step-model.md#19-a-core-that-is-oversubscribed)). 1 where "
                  "nothing is stated: the core carries whatever nodes send")
            .Within(1, kMostOversubscription),
        FieldAt<&Plan::link, &LinkFacts::oversubscription>());
  visit(FieldFacts{"nodes_per_switch", "nodes-per-switch", "S", "nodes on a switch"}
            .Note("Required with `oversubscription`, and says nothing without it")
            .Within(1, kMostCount),
        FieldAt<&Plan::link, &LinkFacts::nodes_per_switch>());
  // Only C++ states more of a server's link than the line rate.
  visit(FieldFacts{nullptr, nullptr, "TIME", "round-trip time of a server's link"}
            .InSi("server_rtt_s")
            .NoughtOrWithin(kShortestTime, kLongestTime),
        FieldAt<&Plan::server_link, &LinkFacts::rtt>());
  visit(FieldFacts{nullptr, nullptr, "P", "probability that a packet is lost at a server"}
            .InSi("server_loss_rate")
            .NoughtOrWithin(kLeastLoss, 1),
        FieldAt<&Plan::server_link, &LinkFacts::loss>());
  visit(FieldFacts{nullptr, nullptr, "CC", "how a server's TCP answers loss"}.InSi(
            "server_congestion_control"),
        FieldAt<&Plan::server_link, &LinkFacts::congestion_control>());
  visit(FieldFacts{nullptr, nullptr, "TIME", "packets of a server within so long are lost together"}
            .InSi("server_loss_burst_s")
            .NoughtOrWithin(kShortestTime, kLongestTime),
        FieldAt<&Plan::server_link, &LinkFacts::loss_burst>());
  visit(
      FieldFacts{nullptr, nullptr, "T", "what carries bytes to a server"}.InSi("server_transport"),
      FieldAt<&Plan::server_link, &LinkFacts::transport>());
  visit(FieldFacts{nullptr, nullptr, "N", "exchanges of other jobs on a server's link, on average"}
            .InSi("server_link_others")
            .Within(0, kMostOthers),
        FieldAt<&Plan::server_link, &LinkFacts::others>());
  visit(FieldFacts{nullptr, nullptr, "RATE", "other traffic on a server's link, each way"}
            .InSi("server_background_bytes_per_s")
            .NoughtOrWithin(kSlowestLink, kFastestLink),
        FieldAt<&Plan::server_link, &LinkFacts::background>());
  visit(FieldFacts{nullptr, nullptr, "O",
                   "what the links of a switch's servers carry over what its uplinks do"}
            .InSi("server_oversubscription")
            .Within(1, kMostOversubscription),
        FieldAt<&Plan::server_link, &LinkFacts::oversubscription>());
  visit(FieldFacts{nullptr, nullptr, "S", "servers on a switch"}
            .InSi("servers_per_switch")
            .Within(1, kMostCount),
        FieldAt<&Plan::server_link, &LinkFacts::nodes_per_switch>());
  visit(
      FieldFacts{
          "bucket_mib", "bucket", "SIZE", "cap of a gradient bucket",
          ", 25 MiB by default, 1 MiB with servers; tensor: each by itself; one-message: all "
          "together; of a unit where parameters are shared out"}
          .Note("By default 25 MiB, 1 MiB with `ps-sync` and `ps-async`; the first bucket has at "
                "most 1 MiB. Workers and servers exchange tensor by tensor: small ones share a "
                "bucket, none is split. Where parameters are shared out, the units in which they "
                "are gathered: by default a 32nd of the network and at least 25 MiB")
          .InSi("bucket_bytes")
          .Within(kSmallestBucket, kLargestBucket),
      FieldAt<&Plan::bucket>());
  visit(
      FieldFacts{"overlap", "overlap", "HOW", "how synchronisation hides behind the backward pass",
                 ": buckets (the default), none, p-norm"}
          .Note("[What each means](../explanation/step-model.md#2-buckets-and-overlap). `p-norm` "
                "not with `ps-async`"),
      FieldAt<&Plan::overlap>());
  visit(FieldFacts{"backup_workers", "backup-workers", "K",
                   "slowest workers that a step does not wait for"}
            .Note("Fewer than there are workers; their gradients are dropped")
            .With(GoesWith::kSynchronous),
        FieldAt<&Plan::backup_workers>());
  visit(
      FieldFacts{"slow_nodes", "slow-nodes", "K",
                 "nodes whose devices compute more slowly than the others"}
          .Note(
              "The last ones of the placement; a step waits for them, asynchronous workers do not "
              "([how](../explanation/step-model.md#17-nodes-of-unequal-speed)). With "
              "`--slow-speed`")
          .With(GoesWith::kExchanging),
      FieldAt<&Plan::slow_nodes>());
  visit(FieldFacts{"slow_speed", "slow-speed", "V",
                   "speed of the slow nodes, as a share of the others'", ", like 0.6"}
            .Note("Taken as it is, whatever calibration has found of these hosts")
            .Within(kLeastSpeed, 1)
            .With(GoesWith::kExchanging),
        FieldAt<&Plan::slow_speed>());
  visit(FieldFacts{"slow_local_batch", "slow-local-batch", "N",
                   "samples of one micro-step on a device of the slow nodes",
                   "; without it as many as on the others"}
            .Note("For shares by speed, with `--slow-nodes`; a step waits for the later kind "
                  "([how](../explanation/step-model.md#17-nodes-of-unequal-speed)). Where all "
                  "nodes are slow `--local-batch` is theirs")
            .Within(1, kMostBatch)
            .With(GoesWith::kSynchronous),
        FieldAt<&Plan::slow_local_batch>());
  visit(FieldFacts{"bytes_per_parameter", "bytes-per-parameter", "N",
                   "bytes of a parameter that a synchronisation exchanges",
                   ": 4 (float32, the default), 2 (float16), 6 (both, one after the other)"}
            .Note("2 where gradients are sent as float16, 6 where float16 sums are followed by "
                  "float32 ones. Buckets are cut as for 4")
            .Within(1, kMostBytesPerParameter),
        FieldAt<&Plan::bytes_per_parameter>());
  visit(FieldFacts{"shard", "shard", "WHAT", "what workers share out instead of keeping it whole",
                   ": none (the default), optimizer (ZeRO-1), gradients (ZeRO-2), parameters "
                   "(ZeRO-3, FSDP), hybrid (parameters, within each node)"}
            .Note("ZeRO-1, ZeRO-2, ZeRO-3 or FSDP; hybrid is FSDP's HYBRID_SHARD, on equal nodes "
                  "([how](../explanation/step-model.md#13-models-that-are-shared-out))")
            .With(GoesWith::kHalves),
        FieldAt<&Plan::shard>());
  visit(FieldFacts{"local_steps", "local-steps", "H", "steps from one synchronisation to the next",
                   ": workers go on by themselves and then average (local SGD)"}
            .Note("Workers go on by themselves and then average their parameters: local SGD "
                  "([how](../explanation/step-model.md#14-rare-synchronisation))")
            .Within(1, kMostCount)
            .With(GoesWith::kAllreduces),
        FieldAt<&Plan::local_steps>());
  visit(FieldFacts{"input_samples_per_s", "input-rate", "RATE",
                   "samples that storage and loaders deliver to each node",
                   ", like \"2000 samples/s\"; without it they are there in time"}
            .Note("A step waits for those of its node "
                  "([how](../explanation/step-model.md#15-samples-that-arrive-too-slowly)). "
                  "Without it all are there in time")
            .Within(kSlowestInput, kFastestInput),
        FieldAt<&Plan::input_rate>());
  visit(
      FieldFacts{
          "compress", "compress", "HOW", "how gradients are compressed for the exchange",
          ": none (the default), fp16, bf16, int8, topk=SHARE, like topk=0.01, powersgd=RANK"}
          .Note("16 or 8 bits of each; or the largest ones alone with their places, or two "
                "narrow factors of each matrix, what is left being kept for the next step "
                "([how](../explanation/step-model.md#16-compressed-gradients)). "
                "`topk` with `allreduce`, `ring` and `hierarchical`, `powersgd` without servers")
          .With(GoesWith::kCompresses),
      FieldAt<&Plan::compress>());
  visit(FieldFacts{"compress_gbit_per_s", "compress-rate", "RATE",
                   "gradients in float32 that a device encodes and decodes in a second",
                   ", like \"20 GB/s\"; without it as the device's memory allows"}
            .Note("Without it as the memory of the device allows. Says nothing without "
                  "`--compress`")
            .InSi("compress_bytes_per_s")
            .Within(kSlowestLink, kFastestLink)
            .With(GoesWith::kCompresses),
        FieldAt<&Plan::compress_rate>());
  visit(FieldFacts{"colocated_servers", "colocated-servers", nullptr,
                   "servers run on the workers' nodes", " instead of nodes of their own"}
            .Note("One after the other from the first, instead of nodes of their own")
            .With(GoesWith::kParameterServers),
        FieldAt<&Plan::server, &ServerOptions::colocated>());
  visit(FieldFacts{"sharding", "sharding", "HOW", "how the model is spread over servers",
                   ": tensor (whole, the largest first; the default), even, round-robin"}
            .Note("Whole tensors, the largest first to the emptiest server, which stands for "
                  "strategies that balance bytes, like the one of tf_cnn_benchmarks' "
                  "`parameter_server`; equal shares; variables in turn whatever their size, as "
                  "TensorFlow's `replica_device_setter` does if it is not told otherwise")
            .With(GoesWith::kParameterServers),
        FieldAt<&Plan::server, &ServerOptions::sharding>());
  visit(FieldFacts{"pipelined_servers", "pipelined-servers", nullptr,
                   "a bucket is pulled as soon as it has been pushed (ps-sync)"}
            .Note("Otherwise after all pushes. With overlap `buckets` only. The nearest to "
                  "frameworks that pull a variable when its layer needs it, as TensorFlow does: "
                  "no plan hides pulls behind the next forward pass")
            .With(GoesWith::kPsSync),
        FieldAt<&Plan::server, &ServerOptions::pipelined>());
  visit(FieldFacts{"multicast", "multicast", nullptr,
                   "the network copies what servers distribute (ps-sync)"}
            .With(GoesWith::kPsSync),
        FieldAt<&Plan::server, &ServerOptions::multicast>());
  visit(FieldFacts{"in_network_aggregation", "in-network-aggregation", nullptr,
                   "the network adds up what workers push (ps-sync)"}
            .With(GoesWith::kPsSync),
        FieldAt<&Plan::server, &ServerOptions::in_network_aggregation>());
  visit(FieldFacts{"local_aggregation", "local-aggregation", nullptr,
                   "the devices of a node push and pull once for all of them (ps-sync)"}
            .Note("As TensorFlow's replicas of one process and MXNet's devices do")
            .With(GoesWith::kPsSync),
        FieldAt<&Plan::server, &ServerOptions::local_aggregation>());
  visit(FieldFacts{"staleness_bound", "staleness-bound", "S",
                   "ps-async: steps that a worker may be ahead of the slowest"}
            .Note("Without a bound nobody waits")
            .With(GoesWith::kPsAsync),
        FieldAt<&Plan::server, &ServerOptions::staleness_bound>());
}

inline constexpr std::size_t kFieldCount = [] {
  std::size_t count = 0;
  ListFields([&](const FieldFacts&, auto /*field*/) { ++count; });
  return count;
}();

// The facts of all fields, in order. They stand in one place, because a check of every plan that
// made them anew would take longer for that than for the plan.
inline const auto kFieldFacts = [] {  // clang 14 makes no constant of it
  std::array<FieldFacts, kFieldCount> all{};
  std::size_t next = 0;
  ListFields([&](const FieldFacts& facts, auto /*field*/) { all[next++] = facts; });
  return all;
}();

}  // namespace internal

// Calls visit(FieldFacts, FieldAt<...>) for each field, in the order in which flags are applied: a
// strategy before what depends on it.
template <class Visit>
constexpr void ForEachField(const Visit& visit) {
  std::size_t next = 0;
  internal::ListFields(
      [&](const FieldFacts& /*same*/, auto field) { visit(internal::kFieldFacts[next++], field); });
}

}  // namespace stepcast

#endif  // STEPCAST_DATA_PLAN_FIELD_LIST_H_
