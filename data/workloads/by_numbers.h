// Decoders that the catalogue has not, by their numbers instead of a name or a file:
//
//   gpt:layers=24:hidden=2048:heads=16@2048
//   llama:layers=16:hidden=2048:heads=32:kv_heads=8:mlp=8192:vocabulary=128256@4096
//
// FAMILY:KEY=N:KEY=N...@TOKENS, keys in any order. No sign of it needs quotes in a shell, a CSV
// field or YAML, where commas, ampersands and question marks do, and tokens stand behind an @ as
// sizes of input do elsewhere.
//
//   key         most       where it is not said
//   layers      256        an error
//   hidden      65,536     an error; the features of a token
//   heads       1,024      an error; they divide `hidden`
//   kv_heads    1,024      as many as heads, which they divide; of llama alone
//   mlp         1,048,576  gpt: 4 hidden; llama: 8/3 hidden, rounded up to a multiple of 256, as in
//                          meta-llama/llama, model.py
//   vocabulary  1,048,576  gpt: 50,257; llama: 32,000
//   TOKENS      131,072    gpt: 1024; llama: 2048; heads x TOKENS^2 is 10^13 at most
//
// With the numbers of GPT-2 and of LLaMA these are gpt2 and llama_7b under other names; but gpt
// learns as many positions as there are tokens.
#ifndef STEPCAST_DATA_WORKLOADS_BY_NUMBERS_H_
#define STEPCAST_DATA_WORKLOADS_BY_NUMBERS_H_

#include <optional>
#include <string_view>

#include "data/record/workload.h"

namespace stepcast {

// Such a name, for who asks for a network that is not known.
inline constexpr const char* kDecoderByNumbers =
    "llama:layers=16:hidden=2048:heads=32:kv_heads=8:mlp=8192:vocabulary=128256@4096";

// Nothing where `name` begins with no FAMILY and colon. The network's name has its keys in the
// order of the table, and those without which it would be the same left out. Throws InputError for
// numbers that are missing, unknown, said twice, out of range or that do not fit.
std::optional<Workload> FindByNumbers(std::string_view name);

}  // namespace stepcast

#endif  // STEPCAST_DATA_WORKLOADS_BY_NUMBERS_H_
