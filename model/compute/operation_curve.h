// The time of one operation on a device, in closed form, from the device's data sheet.
//
// Products of m x k by k x n, `count` of them in one call, are cut into tiles of tm x tn results
// and their depth into s parts; multiprocessors compute a wave of tiles after another:
//
//   t(tm, tn, s) = || W tile, (M + [s > 1] w s count m n) / (e_p B) ||_4 + [s > 1] t_l
//   tile         = 2 tm tn K / (P' / S) (1 + A (1/tm + 1/tn)) + tau
//   W            = ceil(count ceil(m/tm) ceil(n/tn) s / S) + h
//   K            = k / s, rounded up to 8, at least 32
//   M            = max(bytes - kappa L, bytes / 5)          what the memory sees of the operands
//   P'           = P min(1, (watts / D)^(1/a))              the power limit holds the clock back
//   D            = nm / 12 (eps q P + d V)                  what the board would draw at the peak
//   t            = t_l + (mean over tiles of (least over s of t)^-c)^(-1/c)
//
//   P, B, L      peak [FLOP/s], memory bandwidth [B/s], last cache [B]
//   S            multiprocessors; watts, nm: power limit [W], process of the chip [nm]
//   eps q        energy of an operation [J]. q is 1; on units for matrices w / 2: a number of 32
//                bits takes such a unit twice as long as one of 16, and that twice as long as one
//                of 8, at the same power
//   d V          0 on ordinary units, which have it in eps; beside units for matrices what fetches
//                instructions and operands, for each operation that ordinary units could do
//                meanwhile: V is their peak at 32 bits. However wide the others are it is the same:
//                those of a multiprocessor do 1024 operations of 16 bits a clock in V100 and L4,
//                4096 in H100, 8192 in B200
//   a            the law of the clock: a lower one needs less voltage too, so that power falls as
//                f V^2, between f (the least voltage is reached) and f^3 (V in proportion to f). 1
//                on ordinary units: in the tables T4's alone are held back, in proportion to watts
//   w            bytes of a number; 4 of those that an update reads and writes, at every precision
//   c            how well a library chooses: the tile that it takes is not always the best
//   the rest     kCurveParameterSpecs: meaning, unit, range and source of each
//
// Where dense layers compute in 8 bits and all else in 16 (fp8, as Transformer Engine has it),
// their three products have P and w of 8 bits and results of 16, and what they multiply is cast
// before: input and weights forward, the gradient of the output backward. A cast passes the memory,
// and writes two layouts of 8 bits, because products need their operands along different lengths.
// Only the largest products of 8 bits are in the tables that the parameters were learnt from.
//
// A convolution is the product that it is lowered to, or Winograd's where ordinary units compute
// and windows of 3 or 5 slide by one: 2 x 2 results from 16 products in one kernel, or (7 - r) x
// (7 - r) from 36 products in kernels of their own, whichever is fastest. TF32 has 32 bits, so that
// a library takes ordinary units where they end earlier. Each pass has its own product and its own
// efficiency of gathering operands. Recurrent layers are one product for all inputs, and for each
// position one product and a step of its own. All else passes the memory, at a share of its
// bandwidth:
//
//   t = t_l + M / (e B)
//
// Attention in one kernel is taken whole (data/record/fused_attention.h). A block of 128 queries of
// a head is one multiprocessor's, so that fewer blocks than multiprocessors leave some idle:
//
//   t = t_l + || F' / min(g P min(1, blocks / S), P'), M / (e B) ||_4
//
//   F'           its work, as of whole blocks of 128 queries
//   g            kFusedAttentionShare; on ordinary units kOrdinaryAttentionShare
//
// Passes add up: a backward pass is the gradient of the parameters and, where the operation has
// one, that of its input; which there are is for the operation to say and not for its parameters.
// The gradient of a bias is a pass over the gradient of the output: frameworks call it by itself.
//
// Holds for dense operations of 32 and 16 bits on GPUs of 2014 to 2020, for large products on
// NVIDIA's of 2017 to 2025 and, by the same physics, on others. Energy in proportion to the name of
// the process is what foundries promise at equal speed: TSMC 65 % less from 16FF+ to N7 and 30 %
// less from N7 to N5. A device without multiprocessors in its sheet has neither waves nor tiles
// that do not fill it. Depthwise convolutions, pooling and embeddings have no public table: they
// are taken to be bound by memory. Note that times never fall with batch, lengths or bytes and
// never rise with P or B, and that no product beats the peak.
//
// Sources: NVIDIA, Matrix Multiplication Background User's Guide (tiles and waves); Williams,
// Waterman, Patterson, CACM 52 (2009); Lavin and Gray, CVPR 2016 (Winograd's convolutions);
// Horowitz, ISSCC 2014 (energy of arithmetic); Dally, Turakhia, Han, CACM 63 (2020) (what feeds a
// wide instruction costs once for all its operations); Mei, Wang, Chu, Digital Communications and
// Networks 3 (2017) (clock, voltage and power of GPUs); TSMC, pages of its 7 nm and 5 nm
// technology.
#ifndef STEPCAST_MODEL_COMPUTE_OPERATION_CURVE_H_
#define STEPCAST_MODEL_COMPUTE_OPERATION_CURVE_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <variant>

