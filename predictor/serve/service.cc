#include "predictor/serve/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "data/plan/check.h"
#include "data/plan/fields.h"
#include "data/plan/limits.h"
#include "data/record/link_path.h"
#include "data/values/device_name.h"
#include "data/values/names.h"
#include "data/values/numbers.h"
#include "data/values/size_limits.h"
#include "data/values/suggest.h"
#include "data/values/training_facts.h"
#include "data/values/workload_scope.h"
#include "data/workloads/catalog.h"
#include "predictor/binding.h"
#include "predictor/compiled/exchange.h"

namespace stepcast::serve {
namespace {

// Shards are computed for each number of servers: so many at most may be asked for.
constexpr int kMostServers = 1024;
constexpr std::size_t kLongestText = 64 << 10;  // of a placement, or of hosts [B]
constexpr std::size_t kQuoted = 200;            // of what is longer [B]
constexpr std::size_t kMostProblems = 100;      // told of one request
// Most nodes of a plan by itself, which is told node by node; queries may ask for more.
constexpr int kMostPlannedNodes = 100'000;

template <class Named>
std::vector<std::string> NamesOf(const std::vector<Named>& all) {
  std::vector<std::string> names;
  for (const Named& one : all) names.push_back(one.name);
  return names;
}

template <class Named>
const Named* FindNamed(const std::vector<Named>& all, const std::string& name) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Named& one) { return one.name == name; });
  return found == all.end() ? nullptr : &*found;
}

template <class Named>
void RequireDistinct(const std::vector<Named>& all, const char* what) {
  for (const Named& one : all) {
    if (FindNamed(all, one.name) == &one) continue;
    throw InputError({"", 0, "name"}, one.name, fmt::format("is the name of two {}", what),
                     "each name once");
  }
}

// The queries as arrays, with the nodes that they leave open.
QueryArrays BindQueries(const Target& target, QueryColumns* queries) {
  if (queries->Has(kWorkers) && !queries->Has(kNodes)) {
    // As FillNodes does. What is no number of workers is left for its status.
    const int on_node = target.predictor.cluster().devices_per_node;
    for (const int workers : queries->counts[kWorkers]) {
      queries->counts[kNodes].push_back(workers < 1 ? 1 : 1 + (workers - 1) / on_node);
      queries->counts[kDevicesPerNode].push_back(std::min(workers, on_node));
    }
  }
  QueryArrays arrays;
  arrays.size = queries->size;
  for (std::size_t i = 0; i < kCountColumns.size(); ++i) {
    if (!queries->counts[i].empty()) arrays.*kCountColumns[i].member = queries->counts[i].data();
  }
  for (std::size_t i = 0; i < kNumberColumns.size(); ++i) {
    std::vector<double>& column = queries->numbers[i];
    if (column.empty()) continue;
    for (double& value : column) value *= kNumberColumns[i].to_si;
    arrays.*kNumberColumns[i].member = column.data();
  }
  return arrays;
}

// Query i as a plan of its own, with as many devices on each node as there may be.
Plan PlanOf(const Plan& plan, const QueryArrays& q, std::size_t i) {
  const PlanQuery own = QueryOf(plan);
  const PlanQuery asked = QueryAt(q, i, own);
  Plan one = plan;
  one.servers = asked.servers;
  one.local_batch = asked.local_batch;
  one.accumulation_steps = asked.accumulation_steps;
  one.link = Overlay(plan.link, asked.link);
  if (asked.nodes != plan.nodes()) one.hosts.clear();
  if (!asked.has_layout_of(own)) {
    one.placement.assign(static_cast<std::size_t>(asked.nodes), 1);
    int left = asked.workers - asked.nodes;
    for (int& devices : one.placement) {
      const int more = std::min(left, asked.devices_per_node - 1);
      devices += more;
      left -= more;
    }
  }
  return WithSlowNodes(std::move(one), *asked.slow_nodes);
}

