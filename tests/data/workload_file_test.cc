#include "data/io/workload_file.h"

#include <gtest/gtest.h>

#include <string>

#include "data/workloads/catalog.h"
#include "tests/support/input_error.h"
#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

Workload Parse(const std::string& text) { return ParseWorkload(text, "net.yaml"); }

void ExpectEqual(const Workload& a, const Workload& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.title, b.title);
  EXPECT_EQ(a.source, b.source);
  EXPECT_EQ(a.parameters, b.parameters);
  EXPECT_EQ(a.trainable_parameters, b.trainable_parameters);
  EXPECT_EQ(a.gradient_bytes, b.gradient_bytes);
  EXPECT_EQ(a.communication_only, b.communication_only);
  EXPECT_EQ(a.inputs_vary, b.inputs_vary);
  EXPECT_EQ(a.precision, b.precision);
  EXPECT_EQ(a.optimizer, b.optimizer);
  EXPECT_EQ(a.attention, b.attention);
  EXPECT_EQ(a.recompute, b.recompute);
  ASSERT_EQ(a.layers.size(), b.layers.size());
  for (std::size_t i = 0; i < a.layers.size(); ++i) {
    SCOPED_TRACE(a.layers[i].name);
    EXPECT_EQ(a.layers[i].name, b.layers[i].name);
    EXPECT_EQ(a.layers[i].kind, b.layers[i].kind);
    EXPECT_EQ(a.layers[i].tensors, b.layers[i].tensors);
    EXPECT_EQ(a.layers[i].statistics, b.layers[i].statistics);
    EXPECT_EQ(a.layers[i].forward_flop, b.layers[i].forward_flop);
    EXPECT_EQ(a.layers[i].activation_bytes, b.layers[i].activation_bytes);
  }
}

TEST(WorkloadFile, EveryCatalogueWorkloadRoundTrips) {
  ASSERT_FALSE(WorkloadNames().empty());
  for (const std::string& name : WorkloadNames()) {
    SCOPED_TRACE(name);
    const Workload workload = FindWorkload(name).value();
    ExpectEqual(Parse(FormatWorkload(workload)), workload);
  }
}

TEST(WorkloadFile, ParametersSuffice) {
  const Workload workload = Parse("name: mine\nparameters: 1000\n");
  EXPECT_EQ(workload.name, "mine");
  EXPECT_EQ(workload.title, "mine");
  EXPECT_EQ(workload.parameters, 1000);
  EXPECT_EQ(workload.trainable_parameters, 1000);
  EXPECT_EQ(workload.gradient_bytes, Bytes(4000.0));
  EXPECT_TRUE(workload.layers.empty());
  ExpectEqual(Parse(FormatWorkload(workload)), workload);
}

TEST(WorkloadFile, FrozenParametersHaveNoGradient) {
  const Workload workload = Parse("name: mine\nparameters: 1000\ntrainable_parameters: 900\n");
  EXPECT_EQ(workload.parameters, 1000);
  EXPECT_EQ(workload.gradient_bytes, Bytes(3600.0));
}

TEST(WorkloadFile, InputsAreAlikeOrVaryOrNobodyKnows) {
  const std::string mine = "name: mine\nparameters: 1000\n";
  EXPECT_EQ(Parse(mine).inputs_vary, std::nullopt);
  EXPECT_EQ(Parse(mine + "inputs: alike\n").inputs_vary, false);
  const Workload varying = Parse(mine + "inputs: varying\n");
  EXPECT_EQ(varying.inputs_vary, true);
  ExpectEqual(Parse(FormatWorkload(varying)), varying);
  EXPECT_TRUE(Says(ErrorOf([&] { Parse(mine + "inputs: short\n"); }),
                   "net.yaml:3: inputs: 'short' is no kind of inputs; allowed: alike, varying"));
}

