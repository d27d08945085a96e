// What a calibration knows of a workload belongs to one device and one way of training it: in
// another precision it is another computation.
#ifndef STEPCAST_DATA_VALUES_WORKLOAD_SCOPE_H_
#define STEPCAST_DATA_VALUES_WORKLOAD_SCOPE_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/record/calibration.h"
#include "data/record/input_error.h"
#include "data/record/run.h"
#include "data/record/workload.h"
#include "data/values/training_facts.h"

namespace stepcast {

// `text` as the name of a workload. Throws InputError where it is none (CheckedName), and where a
// scope would be read as another workload's: "net (bf16)" is net in another precision, and what
// comes behind "on" is the device.
std::string CheckedWorkloadName(std::string_view text, const InputPlace& place);

// "workload gpt2 (fp16, adam) on rtx_4090"; up to the device's name where that is empty.
std::string WorkloadScope(const Workload& workload, const std::string& device);
// That of a run, whose workload is one of `workloads`, which are by the names that runs have.
std::string ScopeOf(const Run& run, const std::map<std::string, Workload>& workloads);

// Whether a scope is of the workload of that name, however it was trained and wherever.
bool IsOfWorkload(std::string_view scope, std::string_view name);

// "gpt2" of such a scope; empty of another.
std::string WorkloadOfScope(std::string_view scope);

// The ways of training in which `calibration` has fitted the workload of that name on the device,
// on any where that is empty: each as a workload without layers.
std::vector<Workload> FittedTrainings(const Calibration& calibration, const std::string& name,
                                      const std::string& device);

// A way of training, with the network's own word where the two differ in name alone: attention of a
// network without any is neither plain nor fused, and one without blocks recomputes none.
Workload WithWhatDiffers(const Workload& network, Workload training);

// The network trained in each of the ways in which `range` has runs of it on the device, and what
// ran so.
struct TrainingThatRan {
  Workload trained;
  std::string scope;
  CalibratedRange::BatchRange batches;
};
std::vector<TrainingThatRan> TrainingsThatRan(const CalibratedRange& range, const Workload& network,
                                              const std::string& device);

// The scope whose values are the workload's: its own, or where that was not fitted one that differs
// from it in name alone. Up to the device's name where that is empty.
std::string FittedScope(const Calibration& calibration, const Workload& workload,
                        const std::string& device);

// Each fact that is not stated of how the workload is trained becomes what the fitted runs all say
// of it: its own on the device, or else its own on any. Of a workload without any it becomes what
// all others on the device say, where the workload says nothing itself. Of several ways those count
// that are as stated, where there are such. Without `is_stated` nothing is; an empty device is any.
void TrainAsFitted(const Calibration& calibration, const std::string& device,
                   const std::function<bool(const TrainingFact& fact)>& is_stated,
                   Workload* workload);

// What was taken from the runs of other workloads; none where nothing was.
std::optional<std::string> AsOthersFlag(const Workload& workload, const std::string& cluster);

}  // namespace stepcast

#endif  // STEPCAST_DATA_VALUES_WORKLOAD_SCOPE_H_