// What is wrong with query i, which has no answer, in the names and units of columns.
std::string ProblemOf(const CompiledPlan& compiled, const Plan& plan, const QueryArrays& q,
                      std::size_t i) {
  const QueryProblem problem = compiled.ProblemOf(QueryAt(q, i, QueryOf(plan))).value();
  // A number of a link is refused by the rule of its column, which knows its unit.
  for (const NumberColumn& column : kNumberColumns) {
    const double* const values = q.*column.member;
    if (values == nullptr || std::isnan(values[i]) || problem.field != column.si_name) continue;
    const auto field = std::find_if(
        PlanFields().begin(), PlanFields().end(),
        [&](const PlanField& one) { return one.column == std::string_view(column.name); });
    try {
      Plan stated;
      field->read_column(fmt::format("{:.12g}", values[i] / column.to_si), {"", 0, column.name},
                         &stated);
    } catch (const InputError& e) {
      return e.what();
    }
  }
  return InputError({"", 0, problem.field}, problem.value, problem.problem, problem.allowed).what();
}

// PredictMany whose half a megabyte is on the heap: threads of a service may have less stack.
std::size_t PredictOnHeap(const CompiledPlan& compiled, const QueryArrays& queries,
                          const ForecastArrays& answers) {
  const std::unique_ptr<internal::ExchangeCache> cache(new internal::ExchangeCache);
  return compiled.PredictPart(queries, answers, cache.get());
}

// The problems of the first queries that have no answer; `of` tells that of one.
template <class Failed, class Of>
std::vector<BatchProblem> FirstProblems(std::size_t size, const Failed& failed, const Of& of) {
  std::vector<BatchProblem> problems;
  for (std::size_t i = 0; i < size && problems.size() < kMostProblems; ++i) {
    if (failed(i)) problems.push_back({i, of(i)});
  }
  return problems;
}

// The caveats of the queries with the least and the most of each column: whatever is outside of
// what is known is so at an end. Plans told node by node are bounded in size.
std::vector<BatchFlag> FlagsOf(const Predictor& predictor, const Plan& plan, const QueryArrays& q,
                               const std::vector<QueryStatus>& status) {
  std::set<std::size_t> ends;
  const auto add_ends = [&](const auto* column) {
    if (column == nullptr) return;
    std::optional<std::size_t> least;
    std::optional<std::size_t> most;
    for (std::size_t i = 0; i < q.size; ++i) {
      if (status[i] != QueryStatus::kOk || std::isnan(static_cast<double>(column[i]))) continue;
      if (!least || column[i] < column[*least]) least = i;
      if (!most || column[*most] < column[i]) most = i;
    }
    if (least) ends.insert({*least, *most});
  };
  for (const CountColumn& column : kCountColumns) add_ends(q.*column.member);
  for (const NumberColumn& column : kNumberColumns) add_ends(q.*column.member);
  std::vector<BatchFlag> flags;
  for (const std::size_t i : ends) {
    if (q.nodes != nullptr && q.nodes[i] > kMostPlannedNodes) continue;
    for (const std::string& flag : predictor.Predict(PlanOf(plan, q, i)).flags) {
      const bool told = std::any_of(flags.begin(), flags.end(), [&](const BatchFlag& known) {
        return KindOfFlag(known.flag) == KindOfFlag(flag);
      });
      if (!told) flags.push_back({i, flag});
    }
  }
  return flags;
}

}  // namespace

void TakeTraining(const TargetName& name, Workload* workload) {
  for (const TrainingFact& fact : TrainingFacts()) {
    const auto stated = name.training.find(fact.key);
    if (stated != name.training.end()) fact.Read(stated->second, {"", 0, fact.key}, workload);
  }
}

Snapshot::Snapshot(Inventory inventory, int number, const ServiceOptions& options)
    : inventory_(std::move(inventory)),
      number_(number),
      targets_(options.most_compiled),
      plans_(options.most_compiled) {
  if (inventory_.clusters.empty()) {
    throw InputError({"", 0, "cluster"}, "", "is required", "at least one cluster file");
  }
  RequireDistinct(inventory_.clusters, "clusters");
  RequireDistinct(inventory_.workloads, "workload files");
}

std::vector<Workload> Snapshot::Workloads() const {
  std::map<std::string, Workload> all;
  for (const std::string& name : WorkloadNames()) all.emplace(name, *FindWorkload(name));
  for (const Workload& own : inventory_.workloads) all.insert_or_assign(own.name, own);
  std::vector<Workload> sorted;
  for (auto& [name, workload] : all) sorted.push_back(std::move(workload));
  return sorted;
}