TEST(WorkloadFile, SaysHowItIsTrained) {
  const std::string mine = "name: mine\nparameters: 1000\n";
  EXPECT_EQ(Parse(mine).precision, Precision::kFp32);
  EXPECT_EQ(Parse(mine).optimizer, Optimizer::kMomentum);
  EXPECT_EQ(FormatWorkload(Parse(mine)).find("precision"), std::string::npos);
  for (int i = 0; i < kPrecisionCount; ++i) {
    for (int j = 0; j < kOptimizerCount; ++j) {
      const Workload workload = Parse(mine + "precision: " + kPrecisionNames[i] +
                                      "\noptimizer: " + kOptimizerNames[j] + "\n");
      EXPECT_EQ(workload.precision, static_cast<Precision>(i));
      EXPECT_EQ(workload.optimizer, static_cast<Optimizer>(j));
      ExpectEqual(Parse(FormatWorkload(workload)), workload);
    }
  }
  EXPECT_TRUE(Says(ErrorOf([&] { Parse(mine + "precision: fp64\n"); }),
                   "net.yaml:3: precision: 'fp64' is not a precision"));
  EXPECT_TRUE(Says(ErrorOf([&] { Parse(mine + "precision: fp64\n"); }),
                   "allowed: fp32, tf32, fp16, bf16, fp8"));
  // AdamW keeps what Adam keeps; it is read, and written as that.
  const Workload decayed = Parse(mine + "optimizer: adamw\n");
  EXPECT_EQ(decayed.optimizer, Optimizer::kAdam);
  EXPECT_NE(FormatWorkload(decayed).find("optimizer: adam\n"), std::string::npos);
  EXPECT_TRUE(Says(ErrorOf([&] { Parse(mine + "optimizer: lion\n"); }),
                   "net.yaml:3: optimizer: 'lion' is not an optimizer"));
  EXPECT_TRUE(
      Says(ErrorOf([&] { Parse(mine + "optimizer: lion\n"); }), "allowed: sgd, momentum, adam"));
}

TEST(WorkloadFile, SaysHowAttentionIsComputed) {
  const std::string mine = "name: mine\nparameters: 1000\n";
  EXPECT_EQ(Parse(mine).attention, AttentionForm::kPlain);
  EXPECT_EQ(FormatWorkload(Parse(mine)).find("attention"), std::string::npos);
  const Workload fused = Parse(mine + "attention: fused\n");
  EXPECT_EQ(fused.attention, AttentionForm::kFused);
  ExpectEqual(Parse(FormatWorkload(fused)), fused);
  EXPECT_EQ(Parse(mine + "attention: plain\n").attention, AttentionForm::kPlain);
  EXPECT_TRUE(Says(ErrorOf([&] { Parse(mine + "attention: flash\n"); }),
                   "net.yaml:3: attention: 'flash' is not a form of attention; allowed: plain, "
                   "fused"));
}

TEST(WorkloadFile, SaysWhatIsRecomputed) {
  const std::string mine = "name: mine\nparameters: 1000\n";
  EXPECT_EQ(Parse(mine).recompute, Recompute::kNone);
  EXPECT_EQ(FormatWorkload(Parse(mine)).find("recompute"), std::string::npos);
  const Workload full = Parse(mine + "recompute: full\n");
  EXPECT_EQ(full.recompute, Recompute::kFull);
  EXPECT_NE(FormatWorkload(full).find("recompute: full\n"), std::string::npos);
  ExpectEqual(Parse(FormatWorkload(full)), full);
  EXPECT_EQ(Parse(mine + "recompute: none\n").recompute, Recompute::kNone);
  const Workload selective = Parse(mine + "recompute: selective\n");
  EXPECT_EQ(selective.recompute, Recompute::kSelective);
  EXPECT_NE(FormatWorkload(selective).find("recompute: selective\n"), std::string::npos);
  ExpectEqual(Parse(FormatWorkload(selective)), selective);
  EXPECT_TRUE(Says(ErrorOf([&] { Parse(mine + "recompute: half\n"); }),
                   "net.yaml:3: recompute: 'half' is not a way to recompute activations; "
                   "allowed: none, selective, full"));
}

TEST(WorkloadFile, ScoresMayBeCausal) {
  const auto with = [](const std::string& layer) {
    return Parse("name: mine\nlayers:\n  - {kind: dense, tensors: [9]}\n  - {" + layer + "}\n");
  };
  EXPECT_FALSE(with("kind: attention").layers[1].causal);
  EXPECT_FALSE(with("kind: attention, causal: no").layers[1].causal);
  EXPECT_FALSE(with("kind: dense, causal: no").layers[1].causal);
  const Workload causal = with("kind: attention, causal: yes");
  EXPECT_TRUE(causal.layers[1].causal);
  ExpectEqual(Parse(FormatWorkload(causal)), causal);
  EXPECT_TRUE(Says(ErrorOf([&] { with("kind: attention, causal: maybe"); }),
                   "causal: 'maybe' is neither; allowed: no, yes"));
  EXPECT_TRUE(Says(ErrorOf([&] { with("kind: dense, causal: yes"); }),
                   "causal: 'yes' is of attention alone"));
}

