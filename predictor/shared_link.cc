#include "predictor/shared_link.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>

#include "data/plan/limits.h"
#include "data/record/link_path.h"
#include "model/network/sharing.h"
#include "model/step/step_facts.h"
#include "model/step/step_terms.h"

namespace stepcast {

namespace {

// How many times as long the nodes' links take for a byte beside traffic of no job, where so many
// other jobs are on them.
double LongerBeside(const SharingJob& job, double others) {
  if (job.predictor->Facts(job.plan).link.background.value_or(DataRate<>()).si() == 0) return 1;
  const auto rate_beside = [&](const std::optional<DataRate<>>& background) {
    Plan plan = job.plan;
    plan.link.others = others;
    if (background) plan.link.background = background;
    return job.predictor->Terms(plan).node_path.path.bandwidth;
  };
  const DataRate<> left = rate_beside({});
  return left.si() > 0 ? rate_beside(DataRate<>()) / left : 1;
}

StepTime<double> StepBeside(const SharingJob& job, double others) {
  Plan plan = job.plan;
  plan.link.others = others;
  return job.predictor->PredictStep(plan);
}

// The time in which the fullest of the nodes' links, at its rate, carries what a step sends in a
// direction: what an exchange grows by with each other one on them, where those are so many that
// nothing else counts, nor traffic of no job.
Duration<> TimeOnLink(const SharingJob& job) {
  constexpr double kCrowd = kMostOthers;
  const Duration<> grows =
      StepBeside(job, kCrowd).synchronisation - StepBeside(job, kCrowd / 2).synchronisation;
  // Those who push and then pull have one direction after the other.
  const bool in_turn = UsesServers(job.plan.strategy) && !job.plan.server.colocated;
  return grows / (kCrowd / 2) / (in_turn ? 2.0 : 1.0);
}

struct Alone {
  Duration<> step;
  Duration<> on_link;
  double longer = 1;  // beside other traffic

  double busy() const { return std::clamp(on_link / step * longer, 0.0, 1.0); }
};

Alone AloneOnLink(const SharingJob& job) {
  return {StepBeside(job, 0).total(), TimeOnLink(job), LongerBeside(job, 0)};
}

// The same where each o has grown by `share` of what is left to that of all others always there,
// with their steps.
std::vector<SharedJob> Beside(const std::vector<SharingJob>& jobs, std::vector<SharedJob> shared,
                              double share) {
  const auto most = static_cast<double>(jobs.size() - 1);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    shared[i].others += share * (most - shared[i].others);
    shared[i].beside = StepBeside(jobs[i], shared[i].others).total();
  }
  return shared;
}

}  // namespace

BusyLink LinkBusy(const Predictor& predictor, const Plan& plan) {
  const bool states_core = IsOversubscribed(predictor.Facts(plan).link);
  return {AloneOnLink({&predictor, plan}).busy(),
          states_core && predictor.Terms(plan).node_path.shape.core.binds};
}

std::vector<SharedJob> ShareLink(const std::vector<SharingJob>& jobs) {
  std::vector<Alone> alone;
  for (const SharingJob& job : jobs) alone.push_back(AloneOnLink(job));
  std::vector<SharedJob> shared(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    std::vector<double> shares;
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      if (j != i) shares.push_back(alone[j].busy());
    }
    shared[i] = {
        alone[i].busy(), OthersOnLink<double>(std::span<const double>(shares)), alone[i].step, {}};
  }
  const auto is_too_much = [&](const std::vector<SharedJob>& beside) {
    double sent = 0;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      sent += alone[i].on_link / beside[i].beside * LongerBeside(jobs[i], beside[i].others);
    }
    return sent > 1;
  };
  std::vector<SharedJob> beside = Beside(jobs, shared, 0);
  if (!is_too_much(beside)) return beside;
  // The least growth at which the link carries it all.
  double too_little = 0;
  double enough = 1;
  constexpr int kHalvings = 30;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (too_little + enough) / 2;
    (is_too_much(Beside(jobs, shared, middle)) ? too_little : enough) = middle;
  }
  return Beside(jobs, shared, enough);
}

}  // namespace stepcast