const Cluster& Snapshot::FindCluster(const std::string& name) const {
  const std::vector<Cluster>& clusters = inventory_.clusters;
  const Cluster* cluster =
      name.empty() && clusters.size() == 1 ? &clusters.front() : FindNamed(clusters, name);
  if (cluster != nullptr) return *cluster;
  throw InputError(
      {"", 0, "cluster"}, name,
      name.empty() ? "is required" : "is not served" + DidYouMean(name, NamesOf(clusters)),
      JoinNames(NamesOf(clusters)));
}

TargetParts Snapshot::PartsOf(const TargetName& name) const {
  const std::optional<std::int64_t>& parameters = name.parameters;
  const Cluster& cluster = FindCluster(name.cluster);
  if (name.workload.empty()) {
    throw InputError(
        {"", 0, "workload"}, "", "is required",
        parameters ? "a name for what has so many parameters" : "a name that /v1/workloads lists");
  }
  // Targets are kept by these names, whose length is bounded as their number is.
  CheckedWorkloadName(name.workload, {"", 0, "workload"});
  if (!name.device.empty()) CheckedName(name.device, {"", 0, "device"});
  std::optional<Workload> workload;
  if (const Workload* own = FindNamed(inventory_.workloads, name.workload)) workload = *own;
  if (!workload) workload = FindWorkload(name.workload);
  if (parameters) {
    if (*parameters < 1 || *parameters > kMostParameters) {
      throw InputError({"", 0, "parameters"}, std::to_string(*parameters), "is out of range",
                       fmt::format("1 to {}", kMostParameters));
    }
    // A catalogue's name in another spelling may be the name of somebody's own.
    const bool of_catalogue = workload && workload->name == name.workload;
    if (workload && !of_catalogue && workload->parameters != *parameters) workload.reset();
    if (workload && workload->parameters != *parameters) {
      throw InputError({"", 0, "parameters"}, std::to_string(*parameters),
                       fmt::format("is not the size of {}, which is known", workload->name),
                       fmt::format("{}, or another name of the workload", workload->parameters));
    }
    if (!workload) workload = WorkloadOfSize(name.workload, *parameters);
  }
  if (!workload) {
    const std::vector<Workload> known = Workloads();
    throw InputError({"", 0, "workload"}, name.workload,
                     "is not a known workload" + DidYouMeanWorkload(name.workload, NamesOf(known)),
                     JoinNames(NamesOf(known)) +
                         " (/v1/workloads lists them); or a name of its own, with its parameters");
  }
  const std::string& asked = name.device.empty() ? cluster.device : name.device;
  std::optional<Device> facts;
  if (cluster.device_facts) facts = FindDevice({*cluster.device_facts}, asked);
  if (!facts) facts = FindDevice(inventory_.devices, asked);
  const std::string& device = facts ? facts->name : asked;
  TakeTraining(name, &*workload);
  if (cluster.calibration) {
    TrainAsFitted(
        *cluster.calibration, device,
        [&](const TrainingFact& fact) { return name.training.count(fact.key) > 0; }, &*workload);
  }
  return {cluster, *std::move(workload), facts, device};
}

std::shared_ptr<const Target> Snapshot::Find(const TargetName& name) const {
  std::string key = FindCluster(name.cluster).name;
  for (const std::string& part : {name.workload, name.device}) {
    key += '\0';
    key += part;
  }
  Workload trained;
  TakeTraining(name, &trained);
  for (const TrainingFact& fact : TrainingFacts()) {
    key += '\0';
    if (name.training.count(fact.key) > 0) key += fact.WordOf(trained);
  }
  key += '\0';
  if (name.parameters) key += std::to_string(*name.parameters);
  return targets_.GetOr(key, [&] {
    TargetParts parts = PartsOf(name);
    // Without a data sheet only measurements tell how long it computes.
    if (!parts.facts && !parts.cluster.calibration && !parts.workload.communication_only) {
      throw NoDataSheet(parts.device, inventory_.devices, {"", 0, "device"});
    }
    return std::make_shared<const Target>(
        Target{key, parts.facts,
               Predictor(parts.cluster, std::move(parts.workload), parts.facts, parts.device)});
  });
}