TEST(WorkloadFile, ABareMessageHasNoCompute) {
  const Workload message = Parse("name: message\ngradient_bytes: 1000000\ncompute: none\n");
  EXPECT_TRUE(message.communication_only);
  EXPECT_EQ(message.gradient_bytes, Bytes(1e6));
  ExpectEqual(Parse(FormatWorkload(message)), message);
  EXPECT_FALSE(Parse("name: mine\nparameters: 1000\n").communication_only);
  EXPECT_TRUE(Says(ErrorOf([] { Parse("name: mine\nparameters: 9\ncompute: some\n"); }),
                   "net.yaml:3: compute: 'some' is not a kind of compute; allowed: none"));
}

TEST(WorkloadFile, GradientBytesSuffice) {
  const Workload workload = Parse("name: mine\ngradient_bytes: 4000\n");
  EXPECT_EQ(workload.parameters, 1000);
  EXPECT_EQ(workload.trainable_parameters, 1000);
  EXPECT_EQ(workload.gradient_bytes, Bytes(4000.0));
  // How many parameters they are of may be said beside them.
  const Workload counted = Parse("name: mine\ngradient_bytes: 4000\ntrainable_parameters: 2000\n");
  EXPECT_EQ(counted.parameters, 2000);
  EXPECT_EQ(counted.trainable_parameters, 2000);
  EXPECT_EQ(counted.gradient_bytes, Bytes(4000.0));
}

// Half precision: what is exchanged is what the file says.
TEST(WorkloadFile, GradientBytesReplaceFourAParameter) {
  EXPECT_EQ(Parse("name: mine\nparameters: 1000\ngradient_bytes: 2000\n").gradient_bytes,
            Bytes(2000.0));
}

TEST(WorkloadFile, Layers) {
  const Workload workload = Parse(R"(name: mine
layers:
  - {name: conv, kind: convolution, tensors: [27, 3], forward_flop: 1e6, activation_bytes: 4096}
  - {kind: normalization, tensors: [3, 3], statistics: 6}
  - kind: activation
)");
  ASSERT_EQ(workload.layers.size(), 3U);
  EXPECT_EQ(workload.layers[0].name, "conv");
  EXPECT_EQ(workload.layers[0].forward_flop, Flop(1e6));
  EXPECT_EQ(workload.layers[0].activation_bytes, Bytes(4096.0));
  EXPECT_EQ(workload.layers[1].name, "layer2") << "named by its number when it has no name";
  EXPECT_EQ(workload.layers[1].kind, LayerKind::kNormalization);
  EXPECT_TRUE(workload.layers[2].tensors.empty());
  EXPECT_EQ(workload.trainable_parameters, 36);
  EXPECT_EQ(workload.parameters, 42);
  EXPECT_EQ(workload.gradient_bytes, Bytes(144.0));
}

// Keras counts the moving statistics in the total, others do not.
TEST(WorkloadFile, TheTotalIsWithOrWithoutStatistics) {
  const std::string layers =
      "layers: [{kind: dense, tensors: [100]}, {kind: normalization, tensors: [4], statistics: "
      "6}]\n";
  EXPECT_EQ(Parse("name: mine\n" + layers).parameters, 110);
  EXPECT_EQ(Parse("name: mine\nparameters: 110\n" + layers).parameters, 110);
  EXPECT_EQ(Parse("name: mine\nparameters: 104\n" + layers).parameters, 104);
  EXPECT_TRUE(Says(ErrorOf([&] { Parse("name: mine\nparameters: 105\n" + layers); }),
                   "net.yaml:2: parameters: '105' disagrees with the layers; allowed: 110"));
}

TEST(WorkloadFile, Json) {
  const Workload workload = Parse(R"({"name": "mine", "parameters": 1000})");
  EXPECT_EQ(workload.name, "mine");
  EXPECT_EQ(workload.parameters, 1000);
}

TEST(WorkloadFile, TotalsMustAgree) {
  const std::string layers = "layers: [{kind: dense, tensors: [100]}]\n";
  EXPECT_TRUE(
      Says(ErrorOf([&] { Parse("name: mine\ntrainable_parameters: 99\n" + layers); }),
           "net.yaml:2: trainable_parameters: '99' disagrees with the layers; allowed: 100"));
  EXPECT_TRUE(Says(
      ErrorOf([] { Parse("name: mine\nparameters: 9\ntrainable_parameters: 10\n"); }),
      "net.yaml:3: trainable_parameters: '10' is more than all parameters; allowed: at most 9"));
}

