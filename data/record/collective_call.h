// What a call of a collective library does.
#ifndef STEPCAST_DATA_RECORD_COLLECTIVE_CALL_H_
#define STEPCAST_DATA_RECORD_COLLECTIVE_CALL_H_

#include <cstdint>
#include <optional>

namespace stepcast {

enum class CollectiveCall : std::uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kBarrier,
  kBroadcast,
  kReduce,
  kGather,
  kScatter,
  kSend,
  kReceive,
  kSendReceive,
  kOther,
};
inline constexpr int kCollectiveCallCount = 13;
inline constexpr const char* kCollectiveCallNames[kCollectiveCallCount] = {
    "all_reduce", "all_gather",   "reduce_scatter", "all_to_all", "barrier",
    "broadcast",  "reduce",       "gather",         "scatter",    "send",
    "receive",    "send_receive", "other"};

// Whether no rank is done before all have come.
constexpr bool IsSynchronous(CollectiveCall call) { return call <= CollectiveCall::kBarrier; }
// Whether it is between two ranks, so that others of a group know nothing of it.
constexpr bool IsPointToPoint(CollectiveCall call) {
  return call >= CollectiveCall::kSend && call <= CollectiveCall::kSendReceive;
}

// What the busiest direction of a rank's link moves, as a share of the message: the "bus bandwidth"
// of nccl-tests (doc/PERFORMANCE.md) is the message over the time, times this factor. The message
// of an all-gather is what each rank has at the end, that of a reduce-scatter what it begins with.
// Nothing for calls of which one rank does more than others, and for groups that are not known.
constexpr std::optional<double> BusFactor(CollectiveCall call, int ranks) {
  if (ranks < 2) return std::nullopt;
  const double others = static_cast<double>(ranks - 1) / ranks;
  switch (call) {
    case CollectiveCall::kAllReduce:
      return 2 * others;
    case CollectiveCall::kAllGather:
    case CollectiveCall::kReduceScatter:
    case CollectiveCall::kAllToAll:
      return others;
    case CollectiveCall::kBroadcast:
    case CollectiveCall::kReduce:
      return 1.0;
    default:
      return std::nullopt;
  }
}

}  // namespace stepcast

#endif  // STEPCAST_DATA_RECORD_COLLECTIVE_CALL_H_
