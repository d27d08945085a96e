// Shared by the sources of the C interface: the contents of handles, and the border that no
// exception crosses.
#ifndef STEPCAST_PREDICTOR_CAPI_HANDLES_H_
#define STEPCAST_PREDICTOR_CAPI_HANDLES_H_

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/online/fleet.h"
#include "calibrate/online/online_calibration.h"
#include "data/record/input_error.h"
#include "data/record/machine.h"
#include "data/record/plan.h"
#include "data/record/workload.h"
#include "predictor/capi/struct_size.h"
#include "predictor/predictor.h"

// The library is built with hidden symbols: these are not.
#pragma GCC visibility push(default)
#include "predictor/capi/stepcast.h"
#pragma GCC visibility pop

namespace stepcast::capi {

// Names in order, and where each begins.
class JobNames {
 public:
  JobNames() = default;
  explicit JobNames(std::vector<std::string> names) : names_(std::move(names)) {
    std::sort(names_.begin(), names_.end());
    for (const std::string& name : names_) begins_.push_back(name.c_str());
  }
  const std::vector<const char*>& begins() const { return begins_; }
  void swap(JobNames& other) noexcept {
    names_.swap(other.names_);
    begins_.swap(other.begins_);
  }

 private:
  std::vector<std::string> names_;
  std::vector<const char*> begins_;
};

}  // namespace stepcast::capi

struct stepcast_cluster {
  stepcast::Cluster cluster;
};
struct stepcast_device {
  stepcast::Device device;
};
struct stepcast_workload {
  stepcast::Workload workload;
};
struct stepcast_plan {
  stepcast::Plan plan;
};
struct stepcast_predictor {
  stepcast::Predictor predictor;
};

struct stepcast_online {
  std::shared_ptr<stepcast::OnlineCalibration> calibration;  // a fleet's too, where it is its job's
  std::string cause;  // of the change that the last step has shown; empty where it has shown none
};

struct stepcast_fleet {
  stepcast::Fleet fleet;
  stepcast::capi::JobNames jobs;  // of those that are running
};

namespace stepcast::capi {

inline constexpr double kNotKnown = std::numeric_limits<double>::quiet_NaN();

// A double of the interface as a value that may be unknown, and back, in SI units.
template <class Q>
std::optional<Q> Stated(double si) {
  if (std::isnan(si)) return std::nullopt;
  return Q::FromSi(si);
}
template <class Q>
double ValueOf(const std::optional<Q>& quantity) {
  return quantity ? quantity->si() : kNotKnown;
}

// Facts of the device that a workload runs on: NULL is what the cluster says of its own.
inline std::optional<Device> FactsOf(const stepcast_device* device, const Cluster& cluster) {
  return device != nullptr ? std::optional(device->device) : cluster.device_facts;
}

// A failure with a status of its own.
struct Refusal {
  stepcast_status status;
  std::string text;
};

[[noreturn]] void NotFound(const InputError& why);

// A pointer that must not be NULL.
struct Required {
  const void* pointer;
  const char* name;
};
// Throws Refusal for the first that is.
void Check(std::initializer_list<Required> required);

// Called while an exception is handled: its status, and its text in *error, where that is wanted
// and there is memory for it.
stepcast_status Describe(char** error) noexcept;

// Runs `body`; what it throws becomes a status and a text.
template <class Body>
stepcast_status Guarded(std::initializer_list<Required> required, char** error,
                        const Body& body) noexcept {
  if (error != nullptr) *error = nullptr;
  try {
    Check(required);
    body();
    return STEPCAST_OK;
  } catch (...) {
    return Describe(error);
  }
}

// The same for a body that returns a handle or a text, which goes to *out; NULL where it fails.
template <class T, class Body>
stepcast_status Made(T** out, std::initializer_list<Required> required, char** error,
                     const Body& body) noexcept {
  if (out == nullptr) return Guarded({{out, "the place of the result"}}, error, [] {});
  *out = nullptr;
  return Guarded(required, error, [&] { *out = body(); });
}

// Throws Refusal for a struct whose size cannot be.
template <class T>
void RequireSize(const T* given, const char* name) {
  if (IsSizePossible(given)) return;
  throw Refusal{STEPCAST_BAD_ARGUMENT, std::string("struct_size of ") + name + " cannot be"};
}

// A length that cannot be one of nodes is found before they are read.
void RequireNodes(std::size_t nodes, const char* key);

// For stepcast_text_free.
char* CopyText(const std::string& text);

}  // namespace stepcast::capi

#endif  // STEPCAST_PREDICTOR_CAPI_HANDLES_H_