CompiledPlan Snapshot::Compile(const Target& target, const Plan& plan, int servers) const {
  if (UsesServers(plan.strategy) && plan.servers > kMostServers) {
    throw InputError({"", 0, "plan.servers"}, std::to_string(plan.servers), "is out of range",
                     fmt::format("at most {}", kMostServers));
  }
  CompileOptions options;
  const int most = std::clamp(servers, options.most_servers, kMostServers);
  options.most_servers = static_cast<int>(std::bit_ceil(static_cast<unsigned>(most)));
  std::string key = target.key;
  for (const PlanField& field : PlanFields()) {
    key += '\0';
    key += field.write(plan);
  }
  key += '\0' + std::to_string(options.most_servers);
  return plans_.GetOr(key, [&] { return CompiledPlan(target.predictor, plan, options); });
}

Service::Service(Read read, const ServiceOptions& options)
    : read_(std::move(read)),
      options_(options),
      jobs_(options.most_jobs),
      current_(std::make_shared<const Snapshot>(read_(), 1, options)) {}

std::shared_ptr<const Snapshot> Service::Current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

std::shared_ptr<const Target> Service::Find(const Snapshot& snapshot,
                                            const TargetName& name) const {
  if (name.job.empty()) return snapshot.Find(name);
  for (const auto& [key, text] : {std::pair("cluster", &name.cluster),
                                  {"workload", &name.workload},
                                  {"device", &name.device}}) {
    if (text->empty()) continue;
    throw InputError({"", 0, key}, *text, "is what the job says", "one of the two");
  }
  for (const auto& [key, text] : name.training) {
    throw InputError({"", 0, key}, text, "is what the job says", "one of the two");
  }
  if (name.parameters) {
    throw InputError({"", 0, "parameters"}, std::to_string(*name.parameters),
                     "is what the job says", "one of the two");
  }
  return jobs_.Find(name.job);
}

int Service::Reload() {
  const std::lock_guard reading(reading_);
  auto next = std::make_shared<const Snapshot>(read_(), Current()->number() + 1, options_);
  const std::lock_guard lock(mutex_);
  current_.swap(next);
  return current_->number();
}

StatedApart StatedBy(const QueryColumns& columns, int local_batch) {
  return {local_batch, columns.Has(kServers), columns.Has(kWorkers), columns.Has(kSlowNodes)};
}

Plan ReadPlan(const PlanText& text, const std::string& prefix, const Cluster& cluster,
              const StatedApart& apart) {
  const auto place = [&](const char* column) { return InputPlace{"", 0, prefix + column}; };
  Plan plan;
  plan.local_batch = 0;
  const std::optional<std::string> workers = text("workers", true);
  if (workers) {
    plan.placement = FillNodes(ParseInteger(*workers, place("workers"), 1, kMostCount),
                               cluster.devices_per_node);
  }
  bool placed = workers.has_value();
  for (const PlanField& field : PlanFields()) {
    const std::optional<std::string> value = text(field.column, field.unit != nullptr);
    if (!value) continue;
    if (value->size() > kLongestText) {
      throw InputError(place(field.column), value->substr(0, kQuoted), "is too long",
                       fmt::format("at most {} bytes", kLongestText));
    }
    if (std::string_view(field.column) == "placement") {
      if (workers) {
        throw InputError(place("workers"), *workers, "says the same as placement",
                         "one of the two");
      }
      placed = true;
    }
    field.read_column(*value, place(field.column), &plan);
  }
  // Named hosts say how many nodes there are.
  if (!plan.hosts.empty() && !placed) {
    plan.placement.assign(plan.hosts.size(), cluster.devices_per_node);
  }
  const bool of_slow_nodes = plan.slow_speed || plan.slow_local_batch;
  if (apart.slow_nodes && of_slow_nodes && plan.slow_nodes == 0) plan.slow_nodes = 1;
  // Queries that say where their workers are ask for no layout of the plan, which has to be one.
  if (apart.layout && !placed && plan.hosts.empty()) {
    const int nodes =
        std::max(plan.slow_nodes + (plan.slow_local_batch ? 1 : 0), plan.backup_workers + 1);
    plan.placement.assign(static_cast<std::size_t>(std::clamp(nodes, 1, kMostPlannedNodes)), 1);
  }
  if (plan.nodes() > kMostPlannedNodes) {
    throw InputError(place(workers ? "workers" : "placement"), "",
                     fmt::format("uses {} nodes", plan.nodes()),
                     fmt::format("at most {} nodes", kMostPlannedNodes));
  }
  if (plan.local_batch == 0) {
    if (apart.local_batch == 0) {
      throw InputError(place("local_batch"), "", "is required",
                       "samples of one micro-step on one device, like 32");
    }
    plan.local_batch = apart.local_batch;
  }
  const bool of_helpers = TraitsOf(plan.strategy).helpers && plan.server_link.bandwidth;
  if (apart.servers && plan.servers == 0 && (UsesServers(plan.strategy) || of_helpers)) {
    plan.servers = 1;
  }
  CheckPlan(plan, [&](const FieldFacts& field) { return place(field.column); });
  return plan;
}

