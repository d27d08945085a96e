#include "predictor/cli/what_fits.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <optional>
#include <vector>

#include "data/record/blocks.h"
#include "data/record/fused_attention.h"
#include "data/record/host_texts.h"
#include "data/values/compression.h"
#include "data/values/names.h"

namespace stepcast::cli {
namespace {

// A way to train by which less is kept in memory.
struct LeanerTraining {
  const char* option;
  void (*set)(Workload* workload);
};

// Those that change anything about a workload.
std::vector<LeanerTraining> LeanerTrainings(const Workload& workload) {
  std::vector<LeanerTraining> trainings;
  if (!HasSixteenBits(workload.precision)) {
    trainings.push_back({"--precision bf16", [](Workload* w) { w->precision = Precision::kBf16; }});
  }
  if (workload.attention == AttentionForm::kPlain && CountAttentionLayers(workload).fusable > 0) {
    trainings.push_back(
        {"--attention fused", [](Workload* w) { w->attention = AttentionForm::kFused; }});
  }
  if (workload.recompute == Recompute::kNone && workload.attention == AttentionForm::kPlain &&
      !AttentionCores(workload).empty()) {
    trainings.push_back(
        {"--recompute selective", [](Workload* w) { w->recompute = Recompute::kSelective; }});
  }
  if (workload.recompute != Recompute::kFull && HasBlocks(workload)) {
    trainings.push_back({"--recompute full", [](Workload* w) { w->recompute = Recompute::kFull; }});
  }
  return trainings;
}

// The search for a workload, which may be trained otherwise than the target's.
class FittingSearch {
 public:
  // A profile tells what fitted of the training that was measured alone.
  FittingSearch(const Target& target, const Workload& workload, const Plan& plan)
      : predictor_(target.cluster, workload, target.facts, target.device,
                   workload == target.workload ? target.profile : nullptr),
        plan_(plan) {}

  // False also where the search would be refused, as that of shares beside local steps is.
  bool Finds(const RecommendOptions& search) const { return Find(search).has_value(); }

  // The option for the least that is to be shared out; nothing where not even the most fits.
  std::optional<std::string> LeastShard(RecommendOptions search) const {
    for (const Shard shard :
         {Shard::kOptimizer, Shard::kGradients, Shard::kHybrid, Shard::kParameters}) {
      search.shards = {shard};
      if (const std::optional<Plan> found = Find(search)) {
        return fmt::format("--try-shard {}", NameOf(found->shard_on_nodes()));
      }
    }
    return std::nullopt;
  }

 private:
  std::optional<Plan> Find(const RecommendOptions& search) const {
    try {
      return FindFitting(predictor_, plan_, predictor_.cluster().devices_per_node, search);
    } catch (const InputError&) {
      return std::nullopt;
    }
  }

  Predictor predictor_;
  const Plan& plan_;
};

// What is stated beside which nothing is shared out, which is then left out of the question.
std::vector<std::string> FreeToShare(Plan* plan, RecommendOptions* search) {
  std::vector<std::string> stated;
  if (plan->local_steps > 1) {
    stated.push_back(fmt::format("--local-steps {}", plan->local_steps));
    plan->local_steps = 1;
  }
  if (plan->backup_workers > 0) {
    stated.push_back(fmt::format("--backup-workers {}", plan->backup_workers));
    plan->backup_workers = 0;
  }
  const bool tries = !search->compressions.empty();
  const bool compresses =
      tries ? std::all_of(search->compressions.begin(), search->compressions.end(),
                          [](const Compression& one) { return one.exists(); })
            : plan->compress.exists();
  if (compresses) {
    stated.push_back(tries ? "--try-compress"
                           : fmt::format("--compress {}", FormatCompression(plan->compress)));
    search->compressions.clear();
    plan->compress = {};
    plan->compress_rate.reset();
  }
  return stated;
}

// The options by which a plan fits, as WhatFitsText says; nothing where none do.
std::optional<std::string> FewestThatFit(const Target& target, const Plan& plan,
                                         const RecommendOptions& search) {
  const std::vector<LeanerTraining> trainings = LeanerTrainings(target.workload);
  // A bit each for a smaller batch, for what is shared out, and for the trainings. All together may
  // be less lean than some: at 16 bits copies of the parameters are kept besides.
  constexpr unsigned kBatch = 1;
  constexpr unsigned kShard = 2;
  constexpr int kOthers = 2;
  const int most = kOthers + static_cast<int>(trainings.size());
  // Their options; none where no plan fits with them.
  const auto fitting_with = [&](unsigned some) {
    std::vector<std::string> options;
    RecommendOptions tried = search;
    if ((some & kBatch) != 0) {
      tried.local_batches = {1};
      options.emplace_back("a smaller --try-local-batch");
    }
    Workload workload = target.workload;
    for (std::size_t i = 0; i < trainings.size(); ++i) {
      if ((some >> (kOthers + i) & 1U) == 0) continue;
      trainings[i].set(&workload);
      options.emplace_back(trainings[i].option);
    }
    const FittingSearch fitting(target, workload, plan);
    if ((some & kShard) == 0) return fitting.Finds(tried) ? options : std::vector<std::string>();
    const std::optional<std::string> shard = fitting.LeastShard(tried);
    if (!shard) return std::vector<std::string>();
    options.push_back(*shard);
    return options;
  };
  for (int size = 1; size <= most; ++size) {
    std::vector<std::string> alone;
    for (unsigned some = 1; some < 1U << most; ++some) {
      if (std::popcount(some) != size) continue;
      const std::vector<std::string> options = fitting_with(some);
      if (options.empty()) continue;
      if (size > 1) return ListedNames(options) + " together";
      alone.push_back(options.front());
    }
    if (!alone.empty()) return ListedNames(alone, "or");
  }
  return std::nullopt;
}

}  // namespace

std::string WhatFitsText(const Target& target, const Plan& plan, const RecommendOptions& search) {
  if (const auto options = FewestThatFit(target, plan, search)) {
    return fmt::format("A plan fits with {}.\n", *options);
  }
  Plan freed = plan;
  RecommendOptions free_search = search;
  const std::vector<std::string> stated = FreeToShare(&freed, &free_search);
  if (!stated.empty()) {
    if (const auto options = FewestThatFit(target, freed, free_search)) {
      return fmt::format(
          "None fits beside {}, with which nothing is shared out; without {} a plan fits with "
          "{}.\n",
          ListedNames(stated), stated.size() == 1 ? "it" : "them", *options);
    }
  }
  return "No smaller batch, no shares and no leaner training make one fit: it takes devices with "
         "more memory, or more workers that share the model out.\n";
}

}  // namespace stepcast::cli
