// Raffel et al.: T5 (arXiv 1910.10683), whose version 1.1 has gates after Shazeer (2002.05202);
// Fedus et al.: Switch Transformers (2101.03961); Radford et al.: Whisper (2212.04356). As Hugging
// Face transformers builds them.
#include <optional>
#include <string>

#include "data/workloads/families.h"
#include "data/workloads/network_builder.h"

namespace stepcast {
namespace {

using std::to_string;

// v1.1 differs in its feed-forward part, whose activation is a gate, and in an output layer with a
// weight of its own.
enum class T5Version { kV10, kV11 };

// An encoder and a decoder that attends to what comes out of it. A model with experts has them in
// each second block.
struct T5Sizes {
  std::int64_t blocks;  // of the encoder, and as many of the decoder
  std::int64_t features;
  std::int64_t heads;
  std::int64_t hidden;  // of the feed-forward part
  std::int64_t experts = 0;
  T5Version version = T5Version::kV10;
};

// Output tokens of the pretraining, whatever the input: the targets of 512 tokens of which 15 % are
// noise, in spans of 3 on average.
constexpr std::int64_t kT5Targets = 114;

class T5Writer {
 public:
  T5Writer(NetworkBuilder& net, const T5Sizes& sizes) : net_(net), sizes_(sizes) {}

  // Encoder and decoder share one table, which is the output layer's weight too but in v1.1: its
  // gradient is complete at the end of the backward pass.
  void Write(std::int64_t tokens) {
    Stack("encoder", tokens, std::nullopt);
    const Shape memory = net_.shape();
    Stack("decoder", kT5Targets, memory);
    net_.Dense("lm_head",
               {.units = kVocabulary, .bias = false, .tied = sizes_.version == T5Version::kV10});
  }

 private:
  static constexpr std::int64_t kVocabulary = 32128;
  static constexpr std::int64_t kBuckets = 32;  // of distances

  void Stack(const std::string& name, std::int64_t tokens, const std::optional<Shape>& memory) {
    const std::int64_t features = sizes_.features;
    net_.Embedding(
        name + ".embed_tokens",
        {.rows = kVocabulary, .features = features, .tokens = tokens, .tied = memory.has_value()});
    const Shape sequence = net_.shape();
    // What each head adds to its scores, by distance; all blocks have that of the first.
    net_.Embedding(name + ".relative_attention_bias",
                   {.rows = kBuckets, .features = sizes_.heads, .tokens = tokens * tokens});
    net_.set_shape(sequence);
    for (std::int64_t i = 0; i < sizes_.blocks; ++i) {
      const std::string block = name + ".block." + to_string(i) + ".";
      net_.RmsNorm(block + "self_attention.norm");
      net_.Attention(block + "self_attention",
                     {.heads = sizes_.heads, .bias = false, .causal = memory.has_value()});
      net_.Add(block + "self_attention.add", sequence);
      if (memory) {
        net_.RmsNorm(block + "cross_attention.norm");
        net_.Attention(block + "cross_attention",
                       {.heads = sizes_.heads, .bias = false, .memory = memory});
        net_.Add(block + "cross_attention.add", sequence);
      }
      net_.RmsNorm(block + "feed_forward.norm");
      FeedForward(block + "feed_forward", sizes_.experts > 0 && i % 2 == 1);
      net_.Add(block + "feed_forward.add", sequence);
    }
    net_.RmsNorm(name + ".final_norm");
  }

  void FeedForward(const std::string& name, bool is_sparse) {
    const std::int64_t hidden = sizes_.hidden;
    if (is_sparse) {
      net_.Mixture(name, {.experts = sizes_.experts, .hidden = hidden});
      return;
    }
    if (sizes_.version == T5Version::kV11) {
      const Shape sequence = net_.shape();
      net_.Dense(name + ".wi_0", {.units = hidden, .bias = false});
      net_.Activation(name + ".gelu", Function::kGeluTanh);
      const Shape gate = net_.shape();
      net_.set_shape(sequence);
      net_.Dense(name + ".wi_1", {.units = hidden, .bias = false});
      net_.Multiply(name + ".gate", gate);
    } else {
      net_.Dense(name + ".wi", {.units = hidden, .bias = false});
      net_.Activation(name + ".relu", Function::kRelu);
    }
    net_.Dense(name + ".wo", {.units = sizes_.features, .bias = false});
  }

  NetworkBuilder& net_;
  T5Sizes sizes_;
};

std::string TokensText(std::int64_t tokens) {
  return to_string(tokens) + " tokens to " + to_string(kT5Targets);
}

Workload T5(const std::string& size, const T5Sizes& sizes, std::int64_t tokens) {
  NetworkBuilder net(
      "t5_" + size,
      "T5-" + size + " v1.0, " + TokensText(tokens) + ", output layer tied to the embedding",
      "Hugging Face T5ForConditionalGeneration, t5-" + size + "; Raffel et al., arXiv 1910.10683",
      {tokens, 1, 1});
  T5Writer(net, sizes).Write(tokens);
  return net.Finish(Statistics::kNotInTotal);
}

Workload T5V11(const std::string& size, T5Sizes sizes, std::int64_t tokens) {
  NetworkBuilder net("t5_v1_1_" + size, "T5-" + size + " v1.1, " + TokensText(tokens),
                     "Hugging Face T5ForConditionalGeneration, google/t5-v1_1-" + size +
                         "; Raffel et al., arXiv 1910.10683",
                     {tokens, 1, 1});
  sizes.version = T5Version::kV11;
  T5Writer(net, sizes).Write(tokens);
  return net.Finish(Statistics::kNotInTotal);
}

struct WhisperStack {
  NetworkBuilder& net;
  std::int64_t features;
  std::int64_t heads;

