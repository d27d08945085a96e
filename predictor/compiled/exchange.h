// What a compiled plan works out once for a placement, when many batches are asked of it.
#ifndef STEPCAST_PREDICTOR_COMPILED_EXCHANGE_H_
#define STEPCAST_PREDICTOR_COMPILED_EXCHANGE_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace stepcast::internal {

// A synchronisation on one placement, whatever the batch: its end is the largest of straight lines in
// the backward pass.
struct Exchange {
  static constexpr std::size_t kMostLines = 12;

  // The next line, which rises more than those before and starts lower, or is the highest nowhere.
  // False where there is no room.
  bool Add(double rises, double starts_s) {
    while (count > 0 && Covered(rises, starts_s)) --count;
    if (count == kMostLines) return false;
    ready[count] = rises;
    rest_s[count] = starts_s;
    ++count;
    return true;
  }

  // Set by CompiledState::MakeExchange, and not before: a cache has thousands of them.
  std::size_t count;  // of lines; 0: there is no synchronisation
  double ready[kMostLines];
  double rest_s[kMostLines];
  double all_s;       // whole synchronisation
  double overhead_s;  // its fixed cost, and the update of a worker
  double wait;        // for the slowest worker, of a micro-step's time
  double sharing;     // growth of compute by the devices of a node

 private:
  // Whether the last line is nowhere above both the one before and the next.
  bool Covered(double rises, double starts_s) const {
    const std::size_t last = count - 1;
    if (starts_s >= rest_s[last]) return true;
    if (count == 1) return false;
    return (rest_s[last] - starts_s) * (ready[last] - ready[last - 1]) <=
           (rest_s[last - 1] - rest_s[last]) * (rises - ready[last]);
  }
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
