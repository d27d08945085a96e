#include "data/workloads/by_numbers.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "data/io/runs.h"
#include "data/io/workload_file.h"
#include "data/values/operation_text.h"
#include "data/workloads/catalog.h"
#include "tests/support/input_error.h"

namespace stepcast {
namespace {

using Runs = std::vector<Run>;  // inside a TEST, Run is a member of GoogleTest's class

Workload Decoder(const std::string& name) {
  const std::optional<Workload> workload = FindWorkload(name);
  EXPECT_TRUE(workload.has_value()) << name;
  return workload.value_or(Workload());
}

// Whose totals are the published ones, as the catalogue's are.
TEST(ByNumbers, ThePublishedNumbersGiveThePublishedNetworks) {
  constexpr struct {
    const char* numbers;
    const char* name;
  } kKnown[] = {{"gpt:layers=12:hidden=768:heads=12", "gpt2"},
                {"gpt:layers=24:hidden=1024:heads=16", "gpt2_medium"},
                {"gpt:layers=48:hidden=1600:heads=25:mlp=6400:vocabulary=50257@1024", "gpt2_xl"},
                {"llama:layers=32:hidden=4096:heads=32", "llama_7b"},
                {"llama:layers=40:hidden=5120:heads=40", "llama_13b"},
                {"llama:layers=32:hidden=4096:heads=32@100", "llama_7b@100"},
                {"llama:layers=80:hidden=8192:heads=64:kv_heads=8:mlp=28672@4096", "llama2_70b"},
                {"llama:layers=32:hidden=4096:heads=32:kv_heads=8:mlp=14336:vocabulary=128256@8192",
                 "llama3_8b"},
                {"llama:layers=32:hidden=4096:heads=32:kv_heads=8:mlp=14336@4096", "mistral_7b"}};
  for (const auto& known : kKnown) {
    const Workload told = Decoder(known.numbers);
    const Workload named = Decoder(known.name);
    EXPECT_EQ(told.parameters, named.parameters) << known.name;
    EXPECT_EQ(told.trainable_parameters, named.trainable_parameters) << known.name;
    EXPECT_EQ(told.gradient_bytes, named.gradient_bytes) << known.name;
    EXPECT_EQ(told.attention, named.attention) << known.name;
    EXPECT_EQ(told.inputs_vary, named.inputs_vary) << known.name;
    EXPECT_EQ(told.layers, named.layers) << known.name;
  }
}

TEST(ByNumbers, WordsAreReadInAnySpelling) {
  EXPECT_EQ(Decoder("GPT:Layers=24:HIDDEN=2048:heads=16:vocabulary=50257@2048").name,
            "gpt:layers=24:hidden=2048:heads=16@2048");
  EXPECT_EQ(Decoder("LLaMA :layers=2:hidden=256:heads=4:KV-heads=2").name,
            "llama:layers=2:hidden=256:heads=4:kv_heads=2");
}

// 12 L h^2 weights and 13 L h of biases and norms; tokens and positions have a row of h each, and
// the last norm two.
TEST(ByNumbers, ADecoderHasTheParametersOfItsNumbers) {
  const Workload gpt = Decoder("gpt:layers=24:hidden=2048:heads=16:vocabulary=50257@2048");
  const std::int64_t l = 24;
  const std::int64_t h = 2048;
  EXPECT_EQ(gpt.parameters, 12 * l * h * h + 13 * l * h + (50257 + 2048 + 2) * h);
  EXPECT_EQ(gpt.name, "gpt:layers=24:hidden=2048:heads=16@2048");
  EXPECT_EQ(
      gpt.title,
      "GPT-2 of 24 layers of 2048, 16 heads, 2048 tokens, output layer tied to the embedding");
  EXPECT_EQ(Decoder("gpt:layers=2:hidden=64:heads=4:mlp=100:vocabulary=10@8").parameters,
            2 * (4 * 64 * 64 + 4 * 64 + 2 * 64 * 100 + 100 + 64 + 4 * 64) + (10 + 8 + 2) * 64);
}

// One network has one name, whatever was written, so that what is calibrated of it is found.
TEST(ByNumbers, ANetworkHasOneName) {
  constexpr struct {
    const char* written;
    const char* name;
  } kNames[] = {{"gpt:heads=12:hidden=768:layers=12", "gpt:layers=12:hidden=768:heads=12"},
                {"gpt:layers=012:hidden=768:heads=12@01024", "gpt:layers=12:hidden=768:heads=12"},
                {"gpt:vocabulary=50304:layers=12:hidden=768:heads=12@512",
                 "gpt:layers=12:hidden=768:heads=12:vocabulary=50304@512"},
                {"gpt:layers=1:hidden=8:heads=2:mlp=32", "gpt:layers=1:hidden=8:heads=2"},
                {"llama:mlp=11008:kv_heads=32:heads=32:hidden=4096:layers=32@2048",
                 "llama:layers=32:hidden=4096:heads=32"},
                {"llama:layers=1:hidden=8:heads=2:mlp=24:kv_heads=1",
                 "llama:layers=1:hidden=8:heads=2:kv_heads=1:mlp=24"}};
  for (const auto& name : kNames) {
    EXPECT_EQ(Decoder(name.written).name, name.name);
    EXPECT_EQ(Decoder(name.name), Decoder(name.written));
  }
}

TEST(ByNumbers, FilesKeepTheName) {
  const Workload llama =
      Decoder("llama:layers=2:hidden=256:heads=8:kv_heads=2:mlp=512:vocabulary=1000@64");
  EXPECT_EQ(ParseWorkload(FormatWorkload(llama), "llama.yaml").name, llama.name);
  const Runs runs =
      ParseRuns("workload,device,placement,servers,strategy,local_batch,step_time_s\n" +
                    llama.name + ",t4,1,0,none,16,0.031\n",
                "runs.csv");
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].workload, llama.name);
}

