// Answers of `stepcast serve`, without any transport: plans, many plans, batches for allocations.
//
//   Service service(read, {});
//   const std::shared_ptr<const Snapshot> now = service.Current();
//   const std::shared_ptr<const Target> target = service.Find(*now, {"", "resnet50", ""});
//   target->predictor.Predict(plan);
//
// A snapshot is what was read at one time, with all that was made of it: it never changes, and an
// answer is made of one snapshot alone, or of a job that is followed. Reload swaps it; who still
// answers from the old one keeps it. Everything here may be called from many threads.
#ifndef STEPCAST_PREDICTOR_SERVE_SERVICE_H_
#define STEPCAST_PREDICTOR_SERVE_SERVICE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "data/record/input_error.h"
#include "data/record/machine.h"
#include "data/record/workload.h"
#include "predictor/compiled_plan.h"
#include "predictor/predictor.h"
#include "predictor/search/allocations.h"
#include "predictor/serve/columns.h"
#include "predictor/serve/jobs.h"
#include "predictor/serve/lru_cache.h"
#include "predictor/serve/target.h"

namespace stepcast::serve {

// Sets what the name states of how its workload is trained. Throws InputError for another word.
void TakeTraining(const TargetName& name, Workload* workload);

// Clusters, workloads and devices that requests may name.
struct Inventory {
  std::vector<Cluster> clusters;    // at least one, each name once
  std::vector<Workload> workloads;  // of files: before those of the catalogue
  std::vector<Device> devices;      // data sheets
};

// What is said to whoever asks a service that is not ready.
inline constexpr const char* kNotReady = "what jobs have learnt is still being read; ask again";

struct ServiceOptions {
  std::size_t most_plans = 1'000'000;  // of one request
  std::size_t most_compiled = 256;     // kept by a snapshot; the same of targets
  std::size_t most_jobs = 10'000;      // that are followed at once
};

class Snapshot {
 public:
  // Throws InputError for an inventory without a cluster or with a name twice.
  Snapshot(Inventory inventory, int number, const ServiceOptions& options);

  // 1 for the first that a service reads, and one more each time.
  int number() const { return number_; }
  const Inventory& inventory() const { return inventory_; }
  // All workloads that may be named, by name.
  std::vector<Workload> Workloads() const;
  std::size_t compiled() const { return plans_.size(); }

  // Throws InputError for a name that is not known. It may be empty where there is one alone.
  const Cluster& FindCluster(const std::string& name) const;
  // Throws InputError for a name that is not known, and as Predictor does.
  std::shared_ptr<const Target> Find(const TargetName& name) const;
  // What a target is made of.
  // Throws InputError for a name that is not known.
  TargetParts PartsOf(const TargetName& name) const;
  // `servers`: so many may be asked for, up to 1024. Throws InputError as CompiledPlan does.
  CompiledPlan Compile(const Target& target, const Plan& plan, int servers) const;

 private:
  Inventory inventory_;
  int number_;
  mutable LruCache<std::shared_ptr<const Target>> targets_;
  mutable LruCache<CompiledPlan> plans_;
};

class Service {
 public:
  // Reads what is served; called by the constructor and by each Reload, by one thread at a time.
  using Read = std::function<Inventory()>;

  // Throws what `read` throws.
  Service(Read read, const ServiceOptions& options);

  std::shared_ptr<const Snapshot> Current() const;
  const ServiceOptions& options() const { return options_; }
  // Whether it answers: not as long as what jobs have learnt is read from a file, say. It does
  // unless it is told otherwise.
  bool ready() const { return ready_; }
  void SetReady(bool ready) { ready_ = ready; }
  // The jobs whose steps are observed: they outlive snapshots.
  Jobs& jobs() { return jobs_; }
  const Jobs& jobs() const { return jobs_; }
  // The target of a name in `snapshot`, or of a job as it has learnt by now. Throws InputError for
  // names that are not known, and for a job that stands beside other names.
  std::shared_ptr<const Target> Find(const Snapshot& snapshot, const TargetName& name) const;

  // Reads anew and returns the number of the new snapshot. Throws what `read` throws; then the old
  // one stays.
  int Reload();

 private:
  Read read_;
  ServiceOptions options_;
  Jobs jobs_;
  std::atomic<bool> ready_{true};
  std::mutex reading_;
  mutable std::mutex mutex_;  // of current_
  std::shared_ptr<const Snapshot> current_;
};

// The text of a plan's column, or of "workers", as a request states it: a number, or a word. Empty
// where it does not say.
using PlanText = std::function<std::optional<std::string>(const char* column, bool is_number)>;
// Fields that a request states for each query, so that its plan need not.
struct StatedApart {
  int local_batch = 0;  // what holds where the plan does not say; 0: the plan has to
  bool servers = false;
  bool layout = false;  // workers, nodes and devices_per_node
  bool slow_nodes = false;
};
// What columns state.
StatedApart StatedBy(const QueryColumns& columns, int local_batch);
// The plan that a request states, strictly. `prefix` stands before a column in errors.
Plan ReadPlan(const PlanText& text, const std::string& prefix, const Cluster& cluster,
              const StatedApart& apart = {});

// The batch of a plan for which one is to be recommended, where it states none: the least to trust.
int UnstatedBatch(const Predictor& predictor);

// Sets the size of `columns`. Throws InputError, with `prefix` before a column's name, where there
// is none, where lengths differ or exceed `most`, and for nodes without workers.
void CheckColumns(const std::string& prefix, std::size_t most, QueryColumns* columns);

// Throws InputError for a search that makes no sense, or tries more than `most_plans`.
void CheckSearch(const BatchSearch& search, std::size_t allocations, std::size_t most_plans);

// The error with the key of a request where it names an option of the command line.
InputError InRequestTerms(const InputError& error);

// Answers `queries`, whose number columns become SI units; `plan` says what they do not. Where
// workers are stated without nodes, nodes are filled one after another. Throws as
// CompiledPlan does.
ForecastColumns PredictMany(const Snapshot& snapshot, const Target& target, const Plan& plan,
                            bool interval, QueryColumns* queries);

// The batch of each allocation, and what is to be known of the plans that this makes.
struct ChosenBatches {
  std::vector<BatchChoice> choices;
  std::vector<MemoryVerdict> memory;
  std::vector<BatchFlag> flags;
  std::vector<BatchProblem> problems;  // of the first hundred without a batch
  std::size_t failed = 0;
};
// The best batch for each of `allocations`, of which the columns of workers, nodes,
// devices_per_node and servers are read as PredictMany does.
ChosenBatches Recommend(const Snapshot& snapshot, const Target& target, const Plan& plan,
                        const BatchSearch& search, QueryColumns* allocations);

}  // namespace stepcast::serve

#endif  // STEPCAST_PREDICTOR_SERVE_SERVICE_H_
