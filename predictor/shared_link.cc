#include "predictor/shared_link.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "model/network/sharing.h"

namespace stepcast {

namespace {

StepTime<double> StepBeside(const SharingJob& job, double others) {
  Plan plan = job.plan;
  plan.link.others = others;
  return job.predictor->PredictStep(plan);
}

// Its step alone, and how busy it keeps the link.
SharedJob AloneOnLink(const SharingJob& job) {
  constexpr double kCrowd = 1e-6;
  const StepTime<double> alone = StepBeside(job, 0);
  const Duration<> longer = StepBeside(job, kCrowd).synchronisation - alone.synchronisation;
  SharedJob shared;
  shared.link_busy = std::clamp(longer / alone.total() / kCrowd, 0.0, 1.0);
  shared.alone = alone.total();
  return shared;
}

}  // namespace

double LinkBusy(const Predictor& predictor, const Plan& plan) {
  return AloneOnLink({&predictor, plan}).link_busy;
}

std::vector<SharedJob> ShareLink(const std::vector<SharingJob>& jobs) {
  std::vector<SharedJob> shared;
  for (const SharingJob& job : jobs) shared.push_back(AloneOnLink(job));
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    std::vector<double> shares;
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      if (j != i) shares.push_back(shared[j].link_busy);
    }
    shared[i].others = OthersOnLink<double>(std::span<const double>(shares));
    shared[i].beside = StepBeside(jobs[i], shared[i].others).total();
  }
  return shared;
}

}  // namespace stepcast
