#include "predictor/shared_link.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "model/network/sharing.h"

namespace stepcast {

double LinkBusy(const Predictor& predictor, Plan plan) {
  constexpr double kCrowd = 1e-6;
  plan.link.others = 0;
  const StepTime<double> alone = predictor.PredictStep(plan);
  plan.link.others = kCrowd;
  const StepTime<double> beside = predictor.PredictStep(plan);
  const double busy = (beside.synchronisation - alone.synchronisation) / alone.total() / kCrowd;
  return std::clamp(busy, 0.0, 1.0);
}

std::vector<SharedJob> ShareLink(const std::vector<SharingJob>& jobs) {
  std::vector<SharedJob> shared(jobs.size());
  const auto step = [&](std::size_t i, double others) {
    Plan plan = jobs[i].plan;
    plan.link.others = others;
    return jobs[i].predictor->PredictStep(plan).total();
  };
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    shared[i].link_busy = LinkBusy(*jobs[i].predictor, jobs[i].plan);
    shared[i].alone = step(i, 0);
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    std::vector<double> shares;
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      if (j != i) shares.push_back(shared[j].link_busy);
    }
    shared[i].others = OthersOnLink<double>(std::span<const double>(shares));
    shared[i].beside = step(i, shared[i].others);
  }
  return shared;
}

}  // namespace stepcast
