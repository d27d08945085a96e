// The kernels that libraries do not have, or that frameworks bring themselves: element by element,
// sums, normalisation over rows, look-ups. Plain C++17 without the project's headers, for nvcc.
//
// All run on `stream` and return at once; a launch that fails throws CudaError. Tensors start at
// multiples of 256 bytes and are padded to such: kernels that go element by element read and write
// whole 16-byte words, past the last element into the padding.
#ifndef STEPCAST_MICROBENCH_COMPUTE_CUDA_KERNELS_H_
#define STEPCAST_MICROBENCH_COMPUTE_CUDA_KERNELS_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace stepcast {

// Format of a tensor's numbers in memory. Kernels calculate in 32 bits whatever they read.
enum class ElementType { kFloat, kHalf, kBfloat16 };
constexpr std::size_t ElementBytes(ElementType type) { return type == ElementType::kFloat ? 4 : 2; }

// ---- Contents.

// Pseudo-random numbers, even between low and high: units draw less power, and run faster, on
// zeros.
void FillUniform(void* data, std::int64_t count, ElementType type, float low, float high,
                 cudaStream_t stream);
// Pseudo-random places in a table of `limit` rows.
void FillIndices(std::int64_t* data, std::int64_t count, std::int64_t limit, cudaStream_t stream);

// Reads `bytes` and writes nothing: afterwards a cache of half the size holds nothing else, and
// nothing that would have to be written back. `sink` is a float that is never written in fact.
void ReadThrough(const void* data, std::size_t bytes, float* sink, cudaStream_t stream);

// ---- Arithmetic and copies for measuring the device itself.

// Multiply-adds in registers on `blocks` blocks of 256 threads: 4 independent chains of `steps`.
void MultiplyAdd(int blocks, std::int64_t steps, float* sink, cudaStream_t stream);

// Ways to copy: how many 16-byte words a thread has under way, and whether they are marked as
// read and written once.
inline constexpr int kCopyVariants = 4;
void CopyWords(const void* from, void* to, std::size_t bytes, int variant, cudaStream_t stream);

// ---- Element by element.

enum class Curve {
  kRelu,
  kRelu6,
  kLeakyRelu,
  kHardtanh,
  kSigmoid,
  kSwish,
  kTanh,
  kGelu,
  kGeluTanh,
};
void CurveForward(Curve curve, const void* x, void* y, std::int64_t count, ElementType type,
                  cudaStream_t stream);
// dx = dy f'(saved), where saved is what frameworks keep: the output of relu, sigmoid and tanh, the
// input of the others.
void CurveBackward(Curve curve, const void* saved, const void* dy, void* dx, std::int64_t count,
                   ElementType type, cudaStream_t stream);

enum class Pairing { kAdd, kMultiply };
void Combine(Pairing pairing, const void* a, const void* b, void* c, std::int64_t count,
             ElementType type, cudaStream_t stream);

// A tensor of images: batch x channels x positions, or with the channels last.
struct ImageShape {
  std::int64_t batch = 1;
  std::int64_t channels = 1;
  std::int64_t positions = 1;
  bool channels_last = false;
};
// y = x op v, where v has a value for each channel, or for each channel of each image. x may be y.
void CombineChannels(Pairing pairing, const void* x, const void* v, bool each_image, void* y,
                     const ImageShape& shape, ElementType type, cudaStream_t stream);
// y = v for each channel of each image at all its positions.
void SpreadChannels(const void* v, void* y, const ImageShape& shape, ElementType type,
                    cudaStream_t stream);

// Images with zeros around them, and the other way: what the zeros got is dropped.
struct Frame {
  std::int64_t height = 1;  // of the image within
  std::int64_t width = 1;
  std::int64_t top = 0;
  std::int64_t left = 0;
  std::int64_t framed_height = 1;
  std::int64_t framed_width = 1;
};
void PadImages(const void* x, void* framed, const Frame& frame, const ImageShape& shape,
               ElementType type, cudaStream_t stream);
void CropImages(const void* framed, void* x, const Frame& frame, const ImageShape& shape,
                ElementType type, cudaStream_t stream);

// ---- Sums.

// Bytes of scratch memory that the sums of two values over a tensor of this shape need at most.
std::size_t SumScratchBytes(const ImageShape& shape);

// Sums over the batch and the positions, one for each channel.
void SumChannels(const void* x, void* sums, const ImageShape& shape, ElementType type,
                 void* scratch, cudaStream_t stream);
// Sums over the positions, one for each channel of each image.
void SumPositions(const void* x, void* sums, const ImageShape& shape, ElementType type,
                  void* scratch, cudaStream_t stream);

// ---- Over the last dimension of rows x columns.

void SoftmaxForward(const void* x, void* y, std::int64_t rows, std::int64_t columns,
                    ElementType type, cudaStream_t stream);
void SoftmaxBackward(const void* y, const void* dy, void* dx, std::int64_t rows,
                     std::int64_t columns, ElementType type, cudaStream_t stream);

// Parameters, statistics and the parameters' gradients are in 32 bits, as in mixed precision.
struct LayerNormTensors {
  const void* x = nullptr;
  const float* gamma = nullptr;
  const float* beta = nullptr;
  void* y = nullptr;
  float* mean = nullptr;  // of each row
  float* rstd = nullptr;
  const void* dy = nullptr;
  void* dx = nullptr;
  float* dgamma = nullptr;
  float* dbeta = nullptr;
  void* scratch = nullptr;  // SumScratchBytes of 1 x columns x rows with the channels last
};
void LayerNormForward(const LayerNormTensors& t, std::int64_t rows, std::int64_t columns,
                      ElementType type, cudaStream_t stream);
void LayerNormBackward(const LayerNormTensors& t, std::int64_t rows, std::int64_t columns,
                       ElementType type, cudaStream_t stream);

// ---- Tables and optimizers, in 32 bits.

void Gather(const float* table, const std::int64_t* indices, float* y, std::int64_t tokens,
            std::int64_t features, cudaStream_t stream);
// Adds the rows of dy to those of the table; the table must have been set to zero.
void ScatterAdd(const float* dy, const std::int64_t* indices, float* table, std::int64_t tokens,
                std::int64_t features, cudaStream_t stream);

// One pass over memory each.
void Axpy(float a, const float* x, float* y, std::int64_t count, cudaStream_t stream);  // y += a x
void Scale(float a, float* y, std::int64_t count, cudaStream_t stream);                 // y *= a
void Shift(float a, float* y, std::int64_t count, cudaStream_t stream);                 // y += a
void AddSquare(float a, const float* x, float* y, std::int64_t count,
               cudaStream_t stream);  // y += a x x
void SquareRoot(const float* x, float* y, std::int64_t count, cudaStream_t stream);
void AddQuotient(float a, const float* x, const float* z, float* y, std::int64_t count,
                 cudaStream_t stream);  // y += a x / z

}  // namespace stepcast

#endif  // STEPCAST_MICROBENCH_COMPUTE_CUDA_KERNELS_H_
