// One kind of plan, compiled to be asked millions of times: what a scheduler sweeps.
//
//   const Predictor predictor(cluster, workload, facts);
//   const CompiledPlan compiled(predictor, plan);      // once: microseconds to milliseconds
//   PlanQuery query = QueryOf(plan);
//   query.workers = 16; query.nodes = 4; query.devices_per_node = 4;
//   const Forecast forecast = compiled.Predict(query); // many times: arithmetic alone
//   if (forecast.status == QueryStatus::kOk) forecast.step_time.in(kMilliseconds);
//
// What the plan says of strategy, bucket, overlap, hosts, backup workers, slow nodes, servers'
// options and links is bound, as are the workload and all parameters with their covariance; a query
// says the rest.
//
// A query allocates nothing, takes no lock and throws nothing (arrays that are shared out among
// threads begin these, allocate for them and wait for them); many threads may ask one compiled plan
// at once, and the same question to the same function has the same bits. A question that makes no
// sense is answered by a status and by times that are not a number.
//
// A compiled plan is a value: it keeps what it needs of the predictor, copies share it, and a new
// calibration is a new compiled plan. The times are those of Predictor::Predict, to rounding.
#ifndef STEPCAST_PREDICTOR_COMPILED_PLAN_H_
#define STEPCAST_PREDICTOR_COMPILED_PLAN_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "data/record/calibration.h"
#include "data/record/plan.h"
#include "data/units/quantity.h"
#include "model/memory/memory_need.h"
#include "model/step/step.h"
#include "predictor/predictor.h"

namespace stepcast {

namespace internal {
struct CompiledState;
class ExchangeCache;
}  // namespace internal

// Where and with which batch. Nodes that are used unequally are told by the fullest:
// 10 workers as 4-4-2 are workers 10, nodes 3, devices_per_node 4. How many of them are on slow
// nodes the compiled plan's own placement says where all three are its own; elsewhere nodes are
// filled from the first, so that the slow ones have the fewest.
struct PlanQuery {
  int workers = 1;
  int nodes = 1;             // in use
  int devices_per_node = 1;  // in use, on the fullest node
  int servers = 0;
  int local_batch = 1;
  int accumulation_steps = 1;
  // Facts of links that are known here replace those of the compiled plan and of the cluster.
  LinkFacts link;
  LinkFacts server_link;
  // The last so many nodes compute at the compiled plan's slow_speed; without it as many as in that
  // plan. Where that has a slow_local_batch their devices take it, local_batch is the others', and
  // one node at least is not slow.
  std::optional<int> slow_nodes = {};

  bool has_layout_of(const PlanQuery& other) const {
    return workers == other.workers && nodes == other.nodes &&
           devices_per_node == other.devices_per_node;
  }
};

// The query that asks for `plan` itself.
PlanQuery QueryOf(const Plan& plan);

// Why a query has no answer.
enum class QueryStatus {
  kOk,
  kBadPlacement,      // workers do not fit nodes and devices_per_node, or are none; or nodes differ
                      // on which shard hybrid shares the model out
  kBadServers,        // too many for the compiled plan, or none with a strategy that needs them
  kBadBatch,          // local_batch or accumulation_steps below 1 or beyond what a plan may have
  kBadLink,           // a bandwidth, round trip or loss out of range
  kNothingExchanged,  // a bare message between nobody
  kBadSlowNodes       // too many, or all where the compiled plan has a slow_local_batch, or it says
                      // no speed of theirs
};
inline constexpr int kQueryStatusCount = 7;
// A sentence each: "ok", "no such number of servers", ...
const char* QueryStatusText(QueryStatus status);

// What is wrong with a query that has no answer.
struct QueryProblem {
  std::string field;    // as QueryArrays calls it; of a server's link with server_ in front
  std::string value;    // that it has
  std::string problem;  // "is out of range"
  std::string allowed;  // "a whole number from 1 to 64"
};

struct Forecast {
  Duration<> step_time;
  // 90 % prediction interval of one measured step; see Prediction.
  Duration<> low;
  Duration<> high;
  double log_sd = 0;  // of ln(measured / predicted)
  Limiter limiter = Limiter::kNothing;
  QueryStatus status = QueryStatus::kOk;
};

// Many queries as arrays of `size`, element i of each belonging to query i. A null array is the
// compiled plan's own value for all. Of the links, a value that is not a number stands for "not
// stated": the compiled plan's and the cluster's holds.
struct QueryArrays {
  std::size_t size = 0;
  const int* workers = nullptr;
  const int* nodes = nullptr;
  const int* devices_per_node = nullptr;
  const int* servers = nullptr;
  const int* local_batch = nullptr;
  const int* accumulation_steps = nullptr;
  const double* bandwidth_bytes_per_s = nullptr;  // of a node's link, each way
  const double* rtt_s = nullptr;
  const double* loss_rate = nullptr;
  const int* slow_nodes = nullptr;
};

// Query i, where `own` says what no array does.
PlanQuery QueryAt(const QueryArrays& queries, std::size_t i, const PlanQuery& own);

// Where the answers go, in the order of the queries; null where they are not wanted. Times of a
// query without an answer are not a number.
struct ForecastArrays {
  double* step_time_s = nullptr;
  double* low_s = nullptr;  // together with high_s and log_sd: the interval costs time
  double* high_s = nullptr;
  double* log_sd = nullptr;
  QueryStatus* status = nullptr;
  MemoryVerdict* memory = nullptr;
};

inline constexpr int kMostCompiledServers = 65'536;

// Of how many queries it pays to begin a thread.
inline constexpr std::size_t kQueriesOfAThread = 4096;

struct CompileOptions {
  // Queries may ask for as many parameter servers, up to kMostCompiledServers; the shards of each
  // number are computed before, which takes some 50 microseconds each.
  int most_servers = 64;
};

class CompiledPlan {
 public:
  // `plan` is one that predictor.Predict would answer. Strategy auto is resolved for `plan` as it
  // is. Throws InputError as Predict does, and for options out of range.
  CompiledPlan(const Predictor& predictor, const Plan& plan, const CompileOptions& options = {});

