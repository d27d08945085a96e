#include "calibrate/online/online_calibration.h"

#include <utility>

#include "calibrate/online/state.h"

namespace stepcast {

OnlineCalibration::OnlineCalibration(Cluster cluster, const Workload& workload,
                                     const std::optional<Device>& facts, const std::string& device)
    : state_(std::make_unique<State>(std::move(cluster), workload, facts, device)) {}
OnlineCalibration::~OnlineCalibration() = default;
OnlineCalibration::OnlineCalibration(OnlineCalibration&&) noexcept = default;
OnlineCalibration& OnlineCalibration::operator=(OnlineCalibration&&) noexcept = default;

Observation OnlineCalibration::Observe(const Plan& plan, Duration<> step_time) {
  ++state_->revision;
  return state_->Observe(plan, step_time);
}

void OnlineCalibration::ObserveOutOfMemory(const Plan& plan) { state_->ObserveOutOfMemory(plan); }

Cluster OnlineCalibration::cluster() const { return state_->Learnt(); }
const Cluster& OnlineCalibration::start() const { return *state_->first; }
const Workload& OnlineCalibration::workload() const { return state_->start.workload(); }
const std::optional<Device>& OnlineCalibration::facts() const { return state_->device_facts; }
const std::string& OnlineCalibration::device() const { return state_->start.device(); }
int OnlineCalibration::rows() const {
  return static_cast<int>(state_->earlier_rows + state_->rows);
}
bool OnlineCalibration::drifted() const { return state_->earlier_rows > 0; }

Cluster LearnTogether(Cluster cluster, const Workload& workload, const std::optional<Device>& facts,
                      const std::string& device, std::span<const MeasuredStep> steps) {
  internal::OnlineState state(std::move(cluster), workload, facts, device);
  if (steps.empty()) return state.cluster;
  state.LearnTogether(steps);
  return state.AtY();
}

OnlineRecord OnlineCalibration::Export() const { return state_->Export(); }

void OnlineCalibration::Import(const OnlineRecord& record) {
  auto imported = std::make_unique<State>(*state_->first, state_->start.workload(),
                                          state_->device_facts, state_->start.device());
  imported->Import(record);
  imported->revision = state_->revision + 1;
  state_ = std::move(imported);
}

}  // namespace stepcast