int UnstatedBatch(const Predictor& predictor) {
  return TrustedBatchesOf(predictor.calibrated_batches()).least;
}

void CheckColumns(const std::string& prefix, std::size_t most, QueryColumns* columns) {
  const char* first = nullptr;
  const auto check = [&](const char* name, std::size_t size) {
    if (size == 0) return;
    if (first == nullptr) {
      first = name;
      columns->size = size;
    }
    if (size == columns->size) return;
    throw InputError({"", 0, prefix + name}, "",
                     fmt::format("has {} numbers, {} has {}", size, first, columns->size),
                     "columns of one length");
  };
  for (std::size_t i = 0; i < kCountColumns.size(); ++i) {
    check(kCountColumns[i].name, columns->counts[i].size());
  }
  for (std::size_t i = 0; i < kNumberColumns.size(); ++i) {
    check(kNumberColumns[i].name, columns->numbers[i].size());
  }
  const std::string whole = prefix.substr(0, prefix.rfind('.'));
  if (first == nullptr) {
    throw InputError({"", 0, whole}, "", "says nothing", "at least one column of numbers");
  }
  if (columns->size > most) {
    throw InputError({"", 0, whole}, std::to_string(columns->size), "plans are too many",
                     fmt::format("at most {}", most));
  }
  const bool nodes = columns->Has(kNodes);
  if (nodes != columns->Has(kDevicesPerNode) || (nodes && !columns->Has(kWorkers))) {
    throw InputError({"", 0, prefix + (nodes ? "nodes" : "devices_per_node")}, "",
                     "is not all of a layout",
                     "workers, nodes and devices_per_node, or workers alone");
  }
}

void CheckSearch(const BatchSearch& search, std::size_t allocations, std::size_t most_plans) {
  const auto place = [](const std::string& key) { return InputPlace{"", 0, "search." + key}; };
  if (const std::optional<QueryProblem> problem = ProblemOf(search)) {
    throw InputError(place(problem->field), problem->value, problem->problem, problem->allowed);
  }
  // A request is bounded besides.
  const auto check = [&](const char* key, int value, int most) {
    if (value <= most) return;
    throw InputError(place(key), std::to_string(value), "is out of range",
                     fmt::format("at most {}", most));
  };
  check("least_global_batch", search.least_global_batch, kMostBatch);
  check("most_global_batch", search.most_global_batch, kMostBatch);
  check("least_local_batch", search.least_local_batch, kMostBatch);
  check("most_local_batch", search.most_local_batch, kMostBatch);
  const std::size_t most_tried = most_plans / std::max<std::size_t>(1, allocations);
  check("candidates", search.candidates,
        static_cast<int>(std::min<std::size_t>(most_tried, kMostCount)));
  if (static_cast<std::size_t>(MostTried(search)) > most_tried) {
    throw InputError({"", 0, "allocations"}, std::to_string(allocations),
                     fmt::format("with {} batches each are too many", MostTried(search)),
                     fmt::format("at most {} batches in all, or fewer candidates", most_plans));
  }
}

InputError InRequestTerms(const InputError& error) { return InRow(error, error.place()); }