#include "data/record/fused_attention.h"
#include "data/record/operation.h"
#include "data/record/operation_counts.h"
#include "model/compute/device_sheet.h"
#include "model/numeric/p_norm.h"

namespace stepcast {

enum CurveParameter {
  kVectorEnergy,
  kMatrixEnergy,
  kFeedEnergy,
  kClockPower,
  kTileEdge,
  kTileStart,
  kWaveTail,
  kTileChoice,
  kProductBandwidth,
  kKeptCache,
  kForwardGather,
  kDataGather,
  kWeightGather,
  kStridedGradient,
  kFusedWinograd,
  kWinogradTransform,
  kElementBandwidth,
  kSoftmaxBandwidth,
  kNormBandwidth,
  kRecurrentStep,
  kKernelStart,
  kCurveParameterCount
};

struct CurveParameterSpec {
  std::string_view name;
  std::string_view unit;  // as people read it; empty for a plain number
  double si_per_unit;
  double value;  // learnt, in that unit
  double prior;  // before any table, with its standard deviation in ln
  double log_sd;
  double low;
  double high;
  std::string_view meaning;
};

// Values are learnt by tools/learn_devices from operation times that others published: DeepBench's
// (V100, P100, M40, GTX 1080 Ti, three Titans), those of single PyTorch operators on P100, V100, T4
// and A100 (NeuSight, ASPLOS 2025), and the fastest large products of twenty boards of 2017 to 2025
// (data/measurements/matrix-products.csv). From the last are the three of units for matrices; the
// others are of the fit without them, and change little with them.
inline constexpr std::array<CurveParameterSpec, kCurveParameterCount> kCurveParameterSpecs = {{
    {"vector_energy", "pJ", 1e-12, 18.2, 15, 0.15, 5, 40,
     "energy of an operation of the ordinary units at 12 nm, the whole board's"},
    {"matrix_energy", "pJ", 1e-12, 1.3, 2, 0.5, 0.3, 10,
     "energy of an operation of 16 bits of units for matrices at 12 nm, without what feeds them"},
    {"feed_energy", "pJ", 1e-12, 12, 8, 0.7, 0.5, 50,
     "energy at 12 nm to feed units for matrices, an operation that ordinary units could do"},
    {"clock_power", "", 1, 2.33, 2.2, 0.25, 1, 3,
     "exponent of the clock in the power: 1 at one voltage, 3 where that is in proportion to it"},
    {"tile_edge", "", 1, 6.5, 15, 1, 0.5, 100,
     "loads of a tile's operands, as so many multiply-adds for each row and column"},
    {"tile_start", "us", 1e-6, 0.37, 0.3, 1, 0.01, 5, "time to start and to end a tile"},
    {"wave_tail", "", 1, 0.89, 0.3, 1, 0.01, 3,
     "waves that filling and draining the multiprocessors add"},
    {"tile_choice", "", 1, 4.8, 4, 0.7, 1, 50,
     "how well a library chooses among tiles: 1 at random, infinity the best"},
    {"product_bandwidth", "", 1, 0.555, 0.6, 0.3, 0.1, 1,
     "share of the memory's bandwidth that operands of products reach"},
    {"kept_cache", "", 1, 0.11, 0.3, 1, 0.01, 1,
     "share of the last cache that still holds what an operation reads"},
    {"forward_gather", "", 1, 1, 0.95, 0.3, 0.2, 1,
     "efficiency of a convolution's product, whose operand is gathered"},
    {"data_gather", "", 1, 0.95, 0.85, 0.3, 0.2, 1, "the same, gradient of the input"},
    {"weight_gather", "", 1, 0.61, 0.65, 0.3, 0.2, 1, "the same, gradient of the filter"},
    {"strided_gradient", "", 1, 0.715, 0.5, 0.7, 0.05, 1,
     "exponent of the stride in the work that the gradient of the input does for nothing"},
    {"fused_winograd", "", 1, 0.463, 0.5, 0.3, 0.1, 1,
     "efficiency of Winograd's products within one kernel"},
    {"winograd_transform", "", 1, 0.547, 0.5, 0.5, 0.1, 1,
     "share of the memory's bandwidth that Winograd's transforms reach"},
    {"element_bandwidth", "", 1, 0.73, 0.8, 0.2, 0.2, 1,
     "share of the memory's bandwidth that operations element by element reach"},
    {"softmax_bandwidth", "", 1, 0.536, 0.65, 0.2, 0.2, 1, "the same, softmax"},
    {"norm_bandwidth", "", 1, 0.445, 0.65, 0.2, 0.2, 1, "the same, normalisations"},
    {"recurrent_step", "us", 1e-6, 32, 10, 1, 1, 200,
     "time of a position of a recurrent layer beside its product"},
    {"kernel_start", "us", 1e-6, 2.6, 4, 0.5, 0.5, 20,
     "time from one kernel to the next on a device that is never without work"},
}};

template <class T>
struct CurveParameters {
  std::array<T, kCurveParameterCount> si;