TEST(WorkloadFile, Errors) {
  const struct {
    const char* text;
    const char* says;
  } cases[] = {
      {"parameters: 1000\n", "net.yaml:1: name: is a required key that is missing"},
      {"name:\nparameters: 1000\n", "net.yaml:1: name: is empty"},
      {"name: mine (bf16)\nparameters: 1000\n", "net.yaml:1: name: 'mine (bf16)' ends like mine"},
      {"name: mine\n", "net.yaml: parameters: is a required key that is missing"},
      {"name: mine\nparameters: 0\n", "net.yaml:2: parameters: '0' is out of range"},
      {"name: mine\nparameters: 25.6 M\n", "'25.6 M' is not a whole number"},
      {"name: mine\ngradient_bytes: 3\n", "net.yaml:2: gradient_bytes: '3' is out of range"},
      {"name: mine\nlayers: [{kind: conv, tensors: [1]}]\n",
       "net.yaml:2: layers[0].kind: 'conv' is not a kind of layer; allowed: convolution,"},
      {"name: mine\nlayers:\n  - kind: dense\n    tensors: [1, 0]\n",
       "net.yaml:4: layers[0].tensors: '0' is out of range"},
      {"name: mine\nlayers:\n  - kind: pooling\n",
       "net.yaml:2: layers: have no trainable tensor; allowed: at least one layer with tensors"},
      {"name: mine\nlayers:\n  - kind: dense\n    tensor: [1]\n",
       "net.yaml:4: layers[0].tensor: is an unknown key (did you mean tensors?); allowed: name, "
       "kind, tensors"},
      {"name: mine\nlayers: {kind: dense}\n", "net.yaml:2: layers: is not a list"},
      {"name: mine\nlayers: [dense]\n", "net.yaml:2: layers[0]: 'dense' is not a mapping"},
      {"name: mine\nlayers: [{kind: dense, tensors: 5}]\n", "layers[0].tensors: is not a list"}};
  for (const auto& c : cases) EXPECT_TRUE(Says(ErrorOf([&] { Parse(c.text); }), c.says)) << c.text;
}

// Each tensor is within bounds, their sum is beyond what 64 bits hold.
TEST(WorkloadFile, SumsDoNotOverflow) {
  std::string text = "name: mine\nlayers:\n  - kind: dense\n    tensors: [";
  for (int i = 0; i < 10'000; ++i) text += "1000000000000000, ";
  EXPECT_TRUE(
      Says(ErrorOf([&] { Parse(text + "1]\n"); }), "net.yaml:2: layers: have too many parameters"));
}

// An alias repeats a list in two bytes.
TEST(WorkloadFile, TensorsByAliasAreCounted) {
  std::string text = "name: mine\nlayers:\n  - {kind: dense, tensors: &t [1";
  for (int i = 1; i < 20'000; ++i) text += ",1";
  text += "]}\n";
  const std::string more = "  - {kind: dense, tensors: *t}\n";
  std::string honest = text;
  for (int i = 0; i < 40; ++i) honest += more;
  EXPECT_EQ(Parse(honest).parameters, 41 * 20'000);
  for (int i = 0; i < 60; ++i) text += more;
  EXPECT_TRUE(Says(ErrorOf([&] { Parse(text); }),
                   "net.yaml:53: layers[50].tensors: are too many with those before; allowed: at "
                   "most 1000000 in all layers"));
}

// As many as there may be parameters, of 4 bytes each.
TEST(WorkloadFile, GradientsOfTheLargestNetwork) {
  EXPECT_EQ(Parse("name: mine\ngradient_bytes: 4000000000000000\n").parameters,
            1'000'000'000'000'000);
  EXPECT_TRUE(Says(ErrorOf([] { Parse("name: mine\ngradient_bytes: 4000000000000001\n"); }),
                   "gradient_bytes: '4000000000000001' is out of range"));
}

TEST(WorkloadFile, ReadNamesTheFile) {
  const TempFolder folder;
  const std::string path = folder.Write("net.yaml", "name: mine\nparameters: none\n");
  EXPECT_TRUE(Says(ErrorOf([&] { ReadWorkload(path); }), path + ":2: parameters: 'none'"));
}

}  // namespace
}  // namespace stepcast
