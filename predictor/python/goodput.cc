// Answers for stepcast.pollux: about a job of which nothing is known but its measured steps, its
// parameters as plain numbers, and its throughput and goodput for the allocations that a scheduler
// considers.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/online/online_calibration.h"
#include "data/plan/limits.h"
#include "data/values/names.h"
#include "data/values/workload_scope.h"
#include "model/statistics/noise_scale.h"
#include "model/statistics/scatter.h"
#include "model/step/parameters.h"
#include "model/step/priors.h"
#include "predictor/python/arrays.h"
#include "predictor/python/bindings.h"
#include "predictor/search/allocations.h"

namespace stepcast::python {
namespace {

// Names of what has none.
constexpr const char* kJob = "job";
constexpr const char* kDevice = "device";
// Batches that Pollux tries for an allocation.
constexpr int kPolluxCandidates = 50;

// "link_bandwidth_bytes_per_s": the parameter's name with its SI unit.
std::string SiName(const ParameterSpec& spec) {
  const auto ends = [&](const char* end) { return spec.unit.ends_with(end); };
  std::string name(spec.name);
  if (ends("bit/s") || ends("B/s")) return name + "_bytes_per_s";
  if (ends("B")) return name + "_bytes";
  return ends("s") ? name + "_s" : name;
}

// The parameters of a job that a calibration has not seen, with their covariance: those of the
// cluster as it was calibrated, or their priors; those of the job from its priors.
class JobCalibration {
 public:
  explicit JobCalibration(const Cluster& cluster, const Workload& workload) {
    const ClusterPriors priors =
        MakeClusterPriors(cluster, ChooseDevice(py::none(), cluster).facts);
    for (std::size_t i = 0; i < priors.size(); ++i) {
      Add(kClusterScope, kClusterParameterSpecs[i], priors[i]);
    }
    const WorkloadPriors own = MakeWorkloadPriors(workload, std::nullopt);
    for (std::size_t i = 0; i < own.size(); ++i) {
      Add(WorkloadScope(workload, cluster.device), kWorkloadParameterSpecs[i], own[i]);
    }
    calibration_.residual_log_sd = kUncalibratedScatter;
    calibration_.log_covariance = Eigen::VectorXd::Map(log_variances_.data(), size()).asDiagonal();
    if (cluster.calibration) TakeOver(*cluster.calibration);
  }

  // Values by their SI names; the others stay as they are.
  void Set(const py::dict& values) {
    for (Eigen::Index i = 0; i < size(); ++i) {
      const std::string name = SiName(*specs_[At(i)]);
      if (!values.contains(name)) continue;
      Parameter(i).value = RealOf(values[name.c_str()], name.c_str()) / specs_[At(i)]->si_per_unit;
    }
  }

  // A message of a size that is known within exp(+-log_sd) alone: only bytes over bandwidth shows,
  // so all bandwidths err together.
  void BlurMessage(double log_sd) {
    constexpr ClusterParameter kBandwidths[] = {kLinkBandwidth, kFlowBandwidth, kHostBandwidth};
    for (const int i : kBandwidths) {
      for (const int j : kBandwidths) calibration_.log_covariance(i, j) += log_sd * log_sd;
      Parameter(i).log_sd = std::sqrt(calibration_.log_covariance(i, i));
    }
  }

  const Calibration& calibration() const { return calibration_; }

 private:
  static std::size_t At(Eigen::Index i) { return static_cast<std::size_t>(i); }
  Eigen::Index size() const { return static_cast<Eigen::Index>(specs_.size()); }
  ParameterEstimate& Parameter(Eigen::Index i) { return calibration_.parameters[At(i)]; }

  void Add(const std::string& scope, const ParameterSpec& spec, const Prior& prior) {
    ParameterEstimate e;
    e.scope = scope;
    e.name = spec.name;
    e.unit = spec.unit;
    e.value = e.prior_value = prior.si / spec.si_per_unit;
    e.log_sd = e.prior_log_sd = prior.log_sd;
    calibration_.parameters.push_back(std::move(e));
    specs_.push_back(&spec);
    log_variances_.push_back(prior.log_sd * prior.log_sd);
  }

