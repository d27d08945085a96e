// What workers and parameter servers send each other by gRPC: a record, and the numbers of a part
// behind it. Bytes come from whoever reaches the port: those that cannot be are refused.
#ifndef STEPCAST_MICROBENCH_STEPS_GRPC_MESSAGE_H_
#define STEPCAST_MICROBENCH_STEPS_GRPC_MESSAGE_H_

#include <grpcpp/support/byte_buffer.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

#include "microbench/steps/work.h"

namespace stepcast::steps {

// A stream of calls one way and of answers the other, in the order in which they can be given. A
// worker has two to each server, so that what it pulls does not wait behind what it pushes.
inline constexpr const char* kMethod = "/stepcast.Parameters/Exchange";

enum class CallKind : std::int32_t {
  kPush,    // gradients follow
  kPull,    // answered with parameters
  kPushed,  // all of its step, to all servers; not answered
  kLeave,   // does nothing any more, so that nobody waits for it
};

struct ServerCall {
  std::array<char, kWordBytes> word{};
  CallKind kind = CallKind::kPush;
  std::int32_t worker = 0;
  std::int32_t part = 0;
  std::int32_t out_of_time = 0;
  std::int64_t step = 0;  // of this worker, from 0
};

struct ServerAnswer {
  CallKind kind = CallKind::kPush;  // of what is answered
  std::int32_t part = 0;
  std::int64_t version = 0;  // updates of the part: before a push, and as pulled
  std::int64_t over = 0;     // whether nobody needs another step of this worker
  double update_s = 0;       // that the part's last update took, or the update by this push
  double held_s = 0;         // that the pull waited for others
};

// The bytes of the largest message that either end takes: nobody makes it keep more.
inline int LongestMessage(const Servers& servers) {
  double floats = 0;
  for (const Part& part : servers.parts) floats = std::max(floats, part.floats);
  return static_cast<int>(floats * sizeof(float) +
                          std::max(sizeof(ServerCall), sizeof(ServerAnswer)));
}

// The record and the numbers, which have to live until the message has been sent.
template <class Record>
grpc::ByteBuffer MakeMessage(const Record& record, std::span<const float> numbers = {}) {
  static_assert(std::is_trivially_copyable_v<Record>);
  const grpc::Slice slices[] = {{&record, sizeof record},
                                {numbers.data(), numbers.size_bytes(), grpc::Slice::STATIC_SLICE}};
  return {slices, numbers.empty() ? std::size_t{1} : std::size_t{2}};
}

// A message that was received.
template <class Record>
class Received {
 public:
  // Nothing where it is no such record with so many numbers behind it.
  static std::optional<Received> Read(grpc::ByteBuffer* message) {
    Received received;
    if (message->Length() < sizeof(Record) ||
        (message->Length() - sizeof(Record)) % sizeof(float) != 0 ||
        !message->DumpToSingleSlice(&received.slice_).ok()) {
      return std::nullopt;
    }
    message->Clear();
    std::memcpy(&received.record_, received.slice_.begin(), sizeof(Record));
    return received;
  }

  const Record& record() const { return record_; }
  std::size_t size() const { return (slice_.size() - sizeof(Record)) / sizeof(float); }
  // Calls use(i, number) for each.
  template <class Use>
  void ForEach(const Use& use) const {
    const std::uint8_t* at = slice_.begin() + sizeof(Record);
    for (std::size_t i = 0; i < size(); ++i, at += sizeof(float)) {
      float number = 0;
      std::memcpy(&number, at, sizeof number);  // which may lie anywhere
      use(i, number);
    }
  }

 private:
  grpc::Slice slice_;
  Record record_{};
};

}  // namespace stepcast::steps

#endif  // STEPCAST_MICROBENCH_STEPS_GRPC_MESSAGE_H_