  const T& operator[](CurveParameter i) const { return si[static_cast<std::size_t>(i)]; }
};

// The learnt ones.
inline CurveParameters<double> LearntCurve() {
  CurveParameters<double> learnt{};
  for (std::size_t i = 0; i < learnt.si.size(); ++i) {
    learnt.si[i] = kCurveParameterSpecs[i].value * kCurveParameterSpecs[i].si_per_unit;
  }
  return learnt;
}

// Share of the peak that attention in one kernel reaches, forward and backward together.
// FlashAttention-2 (arXiv 2307.08691) reports, of an A100's 312 TFLOP/s, 50 to 73 % forward and up
// to 63 % backward where heads have 128 features, a third less where they have 64, and less of an
// H100's peak; 0.3 to 0.6 is plausible, more with kernels that are written for the device.
inline constexpr double kFusedAttentionShare = 0.4;
// Ordinary units are slow beside what feeds them: their products are taken to reach most of the
// peak in one kernel as in several. An assumption: no table of it is public.
inline constexpr double kOrdinaryAttentionShare = 0.8;

// A backward pass is the last two together.
enum class CurvePass { kForward, kDataGradient, kWeightGradient };

template <class T>
class OperationCurve {
 public:
  // `burst` is how long [s] an operation may draw more than the power limit: none in training,
  // which goes on, and some in a table whose operations were timed one by one.
  OperationCurve(const DeviceSheet& sheet, const CurveParameters<T>& parameters, const T& burst)
      : sheet_(sheet), p_(parameters), burst_(burst) {}

  // Seconds of one pass; 0 where the operation has none.
  T Time(const Operation& operation, CurvePass pass, double batch) const {
    return std::visit([&](const auto& op) { return TimeOf(op, pass, batch); }, operation);
  }
  T Time(const Operation& operation, TrainingPass pass, double batch) const {
    if (pass == TrainingPass::kForward) return Time(operation, CurvePass::kForward, batch);
    if (pass == TrainingPass::kUpdate) return OfCounts(operation, pass, batch, kElementBandwidth);
    return Time(operation, CurvePass::kDataGradient, batch) +
           Time(operation, CurvePass::kWeightGradient, batch);
  }