  void Attention(const std::string& name, bool causal, const std::optional<Shape>& memory) const {
    const Shape sequence = net.shape();
    net.LayerNorm(name + "_layer_norm");
    net.Attention(name, {.heads = heads, .key_bias = false, .causal = causal, .memory = memory});
    net.Add(name + ".add", sequence);
  }

  void Blocks(const std::string& name, std::int64_t count,
              const std::optional<Shape>& memory) const {
    const Shape sequence = net.shape();
    for (std::int64_t i = 0; i < count; ++i) {
      const std::string layer = name + ".layers." + to_string(i) + ".";
      Attention(layer + "self_attn", memory.has_value(), std::nullopt);
      if (memory) Attention(layer + "encoder_attn", false, memory);
      net.LayerNorm(layer + "final_layer_norm");
      net.Dense(layer + "fc1", {.units = 4 * features});
      net.Activation(layer + "gelu", Function::kGelu);
      net.Dense(layer + "fc2", {.units = features});
      net.Add(layer + "fc2.add", sequence);
    }
    net.LayerNorm(name + ".layer_norm");
  }
};

}  // namespace

Workload T5Small(std::int64_t tokens) { return T5("small", {6, 512, 8, 2048}, tokens); }
Workload T5Base(std::int64_t tokens) { return T5("base", {12, 768, 12, 3072}, tokens); }
Workload T5Large(std::int64_t tokens) { return T5("large", {24, 1024, 16, 4096}, tokens); }

Workload T5V11Base(std::int64_t tokens) { return T5V11("base", {12, 768, 12, 2048}, tokens); }
Workload T5V11Large(std::int64_t tokens) { return T5V11("large", {24, 1024, 16, 2816}, tokens); }
Workload T5V11Xl(std::int64_t tokens) { return T5V11("xl", {24, 2048, 32, 5120}, tokens); }

Workload SwitchBase8(std::int64_t tokens) {
  NetworkBuilder net("switch_base_8",
                     "Switch Transformer base, " + to_string(kSwitchExperts) + " experts, " +
                         TokensText(tokens) + ", output layer tied to the embedding",
                     "Hugging Face SwitchTransformersForConditionalGeneration, "
                     "google/switch-base-8; Fedus et al., arXiv 2101.03961",
                     {tokens, 1, 1});
  T5Writer(net, {12, 768, 12, 3072, kSwitchExperts}).Write(tokens);
  return net.Finish(Statistics::kNotInTotal);
}

// The audio is 30 s always, padded or cut: 80 frequencies x 3000 frames, of which the second
// convolution leaves 1500. The encoder's positions are sines, stored and not trained.
Workload WhisperSmall(std::int64_t tokens) {
  constexpr std::int64_t kFrequencies = 80;
  constexpr std::int64_t kFrames = 3000;
  constexpr std::int64_t kVocabulary = 51865;
  constexpr std::int64_t kBlocks = 12;
  constexpr std::int64_t kFeatures = 768;
  NetworkBuilder net("whisper_small",
                     "Whisper small, 30 s of speech to " + to_string(tokens) +
                         " tokens, output layer tied to the embedding",
                     "Hugging Face WhisperForConditionalGeneration, openai/whisper-small; Radford "
                     "et al., arXiv 2212.04356",
                     {kFrames, 1, kFrequencies});
  const WhisperStack stack = {net, kFeatures, 12};
  for (const std::int64_t stride : {1, 2}) {
    const std::string name = "encoder.conv" + to_string(stride);
    net.Conv2d(name, {.filters = kFeatures,
                      .kernel = {3, 1},
                      .stride = {stride, 1},
                      .padding = Padding::Explicit({1, 0})});
    net.Activation(name + ".gelu", Function::kGelu);
  }
  net.AddStored("encoder.embed_positions");
  stack.Blocks("encoder", kBlocks, std::nullopt);
  const Shape memory = net.shape();
  net.Embedding("decoder.embed_tokens",
                {.rows = kVocabulary, .features = kFeatures, .tokens = tokens});
  net.Embedding("decoder.embed_positions",
                {.rows = kWhisperPositions, .features = kFeatures, .tokens = tokens});
  net.Add("decoder.add_positions", net.shape());
  stack.Blocks("decoder", kBlocks, memory);
  net.Dense("proj_out", {.units = kVocabulary, .bias = false, .tied = true});
  return net.Finish(Statistics::kInTotal);
}

}  // namespace stepcast
