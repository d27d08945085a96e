#include "microbench/compute/cuda_backend.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <variant>

#include "microbench/compute/cuda_layer.h"
#include "microbench/compute/device_ceilings.h"

namespace stepcast {
namespace {

// Left free: kernels are loaded at their first launch, and libraries take a little of their own.
constexpr std::size_t kSpareBytes = std::size_t{256} << 20;

// The device is kept busy for so long at least while a pass is put on the stream, and for so many
// times what that took the host.
constexpr double kLeastLead = 100e-6;
constexpr double kLeadFactor = 2;

std::size_t Less(std::size_t a, std::size_t b) { return a > b ? a - b : 0; }

class CudaTrial : public Trial {
 public:
  // Throws CudaError. The device must outlive the trial.
  CudaTrial(CudaDevice& device, std::unique_ptr<CudaLayer> layer, const WantedPasses& wanted)
      : device_(device), layer_(std::move(layer)) {
    const std::size_t free = device_.FreeBytes();
    const std::size_t set_bytes = layer_->layout().bytes();
    if (set_bytes > Less(free, kSpareBytes)) {
      throw CudaError(CudaTrouble::kOutOfMemory, NeedsText(set_bytes, free));
    }
    try {
      MakeSets(free, set_bytes);
      Choose();
      Warm(wanted);
    } catch (const CudaError& e) {
      if (e.trouble() != CudaTrouble::kOutOfMemory) throw;
      // The buffers known before would have fitted, but not the scratch memory that the library
      // wants too.
      throw CudaError(CudaTrouble::kOutOfMemory,
                      std::string(e.what()) + "; the operation itself " +
                          NeedsText(set_bytes + layer_->workspace_bytes(), free));
    }
  }

  TimedRun Run(TrainingPass pass) override {
    device_.Use();
    return {TimeOnce(pass), 1};
  }

  std::string Algorithm(TrainingPass pass) const override {
    const Passing& p = passes_[Index(pass)];
    std::string text = layer_->Algorithm(pass);
    if (p.graph.recorded()) text += ", graph x" + std::to_string(p.repeats);
    return text;
  }

 private:
  struct Passing {
    int repeats = 1;
    CudaGraph graph;
    double lead = kLeastLead;  // seconds that the device is kept busy before
  };
  static std::size_t Index(TrainingPass pass) { return static_cast<std::size_t>(pass); }

  void MakeSets(std::size_t free, std::size_t set_bytes) {
    const int count = RotationSets(set_bytes, device_.cache_bytes(), free);
    memory_ = DeviceBuffer(static_cast<std::size_t>(count) * set_bytes);
    auto* base = static_cast<unsigned char*>(memory_.data());
    for (int i = 0; i < count; ++i) {
      sets_.emplace_back(base + static_cast<std::size_t>(i) * set_bytes, layer_->layout());
      layer_->Fill(sets_.back());
    }
    device_.Wait();
  }

  void Choose() {
    layer_->Choose(sets_.front(), Less(device_.FreeBytes(), kSpareBytes));
    workspace_ = DeviceBuffer(layer_->workspace_bytes());
    device_.Wait();
  }

  // The first run of everything: what the libraries cannot do shows here.
  void Warm(const WantedPasses& wanted) {
    if (wanted.backward && layer_->backward_needs_forward()) {
      for (const CudaSet& set : sets_) layer_->Launch(TrainingPass::kForward, set, workspace_);
      device_.Wait();
    }
    if (wanted.forward) Warm(TrainingPass::kForward);
    if (wanted.backward) Warm(TrainingPass::kBackward);
    if (wanted.update) Warm(TrainingPass::kUpdate);
  }