  T Time(const FusedAttention& attention, TrainingPass pass, double batch) const {
    constexpr double kBlock = 128;
    const OperationCounts counts = CountAttention(attention, pass);
    const auto queries = static_cast<double>(attention.queries);
    const double of_head = std::ceil(queries / kBlock);
    const double blocks = batch * static_cast<double>(attention.heads) * of_head;
    const double busy =
        sheet_.multiprocessors > 0 ? std::min(1.0, blocks / sheet_.multiprocessors) : 1;
    const double flop = counts.flop_per_sample * batch * (of_head * kBlock / queries);
    const double bytes = sheet_.element_bytes * counts.elements_per_sample * batch;
    return p_[kKernelStart] + OnFastestUnits([&](const OperationCurve& units) {
             const double share =
                 units.sheet_.matrix_units ? kFusedAttentionShare : kOrdinaryAttentionShare;
             return PNorm(flop / units.Rate(flop, T(share * busy)),
                          Seen(bytes) / (p_[kProductBandwidth] * sheet_.bytes_per_s), kKnee);
           });
  }

  // `count` products of m x k by k x n.
  T Product(double count, double m, double n, double k) const {
    return Products(count, m, n, k, count == 1);
  }
  // Work that is not known in detail.
  T Counted(double flop, double bytes) const {
    return OnFastestUnits([&](const OperationCurve& units) {
      return p_[kKernelStart] + PNorm(flop / units.Rate(flop, T(1.0)),
                                      Seen(bytes) / (p_[kProductBandwidth] * sheet_.bytes_per_s),
                                      kKnee);
    });
  }
  // The same of a dense layer, without its casts.
  T CountedDense(double flop, double bytes) const {
    return sheet_.narrow_flop_per_s > 0 ? Narrow().Counted(flop, bytes) : Counted(flop, bytes);
  }

 private:
  static constexpr double kKnee = 4.0;
  struct Tile {
    double rows;
    double columns;
  };
  // Those of cuBLAS's and cuDNN's kernels, by their names.
  static constexpr std::array<Tile, 6> kTiles = {
      {{128, 128}, {128, 64}, {64, 128}, {64, 64}, {32, 128}, {128, 32}}};

  T Products(double count, double m, double n, double k, bool may_split) const {
    constexpr double kNarrowestResult = 2;
    const double result = std::max(kNarrowestResult, sheet_.element_bytes);
    const double bytes = count * (sheet_.element_bytes * (m * k + k * n) + result * m * n);
    return p_[kKernelStart] + OnFastestUnits([&](const OperationCurve& units) {
             return units.Tiles(count, m, n, k, bytes, T(1.0), may_split);
           });
  }

  // That of products of 8 bits, where the sheet has them.
  OperationCurve Narrow() const {
    DeviceSheet narrow = sheet_;
    narrow.flop_per_s = sheet_.narrow_flop_per_s;
    narrow.element_bytes = 1;
    narrow.matrix_units = true;
    narrow.narrow_flop_per_s = 0;
    return OperationCurve(narrow, p_, burst_);
  }

  // So many numbers, cast to 8 bits in two layouts; nothing where none are.
  T Cast(double numbers) const {
    if (sheet_.narrow_flop_per_s == 0) return T(0.0);
    const double bytes = (sheet_.element_bytes + 2) * numbers;
    return p_[kKernelStart] + Seen(bytes) / (p_[kElementBandwidth] * sheet_.bytes_per_s);
  }

  T DenseProduct(double m, double n, double k) const {
    return sheet_.narrow_flop_per_s > 0 ? Narrow().Product(1, m, n, k) : Product(1, m, n, k);
  }

  // The lesser time(curve) of those units that the sheet lets a library choose from.
  template <class Time>
  T OnFastestUnits(const Time& time) const {
    const T own = time(*this);
    if (sheet_.ordinary_flop_per_s == 0) return own;
    DeviceSheet ordinary = sheet_;
    ordinary.flop_per_s = sheet_.ordinary_flop_per_s;
    ordinary.matrix_units = false;
    ordinary.ordinary_flop_per_s = 0;
    const T other = time(OperationCurve(ordinary, p_, burst_));
    return other < own ? other : own;
  }