  void TakeOver(const Calibration& known) {
    std::vector<std::pair<Eigen::Index, Eigen::Index>> taken;
    for (Eigen::Index i = 0; i < kClusterParameterCount; ++i) {
      const auto at = known.Find(kClusterScope, Parameter(i).name);
      if (!at) continue;
      Parameter(i) = known.parameters[At(*at)];
      taken.emplace_back(i, *at);
    }
    for (const auto& [i, known_i] : taken) {
      for (const auto& [j, known_j] : taken) {
        calibration_.log_covariance(i, j) = known.log_covariance(known_i, known_j);
      }
    }
    calibration_.residual_log_sd = known.residual_log_sd;
    calibration_.sources = known.sources;
  }

  Calibration calibration_;
  std::vector<const ParameterSpec*> specs_;
  std::vector<double> log_variances_;
};

// The cluster as a job sees it whose messages are of a size that nobody says.
Cluster WithUnknownMessage(Cluster cluster, const Workload& workload, double message_log_sd) {
  JobCalibration job(cluster, workload);
  job.BlurMessage(message_log_sd);
  cluster.calibration = job.calibration();
  return cluster;
}

Cluster LearnStepsTogether(const Cluster& cluster, const Workload& workload,
                           const std::vector<Plan>& plans,
                           const std::vector<double>& step_times_s) {
  std::vector<MeasuredStep> steps;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    steps.push_back({plans[i], Seconds(step_times_s.at(i))});
  }
  const ChosenDevice on = ChooseDevice(py::none(), cluster);
  const py::gil_scoped_release release;
  return LearnTogether(cluster, workload, on.facts, on.name, steps);
}

// Parameters that the calibration has of the cluster and of the workload, in SI units by name.
py::dict SiParameters(const Cluster& cluster, const Workload& workload) {
  py::dict values;
  if (!cluster.calibration) return values;
  const auto take = [&](const std::string& scope, const auto& specs) {
    for (const ParameterSpec& spec : specs) {
      const auto at = cluster.calibration->Find(scope, spec.name);
      if (!at) continue;
      const double value = cluster.calibration->parameters[static_cast<std::size_t>(*at)].value;
      values[SiName(spec).c_str()] = value * spec.si_per_unit;
    }
  };
  take(kClusterScope, kClusterParameterSpecs);
  take(WorkloadScope(workload, cluster.device), kWorkloadParameterSpecs);
  return values;
}

std::optional<double> OptionalOf(const py::dict& values, const char* name) {
  if (!values.contains(name) || values[name].is_none()) return std::nullopt;
  return RealOf(values[name], name);
}

CompiledPlan Compile(const py::dict& values) {
  Workload workload;
  workload.name = kJob;
  workload.gradient_bytes = Bytes(RealOf(values["gradient_bytes"], "gradient_bytes"));
  if (!(workload.gradient_bytes.si() >= 1) || !std::isfinite(workload.gradient_bytes.si())) {
    throw InputError(Keyword("gradient_bytes"), ReprOf(values["gradient_bytes"]), "is out of range",
                     "at least 1");
  }
  workload.parameters = workload.trainable_parameters =
      static_cast<std::int64_t>(workload.gradient_bytes.in(kBytes) / kBytesPerFloat);
  Cluster cluster;
  cluster.name = cluster.title = kJob;
  cluster.device = kDevice;
  cluster.nics_per_node = IntOf(values["nics_per_node"], "nics_per_node");
  JobCalibration job(cluster, workload);
  job.Set(values);
  cluster.calibration = job.calibration();

  Plan plan;
  plan.strategy = ParseEnum<Strategy>(TextOf(values["strategy"], "strategy"), Keyword("strategy"));
  if (TraitsOf(plan.strategy).may_have_servers()) {
    throw InputError(Keyword("strategy"), StrategyName(plan.strategy),
                     "needs servers, which allocations do not name",
                     "none, allreduce, ring, tree, halving-doubling, hierarchical");
  }
  if (const auto rtt = OptionalOf(values, "rtt_s")) plan.link.rtt = Seconds(*rtt);
  plan.link.loss = OptionalOf(values, "loss_rate");
  return {Predictor(cluster, workload, std::nullopt), plan};
}

// Throughput of a job, and what its samples are worth: see model/statistics/noise_scale.h.
class Goodput {
 public:
  // `values` as PerfParams of stepcast.pollux; a noise scale of none makes all samples worth alike.
  Goodput(const py::dict& values, std::optional<double> noise_scale, int initial_batch)
      : compiled_(Compile(values)), noise_scale_(noise_scale), initial_batch_(initial_batch) {}

