// Decisions of the GPU back end that need no GPU: where tensors lie in memory, how many copies of
// them take turns, how often a short pass is repeated, which padding a library that knows only
// symmetric ones is given, and what the driver's bits mean in words. Pure functions of numbers, so
// that they are tested on any machine.
#ifndef STEPCAST_MICROBENCH_COMPUTE_CUDA_PLAN_H_
#define STEPCAST_MICROBENCH_COMPUTE_CUDA_PLAN_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "data/record/operation.h"

namespace stepcast {

// ---- Memory.

// cudaMalloc aligns to 256 bytes, and kernels are chosen by the alignment they find.
inline constexpr std::size_t kTensorAlignment = 256;

// The tensors of an operation one after the other in one block of memory, a set. Lengths that no
// memory could hold saturate instead of overflowing, so that bytes() then says "too much".
class SetLayout {
 public:
  struct Tensor {
    std::size_t offset = 0;
    std::size_t bytes = 0;
  };

  // Returns the place of the tensor in tensors().
  std::size_t Add(std::int64_t elements, std::size_t bytes_each) {
    const auto count = static_cast<std::size_t>(std::max<std::int64_t>(elements, 0));
    // A tensor without elements has a place nevertheless: kernels take its address.
    std::size_t bytes = kTensorAlignment;
    if (count > kMost / bytes_each) {
      bytes = kMost;
    } else if (count > 0) {
      bytes = (count * bytes_each + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
    }
    tensors_.push_back({bytes_, bytes});
    bytes_ = std::min(kMost, bytes_ + bytes);
    return tensors_.size() - 1;
  }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  std::size_t bytes() const { return bytes_; }

  // 2^62: sums of two stay within std::size_t.
  static constexpr std::size_t kMost = std::size_t{1} << 62;

 private:
  std::vector<Tensor> tensors_;
  std::size_t bytes_ = 0;
};

// a x b for lengths of tensors: not negative, and saturated at the largest number there is.
inline std::int64_t Elements(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  if (a <= 0 || b <= 0) return 0;
  return a > kMost / b ? kMost : a * b;
}
template <class... Rest>
std::int64_t Elements(std::int64_t a, std::int64_t b, std::int64_t c, Rest... rest) {
  return Elements(Elements(a, b), c, rest...);
}

// "needs 12.3 GiB, 8.0 GiB are free"
inline std::string NeedsText(std::size_t needed, std::size_t free) {
  constexpr double kGibi = 1024.0 * 1024.0 * 1024.0;
  char text[96];
  std::snprintf(text, sizeof text, "needs %.1f GiB, %.1f GiB are free",
                static_cast<double>(needed) / kGibi, static_cast<double>(free) / kGibi);
  return text;
}

// Sets that take turns, at least 2, at most a quarter of the free memory: as many as a short pass
// is repeated, and together at least twice the cache. A set of more than an eighth of the memory is
// alone: it drives its own beginning out of any cache.
inline constexpr int kMostSets = 64;
// Enough for the repetitions of passes that take less than kShortSeconds on the fastest memories,
// some terabytes a second, and filled in milliseconds.
inline constexpr std::size_t kRotationBytes = std::size_t{4} << 30;
inline int RotationSets(std::size_t set_bytes, std::size_t cache_bytes, std::size_t free_bytes) {
  const std::size_t bytes = std::max<std::size_t>(set_bytes, 1);
  const std::size_t for_cache = (2 * cache_bytes + bytes - 1) / bytes + 1;
  const std::size_t for_repeats = kRotationBytes / bytes;
  const std::size_t least = 2;
  const std::size_t most = kMostSets;
  const std::size_t affordable = free_bytes / 4 / bytes;
  const std::size_t sets = std::min({std::max({for_cache, for_repeats, least}), most, affordable});
  return static_cast<int>(std::max<std::size_t>(sets, 1));
}

// ---- Time.

// Passes shorter than this are repeated within one measurement: an event resolves half a
// microsecond (CUDA runtime API, cudaEventElapsedTime), of which this is a hundred times as much.
inline constexpr double kShortSeconds = 50e-6;
// Time that repeated passes take together, unless there are too few sets.
inline constexpr double kRepeatedSeconds = 500e-6;

// How often a pass of `seconds` is repeated, 1 for once. Each set is used once in a measurement:
// how much of a set a pass touches is not known, so that the same one again might be in the cache.
inline int GraphRepeats(double seconds, int sets) {
  if (!(seconds < kShortSeconds)) return 1;
  constexpr double kShortest = 1e-6;  // no kernel is faster, whatever the clock says
  const double wanted = std::ceil(kRepeatedSeconds / std::max(seconds, kShortest));
  return std::max(1, static_cast<int>(std::min<double>(wanted, sets)));
}

// ---- Padding.

// The same number of zeros on both sides that makes `window` go as many places as `before` and
// `after` do; nothing where there is none. The work is then the same, the edges apart.
inline std::optional<std::int64_t> SymmetricZeros(std::int64_t length, std::int64_t before,
                                                  std::int64_t after, std::int64_t window,
                                                  std::int64_t step) {
  if (before == after) return before;
  const std::int64_t places = (length + before + after - window) / step;
  const std::int64_t half_up = (before + after + 1) / 2;
  for (const std::int64_t zeros : {half_up, std::max(before, after), half_up - 1}) {
    if (zeros >= 0 && length + 2 * zeros >= window &&
        (length + 2 * zeros - window) / step == places) {
      return zeros;
    }
  }
  return std::nullopt;
}

// How an image is padded by a library that takes a height and a width only.
struct PaddingPlan {
  std::int64_t height = 0;  // what the library is told
  std::int64_t width = 0;
  bool copied = false;  // the image is copied into a larger one of zeros before
  Lengths2 input;       // what the library sees: larger than the image where `copied`
};
// `window` is what the kernel covers, its dilation included.
inline PaddingPlan PlanPadding(const Lengths2& input, const Zeros2& zeros, const Lengths2& window,
                               const Lengths2& stride) {
  const auto height =
      SymmetricZeros(input.height, zeros.top, zeros.bottom, window.height, stride.height);
  const auto width =
      SymmetricZeros(input.width, zeros.left, zeros.right, window.width, stride.width);
  if (height.has_value() && width.has_value()) return {*height, *width, false, input};
  return {0,
          0,
          true,
          {input.height + zeros.top + zeros.bottom, input.width + zeros.left + zeros.right}};
}

// ---- Words.

// Bits of nvmlDeviceGetCurrentClocksEventReasons (NVML API reference, nvmlClocksEventReasons) in
// words, empty where none of them holds a clock down. An idle device is not throttled, nor is one
// whose clocks were set.
inline std::string ThrottleWords(std::uint64_t bits) {
  constexpr struct {
    std::uint64_t bit;
    const char* words;
  } kReasons[] = {{0x4, "power cap"},         {0x40, "thermal slowdown by hardware"},
                  {0x20, "thermal slowdown"}, {0x80, "power brake"},
                  {0x8, "hardware slowdown"}, {0x10, "clocks synchronised with other devices"}};
  std::string text;
  for (const auto& reason : kReasons) {
    if ((bits & reason.bit) == 0) continue;
    if (!text.empty()) text += ", ";
    text += reason.words;
  }
  return text;
}

// Versions as cudaDriverGetVersion tells them (13020 is 13.2), and as cuDNN and cuBLAS do (91900 is
// 9.19.0).
inline std::string CudaVersionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}
inline std::string LibraryVersionText(std::size_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

}  // namespace stepcast

#endif  // STEPCAST_MICROBENCH_COMPUTE_CUDA_PLAN_H_