  // FLOP/s of all multiprocessors at work, for an operation of so much work.
  T Rate(double flop, const T& efficiency) const {
    const T peak = sheet_.flop_per_s * efficiency;
    if (sheet_.watts == 0 || sheet_.process_nm == 0 || flop == 0) return peak;
    T drawn =
        sheet_.flop_per_s * (sheet_.matrix_units ? T(p_[kMatrixEnergy] * (sheet_.element_bytes / 2))
                                                 : p_[kVectorEnergy]);
    if (sheet_.matrix_units) drawn += sheet_.vector_flop_per_s * p_[kFeedEnergy];
    drawn *= efficiency * (sheet_.process_nm / 12);
    if (drawn <= sheet_.watts) return peak;
    using std::exp;
    using std::log;
    T slower = drawn / sheet_.watts;
    if (sheet_.matrix_units) slower = exp(log(slower) / p_[kClockPower]);
    const T unlimited = flop / peak;
    const T limited = unlimited * slower - burst_;
    return limited > unlimited ? T(flop / limited) : peak;
  }

  // Bytes of operands that pass the memory.
  T Seen(double bytes) const {
    const T cold = bytes - p_[kKeptCache] * sheet_.cache_bytes;
    return cold > bytes / 5 ? cold : T(bytes / 5);
  }

  // Waves of tiles of so much work.
  T Waves(double tiles, double flop_per_tile, const T& rate, const T& edge) const {
    const T work = flop_per_tile * edge / rate;
    if (sheet_.multiprocessors == 0) return tiles * work;
    return (std::ceil(tiles / sheet_.multiprocessors) + p_[kWaveTail]) *
           (work * sheet_.multiprocessors + p_[kTileStart]);
  }

  T Tiles(double count, double m, double n, double k, double bytes, const T& efficiency,
          bool may_split) const {
    using std::exp;
    using std::log;
    const T rate = Rate(2 * count * m * n * k, efficiency);
    const T bandwidth = p_[kProductBandwidth] * sheet_.bytes_per_s;
    const T memory = Seen(bytes) / bandwidth;
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): the first of the parts sets each
    std::array<T, kTiles.size()> times;
    for (std::size_t i = 0; i < kTiles.size(); ++i) {
      const auto& [rows, columns] = kTiles[i];
      const double tiles = count * std::ceil(m / rows) * std::ceil(n / columns);
      const T edge = 1.0 + p_[kTileEdge] * (1 / rows + 1 / columns);
      for (double parts = 1; parts <= 256; parts *= 2) {
        const double depth = std::max(32.0, 8 * std::ceil(k / parts / 8));
        const T waves = Waves(tiles * parts, 2 * rows * columns * depth, rate, edge);
        T time;
        if (parts == 1) {
          time = PNorm(waves, memory, kKnee);
        } else {
          const double partial = sheet_.element_bytes * parts * count * m * n;
          time = p_[kKernelStart] + PNorm(waves, memory + partial / bandwidth, kKnee);
        }
        if (parts == 1 || time < times[i]) times[i] = time;
        if (!may_split || k <= 32 * parts) break;  // more parts are not smaller
      }
    }
    const T best = *std::min_element(times.begin(), times.end());
    T sum(0.0);
    for (const T& time : times) sum += exp(-p_[kTileChoice] * log(time / best));
    return best * exp(-log(sum / static_cast<double>(times.size())) / p_[kTileChoice]);
  }

  // ---- Operations.

  T TimeOf(const std::monostate&, CurvePass, double) const { return T(0.0); }

  T TimeOf(const DenseOp& o, CurvePass pass, double batch) const {
    const double rows = batch * static_cast<double>(o.positions);
    const auto inputs = static_cast<double>(o.inputs);
    const auto units = static_cast<double>(o.units);
    if (pass == CurvePass::kForward) {
      return DenseProduct(rows, units, inputs) + Cast(rows * inputs) + Cast(inputs * units);
    }
    if (pass == CurvePass::kWeightGradient) {
      const T product = DenseProduct(inputs, units, rows) + Cast(rows * units);
      return o.bias ? T(product + BiasGradient(rows * units)) : product;
    }
    return o.input_gradient ? DenseProduct(rows, inputs, units) : T(0.0);
  }

  // The gradient of the output, so many numbers, is read once more and added up.
  T BiasGradient(double numbers) const {
    return p_[kKernelStart] +
           Seen(sheet_.element_bytes * numbers) / (p_[kElementBandwidth] * sheet_.bytes_per_s);
  }

