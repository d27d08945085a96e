// Which batch, accumulation interval, workers, servers, algorithm and bucket to use, and what of
// the model to share out.
#ifndef STEPCAST_PREDICTOR_SEARCH_RECOMMEND_H_
#define STEPCAST_PREDICTOR_SEARCH_RECOMMEND_H_

#include <optional>
#include <string>
#include <vector>

#include "predictor/outlook.h"
#include "predictor/predictor.h"
#include "predictor/search/batch_grid.h"
#include "predictor/search/payoff.h"

namespace stepcast {

// The score of which the best plan has most. With the noise scale a sample counts for its worth.
enum class Objective {
  kThroughput,  // samples/s
  kGoodput,     // useful samples/s: throughput x statistical efficiency
  kPrice,       // samples, or useful samples, per USD
  kEnergy,      // samples, or useful samples, per J
};
inline constexpr int kObjectiveCount = 4;
inline constexpr const char* kObjectiveNames[kObjectiveCount] = {"throughput", "goodput", "price",
                                                                 "energy"};

// What is to be best where nobody says: as in the other searches for batches, what a sample is
// worth counts where the noise scale tells it.
Objective DefaultObjective(const OutlookOptions& outlook);

struct RecommendOptions {
  // Candidates; an empty list means the sensible ones: the plan's own value for strategies,
  // servers, bucket, what is shared out and compression; for batches and accumulation those of
  // predictor/search/batch_grid.h. Compression is none with a strategy that goes with none of those
  // that are listed, and so is what is shared out with one that exchanges nothing; other plans that
  // cannot be shared out as they are to be are counted as not_together.
  std::vector<int> workers;
  std::vector<int> local_batches;
  std::vector<int> accumulation_steps;
  std::vector<int> servers;
  std::vector<Strategy> strategies;
  std::vector<DataSize<>> buckets;
  std::vector<Shard> shards;
  std::vector<Compression> compressions;
  int most_global_batch = kDefaultMostGlobalBatch;
  // Scores within this share of the best count as equal; the smallest global batch then wins, of
  // those that are no worse than the plan as given. Where the noise scale says what a sample is
  // worth, the best score wins alone.
  double tolerance = kEqualScores;
  Objective objective = Objective::kThroughput;
  OutlookOptions outlook;        // noise_scale and known_batch; both for goodput
  std::optional<Device> device;  // its data sheet: the power, where the cluster does not state it
};

struct Recommendation {
  Plan plan;
  Prediction prediction;
  double efficiency = 0;  // throughput / that of as many single workers with the same batches
  // The score that the objective maximises, in its unit; throughput where there is no other.
  double score = 0;
};

struct RecommendOutcome {
  // The best candidate; empty when none fits the memory, the global batch and the cluster's nodes.
  std::optional<Recommendation> best;
  // The plan as given, exactly. It may not fit the memory, or exceed the global batch.
  std::optional<Recommendation> baseline;
  // Whether to change to `best`, or to keep what is given where that is best: the answer is no
  // where there is no candidate, and where a plan as given that may be used is better than all.
  bool is_advice = false;
  // 1 where the two differ by rounding.
  double gain = 1;        // throughput of best / baseline
  double score_gain = 1;  // score of best / baseline
  // What one worker of the best plan does by itself, where that is more than the plan does and its
  // memory may hold it.
  std::optional<SampleRate<>> one_worker;
  Payoff payoff;  // where the answer is no: what would make `best` as good as the given plan
  // Candidates that are no worse than the plan as given (where that cannot be used, than half of
  // the best) and no better than the best, of which none has both a higher score and a smaller
  // global batch; by global batch. The last is the best.
  std::vector<Recommendation> pareto;
  std::string binding;  // the constraint that keeps the answer from being better, in words
  int considered = 0;
  // How many of them are not in `pareto`, each for one reason.
  int out_of_memory = 0;
  int over_global_batch = 0;
  int over_nodes = 0;   // more than the cluster has, where the plan as given needs no more
  int no_better = 0;    // than another of no larger global batch, or than the plan as given
  int little_gain = 0;  // better than the best within the tolerance, with a larger global batch
  // Beside them: compression or shares that do not go with a strategy, nodes, or each other.
  int not_together = 0;
};

// Plans that the outcome does not show, and why, as it goes on behind "3 plans left out: ".
struct LeftOut {
  int plans = 0;
  std::string reason;
};
// The reasons that there are.
std::vector<LeftOut> ReasonsLeftOut(const RecommendOutcome& outcome,
                                    const RecommendOptions& options);

// Whether the plan as given could be used: it fits the memory, and the global batch.
bool IsUsable(const Recommendation& given, const RecommendOptions& options);

// `plan` gives what is not searched: links, hosts, and the values compared against. Other numbers
// of workers take the hosts on which they are quickest, where all have names and differ. Throws
// InputError when the objective needs a fact that is not known: the noise scale, a price, a power;
// and for a strategy that RequireKeptWith refuses beside what the plan states and nothing searches;
// and as a prediction does where shares and compression are stated and go with no candidate.
RecommendOutcome Recommend(const Predictor& predictor, const Plan& plan, int devices_per_node,
                           const RecommendOptions& options);

// A plan that Recommend would consider and that memory, global batch and the cluster's nodes allow;
// none where there is none. Throws InputError for a plan that no model covers.
std::optional<Plan> FindFitting(const Predictor& predictor, const Plan& plan, int devices_per_node,
                                const RecommendOptions& options);

}  // namespace stepcast

#endif  // STEPCAST_PREDICTOR_SEARCH_RECOMMEND_H_
