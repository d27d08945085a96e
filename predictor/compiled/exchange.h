// The work that a compiled plan does once for a placement, when many batches are asked of it.
#ifndef STEPCAST_PREDICTOR_COMPILED_EXCHANGE_H_
#define STEPCAST_PREDICTOR_COMPILED_EXCHANGE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace stepcast::internal {

// A synchronisation on one placement, whatever the batch: its end is the largest of straight lines
// in the backward pass. What most queries read of it lies in two lines of a processor's cache.
struct alignas(64) Exchange {
  static constexpr std::size_t kMostLines = 12;
  // Most have no more. So many are always looked at, one after the other without a decision.
  static constexpr std::size_t kFewLines = 4;
  struct Line {
    double rises;
    double starts_s;

    double At(double backward_s) const { return rises * backward_s + starts_s; }
  };

  // The next line, which rises more than those before and starts lower, or is the highest nowhere.
  // False where there is no room.
  bool Add(const Line& next) {
    while (count > 0 && Covered(next)) --count;
    if (count == kMostLines) return false;
    lines[count++] = next;
    return true;
  }

  // To be called behind the last line: those that are looked at beyond are nowhere above.
  void Close() {
    for (std::size_t k = count; k < kFewLines; ++k) lines[k] = {0, 0};
  }
  // The end of the synchronisation, from the start of a backward pass.
  double EndOf(double backward_s) const {
    // Of values at hand g++ takes the larger without a jump.
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): the loop sets it
    std::array<double, kFewLines> few;
    for (std::size_t k = 0; k < kFewLines; ++k) few[k] = lines[k].At(backward_s);
    double end = std::max(std::max(few[0], few[1]), std::max(few[2], few[3]));
    for (std::size_t k = kFewLines; k < count; ++k) end = std::max(end, lines[k].At(backward_s));
    return end;
  }

  // Set by CompiledState::MakeExchange, and not before: a cache has thousands of them.
  std::size_t count;  // of lines; 0: there is no synchronisation
  double all_s;       // whole synchronisation
  double overhead_s;  // its fixed cost, coding, and the update of a worker
  double wait;        // for the slowest worker, of a micro-step's time
  double sharing;     // growth of compute by what else runs on a node
  double arrival_s;   // of a sample of each worker of a node; 0 where no rate is stated
  Line lines[kMostLines];

 private:
  // Whether the last line is nowhere above both the one before and the next.
  bool Covered(const Line& next) const {
    const Line& last = lines[count - 1];
    if (next.starts_s >= last.starts_s) return true;
    if (count == 1) return false;
    const Line& before = lines[count - 2];
    return (last.starts_s - next.starts_s) * (last.rises - before.rises) <=
           (before.starts_s - last.starts_s) * (next.rises - last.rises);
  }
};

// Steps whose synchronisation is known, up to the point where the same arithmetic joins them all.
// NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): set as far as there are any
struct Joints {
  static constexpr std::size_t kAtOnce = 64;

  bool full() const { return size == kAtOnce; }

  std::size_t size = 0;
  // Set up to `size`, at the borders of wide registers.
  alignas(32) double micro_s[kAtOnce];  // one micro-step; none: not a number
  double share[kAtOnce];                // of the backward pass in it
  double steps[kAtOnce];                // micro-steps
  double end_s[kAtOnce];                // of the exchange, from the start of the backward pass
  double all_s[kAtOnce];                // these of an Exchange
  double overhead_s[kAtOnce];
  double wait[kAtOnce];
  double arrival_s[kAtOnce];  // of the step's samples
};

// Where the workers and servers of a query are.
struct PlacementKey {
  int workers = 0;
  int nodes = 0;
  int devices_per_node = 0;
  int servers = 0;
  bool operator==(const PlacementKey&) const = default;
};

// The exchanges of placements that came before, as many as have a place: each has two.
// NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): an exchange without a key is never read
class ExchangeCache {
 public:
  // Null where there is none.
  const Exchange* Find(const PlacementKey& key) const {
    const std::size_t at = PlaceOf(key);
    if (keys_[at] == key) return &exchanges_[at];
    if (keys_[at ^ 1] == key) return &exchanges_[at ^ 1];
    return nullptr;
  }
  // A place for what is to be found under `key`, instead of another if need be.
  Exchange* Take(const PlacementKey& key) {
    std::size_t at = PlaceOf(key);
    if (keys_[at].workers != 0 && keys_[at ^ 1].workers == 0) at ^= 1;
    keys_[at] = key;
    return &exchanges_[at];
  }
  void Forget(const PlacementKey& key) {
    const std::size_t at = PlaceOf(key);
    for (const std::size_t place : {at, at ^ 1}) {
      if (keys_[place] == key) keys_[place] = {};
    }
  }

 private:
  // As many as a scheduler has allocations of a job, with room to spare.
  static constexpr int kBits = 11;
  static constexpr std::size_t kPlaces = std::size_t{1} << kBits;

  // Multiplicative hashing (Knuth, The Art of Computer Programming 3, section 6.4), by odd numbers
  // without a pattern.
  static std::size_t PlaceOf(const PlacementKey& key) {
    const std::uint32_t mixed = (static_cast<std::uint32_t>(key.workers) * 0x9E3779B1U) ^
                                (static_cast<std::uint32_t>(key.nodes) * 0x85EBCA77U) ^
                                (static_cast<std::uint32_t>(key.devices_per_node) * 0xC2B2AE3DU) ^
                                (static_cast<std::uint32_t>(key.servers) * 0x27D4EB2FU);
    return mixed >> (32 - kBits);
  }

  std::array<PlacementKey, kPlaces> keys_{};
  std::array<Exchange, kPlaces> exchanges_;  // only those with a key are set
};

}  // namespace stepcast::internal

#endif  // STEPCAST_PREDICTOR_COMPILED_EXCHANGE_H_
