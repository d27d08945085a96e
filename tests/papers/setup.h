// One cluster of a paper with what is known of it: from the paper, from documents, or calibrated on
// rows of the paper.
//
//   Setup setup("networking-perspective");
//   setup.Give(kFlowWindow, 0.0655, "RFC 9113");
//   setup.Calibrate("mlp_mnist", kFixedTime, {"np-run-mlp-32"}, 0.13, step);
//   setup.Ask("mlp_mnist", plan).step_time;
//
// Parameters that nobody gives stay at their priors.
#ifndef STEPCAST_TESTS_PAPERS_SETUP_H_
#define STEPCAST_TESTS_PAPERS_SETUP_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/step/parameters.h"
#include "model/step/step.h"
#include "predictor/predictor.h"

namespace stepcast::papers {

// Source of a value that only has to be small.
inline constexpr const char* kAsGoodAsNone = "as good as none";

class Setup {
 public:
  // A file of data/machines. `data_sheet`: compute times nobody calibrates come from the device's
  // data sheet.
  explicit Setup(const std::string& machine, bool data_sheet = false);

  // A value that is known, with its source; in the parameter's unit.
  void Give(ClusterParameter parameter, double value, const std::string& source);
  void Give(const std::string& workload, WorkloadParameter parameter, double value,
            const std::string& source);

  // The memory of the device, where the paper says otherwise than the data sheet.
  void GiveMemory(DataSize<> memory, const std::string& source);

  // The value with which `answer` is `wanted`; `answer` must grow or fall with it throughout its
  // range. Where no value does, the nearest end of the range. `rows` are those it is calibrated on.
  using Answer = std::function<double(const Setup&)>;
  void Calibrate(ClusterParameter parameter, const std::string& rows, double wanted,
                 const Answer& answer);
  void Calibrate(const std::string& workload, WorkloadParameter parameter, const std::string& rows,
                 double wanted, const Answer& answer);
  // The same for the bytes of a model of unknown size, within a factor of 100 of its own.
  void CalibrateBytes(const std::string& workload, const std::string& rows, double wanted,
                      const Answer& answer);

  // A workload of this name that is not, or not like that, in the catalogue.
  void Add(const std::string& name, Workload workload, const std::string& source = "");

  const Cluster& cluster() const { return cluster_; }
  // The cluster with all that was given or calibrated, as a calibration that is sure of it.
  Cluster Calibrated() const;
  const Workload& workload(const std::string& name) const;
  const Predictor& predictor(const std::string& workload) const;
  Prediction Ask(const std::string& workload, const Plan& plan) const;
  Duration<> Step(const std::string& workload, const Plan& plan) const;
  // The terms of the step, and the phases of synchronous servers that are left to wait for.
  StepTerms<double> Terms(const std::string& workload, const Plan& plan) const;
  PhaseBenefit<double> Phases(const std::string& workload, const Plan& plan) const;

  // Values that were given or calibrated, in order, for the page.
  struct Line {
    std::string what;
    double value = 0;
    std::string unit;
    std::string from;
    bool calibrated = false;
  };
  const std::vector<Line>& lines() const { return lines_; }

 private:
  struct Key {
    std::string workload;  // empty for the cluster's
    int parameter = 0;
    auto operator<=>(const Key&) const = default;
  };
  const ParameterSpec& Spec(const Key& key) const;
  void Set(const Key& key, double value);
  void Solve(const Key& key, const std::string& rows, double wanted, const Answer& answer);
  StepFacts Facts(const std::string& workload, const Plan& plan) const;
  ClusterParameters<double> ClusterValues() const;
  WorkloadParameters<double> WorkloadValues(const std::string& workload) const;

  Cluster cluster_;
  std::optional<Device> device_;
  std::map<Key, double> values_;
  mutable std::map<std::string, Workload> workloads_;
  mutable std::map<std::string, std::shared_ptr<const Predictor>> predictors_;
  std::vector<Line> lines_;
};

}  // namespace stepcast::papers

#endif  // STEPCAST_TESTS_PAPERS_SETUP_H_