  void Warm(TrainingPass pass) {
    layer_->Launch(pass, sets_.front(), workspace_);
    device_.Wait();
    FindLead(pass);
    constexpr int kTries = 3;
    double seconds = std::numeric_limits<double>::infinity();
    // One try shows whether the pass is short, unless it nearly is.
    for (int i = 0; i < kTries && (i == 0 || seconds < 2 * kShortSeconds); ++i) {
      seconds = std::min(seconds, TimeOnce(pass));
    }
    const int repeats = GraphRepeats(seconds, static_cast<int>(sets_.size()));
    Passing& p = passes_[Index(pass)];
    const bool recorded = p.graph.Record(device_.stream(), [&] {
      for (int i = 0; i < repeats; ++i) {
        layer_->Launch(pass, sets_[static_cast<std::size_t>(i)], workspace_);
      }
    });
    if (recorded && repeats == 1 && p.graph.nodes() <= 1) p.graph.Reset();
    if (p.graph.recorded()) p.repeats = repeats;
    TimeOnce(pass);  // the graph's first launch, or that all is well without
    if (p.graph.recorded()) FindLead(pass);
  }

  void FindLead(TrainingPass pass) {
    using Clock = std::chrono::steady_clock;
    Prepare(pass);
    device_.Wait();
    const auto begin = Clock::now();
    Enqueue(pass);
    const std::chrono::duration<double> took = Clock::now() - begin;
    device_.Wait();
    passes_[Index(pass)].lead = std::max(kLeastLead, kLeadFactor * took.count());
  }

  // Puts what the next Enqueue needs on the stream, the forward passes that it uses up.
  void Prepare(TrainingPass pass) {
    if (pass != TrainingPass::kBackward || !layer_->backward_spends_forward()) return;
    const Passing& p = passes_[Index(pass)];
    const std::size_t first = p.graph.recorded() ? 0 : next_;
    for (std::size_t i = 0; i < static_cast<std::size_t>(p.repeats); ++i) {
      layer_->Launch(TrainingPass::kForward, sets_[first + i], workspace_);
    }
  }

  void Enqueue(TrainingPass pass) {
    const Passing& p = passes_[Index(pass)];
    if (p.graph.recorded()) {
      p.graph.Launch(device_.stream());
    } else {
      layer_->Launch(pass, sets_[next_], workspace_);
      next_ = (next_ + 1) % sets_.size();
    }
  }

  double TimeOnce(TrainingPass pass) {
    const Passing& p = passes_[Index(pass)];
    Prepare(pass);
    device_.EmptyCache();
    device_.Occupy(p.lead);
    return device_.timer().Time(device_.stream(), [&] { Enqueue(pass); }) / p.repeats;
  }

  CudaDevice& device_;
  std::unique_ptr<CudaLayer> layer_;
  DeviceBuffer memory_;
  DeviceBuffer workspace_;
  std::vector<CudaSet> sets_;
  std::size_t next_ = 0;
  std::array<Passing, kTrainingPassCount> passes_;
};

class CudaBackend : public Backend {
 public:
  explicit CudaBackend(const CudaOptions& options) : device_(options) {
    device_.Calculate();  // loads the kernel; fails where none was compiled for the device
    device_.EmptyCache();
    device_.Wait();
  }

  std::string Name() const override { return kCudaBackend; }
  // As PyTorch's foreach and fused optimizers.
  bool UpdatesAtOnce() const override { return true; }
  ProfiledDevice Device() override { return device_.Describe(); }

  std::map<std::string, std::string> Settings() const override {
    int cublas = 0;
    Check(cublasGetVersion(device_.cublas(), &cublas), "cuBLAS");
    const CudaOptions& options = device_.options();
    return {{"cudnn", LibraryVersionText(cudnnGetVersion())},
            {"cublas", LibraryVersionText(static_cast<std::size_t>(cublas))},
            {"layout", options.channels_last ? "channels_last" : "channels_first"},
            {"algorithm_choice", options.search ? "search" : "heuristic"},
            {"cold", "true"}};
  }