ForecastColumns PredictMany(const Snapshot& snapshot, const Target& target, const Plan& plan,
                            bool interval, QueryColumns* queries) {
  const std::vector<int>& servers = queries->counts[kServers];
  const int most_servers =
      servers.empty() ? plan.servers : *std::max_element(servers.begin(), servers.end());
  const CompiledPlan compiled = snapshot.Compile(target, plan, most_servers);
  const QueryArrays arrays = BindQueries(target, queries);
  ForecastColumns answer;
  answer.step_time_s.resize(arrays.size);
  answer.status.resize(arrays.size);
  answer.memory.resize(arrays.size);
  ForecastArrays into;
  into.step_time_s = answer.step_time_s.data();
  into.status = answer.status.data();
  into.memory = answer.memory.data();
  if (interval) {
    answer.low_s.resize(arrays.size);
    answer.high_s.resize(arrays.size);
    into.low_s = answer.low_s.data();
    into.high_s = answer.high_s.data();
  }
  answer.failed = PredictOnHeap(compiled, arrays, into);
  if (answer.failed > 0) {
    answer.problems = FirstProblems(
        arrays.size, [&](std::size_t i) { return answer.status[i] != QueryStatus::kOk; },
        [&](std::size_t i) { return ProblemOf(compiled, plan, arrays, i); });
  }
  answer.flags = FlagsOf(target.predictor, plan, arrays, answer.status);
  return answer;
}

ChosenBatches Recommend(const Snapshot& snapshot, const Target& target, const Plan& plan,
                        const BatchSearch& search, QueryColumns* allocations) {
  const auto refuse = [](bool stated, const char* name) {
    if (!stated) return;
    throw InputError({"", 0, std::string("allocations.") + name}, "", "is not what allocations say",
                     "workers, nodes, devices_per_node, servers, slow_nodes");
  };
  for (const CountIndex i : {kLocalBatch, kAccumulationSteps}) {
    refuse(allocations->Has(i), kCountColumns[i].name);
  }
  for (std::size_t i = 0; i < kNumberColumns.size(); ++i) {
    refuse(!allocations->numbers[i].empty(), kNumberColumns[i].name);
  }
  BindQueries(target, allocations);
  const auto value = [&](CountIndex i, std::size_t row, int otherwise) {
    return allocations->Has(i) ? allocations->counts[i][row] : otherwise;
  };
  std::vector<Allocation> rows;
  rows.reserve(allocations->size);
  int most_servers = plan.servers;
  for (std::size_t i = 0; i < allocations->size; ++i) {
    rows.push_back({value(kWorkers, i, plan.workers()), value(kNodes, i, plan.nodes()),
                    value(kDevicesPerNode, i, DevicesOnFullestNode(plan.placement)),
                    value(kServers, i, plan.servers), value(kSlowNodes, i, plan.slow_nodes)});
    most_servers = std::max(most_servers, rows.back().servers);
  }
  const CompiledPlan compiled = snapshot.Compile(target, plan, most_servers);
  ChosenBatches chosen;
  chosen.choices.resize(rows.size());
  chosen.failed = ChooseBatches(compiled, rows.data(), rows.size(), search, chosen.choices.data());
  // What was chosen, as queries; where nothing was, the smallest step of the allocation.
  for (const BatchChoice& choice : chosen.choices) {
    allocations->counts[kLocalBatch].push_back(std::max(choice.local_batch, 1));
    allocations->counts[kAccumulationSteps].push_back(std::max(choice.accumulation_steps, 1));
  }
  const QueryArrays arrays = BindQueries(target, allocations);
  std::vector<QueryStatus> status(arrays.size);
  chosen.memory.resize(arrays.size);
  ForecastArrays into;
  into.status = status.data();
  into.memory = chosen.memory.data();
  PredictOnHeap(compiled, arrays, into);
  const auto failed = [&](std::size_t i) { return chosen.choices[i].local_batch == 0; };
  chosen.problems = FirstProblems(arrays.size, failed, [&](std::size_t i) {
    if (status[i] != QueryStatus::kOk) return ProblemOf(compiled, plan, arrays, i);
    if (compiled.MostLocalBatch(QueryAt(arrays, i, QueryOf(plan))) < 1) {
      return std::string("a device's memory holds not even one sample");
    }
    return std::string("no batch is within the limits of the search and of a device's memory");
  });
  for (std::size_t i = 0; i < arrays.size; ++i) {
    if (!failed(i)) continue;
    status[i] = QueryStatus::kBadBatch;  // no plan, which has no flags
    chosen.memory[i] = MemoryVerdict::kUnknown;
  }
  chosen.flags = FlagsOf(target.predictor, plan, arrays, status);
  return chosen;
}

}  // namespace stepcast::serve