TEST(ByNumbers, WrongNumbersAreRefused) {
  constexpr struct {
    const char* name;
    const char* says;
  } kWrong[] = {
      {"gpt:", "is none of its numbers: ''"},
      {"gpt:layers=12:hidden=768", "does not say heads"},
      {"gpt:hidden=768:heads=12@128", "does not say layers"},
      {"gpt:layers=12:hidden=768:heads=12:", "is none of its numbers: ''"},
      {"gpt:layers=12:hidden=768:heads=12:depth=3", "is none of its numbers: 'depth=3'"},
      {"gpt:layers=12:hidden=768:heads=12:kv_heads=3", "is none of its numbers: 'kv_heads=3'"},
      {"gpt:layers=12:hidden=768:heads=12:tokens=3", "[@TOKENS]"},
      {"gpt:layers=12,hidden=768,heads=12", "has no such number of layers: '12,hidden"},
      {"gpt:layers:hidden=768:heads=12", "is none of its numbers: 'layers'"},
      {"gpt:layers=12:hidden=768:heads=12:layers=12", "says layers twice"},
      {"gpt:layers=0:hidden=768:heads=12", "has no such number of layers: '0'; allowed: 1 to 256"},
      {"gpt:layers=257:hidden=768:heads=12", "1 to 256"},
      {"gpt:layers=-1:hidden=768:heads=12", "'-1'"},
      {"gpt:layers=1.5:hidden=768:heads=12", "'1.5'"},
      {"gpt:layers=twelve:hidden=768:heads=12", "'twelve'"},
      {"gpt:layers=:hidden=768:heads=12", "layers: ''"},
      {"gpt:layers=12:hidden=65537:heads=1", "1 to 65536"},
      {"gpt:layers=12:hidden=65536:heads=2048", "1 to 1024"},
      {"gpt:layers=12:hidden=768:heads=12:mlp=1048577", "1 to 1048576"},
      {"gpt:layers=12:hidden=768:heads=12:vocabulary=99999999999999999999", "1 to 1048576"},
      {"gpt:layers=12:hidden=768:heads=12@0", "has no such number of tokens: '0'"},
      {"gpt:layers=12:hidden=768:heads=12@131073", "1 to 131072"},
      {"gpt:layers=12:hidden=768:heads=12@", "has no such number of tokens: ''"},
      {"gpt:layers=12:hidden=768:heads=12@64@64", "has no such number of tokens: '64@64'"},
      {"gpt:layers=12:hidden=768:heads=11", "768 features, which do not divide into 11 heads"},
      {"llama:layers=12:hidden=768:heads=256", "into 256 heads of pairs"},
      {"llama:layers=2:hidden=768:heads=12:kv_heads=5", "12 heads, which do not divide into 5"},
      {"llama:layers=2:hidden=768:heads=12:kv_heads=24", "which do not divide into 24"},
      {"gpt:layers=1:hidden=1024:heads=1024@98822", "too many scores of attention"}};
  for (const auto& wrong : kWrong) {
    const std::optional<InputError> error = ErrorOf([&] { FindWorkload(wrong.name); });
    ASSERT_TRUE(error.has_value()) << wrong.name;
    EXPECT_TRUE(Says(error, wrong.says)) << wrong.name;
    EXPECT_EQ(error->value(), wrong.name);
  }
}

TEST(ByNumbers, OtherNamesAreNone) {
  for (const char* name : {"gpt", "llama", "gpt-3", "gpt2:layers=12:hidden=768:heads=12", "GPTs:",
                           "opt:layers=12:hidden=768:heads=12", "llama3:layers=1", ":", ""}) {
    EXPECT_FALSE(FindByNumbers(name).has_value()) << name;
    EXPECT_EQ(FindWorkload(name).has_value(), false) << name;
  }
}

// What files may state bounds what may be asked for.
TEST(ByNumbers, TheLargestCanBeWritten) {
  for (const char* name : {"gpt:layers=1:hidden=65536:heads=1024:mlp=1048576:vocabulary=1048576",
                           "gpt:layers=1:hidden=1024:heads=1024@98821",
                           "llama:layers=1:hidden=65536:heads=32:mlp=1048576@131072"}) {
    const Workload workload = Decoder(name);
    for (const Layer& layer : workload.layers) {
      EXPECT_EQ(ParseOperation(FormatOperation(layer.operation), {"", 0, layer.name}),
                layer.operation)
          << name;
    }
    EXPECT_EQ(ParseWorkload(FormatWorkload(workload), "large.yaml").layers.size(),
              workload.layers.size());
  }
  EXPECT_EQ(Decoder("llama:layers=256:hidden=128:heads=2").layers.size(), 256U * 24 + 3);
}

}  // namespace
}  // namespace stepcast
