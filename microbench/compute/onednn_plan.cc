#include "microbench/compute/onednn_plan.h"

#include <omp.h>
#include <sys/mman.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <new>
#include <optional>
#include <set>
#include <stdexcept>
#include <system_error>

#include "microbench/compute/onednn_loops.h"

namespace stepcast {
namespace {

// As frameworks align tensors, and a cache line.
constexpr std::size_t kAlignment = 64;
// Sets of small tensors end here, whatever the caches.
constexpr std::size_t kMostBytes = std::size_t{1} << 30U;
// Tensors of some bytes, as biases, stand beside each other in a framework: each on a page of its
// own, more of them would measure translations of addresses.
constexpr std::size_t kMostSets = 64;

std::size_t Aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::byte* MapBytes(std::size_t bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();  // NOLINT(*-cstyle-cast): the C library's
  return static_cast<std::byte*>(at);
}

double Seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Time that threads of this process stood ready and were not let run. Linux counts it for each
// (Documentation/scheduler/sched-stats.rst); nothing where it does not.
std::optional<double> SecondsInQueue() {
  std::error_code error;
  double total = 0;
  for (std::filesystem::directory_iterator task("/proc/self/task", error), end;
       !error && task != end; task.increment(error)) {
    std::ifstream file(task->path() / "schedstat");
    double ran = 0;
    double waited = 0;
    if (!(file >> ran >> waited)) return std::nullopt;
    total += 1e-9 * waited;
  }
  if (error) return std::nullopt;
  return total;
}

}  // namespace

TimedRun TimeRun(int threads, const std::function<void()>& work) {
  // One thread never sleeps, so that time without the processor is time that others had. With more,
  // those that wait for the slowest sleep or spin as OpenMP likes, and only the queue tells.
  const std::optional<double> queue = threads == 1 ? std::nullopt : SecondsInQueue();
  const double cpu = Seconds(CLOCK_PROCESS_CPUTIME_ID);
  const double start = Seconds(CLOCK_MONOTONIC);
  work();
  TimedRun run;
  run.seconds = Seconds(CLOCK_MONOTONIC) - start;
  if (threads == 1) {
    run.own_share = std::min(1.0, (Seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu) / run.seconds);
  } else if (queue.has_value()) {
    const double waited = SecondsInQueue().value_or(*queue) - *queue;
    run.own_share = std::clamp(1 - waited / (run.seconds * threads), 0.0, 1.0);
  }
  return run;
}

OneDnnPlan::OneDnnPlan(const dnnl::engine& engine, int threads, const ColdCaches& cold)
    : engine_(engine), stream_(engine), threads_(threads), cold_(cold) {}

OneDnnPlan::~OneDnnPlan() {
  if (arena_ != nullptr) munmap(arena_, arena_bytes_);
}

TensorId OneDnnPlan::Tensor(const dnnl::memory::desc& desc, TensorRole role, TensorFill fill) {
  tensors_.push_back({desc, role, fill, tensors_.size(), desc.get_size()});
  return tensors_.size() - 1;
}

TensorId OneDnnPlan::View(TensorId tensor, const dnnl::memory::desc& desc) {
  tensors_.push_back({desc, tensors_[tensor].role, tensors_[tensor].fill, tensor, 0});
  return tensors_.size() - 1;
}

void OneDnnPlan::Append(Steps* steps, const std::vector<TensorId>& tensors,
                        std::function<void(const TensorAddresses&)> loop) {
  std::unordered_map<int, TensorId> arguments;
  for (const TensorId tensor : tensors) {
    arguments.emplace(static_cast<int>(arguments.size()), tensor);
  }
  steps->steps.push_back({{}, std::move(arguments), std::move(loop), {}});
}

TensorId OneDnnPlan::Reordered(TrainingPass pass, TensorId tensor, const dnnl::memory::desc& desc,
                               TensorRole role) {
  if (Description(tensor) == desc) return tensor;
  dnnl::primitive_attr user_scratch;
  user_scratch.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const TensorId result = Tensor(desc, role);
  const dnnl::reorder::primitive_desc reorder(engine_, Description(tensor), engine_, desc,
                                              user_scratch);
  Call<dnnl::reorder>(pass, reorder, {{DNNL_ARG_FROM, tensor}, {DNNL_ARG_TO, result}});
  return result;
}

void OneDnnPlan::Name(TrainingPass pass, const std::string& implementation) {
  std::string& names = StepsOf(pass)->names;
  if (names.find(implementation) != std::string::npos) return;
  names += (names.empty() ? "" : " + ") + implementation;
}

const std::string& OneDnnPlan::Names(TrainingPass pass) const {
  return passes_[static_cast<std::size_t>(pass)].names;
}

OneDnnPlan::Layout OneDnnPlan::Measure() const {
  Layout layout;
  for (const TensorPlace& tensor : tensors_) {
    if (tensor.role != TensorRole::kGiven && tensor.bytes > kAlwaysMappedBytes) continue;
    (tensor.role == TensorRole::kTemporary ? layout.temporaries : layout.set) +=
        Aligned(tensor.bytes);
  }
  std::vector<const Steps*> all = {&prime_};
  for (const Steps& pass : passes_) all.push_back(&pass);
  layout.least_used = layout.set;
  for (const Steps* steps : all) {
    std::set<TensorId> touched;
    for (const Step& step : steps->steps) {
      for (const auto& [name, tensor] : step.arguments) touched.insert(tensors_[tensor].memory);
    }
    std::size_t mapped = 0;
    std::size_t used = 0;
    for (const TensorId id : touched) {
      const TensorPlace& tensor = tensors_[id];
      if (tensor.role != TensorRole::kGiven && tensor.bytes > kAlwaysMappedBytes) {
        mapped += Aligned(tensor.bytes);
      } else if (tensor.role != TensorRole::kTemporary) {
        used += Aligned(tensor.bytes);
      }
    }
    layout.mapped = std::max(layout.mapped, mapped);
    if (steps != &prime_ && used > 0) layout.least_used = std::min(layout.least_used, used);
  }
  return layout;
}

double OneDnnPlan::LeastBytes() const {
  const Layout layout = Measure();
  return static_cast<double>(layout.set) + static_cast<double>(layout.temporaries) +
         static_cast<double>(layout.mapped);
}

void OneDnnPlan::Place() {
  std::size_t in_set = 0;
  std::size_t in_temporaries = 0;
  for (TensorPlace& tensor : tensors_) {
    tensor.mapped = tensor.role != TensorRole::kGiven && tensor.bytes > kAlwaysMappedBytes;
    if (tensor.mapped) continue;
    std::size_t& end = tensor.role == TensorRole::kTemporary ? in_temporaries : in_set;
    tensor.offset = end;
    end += Aligned(tensor.bytes);
  }
}

void OneDnnPlan::Fill(std::byte* to, const TensorPlace& tensor) {
  // Small enough that sums over thousands of products stay far from overflow.
  constexpr float kStretch = 0.1F;
  const dnnl::memory::data_type type = tensor.desc.data_type();
  const bool noise = tensor.fill == TensorFill::kNoise;
  if (tensor.fill == TensorFill::kOne && type == dnnl::memory::data_type::f32) {
    std::fill_n(reinterpret_cast<float*>(to), tensor.bytes / sizeof(float), 1.0F);
  } else if (noise && type == dnnl::memory::data_type::f32) {
    FillNoise(reinterpret_cast<float*>(to), tensor.bytes / sizeof(float), kStretch);
  } else if (noise && type == dnnl::memory::data_type::bf16) {
    FillNoiseBf16(reinterpret_cast<std::uint16_t*>(to), tensor.bytes / 2, kStretch);
  } else {
    ZeroBytes(to, tensor.bytes);
  }
}

void OneDnnPlan::Allocate(double free_bytes) {
  omp_set_num_threads(threads_);
  const Layout layout = Measure();
  Place();
  // At least two, so that no run finds what the last one left; where only one fits into memory, it
  // is so large that it evicts itself.
  const std::size_t used = std::max<std::size_t>(1, layout.least_used);
  const std::size_t reach = std::clamp(used * cold_.layers, cold_.least_bytes, cold_.most_bytes);
  const std::size_t most =
      std::clamp<std::size_t>(kMostBytes / std::max<std::size_t>(1, layout.set), 2, kMostSets);
  std::size_t count = std::clamp<std::size_t>((reach + used - 1) / used, 2, most);
  const double others =
      static_cast<double>(layout.temporaries) + static_cast<double>(layout.mapped);
  while (count > 1 &&
         static_cast<double>(count) * static_cast<double>(layout.set) + others > free_bytes) {
    --count;
  }

  arena_bytes_ = std::max(kAlignment, count * layout.set + layout.temporaries);
  arena_ = MapBytes(arena_bytes_);
  sets_.resize(count);
  for (std::size_t s = 0; s < count; ++s) {
    BufferSet& set = sets_[s];
    set.addresses.assign(tensors_.size(), nullptr);
    for (TensorId id = 0; id < tensors_.size(); ++id) {
      const TensorPlace& tensor = tensors_[id];
      const TensorPlace& owner = tensors_[tensor.memory];
      if (!owner.mapped) {
        const std::size_t base =
            owner.role == TensorRole::kTemporary ? count * layout.set : s * layout.set;
        set.addresses[id] = arena_ + base + owner.offset;
        if (tensor.memory == id && (s == 0 || owner.role != TensorRole::kTemporary)) {
          Fill(set.addresses[id], tensor);
        }
      }
      set.memories.emplace_back(tensor.desc, engine_, static_cast<void*>(nullptr));
      // Also writes the zeros that kernels rely on where blocks reach beyond the channels.
      if (!owner.mapped && tensor.desc.get_size() > 0) {
        set.memories.back().set_data_handle(set.addresses[id]);
      }
    }
  }
  for (Steps& pass : passes_) Bind(&pass);
  Bind(&prime_);
  for (std::size_t s = 0; s < count; ++s) Execute(&prime_, s);
}

void OneDnnPlan::Bind(Steps* steps) {
  std::set<TensorId> mapped;
  for (Step& step : steps->steps) {
    for (const auto& [name, tensor] : step.arguments) {
      if (tensors_[tensors_[tensor].memory].mapped) mapped.insert(tensors_[tensor].memory);
    }
    if (step.loop) continue;
    for (const BufferSet& set : sets_) {
      std::unordered_map<int, dnnl::memory> memories;
      for (const auto& [name, tensor] : step.arguments) memories[name] = set.memories[tensor];
      step.memories.push_back(std::move(memories));
    }
  }
  steps->mapped.assign(mapped.begin(), mapped.end());
}

void OneDnnPlan::MapNew(Steps* steps, BufferSet* set) {
  for (const TensorId id : steps->mapped) {
    set->addresses[id] = MapBytes(tensors_[id].bytes);
    set->memories[id].set_data_handle(set->addresses[id]);
  }
}

void OneDnnPlan::Unmap(Steps* steps, BufferSet* set) {
  for (const TensorId id : steps->mapped) {
    if (set->addresses[id] != nullptr) munmap(set->addresses[id], tensors_[id].bytes);
    set->addresses[id] = nullptr;
  }
}

void OneDnnPlan::Execute(Steps* steps, std::size_t set) {
  try {
    MapNew(steps, &sets_[set]);
    for (Step& step : steps->steps) {
      if (step.loop) {
        step.loop(sets_[set].addresses);
      } else {
        step.primitive.execute(stream_, step.memories[set]);
      }
    }
    stream_.wait();
  } catch (...) {
    Unmap(steps, &sets_[set]);
    throw;
  }
  Unmap(steps, &sets_[set]);
}

TimedRun OneDnnPlan::Run(TrainingPass pass) {
  Steps* const steps = StepsOf(pass);
  if (steps->steps.empty()) throw std::runtime_error("this pass was not prepared");
  omp_set_num_threads(threads_);
  const std::size_t set = next_set_;
  next_set_ = (next_set_ + 1) % sets_.size();
  try {
    return TimeRun(threads_, [&] { Execute(steps, set); });
  } catch (const dnnl::error& error) {
    throw std::runtime_error(std::string("oneDNN: ") + error.what());
  } catch (const std::bad_alloc&) {
    throw std::runtime_error("memory ran out during a run");
  }
}

}  // namespace stepcast