  Preparation Prepare(const Operation& operation, int batch, Precision precision,
                      const std::vector<TrainingPass>& passes) override {
    device_.Use();
    try {
      CheckPrecision(precision);
      const WantedPasses wanted = Wanted(operation, passes);
      Preparation prepared;
      prepared.trial = std::make_unique<CudaTrial>(
          device_, MakeLayer(operation, {device_, batch, precision, wanted}), wanted);
      return prepared;
    } catch (const CudaError& e) {
      ThrowIfLost(e);
      if (e.trouble() == CudaTrouble::kFailed) throw std::runtime_error(e.what());
      const bool memory = e.trouble() == CudaTrouble::kOutOfMemory;
      return {nullptr, memory ? PointStatus::kOutOfMemory : PointStatus::kUnsupported, e.what()};
    }
  }

  TimedRun RunReference() override {
    device_.Use();
    device_.EmptyCache();
    device_.Occupy(kLeastLead);
    return {device_.timer().Time(device_.stream(), [this] { device_.Calculate(); }), 1};
  }

  std::string ThrottleReason() override {
    return ThrottleWords(device_.nvml().ThrottleBits().value_or(0));
  }

  std::vector<MeasuredRate> MeasureCeilings() override {
    return MeasureDeviceCeilings(device_.options().device);
  }

 private:
  void CheckPrecision(Precision precision) const {
    constexpr int kAmpere = 80;
    if (precision == Precision::kFp8) ThrowUnsupported("no layer is measured in fp8");
    const bool newer = precision == Precision::kTf32 || precision == Precision::kBf16;
    if (!newer || device_.capability() >= kAmpere) return;
    const int capability = device_.capability();
    ThrowUnsupported(std::string(kPrecisionNames[static_cast<int>(precision)]) +
                     " needs compute capability 8.0, this device has " +
                     std::to_string(capability / 10) + "." + std::to_string(capability % 10));
  }

  static WantedPasses Wanted(const Operation& operation, const std::vector<TrainingPass>& passes) {
    const bool updates = std::holds_alternative<UpdateOp>(operation);
    WantedPasses wanted;
    for (const TrainingPass pass : passes) {
      if (updates != (pass == TrainingPass::kUpdate)) {
        ThrowUnsupported(std::string("the operation has no ") +
                         kTrainingPassNames[static_cast<int>(pass)] + " pass");
      }
      if (pass == TrainingPass::kForward) wanted.forward = true;
      if (pass == TrainingPass::kBackward) wanted.backward = true;
      if (pass == TrainingPass::kUpdate) wanted.update = true;
    }
    return wanted;
  }

  static std::unique_ptr<CudaLayer> MakeLayer(const Operation& operation,
                                              const CudaLayerRequest& request) {
    return std::visit(
        [&](const auto& op) -> std::unique_ptr<CudaLayer> {
          if constexpr (std::is_same_v<std::decay_t<decltype(op)>, std::monostate>) {
            ThrowUnsupported("the operation is not stated");
          } else if constexpr (std::is_same_v<std::decay_t<decltype(op)>, AllocateOp>) {
            ThrowUnsupported("frameworks keep a GPU's memory");
          } else {
            return MakeCudaLayer(op, request);
          }
        },
        operation);
  }

  // After an illegal access or the like, every call of the process fails: nothing can be measured
  // any more.
  void ThrowIfLost(const CudaError& e) const {
    const cudaError_t status = cudaStreamSynchronize(device_.stream());
    if (status == cudaSuccess) return;
    throw std::runtime_error(std::string(e.what()) +
                             "; the device is lost: " + cudaGetErrorString(status));
  }

  CudaDevice device_;
};

}  // namespace

CudaBackendOutcome MakeCudaBackend(const CudaOptions& options) {
  const std::string why_not = WhyNoDevice(options.device);
  if (!why_not.empty()) return {nullptr, why_not};
  try {
    return {std::make_unique<CudaBackend>(options), {}};
  } catch (const CudaError& e) {
    return {nullptr, std::string("the GPU cannot be used: ") + e.what()};
  }
}

}  // namespace stepcast