  // Both operands are activations: two gradients, whatever the parameters.
  T TimeOf(const BatchedProductOp& o, CurvePass pass, double batch) const {
    const double count = batch * static_cast<double>(o.count);
    const auto rows = static_cast<double>(o.rows);
    const auto columns = static_cast<double>(o.columns);
    const auto depth = static_cast<double>(o.depth);
    if (pass == CurvePass::kForward) return Product(count, rows, columns, depth);
    if (pass == CurvePass::kDataGradient) return Product(count, rows, depth, columns);
    return Product(count, depth, columns, rows);
  }

  T TimeOf(const ConvolutionOp& o, CurvePass pass, double batch) const {
    if (o.groups > 1 && o.groups == o.channels) return OfMemory(o, pass, batch, kNormBandwidth);
    if (pass == CurvePass::kDataGradient && !o.input_gradient) return T(0.0);
    const T time = p_[kKernelStart] + OnFastestUnits([&](const OperationCurve& units) {
                     return units.Convolution(o, pass, batch);
                   });
    if (pass != CurvePass::kWeightGradient || !o.bias) return time;
    const Lengths2 out = o.output();
    return time + BiasGradient(batch * static_cast<double>(o.filters * out.height * out.width));
  }

  // Without the start of its kernel.
  T Convolution(const ConvolutionOp& o, CurvePass pass, double batch) const {
    const auto groups = static_cast<double>(o.groups);
    const Lengths2 out = o.output();
    const auto channels = static_cast<double>(o.channels) / groups;
    const auto filters = static_cast<double>(o.filters) / groups;
    const auto window = static_cast<double>(o.kernel.height * o.kernel.width);
    const auto stride = static_cast<double>(o.stride.height * o.stride.width);
    const double in_pixels = batch * static_cast<double>(o.input.height * o.input.width);
    const double out_pixels = batch * static_cast<double>(out.height * out.width);
    const double bytes =
        sheet_.element_bytes * groups *
        (channels * in_pixels + filters * out_pixels + window * channels * filters);
    T time;
    if (pass == CurvePass::kForward) {
      time =
          Tiles(groups, out_pixels, filters, window * channels, bytes, p_[kForwardGather], false);
    } else if (pass == CurvePass::kWeightGradient) {
      time = Tiles(groups, filters, window * channels, out_pixels, bytes, p_[kWeightGather], true);
    } else {
      // Of in_pixels products with the whole window, a share of 1 / stride is of use.
      using std::pow;
      const T efficiency = p_[kDataGather] * pow(T(1 / stride), p_[kStridedGradient]);
      time =
          Tiles(groups, in_pixels, channels, window * filters / stride, bytes, efficiency, false);
    }
    const bool square = o.kernel.height == o.kernel.width && stride == 1 && groups == 1 &&
                        o.dilation == Lengths2{1, 1} && !sheet_.matrix_units;
    const auto r = static_cast<double>(o.kernel.height);
    if (square && (r == 3 || r == 5)) {
      const bool data = pass == CurvePass::kDataGradient;
      const double in = data ? filters : channels;
      const double made = data ? channels : filters;
      const Lengths2& lengths = data ? o.input : out;
      const auto cut = [&](double results) {
        return batch * std::ceil(static_cast<double>(lengths.height) / results) *
               std::ceil(static_cast<double>(lengths.width) / results);
      };
      const T apart = WinogradApart(cut(7 - r), in, made, window,
                                    channels * in_pixels + filters * out_pixels, pass);
      if (apart < time) time = apart;
      if (r == 3 && pass != CurvePass::kWeightGradient) {
        const T fused = FusedWinograd(cut(2), in, made, bytes);
        if (fused < time) time = fused;
      }
    }
    return time;
  }

  // Tiles of 32 filters and 32 pieces of 2 x 2 results.
  T FusedWinograd(double pieces, double in, double made, double bytes) const {
    constexpr double kSide = 32;
    constexpr double kProducts = 16;
    const T rate = Rate(2 * kProducts * pieces * in * made, p_[kFusedWinograd]);
    const double depth = 8 * std::ceil(in / 8);
    const T waves = Waves(std::ceil(pieces / kSide) * std::ceil(made / kSide),
                          2 * kProducts * kSide * kSide * depth, rate, T(1.0));
    return PNorm(waves, Seen(bytes) / (p_[kProductBandwidth] * sheet_.bytes_per_s), kKnee);
  }

