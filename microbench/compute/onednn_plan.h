// A list of oneDNN primitives and loops for each pass of a training step, with the tensors that
// they work on: described first, allocated then in as many copies as caches are to stay cold, and
// run by the clock.
#ifndef STEPCAST_MICROBENCH_COMPUTE_ONEDNN_PLAN_H_
#define STEPCAST_MICROBENCH_COMPUTE_ONEDNN_PLAN_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <dnnl.hpp>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "data/record/compute_profile.h"
#include "microbench/harness/backend.h"

namespace stepcast {

enum class TensorRole {
  kGiven,  // exists before the pass, which reads it (or, an update, changes it)
  kMade,   // allocated by the framework for what the pass hands on
  // Allocated in memory that was freed a moment ago, as malloc prefers: what does not outlive the
  // pass (reordered weights, scratch space) and the gradients of activations, which outlive the
  // next pass only.
  kTemporary,
};

enum class TensorFill { kNoise, kZero, kOne };

// A tensor's place in the plan.
using TensorId = std::size_t;
// Their addresses in the set of buffers that a run works on.
using TensorAddresses = std::vector<std::byte*>;

// malloc maps what is larger than this anew each time (DEFAULT_MMAP_THRESHOLD_MAX of glibc).
inline constexpr std::size_t kAlwaysMappedBytes = std::size_t{32} << 20U;

// How much memory runs go through before they come back to the same buffers. In training, a layer's
// parameters and kept activations are used again after tens of other layers, of about its size:
// those of a small network stay in the L3 cache, those of a large one do not.
inline constexpr std::size_t kLeastColdBytes = std::size_t{64} << 20U;
struct ColdCaches {
  std::size_t least_bytes = 0;  // more than the L2 caches hold
  std::size_t most_bytes = 0;   // as much as the L3 cache holds; more makes nothing colder
  std::size_t layers = 16;
};

class OneDnnPlan {
 public:
  OneDnnPlan(const dnnl::engine& engine, int threads, const ColdCaches& cold);
  OneDnnPlan(const OneDnnPlan&) = delete;
  OneDnnPlan& operator=(const OneDnnPlan&) = delete;
  ~OneDnnPlan();

  const dnnl::engine& engine() const { return engine_; }

  // Describing -------------------------------------------------------------------------------

  TensorId Tensor(const dnnl::memory::desc& desc, TensorRole role,
                  TensorFill fill = TensorFill::kNoise);
  // The memory of a given tensor in another description, such as transposed.
  TensorId View(TensorId tensor, const dnnl::memory::desc& desc);
  const dnnl::memory::desc& Description(TensorId tensor) const { return tensors_[tensor].desc; }

  // Appends a primitive to a pass. Its scratch space is a temporary; `desc` must ask for that.
  template <class Primitive>
  void Call(TrainingPass pass, const typename Primitive::primitive_desc& desc,
            std::unordered_map<int, TensorId> arguments) {
    Append<Primitive>(StepsOf(pass), desc, std::move(arguments));
  }
  // Appends a loop of our own; `tensors` are those that it touches.
  void Loop(TrainingPass pass, const std::vector<TensorId>& tensors,
            std::function<void(const TensorAddresses&)> loop) {
    Append(StepsOf(pass), tensors, std::move(loop));
  }
  // `tensor` in the format of `desc`: itself, or a new tensor that a reorder of the pass fills.
  TensorId Reordered(TrainingPass pass, TensorId tensor, const dnnl::memory::desc& desc,
                     TensorRole role = TensorRole::kTemporary);

  // Runs a primitive once for each set of buffers, so that a backward pass finds what its forward
  // pass would have left.
  template <class Primitive>
  void Prime(const typename Primitive::primitive_desc& desc,
             std::unordered_map<int, TensorId> arguments) {
    Append<Primitive>(&prime_, desc, std::move(arguments));
  }
  void PrimeLoop(const std::vector<TensorId>& tensors,
                 std::function<void(const TensorAddresses&)> loop) {
    Append(&prime_, tensors, std::move(loop));
  }

  // Adds what the library calls an implementation; each is named once.
  void Name(TrainingPass pass, const std::string& implementation);

  // Running ----------------------------------------------------------------------------------

  // Bytes that Allocate would take with the fewest sets of buffers.
  double LeastBytes() const;
  // Allocates, fills and primes, within `free_bytes` where LeastBytes is. Throws std::bad_alloc.
  void Allocate(double free_bytes);
  TimedRun Run(TrainingPass pass);
  const std::string& Names(TrainingPass pass) const;
  int sets() const { return static_cast<int>(sets_.size()); }

 private:
  struct TensorPlace {
    dnnl::memory::desc desc;
    TensorRole role = TensorRole::kGiven;
    TensorFill fill = TensorFill::kNoise;
    TensorId memory = 0;     // whose memory it is: its own, or for a view another's
    std::size_t bytes = 0;   // 0 for a view
    bool mapped = false;     // anew in each run
    std::size_t offset = 0;  // in its set, or among the temporaries
  };
  struct Step {
    dnnl::primitive primitive;
    std::unordered_map<int, TensorId> arguments;
    std::function<void(const TensorAddresses&)> loop;  // where set, instead of the primitive
    std::vector<std::unordered_map<int, dnnl::memory>> memories;  // for each set
  };
  struct Steps {
    std::vector<Step> steps;
    std::vector<TensorId> mapped;
    std::string names;
  };
  struct BufferSet {
    TensorAddresses addresses;
    std::vector<dnnl::memory> memories;
  };
  // Where bytes are, by kind.
  struct Layout {
    std::size_t set = 0;          // one set of rotating buffers
    std::size_t temporaries = 0;  // one copy
    std::size_t mapped = 0;       // most in one pass
    std::size_t least_used = 0;   // of a set by the pass that touches least of it
  };

  Steps* StepsOf(TrainingPass pass) { return &passes_[static_cast<std::size_t>(pass)]; }
  template <class Primitive>
  void Append(Steps* steps, const typename Primitive::primitive_desc& desc,
              std::unordered_map<int, TensorId> arguments) {
    const dnnl::memory::desc scratch = desc.scratchpad_desc();
    if (scratch.get_size() > 0) {
      arguments.emplace(DNNL_ARG_SCRATCHPAD, Tensor(scratch, TensorRole::kTemporary));
    }
    steps->steps.push_back({Primitive(desc), std::move(arguments), {}, {}});
  }
  static void Append(Steps* steps, const std::vector<TensorId>& tensors,
                     std::function<void(const TensorAddresses&)> loop);
  Layout Measure() const;
  void Place();
  static void Fill(std::byte* to, const TensorPlace& tensor);
  void Bind(Steps* steps);
  void MapNew(Steps* steps, BufferSet* set);
  void Unmap(Steps* steps, BufferSet* set);
  void Execute(Steps* steps, std::size_t set);

  dnnl::engine engine_;
  dnnl::stream stream_;
  int threads_;
  ColdCaches cold_;
  std::vector<TensorPlace> tensors_;
  std::array<Steps, kTrainingPassCount> passes_;
  Steps prime_;

  std::byte* arena_ = nullptr;
  std::size_t arena_bytes_ = 0;
  std::vector<BufferSet> sets_;
  std::size_t next_set_ = 0;
};

// Times `work()` as the harness wants it, on `threads` threads.
TimedRun TimeRun(int threads, const std::function<void()>& work);

}  // namespace stepcast

#endif  // STEPCAST_MICROBENCH_COMPUTE_ONEDNN_PLAN_H_