  double Efficiency(double batch) const {
    if (!noise_scale_) return 1;
    return StatisticalEfficiency(Samples(*noise_scale_), Samples(1.0 * initial_batch_),
                                 Samples(batch));
  }

  // Throughput, times efficiency where `worth` is set.
  py::object Evaluate(py::handle nodes, py::handle workers, py::handle local_batch,
                      py::handle accumulated, bool worth) const;

  py::tuple Optimize(py::handle nodes, py::handle workers, int most_batch, int least_local,
                     int most_local, bool accumulate) const;

  const CompiledPlan& compiled() const { return compiled_; }

 private:
  static int MicroSteps(int accumulated) {
    return accumulated < kMostCount ? accumulated + 1 : kNoInt;
  }
  static PlanQuery QueryAt(int nodes, int workers, int local_batch, int accumulated) {
    PlanQuery q;
    q.workers = workers;
    q.nodes = nodes;
    q.devices_per_node = MostEven(workers, nodes);
    q.local_batch = local_batch;
    q.accumulation_steps = MicroSteps(accumulated);
    return q;
  }
  static double SamplesOf(int workers, int local_batch, int accumulated) {
    return (accumulated + 1.0) * workers * local_batch;
  }

  void RequireAnswer(double step_time_s, const PlanQuery& q, bool worth) const;
  BatchChoice Best(int nodes, int workers, int most_batch, int least_local, int most_local,
                   bool accumulate) const;