  // Transforms of input, filter and output, and 36 products between them.
  T WinogradApart(double pieces, double in, double made, double window, double activations,
                  CurvePass pass) const {
    constexpr double kProducts = 36;
    const bool weights = pass == CurvePass::kWeightGradient;
    const double transformed = kProducts * (pieces * in + pieces * made + in * made);
    const double bytes = sheet_.element_bytes * transformed;
    const T products = weights ? Tiles(kProducts, in, made, pieces, bytes, T(1.0), true)
                               : Tiles(kProducts, pieces, made, in, bytes, T(1.0), false);
    const double moved = sheet_.element_bytes * (activations + window * in * made + transformed);
    return products + moved / (p_[kWinogradTransform] * sheet_.bytes_per_s) +
           3.0 * p_[kKernelStart];
  }

  T TimeOf(const RecurrentOp& o, CurvePass pass, double batch) const {
    const double gates = o.cell == RecurrentCell::kLstm ? 4 : 3;
    return Recurrent(gates, static_cast<double>(o.positions), static_cast<double>(o.inputs),
                     static_cast<double>(o.hidden), static_cast<double>(o.directions), pass, batch);
  }

 public:
  // Both directions go on side by side. `inputs` 0: they are added as they are.
  T Recurrent(double gates, double positions, double inputs, double hidden, double directions,
              CurvePass pass, double batch) const {
    const double units = gates * hidden;
    const double rows = batch * positions;
    if (pass == CurvePass::kWeightGradient) {
      return directions * Product(1, units, hidden + inputs, rows);
    }
    const bool forward = pass == CurvePass::kForward;
    T time = positions *
             (p_[kRecurrentStep] + (forward ? Products(directions, batch, units, hidden, true)
                                            : Products(directions, batch, hidden, units, true)));
    if (inputs > 0) {
      time += forward ? Product(1, rows, directions * units, inputs)
                      : Product(1, rows, inputs, directions * units);
    }
    return time;
  }

 private:
  template <class Op>
  T OfMemory(const Op& op, CurvePass pass, double batch, CurveParameter bandwidth) const {
    if (pass == CurvePass::kForward) {
      return OfCounts(op, TrainingPass::kForward, batch, bandwidth);
    }
    // Counted as one backward pass.
    if (pass == CurvePass::kWeightGradient) return T(0.0);
    return OfCounts(op, TrainingPass::kBackward, batch, bandwidth);
  }

  T OfCounts(const Operation& op, TrainingPass pass, double batch, CurveParameter bandwidth) const {
    const OperationCounts counts = CountOperation(op, pass);
    // Mixed precision leaves parameters and the optimizer's state in 32 bits.
    const double element = pass == TrainingPass::kUpdate ? kBytesPerElement : sheet_.element_bytes;
    const double bytes = element * (counts.elements_per_sample * batch + counts.elements);
    return p_[kKernelStart] + Seen(bytes) / (p_[bandwidth] * sheet_.bytes_per_s);
  }

  T TimeOf(const NormalizationOp& o, CurvePass pass, double batch) const {
    return OfMemory(o, pass, batch, kNormBandwidth);
  }
  T TimeOf(const ActivationOp& o, CurvePass pass, double batch) const {
    const bool softmax = o.function == Function::kSoftmax;
    return OfMemory(o, pass, batch, softmax ? kSoftmaxBandwidth : kElementBandwidth);
  }
  T TimeOf(const AllocateOp&, CurvePass, double) const { return T(0.0); }
  // Pooling, element-wise operations, embeddings, copies.
  template <class Op>
  T TimeOf(const Op& op, CurvePass pass, double batch) const {
    return OfMemory(op, pass, batch, kElementBandwidth);
  }

  DeviceSheet sheet_;
  CurveParameters<T> p_;
  T burst_;
};

}  // namespace stepcast

#endif  // STEPCAST_MODEL_COMPUTE_OPERATION_CURVE_H_
