// Operations that frameworks do without a library: optimizers, look-ups, copies. Each loop is
// shared among the OpenMP threads that the caller has set, where it is long enough to be worth it.
#ifndef STEPCAST_MICROBENCH_COMPUTE_ONEDNN_LOOPS_H_
#define STEPCAST_MICROBENCH_COMPUTE_ONEDNN_LOOPS_H_

#include <cstddef>
#include <cstdint>

namespace stepcast {

// p -= rate g
void SgdUpdate(float* p, const float* g, std::int64_t n);
// buffer *= momentum; buffer += g; p -= rate buffer: three passes over memory
void MomentumUpdate(float* p, const float* g, float* buffer, std::int64_t n);
// m and v: 2 passes each; two temporaries for the root of v and its quotient, and one pass for p
void AdamUpdate(float* p, const float* g, float* m, float* v, float* root, float* quotient,
                std::int64_t n);

// out[t] = table[index[t]] for rows of `features` numbers.
void GatherRows(const float* table, const std::int64_t* index, float* out, std::int64_t tokens,
                std::int64_t features);
// table = 0; table[index[t]] += gradient[t]
void ScatterRows(const float* gradient, const std::int64_t* index, float* table,
                 std::int64_t tokens, std::int64_t features, std::int64_t rows);
// Rows in no order that a prefetcher could know.
void FillIndices(std::int64_t* index, std::int64_t tokens, std::int64_t rows);

void CopyBytes(const std::byte* from, std::byte* to, std::size_t bytes);
void ZeroBytes(std::byte* to, std::size_t bytes);

// Numbers of mean 0 and variance 1, none of them tiny, each number `stretch` times as large.
void FillNoise(float* to, std::size_t count, float stretch);
void FillNoiseBf16(std::uint16_t* to, std::size_t count, float stretch);

// About a millisecond of arithmetic in registers on each of `threads` threads. The value only keeps
// compilers from leaving it out.
double SpinArithmetic(int threads);

}  // namespace stepcast

#endif  // STEPCAST_MICROBENCH_COMPUTE_ONEDNN_LOOPS_H_
