#include "microbench/harness/state_space.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "data/record/operation_counts.h"

namespace stepcast {
namespace {

// Elements that pass a memory in the time of one FLOP: a few hundredths on processors of all kinds.
// It orders states and means nothing more.
constexpr double kFlopPerElement = 40;

double EstimatedWork(const Operation& operation, TrainingPass pass, int batch) {
  const OperationCounts counts = CountOperation(operation, pass);
  return std::max(counts.flop_per_sample * batch,
                  kFlopPerElement * (counts.elements_per_sample * batch + counts.elements));
}

class Collector {
 public:
  explicit Collector(StateSpace* space) : space_(space) {}

  void Add(const Operation& operation, int batch, Precision precision, TrainingPass pass,
           std::size_t sum) {
    const auto key = std::make_tuple(operation, batch, precision);
    const auto [it, fresh] = index_.try_emplace(key, space_->states.size());
    if (fresh) space_->states.push_back({operation, batch, precision, {}, {}});
    State& state = space_->states[it->second];
    auto at = std::find(state.passes.begin(), state.passes.end(), pass);
    if (at == state.passes.end()) {
      state.passes.push_back(pass);
      for (State::Use& use : state.uses) use.count.push_back(0);
      at = state.passes.end() - 1;
    }
    if (state.uses.empty() || state.uses.back().sum != sum) {
      state.uses.push_back({sum, std::vector<int>(state.passes.size(), 0)});
    }
    ++state.uses.back().count[static_cast<std::size_t>(at - state.passes.begin())];
  }

 private:
  StateSpace* space_;
  std::map<std::tuple<Operation, int, Precision>, std::size_t> index_;
};

// The largest share of a step that the state is estimated to be.
std::vector<double> EstimatedShares(const StateSpace& space) {
  std::vector<double> totals(space.sums.size(), 0.0);
  std::vector<std::vector<double>> parts;
  for (const State& state : space.states) {
    std::vector<double>& part = parts.emplace_back();
    for (const State::Use& use : state.uses) {
      double work = 0;
      for (std::size_t i = 0; i < state.passes.size(); ++i) {
        work += use.count[i] * EstimatedWork(state.operation, state.passes[i], state.batch);
      }
      part.push_back(work);
      totals[use.sum] += work;
    }
  }
  std::vector<double> shares(space.states.size(), 0.0);
  for (std::size_t s = 0; s < shares.size(); ++s) {
    for (std::size_t u = 0; u < parts[s].size(); ++u) {
      shares[s] = std::max(shares[s], parts[s][u] / totals[space.states[s].uses[u].sum]);
    }
  }
  return shares;
}

}  // namespace

StateSpace MakeStateSpace(const StateSpaceAxes& axes) {
  StateSpace space;
  Collector collector(&space);
  for (const Workload& workload : axes.workloads) {
    for (const Layer& layer : workload.layers) {
      if (layer.operation.index() == 0) space.unstated.push_back(workload.name + ": " + layer.name);
    }
    for (const Precision precision : axes.precisions) {
      for (const int batch : axes.batches) {
        const std::size_t sum = space.sums.size();
        space.sums.push_back({workload.name, batch, precision});
        bool gradients = false;
        for (const Layer& layer : workload.layers) {
          gradients = gradients || !layer.tensors.empty();
          const bool stated = layer.operation.index() > 0;
          if (stated) {
            collector.Add(layer.operation, batch, precision, TrainingPass::kForward, sum);
          }
          if (stated && gradients) {
            collector.Add(layer.operation, batch, precision, TrainingPass::kBackward, sum);
          }
          // Parameters are kept and updated in 32 bits, whatever the layers multiply in.
          if (layer.parameters() > 0 && !axes.updates_at_once) {
            collector.Add(UpdateOp{axes.optimizer, layer.parameters()}, 1, Precision::kFp32,
                          TrainingPass::kUpdate, sum);
          }
        }
        if (axes.updates_at_once && workload.trainable_parameters > 0) {
          collector.Add(UpdateOp{axes.optimizer, workload.trainable_parameters}, 1,
                        Precision::kFp32, TrainingPass::kUpdate, sum);
        }
      }
    }
  }
  const std::vector<double> shares = EstimatedShares(space);
  std::vector<std::size_t> order(space.states.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return shares[a] > shares[b]; });
  std::vector<State> sorted;
  sorted.reserve(order.size() + axes.overheads.size());
  for (const Operation& overhead : axes.overheads) {
    sorted.push_back({overhead, 1, Precision::kFp32, {TrainingPass::kForward}, {}});
  }
  for (const std::size_t i : order) sorted.push_back(std::move(space.states[i]));
  space.states = std::move(sorted);
  return space;
}

}  // namespace stepcast