  // Step time and interval.
  Forecast Predict(const PlanQuery& query) const noexcept;

  // kOk where a query has an answer, and why it has none; at a fraction of the cost of any answer.
  QueryStatus StatusOf(const PlanQuery& query) const noexcept;

  // What is wrong with a query; nothing where it has an answer. It makes texts, so that it is for
  // the few that have none.
  std::optional<QueryProblem> ProblemOf(const PlanQuery& query) const;

  // The step time alone, at about half the cost; not a number where there is no answer.
  Duration<> StepTime(const PlanQuery& query) const noexcept;

  // Returns how many queries had no answer. Takes half a megabyte of the caller's stack: what it
  // has worked out for placements, which neighbouring queries share. Some thousands of queries and
  // more are shared out among `threads` threads, the caller's among them, where that is 2 or more,
  // and each takes as much from the heap; answers do not depend on how many there are.
  std::size_t PredictMany(const QueryArrays& queries, const ForecastArrays& answers,
                          int threads = 1) const noexcept;
  // The same on the caller's thread, with `cache` for what it works out: that of a part in
  // predictor/compiled/query_parts.h, or of this plan's queries before.
  std::size_t PredictPart(const QueryArrays& queries, const ForecastArrays& answers,
                          internal::ExchangeCache* cache) const noexcept;

  // The step times of one allocation with `count` batches; those of `allocation` are not read. What
  // batches do not change is worked out once. Not a number where the status is not kOk or a batch
  // is out of range.
  QueryStatus StepTimes(const PlanQuery& allocation, const int* local_batches,
                        const int* accumulation_steps, std::size_t count,
                        double* step_times_s) const noexcept;

  // The largest local batch that the device's memory holds; kMostBatch where nothing tells, 0 where
  // not even one sample fits, or a stated slow_local_batch does not. Depends on `workers`,
  // `accumulation_steps` and `slow_nodes` of the query alone, and with shard hybrid on
  // `devices_per_node`.
  int MostLocalBatch(const PlanQuery& query) const noexcept;
  // Workers whose samples are the compiled plan's slow_local_batch, and not the query's batch.
  int WorkersOfSlowBatch(const PlanQuery& query) const noexcept;

  // The batches that the calibration saw; empty when it saw none.
  const std::optional<CalibratedRange::BatchRange>& calibrated_batches() const;

  // Whether the device's memory holds the query's batch; kUnknown where nothing
  // tells, and for a query without an answer.
  MemoryVerdict Memory(const PlanQuery& query) const noexcept;

  // The plan as it was compiled, with the algorithm that strategy auto became.
  const Plan& plan() const;
  const CompileOptions& options() const;

 private:
  // PredictMany of the queries from begin to end.
  std::size_t PredictRange(const QueryArrays& queries, const ForecastArrays& answers,
                           std::size_t begin, std::size_t end,
                           internal::ExchangeCache* cache) const noexcept;

  std::shared_ptr<const internal::CompiledState> compiled_;
};

}  // namespace stepcast

#endif  // STEPCAST_PREDICTOR_COMPILED_PLAN_H_