  CompiledPlan compiled_;
  std::optional<double> noise_scale_;
  int initial_batch_;
};

// A number as NumPy's functions return it.
py::object NumpyFloat(double value) {
  static PyObject* const type =
      py::object(py::module_::import("numpy").attr("float64")).release().ptr();
  return py::reinterpret_borrow<py::object>(type)(value);
}

void Goodput::RequireAnswer(double step_time_s, const PlanQuery& q, bool worth) const {
  const auto refuse = [&](const char* problem, const std::string& allowed) {
    throw InputError(Keyword("allocation"),
                     "num_nodes " + std::to_string(q.nodes) + ", num_replicas " +
                         std::to_string(q.workers) + ", atomic_bsz " +
                         std::to_string(q.local_batch) + ", accum_steps " +
                         std::to_string(q.accumulation_steps - 1),
                     problem, allowed);
  };
  if (std::isnan(step_time_s)) {
    refuse(QueryStatusText(compiled_.StatusOf(q)),
           "1 <= num_nodes <= num_replicas, 1 <= atomic_bsz, 0 <= accum_steps");
  }
  if (worth && SamplesOf(q.workers, q.local_batch, q.accumulation_steps - 1) < initial_batch_) {
    refuse("is a smaller batch than the initial one",
           "at least " + std::to_string(initial_batch_) + " samples together");
  }
}

py::object Goodput::Evaluate(py::handle nodes, py::handle workers, py::handle local_batch,
                             py::handle accumulated, bool worth) const {
  constexpr auto kKind = Argument::Kind::kWhole;
  const Argument arguments[] = {
      {nodes, "num_nodes", kKind},
      {workers, "num_replicas", kKind},
      {local_batch, "atomic_bsz", kKind},
      {accumulated, "accum_steps", kKind},
  };
  bool scalar = true;
  std::vector<const Argument*> all;
  for (const Argument& argument : arguments) {
    if (!argument.given()) {
      throw InputError(Keyword(argument.name()), "None", "is required", "a number or an array");
    }
    scalar = scalar && argument.scalar();
    if (!argument.scalar()) all.push_back(&argument);
  }
  if (scalar) {
    const PlanQuery q = QueryAt(arguments[0].whole(), arguments[1].whole(), arguments[2].whole(),
                                arguments[3].whole());
    const double step_time_s = compiled_.StepTime(q).in(kSeconds);
    RequireAnswer(step_time_s, q, worth);
    const double samples = SamplesOf(q.workers, q.local_batch, q.accumulation_steps - 1);
    return NumpyFloat(samples / step_time_s * (worth ? Efficiency(samples) : 1));
  }
  const Shape shape = BroadcastShape(all);
  const Reader readers[] = {
      {arguments[0], shape}, {arguments[1], shape}, {arguments[2], shape}, {arguments[3], shape}};
  py::array_t<double> result(shape);
  double* const answers = result.mutable_data();
  std::optional<PlanQuery> refused;
  double refused_time = 0;
  {
    py::gil_scoped_release release;
    std::vector<int> buffers[4];
    std::vector<int> devices_per_node;
    std::vector<int> accumulation_steps;
    const py::ssize_t size = SizeOf(shape);
    for (py::ssize_t begin = 0; begin < size && !refused; begin += kBlock) {
      const py::ssize_t count = std::min(kBlock, size - begin);
      const int* const n = readers[0].Ints(begin, count, &buffers[0]);
      const int* const w = readers[1].Ints(begin, count, &buffers[1]);
      const int* const b = readers[2].Ints(begin, count, &buffers[2]);
      const int* const a = readers[3].Ints(begin, count, &buffers[3]);
      QueryArrays q;
      q.size = static_cast<std::size_t>(count);
      devices_per_node.resize(q.size);
      accumulation_steps.resize(q.size);
      for (std::size_t i = 0; i < q.size; ++i) {
        devices_per_node[i] = MostEven(w[i], n[i]);
        accumulation_steps[i] = MicroSteps(a[i]);
      }
      q.nodes = n;
      q.workers = w;
      q.devices_per_node = devices_per_node.data();
      q.local_batch = b;
      q.accumulation_steps = accumulation_steps.data();
      ForecastArrays times;
      times.step_time_s = answers + begin;
      compiled_.PredictMany(q, times);
      for (py::ssize_t i = 0; i < count; ++i) {
        double& answer = answers[begin + i];
        const double samples = SamplesOf(w[i], b[i], a[i]);
        // Not a number counts as well.
        if ((!(answer > 0) || (worth && samples < initial_batch_)) && !refused) {
          refused = QueryAt(n[i], w[i], b[i], a[i]);
          refused_time = answer;
        }
        answer = samples / answer * (worth ? Efficiency(samples) : 1);
      }
    }
  }
  if (refused) RequireAnswer(refused_time, *refused, worth);
  return result;
}

// The batches that one replica may have follow from how its gradient's noise is estimated: from the
// micro-steps of one update, where there are at least two. So a single replica has its initial
// batch without accumulation, and any larger batch in at least two micro-steps.
BatchChoice Goodput::Best(int nodes, int workers, int most_batch, int least_local, int most_local,
                          bool accumulate) const {
  const Allocation allocation{workers, nodes, MostEven(workers, nodes), 0};
  BatchSearch search;
  // Pollux's own candidates and rule: the highest goodput wins, whatever its batch.
  search.candidates = kPolluxCandidates;
  search.tolerance = 0;
  // Where the smallest local batch on all replicas is beyond the limit, it is the only one.
  // So it is where replicas cannot share the initial batch evenly, and round it up.
  const double share = std::ceil(1.0 * initial_batch_ / workers);
  const double least = std::max(share, 1.0 * least_local) * workers;
  search.least_global_batch = static_cast<int>(std::min<double>(least, kMostBatch));
  search.most_global_batch = std::max(most_batch, search.least_global_batch);
  search.least_local_batch = least_local;
  search.most_local_batch = most_local;
  search.accumulate = accumulate;
  search.noise_scale = noise_scale_;
  if (noise_scale_) search.initial_batch = initial_batch_;
  BatchChoice best;
  const auto choose = [&](const BatchSearch& limits) {
    BatchChoice choice;
    ChooseBatches(compiled_, &allocation, 1, limits, &choice);
    if (choice.goodput > best.goodput) best = choice;
  };
  if (workers > 1) {
    choose(search);
    return best;
  }
  BatchSearch one = search;
  one.candidates = 1;
  one.most_global_batch = one.least_global_batch;
  choose(one);
  if (!accumulate) return best;
  const double ratio = 1.0 * search.most_global_batch / search.least_global_batch;
  for (int i = 1; i < search.candidates; ++i) {
    const double batch = search.least_global_batch * std::pow(ratio, i / (search.candidates - 1.0));
    const int whole = static_cast<int>(std::lround(batch));
    if (whole <= one.most_global_batch) continue;
    one.least_global_batch = one.most_global_batch = whole;
    one.most_local_batch = std::min(most_local, (whole + 1) / 2);
    if (one.most_local_batch >= least_local) choose(one);
  }
  return best;
}

py::tuple Goodput::Optimize(py::handle nodes, py::handle workers, int most_batch, int least_local,
                            int most_local, bool accumulate) const {
  constexpr auto kKind = Argument::Kind::kWhole;
  const Argument num_nodes(nodes, "num_nodes", kKind);
  const Argument num_replicas(workers, "num_replicas", kKind);
  const auto check = [](int n, int w) {
    if (n >= 1 && n <= w) return;
    throw InputError(Keyword("allocation"),
                     "num_nodes " + std::to_string(n) + ", num_replicas " + std::to_string(w),
                     "is none", "1 <= num_nodes <= num_replicas");
  };
  if (num_nodes.scalar() && num_replicas.scalar()) {
    const int n = num_nodes.whole();
    const int w = num_replicas.whole();
    check(n, w);
    const BatchChoice c = Best(n, w, most_batch, least_local, most_local, accumulate);
    return py::make_tuple(c.goodput, c.local_batch, std::max(c.accumulation_steps - 1, 0));
  }
  const Shape shape = BroadcastShape({&num_nodes, &num_replicas});
  const Reader read_nodes(num_nodes, shape);
  const Reader read_replicas(num_replicas, shape);
  py::array_t<double> goodput(shape);
  py::array_t<std::int64_t> local_batch(shape);
  py::array_t<std::int64_t> accumulated(shape);
  double* const goodputs = goodput.mutable_data();
  std::int64_t* const batches = local_batch.mutable_data();
  std::int64_t* const steps = accumulated.mutable_data();
  {
    py::gil_scoped_release release;
    std::vector<int> buffers[2];
    const py::ssize_t size = SizeOf(shape);
    for (py::ssize_t begin = 0; begin < size; begin += kBlock) {
      const py::ssize_t count = std::min(kBlock, size - begin);
      const int* const n = read_nodes.Ints(begin, count, &buffers[0]);
      const int* const w = read_replicas.Ints(begin, count, &buffers[1]);
      for (py::ssize_t i = 0; i < count; ++i) {
        check(n[i], w[i]);
        const BatchChoice c = Best(n[i], w[i], most_batch, least_local, most_local, accumulate);
        goodputs[begin + i] = c.goodput;
        batches[begin + i] = c.local_batch;
        steps[begin + i] = std::max(c.accumulation_steps - 1, 0);
      }
    }
  }
  return py::make_tuple(goodput, local_batch, accumulated);
}

}  // namespace

void BindGoodput(py::module_* m) {
  m->def("with_unknown_message", &WithUnknownMessage, py::arg("cluster"), py::arg("workload"),
         py::arg("message_log_sd"));
  m->def("learn_together", &LearnStepsTogether, py::arg("cluster"), py::arg("workload"),
         py::arg("plans"), py::arg("step_times_s"));
  m->def("si_parameters", &SiParameters, py::arg("cluster"), py::arg("workload"));
  py::class_<Goodput>(*m, "Goodput")
      .def(py::init<const py::dict&, std::optional<double>, int>(), py::arg("values"),
           py::arg("noise_scale"), py::arg("initial_batch"))
      .def("evaluate", &Goodput::Evaluate, py::arg("num_nodes"), py::arg("num_replicas"),
           py::arg("atomic_bsz"), py::arg("accum_steps"), py::arg("worth"))
      .def("optimize", &Goodput::Optimize, py::arg("num_nodes"), py::arg("num_replicas"),
           py::arg("most_batch"), py::arg("least_local"), py::arg("most_local"),
           py::arg("accumulate"));
}

}  // namespace stepcast::python
