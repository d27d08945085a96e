// Workers that exchange with a parameter server at their own pace, simulated flow by flow: what the
// closed forms of model/exchange/async_server.h claim to forecast.
//
// Every worker computes, pushes a message of a fixed size over its own link into the server's,
// which updates the model, and pulls one of the same size. Flows that share a
// link have equal rates, as TCP's have in the mean, and none is faster than its worker's own link.
// Compute is normal around its mean. With a staleness bound a worker pulls only once all others
// have made as many updates as it has, less the bound.
#ifndef STEPCAST_TESTS_MODEL_SIMULATED_SERVERS_H_
#define STEPCAST_TESTS_MODEL_SIMULATED_SERVERS_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace stepcast {

struct SimulatedServers {
  int workers = 1;
  double compute = 1;    // mean [s]
  double spread = 0;     // of it, as a share
  int slow_workers = 0;  // the last ones
  double slowdown = 1;   // of their compute
  double at_server = 0;  // a message on the server's link, each way, if it has all of it [s]
  double at_worker = 0;  // the same on a worker's link [s]
  double update = 0;     // of the model by one message [s]
  bool in_turn = false;  // one message after the other, rather than tensors of all by turns
  std::optional<int> bound;
};

struct SimulatedCycle {
  double cycle = 0;      // from one update of a worker to its next, in the mean [s]
  double staleness = 0;  // updates by others in a cycle: mean and standard deviation
  double staleness_sd = 0;
  double slow_updates = 0;  // share of the updates that the slow workers make
};

class ServerSimulation {
 public:
  explicit ServerSimulation(const SimulatedServers& given, std::uint64_t seed = 1)
      : given_(given),
        random_(seed),
        state_(Count(given.workers)),
        in_{{}, given.at_server, std::max(given.at_server, given.at_worker), true},
        updating_{{}, given.update, given.update, !given.in_turn},
        out_(in_) {
    for (std::size_t i = 0; i < state_.size(); ++i) state_[i].left = Compute(i);
  }

  SimulatedCycle Run(int updates) {
    const int before = updates / 4;
    while (made_ < before) Step();
    const double from = now_;
    sum_ = squares_ = seen_ = by_slow_ = 0;
    while (made_ < before + updates) Step();
    const double mean = sum_ / seen_;
    return {(now_ - from) * given_.workers / updates, mean,
            std::sqrt(std::max(0.0, squares_ / seen_ - mean * mean)), by_slow_ / updates};
  }

 private:
  enum class At { kCompute, kPush, kUpdate, kHeld, kPull };
  struct Worker {
    At at = At::kCompute;
    double left = 0;  // of the compute [s], or of the service there as a share
    int updates = 0;
    int last = -1;  // update of all that was its own last
  };
  struct Station {
    std::vector<std::size_t> here;  // in order of arrival
    double whole = 0;               // seconds of a service that has all of the station
    double alone = 0;               // seconds of a service beside no other
    bool shared = true;             // or one after the other

    // Share of its service that the i-th gets done in a second.
    double Rate(std::size_t i) const {
      if (!shared) return i == 0 ? 1 / alone : 0;
      return std::min(1 / alone, 1 / (whole * static_cast<double>(here.size())));
    }
  };

  static std::size_t Count(int n) { return static_cast<std::size_t>(n); }
  double Uniform() { return (static_cast<double>(random_() >> 11) + 0.5) * 0x1p-53; }
  bool IsSlow(std::size_t worker) const {
    return worker >= Count(given_.workers - given_.slow_workers);
  }
  double Compute(std::size_t worker) {
    const double normal =
        std::sqrt(-2 * std::log(Uniform())) * std::cos(2 * std::numbers::pi * Uniform());
    const double mean = given_.compute * (IsSlow(worker) ? given_.slowdown : 1);
    return std::max(0.0, mean * (1 + given_.spread * normal));
  }

  void Enter(std::size_t worker, At at) {
    state_[worker].at = at;
    state_[worker].left = 1;
    if (at == At::kPush) in_.here.push_back(worker);
    if (at == At::kUpdate) updating_.here.push_back(worker);
    if (at == At::kPull) out_.here.push_back(worker);
  }

  void Update(std::size_t at) {
    Worker& worker = state_[at];
    if (worker.last >= 0) {
      const double others = made_ - worker.last;
      sum_ += others;
      squares_ += others * others;
      ++seen_;
    }
    ++worker.updates;
    by_slow_ += IsSlow(at);
    worker.last = ++made_;
    if (!given_.bound) {
      Enter(at, At::kPull);
      return;
    }
    worker.at = At::kHeld;
    int fewest = worker.updates;
    for (const Worker& other : state_) fewest = std::min(fewest, other.updates);
    for (std::size_t i = 0; i < state_.size(); ++i) {
      if (state_[i].at == At::kHeld && state_[i].updates <= fewest + *given_.bound) {
        Enter(i, At::kPull);
      }
    }
  }

  // To the next moment at which somebody is done with something.
  void Step() {
    double next = std::numeric_limits<double>::infinity();
    for (const Worker& worker : state_) {
      if (worker.at == At::kCompute) next = std::min(next, worker.left);
    }
    for (Station* station : {&in_, &updating_, &out_}) {
      for (std::size_t i = 0; i < station->here.size(); ++i) {
        const double rate = station->Rate(i);
        if (rate > 0) next = std::min(next, state_[station->here[i]].left / rate);
      }
    }
    now_ += next;
    constexpr double kDone = 1e-9;
    std::vector<std::size_t> done;
    for (std::size_t i = 0; i < state_.size(); ++i) {
      if (state_[i].at != At::kCompute) continue;
      state_[i].left -= next;
      if (state_[i].left <= kDone * given_.compute) done.push_back(i);
    }
    for (Station* station : {&in_, &updating_, &out_}) {
      std::vector<double> rates;
      for (std::size_t i = 0; i < station->here.size(); ++i) rates.push_back(station->Rate(i));
      std::vector<std::size_t> stay;
      for (std::size_t i = 0; i < rates.size(); ++i) {
        const std::size_t worker = station->here[i];
        if (rates[i] > 0) state_[worker].left -= next * rates[i];
        (state_[worker].left <= kDone ? done : stay).push_back(worker);
      }
      station->here = std::move(stay);
    }
    for (const std::size_t worker : done) {
      switch (state_[worker].at) {
        case At::kCompute:
          Enter(worker, At::kPush);
          break;
        case At::kPush:
          if (given_.update > 0) {
            Enter(worker, At::kUpdate);
          } else {
            Update(worker);
          }
          break;
        case At::kUpdate:
          Update(worker);
          break;
        default:
          state_[worker].at = At::kCompute;
          state_[worker].left = Compute(worker);
      }
    }
  }

  SimulatedServers given_;
  std::mt19937_64 random_;
  std::vector<Worker> state_;
  Station in_;
  Station updating_;
  Station out_;
  double now_ = 0;
  int made_ = 0;
  double sum_ = 0;
  double squares_ = 0;
  double seen_ = 0;
  double by_slow_ = 0;
};

inline SimulatedCycle SimulateServers(const SimulatedServers& given, int updates = 20000) {
  return ServerSimulation(given).Run(updates);
}

}  // namespace stepcast

#endif  // STEPCAST_TESTS_MODEL_SIMULATED_SERVERS_H_
