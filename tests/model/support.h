// Shared by tests of the model.
#ifndef STEPCAST_TESTS_MODEL_SUPPORT_H_
#define STEPCAST_TESTS_MODEL_SUPPORT_H_

#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include "model/exchange/async_server.h"
#include "model/step/parameters.h"

namespace stepcast {

// Random values whose logarithm is uniform, both ends included.
inline rc::Gen<double> LogUniform(double low, double high) {
  constexpr int kSteps = 1 << 20;
  return rc::gen::map(rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, kSteps + 1)),
                      [low, high](int step) {
                        const double share = static_cast<double>(step) / kSteps;
                        return std::min(high, low * std::pow(high / low, share));
                      });
}

// Whole numbers, both ends included, over the whole range from the first case on.
inline rc::Gen<int> Whole(int low, int high) {
  return rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high + 1));
}

// Whether two results agree but for rounding.
inline bool Near(double a, double b, double tolerance = 1e-12) {
  return std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
}

// An identifier for a test's name.
inline std::string TestName(std::string id) {
  for (char& c : id) {
    const bool usable = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!usable) c = '_';
  }
  return id;
}

// The mean time from one update of an asynchronous worker to its next, when nothing leaves before
// the backward pass has ended.
inline Duration<> AsyncServerCycle(const ServerPaths<double>& paths, const Duration<>& compute,
                                   const DataSize<>& message) {
  AsyncWork<double> work;
  work.forward = compute;
  return AsynchronousServers(paths, work, message).cycle;
}

// The parameters that the table holds most plausible.
inline ClusterParameters<double> PriorCluster() {
  ClusterParameters<double> cluster{};
  for (std::size_t i = 0; i < cluster.si.size(); ++i) {
    cluster.si[i] = kClusterParameterSpecs[i].prior * kClusterParameterSpecs[i].si_per_unit;
  }
  return cluster;
}

inline WorkloadParameters<double> PriorWorkload() {
  WorkloadParameters<double> workload{};
  for (std::size_t i = 0; i < workload.si.size(); ++i) {
    workload.si[i] = kWorkloadParameterSpecs[i].prior * kWorkloadParameterSpecs[i].si_per_unit;
  }
  return workload;
}

}  // namespace stepcast

#endif  // STEPCAST_TESTS_MODEL_SUPPORT_H_
