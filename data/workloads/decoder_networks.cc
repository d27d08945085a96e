// Radford et al.: Language Models are Unsupervised Multitask Learners (2019); Zhang et al.: OPT
// (arXiv 2205.01068); Black et al.: GPT-NeoX-20B (2204.06745); Workshop et al.: BLOOM (2211.05100);
// Touvron et al.: LLaMA (2302.13971) and Llama 2 (2307.09288); Roziere et al.: Code Llama
// (2308.12950); Grattafiori et al.: Llama 3 (2407.21783); Jiang et al.: Mistral 7B (2310.06825). As
// Hugging Face transformers builds them.
#include <string>

#include "data/workloads/families.h"
#include "data/workloads/network_builder.h"

namespace stepcast {
namespace {

using std::to_string;

// What language models, of one name and several sizes, differ in.
struct LanguageModel {
  const char* name;
  const char* title;
  const char* repository;  // at Hugging Face
  std::int64_t blocks;
  std::int64_t features;
  std::int64_t heads;
};

// The output layer shares its weight with the token embedding: its work counts here, its tensor
// there, where the shared gradient is complete, at the end of the backward pass.
constexpr const char* kTiedHead = " tokens, output layer tied to the embedding";

// The feed-forward part of GPT-2 and of all that took it over.
void GeluMlp(NetworkBuilder& net, const std::string& up, const std::string& activation,
             const std::string& down, std::int64_t hidden) {
  const std::int64_t features = net.shape().channels;
  net.Dense(up, {.units = hidden});
  net.Activation(activation, Function::kGeluTanh);
  net.Dense(down, {.units = features});
}

void WriteGpt(NetworkBuilder& net, const DecoderNumbers& n, std::int64_t positions,
              std::int64_t tokens) {
  net.Embedding("wte", {.rows = n.vocabulary, .features = n.hidden, .tokens = tokens});
  net.Embedding("wpe", {.rows = positions, .features = n.hidden, .tokens = tokens});
  const Shape sequence = net.shape();
  net.Add("add_wpe", sequence);
  net.Dropout("drop");
  for (std::int64_t i = 0; i < n.layers; ++i) {
    const std::string block = "h." + to_string(i) + ".";
    net.LayerNorm(block + "ln_1");
    net.Attention(block + "attn",
                  {.heads = n.heads, .fused_projections = true, .in_passes = true, .causal = true});
    net.Dropout(block + "attn.resid_dropout");
    net.Add(block + "attn.add", sequence);
    net.LayerNorm(block + "ln_2");
    GeluMlp(net, block + "mlp.c_fc", block + "mlp.gelu", block + "mlp.c_proj", n.mlp);
    net.Dropout(block + "mlp.dropout");
    net.Add(block + "mlp.add", sequence);
  }
  net.LayerNorm("ln_f");
  net.Dense("lm_head", {.units = n.vocabulary, .bias = false, .tied = true});
}

Workload Gpt(const LanguageModel& model, std::int64_t tokens) {
  NetworkBuilder net(
      model.name, std::string(model.title) + ", " + to_string(tokens) + kTiedHead,
      "Hugging Face GPT2LMHeadModel, " + std::string(model.repository) + "; Radford et al. 2019",
      {tokens, 1, 1});
  WriteGpt(net,
           {.layers = model.blocks,
            .hidden = model.features,
            .heads = model.heads,
            .key_value_heads = model.heads,
            .mlp = GptMlp(model.features),
            .vocabulary = kGpt2Vocabulary},
           kGpt2Positions, tokens);
  return net.Finish(Statistics::kNotInTotal);
}

// The table of positions has two rows more, by which all positions are shifted.
Workload Opt(const LanguageModel& model, std::int64_t tokens) {
  constexpr std::int64_t kVocabulary = 50272;
  constexpr std::int64_t kOffset = 2;
  const std::int64_t features = model.features;
  NetworkBuilder net(model.name, std::string(model.title) + ", " + to_string(tokens) + kTiedHead,
                     "Hugging Face OPTForCausalLM, " + std::string(model.repository) +
                         "; Zhang et al., arXiv 2205.01068",
                     {tokens, 1, 1});
  net.Embedding("embed_tokens", {.rows = kVocabulary, .features = features, .tokens = tokens});
  net.Embedding("embed_positions",
                {.rows = kOptPositions + kOffset, .features = features, .tokens = tokens});
  const Shape sequence = net.shape();
  net.Add("add_positions", sequence);
  for (std::int64_t i = 0; i < model.blocks; ++i) {
    const std::string layer = "layers." + to_string(i) + ".";
    net.LayerNorm(layer + "self_attn_layer_norm");
    net.Attention(layer + "self_attn", {.heads = model.heads, .causal = true});
    net.Add(layer + "self_attn.add", sequence);
    net.LayerNorm(layer + "final_layer_norm");
    net.Dense(layer + "fc1", {.units = 4 * features});
    net.Activation(layer + "relu", Function::kRelu);
    net.Dense(layer + "fc2", {.units = features});
    net.Add(layer + "fc2.add", sequence);
  }
  net.LayerNorm("final_layer_norm");
  net.Dense("lm_head", {.units = kVocabulary, .bias = false, .tied = true});
  return net.Finish(Statistics::kNotInTotal);
}

struct LlamaSizes {
  std::int64_t key_value_heads = 0;
  std::int64_t hidden = 0;  // of the feed-forward part
  std::int64_t vocabulary = 0;
  const char* paper = nullptr;
  const char* architecture = "LlamaForCausalLM";
  bool tied = false;
};

// No layer has a bias, and the output layer has a weight of its own unless it is tied. They were
// trained with fused attention (arXiv 2302.13971, section 2.4; 2310.06825, section 2), which their
// successors kept; networks before them were not.
void WriteLlama(NetworkBuilder& net, const DecoderNumbers& n, std::int64_t tokens, bool tied) {
  net.FuseAttention();
  net.Embedding("embed_tokens", {.rows = n.vocabulary, .features = n.hidden, .tokens = tokens});
  const Shape sequence = net.shape();
  for (std::int64_t i = 0; i < n.layers; ++i) {
    const std::string layer = "layers." + to_string(i) + ".";
    net.RmsNorm(layer + "input_layernorm");
    net.Attention(layer + "self_attn", {.heads = n.heads,
                                        .key_value_heads = n.key_value_heads,
                                        .bias = false,
                                        .rotary = true,
                                        .causal = true});
    net.Add(layer + "self_attn.add", sequence);
    net.RmsNorm(layer + "post_attention_layernorm");
    net.Dense(layer + "mlp.gate_proj", {.units = n.mlp, .bias = false});
    net.Activation(layer + "mlp.silu", Function::kSwish);
    const Shape gate = net.shape();
    net.set_shape(sequence);
    net.Dense(layer + "mlp.up_proj", {.units = n.mlp, .bias = false});
    net.Multiply(layer + "mlp.gate", gate);
    net.Dense(layer + "mlp.down_proj", {.units = n.hidden, .bias = false});
    net.Add(layer + "mlp.add", sequence);
  }
  net.RmsNorm("norm");
  net.Dense("lm_head", {.units = n.vocabulary, .bias = false, .tied = tied});
}

Workload Llama(const LanguageModel& model, const LlamaSizes& sizes, std::int64_t tokens) {
  NetworkBuilder net(
      model.name,
      std::string(model.title) + ", " + to_string(tokens) + (sizes.tied ? kTiedHead : " tokens"),
      "Hugging Face " + std::string(sizes.architecture) + ", " + model.repository + "; " +
          sizes.paper,
      {tokens, 1, 1});
  WriteLlama(net,
             {.layers = model.blocks,
              .hidden = model.features,
              .heads = model.heads,
              .key_value_heads = sizes.key_value_heads,
              .mlp = sizes.hidden,
              .vocabulary = sizes.vocabulary},
             tokens, sizes.tied);
  return net.Finish(Statistics::kNotInTotal);
}

// "24 layers of 2048, 16 heads".
std::string NumbersText(const DecoderNumbers& n) {
  return to_string(n.layers) + " layers of " + to_string(n.hidden) + ", " + to_string(n.heads) +
         " heads" +
         (n.key_value_heads == n.heads ? "" : ", " + to_string(n.key_value_heads) + " of keys");
}

}  // namespace

Workload Gpt2(std::int64_t tokens) {
  return Gpt({"gpt2", "GPT-2 small", "gpt2", 12, 768, 12}, tokens);
}
Workload Gpt2Medium(std::int64_t tokens) {
  return Gpt({"gpt2_medium", "GPT-2 medium", "gpt2-medium", 24, 1024, 16}, tokens);
}
Workload Gpt2Large(std::int64_t tokens) {
  return Gpt({"gpt2_large", "GPT-2 large", "gpt2-large", 36, 1280, 20}, tokens);
}
Workload Gpt2Xl(std::int64_t tokens) {
  return Gpt({"gpt2_xl", "GPT-2 XL", "gpt2-xl", 48, 1600, 25}, tokens);
}

Workload GptOf(const std::string& name, const DecoderNumbers& numbers, std::int64_t tokens) {
  NetworkBuilder net(
      name, "GPT-2 of " + NumbersText(numbers) + ", " + to_string(tokens) + kTiedHead,
      "numbers as told, form of Hugging Face GPT2LMHeadModel; Radford et al. 2019", {tokens, 1, 1});
  WriteGpt(net, numbers, tokens, tokens);
  return net.Finish(Statistics::kNotInTotal);
}

Workload Opt125M(std::int64_t tokens) {
  return Opt({"opt_125m", "OPT-125M", "facebook/opt-125m", 12, 768, 12}, tokens);
}
Workload Opt1300M(std::int64_t tokens) {
  return Opt({"opt_1.3b", "OPT-1.3B", "facebook/opt-1.3b", 24, 2048, 32}, tokens);
}
Workload Opt2700M(std::int64_t tokens) {
  return Opt({"opt_2.7b", "OPT-2.7B", "facebook/opt-2.7b", 32, 2560, 32}, tokens);
}
Workload Opt6700M(std::int64_t tokens) {
  return Opt({"opt_6.7b", "OPT-6.7B", "facebook/opt-6.7b", 32, 4096, 32}, tokens);
}
Workload Opt13B(std::int64_t tokens) {
  return Opt({"opt_13b", "OPT-13B", "facebook/opt-13b", 40, 5120, 40}, tokens);
}

// Attention and feed-forward part read the same sum, and both are added to it. A quarter of each
// head's features is turned by its position. The output layer has a weight of its own.
Workload GptNeox20B(std::int64_t tokens) {
  constexpr std::int64_t kVocabulary = 50432;  // 50257 and what makes it divide well
  constexpr std::int64_t kFeatures = 6144;
  NetworkBuilder net("gpt_neox_20b", "GPT-NeoX-20B, " + to_string(tokens) + " tokens",
                     "Hugging Face GPTNeoXForCausalLM, EleutherAI/gpt-neox-20b; Black et al., "
                     "arXiv 2204.06745",
                     {tokens, 1, 1});
  net.Embedding("embed_in", {.rows = kVocabulary, .features = kFeatures, .tokens = tokens});
  const Shape sequence = net.shape();
  for (int i = 0; i < 44; ++i) {
    const std::string layer = "layers." + to_string(i) + ".";
    net.LayerNorm(layer + "input_layernorm");
    net.Attention(layer + "attention", {.heads = 64,
                                        .fused_projections = true,
                                        .rotary = true,
                                        .rotary_divisor = 4,
                                        .causal = true});
    net.LayerNorm(layer + "post_attention_layernorm");
    GeluMlp(net, layer + "mlp.dense_h_to_4h", layer + "mlp.gelu", layer + "mlp.dense_4h_to_h",
            4 * kFeatures);
    net.Add(layer + "mlp.add_attention", sequence);
    net.Add(layer + "mlp.add", sequence);
  }
  net.LayerNorm("final_layer_norm");
  net.Dense("embed_out", {.units = kVocabulary, .bias = false});
  return net.Finish(Statistics::kNotInTotal);
}

// Positions are a slope that each head adds to its scores (ALiBi), and no table. Embeddings are
// normalised.
Workload Bloom7B1(std::int64_t tokens) {
  constexpr std::int64_t kVocabulary = 250880;
  constexpr std::int64_t kFeatures = 4096;
  NetworkBuilder net("bloom_7b1", "BLOOM-7B1, " + to_string(tokens) + kTiedHead,
                     "Hugging Face BloomForCausalLM, bigscience/bloom-7b1; BigScience Workshop, "
                     "arXiv 2211.05100",
                     {tokens, 1, 1});
  net.Embedding("word_embeddings", {.rows = kVocabulary, .features = kFeatures, .tokens = tokens});
  const Shape sequence = net.shape();
  net.LayerNorm("word_embeddings_layernorm");
  for (int i = 0; i < 30; ++i) {
    const std::string block = "h." + to_string(i) + ".";
    net.LayerNorm(block + "input_layernorm");
    net.Attention(block + "self_attention",
                  {.heads = 32, .fused_projections = true, .causal = true});
    net.Add(block + "self_attention.add", sequence);
    net.LayerNorm(block + "post_attention_layernorm");
    GeluMlp(net, block + "mlp.dense_h_to_4h", block + "mlp.gelu", block + "mlp.dense_4h_to_h",
            4 * kFeatures);
    net.Add(block + "mlp.add", sequence);
  }
  net.LayerNorm("ln_f");
  net.Dense("lm_head", {.units = kVocabulary, .bias = false, .tied = true});
  return net.Finish(Statistics::kNotInTotal);
}

Workload LlamaOf(const std::string& name, const DecoderNumbers& numbers, std::int64_t tokens) {
  NetworkBuilder net(
      name, "LLaMA of " + NumbersText(numbers) + ", " + to_string(tokens) + " tokens",
      "numbers as told, form of Hugging Face LlamaForCausalLM; Touvron et al., arXiv 2302.13971",
      {tokens, 1, 1});
  WriteLlama(net, numbers, tokens, /*tied=*/false);
  return net.Finish(Statistics::kNotInTotal);
}

Workload Llama7B(std::int64_t tokens) {
  return Llama({"llama_7b", "LLaMA-7B", "huggyllama/llama-7b", 32, 4096, 32},
               {32, 11008, 32000, "Touvron et al., arXiv 2302.13971"}, tokens);
}
Workload Llama13B(std::int64_t tokens) {
  return Llama({"llama_13b", "LLaMA-13B", "huggyllama/llama-13b", 40, 5120, 40},
               {40, 13824, 32000, "Touvron et al., arXiv 2302.13971"}, tokens);
}
Workload Llama2With7B(std::int64_t tokens) {
  return Llama({"llama2_7b", "Llama 2 7B", "meta-llama/Llama-2-7b-hf", 32, 4096, 32},
               {32, 11008, 32000, "Touvron et al., arXiv 2307.09288"}, tokens);
}
Workload Llama2With13B(std::int64_t tokens) {
  return Llama({"llama2_13b", "Llama 2 13B", "meta-llama/Llama-2-13b-hf", 40, 5120, 40},
               {40, 13824, 32000, "Touvron et al., arXiv 2307.09288"}, tokens);
}
Workload Llama2With70B(std::int64_t tokens) {
  return Llama({"llama2_70b", "Llama 2 70B", "meta-llama/Llama-2-70b-hf", 80, 8192, 64},
               {8, 28672, 32000, "Touvron et al., arXiv 2307.09288"}, tokens);
}
// Llama 2 of this size, which was published as Code Llama alone.
Workload CodeLlama34B(std::int64_t tokens) {
  return Llama({"codellama_34b", "Code Llama 34B", "codellama/CodeLlama-34b-hf", 48, 8192, 64},
               {8, 22016, 32000, "Roziere et al., arXiv 2308.12950"}, tokens);
}
Workload Llama3With8B(std::int64_t tokens) {
  return Llama({"llama3_8b", "Llama 3 8B", "meta-llama/Meta-Llama-3-8B", 32, 4096, 32},
               {8, 14336, 128256, "Grattafiori et al., arXiv 2407.21783"}, tokens);
}
Workload Llama3With70B(std::int64_t tokens) {
  return Llama({"llama3_70b", "Llama 3 70B", "meta-llama/Meta-Llama-3-70B", 80, 8192, 64},
               {8, 28672, 128256, "Grattafiori et al., arXiv 2407.21783"}, tokens);
}
// Llama 3.1 of 8 B and 70 B has the layers of Llama 3.
Workload Llama31With405B(std::int64_t tokens) {
  return Llama({"llama3.1_405b", "Llama 3.1 405B", "meta-llama/Llama-3.1-405B", 126, 16384, 128},
               {8, 53248, 128256, "Grattafiori et al., arXiv 2407.21783"}, tokens);
}
Workload Llama32With1B(std::int64_t tokens) {
  return Llama({"llama3.2_1b", "Llama 3.2 1B", "meta-llama/Llama-3.2-1B", 16, 2048, 32},
               {8, 8192, 128256, "Meta's model card, 2024", "LlamaForCausalLM", true}, tokens);
}
Workload Llama32With3B(std::int64_t tokens) {
  return Llama({"llama3.2_3b", "Llama 3.2 3B", "meta-llama/Llama-3.2-3B", 28, 3072, 24},
               {8, 8192, 128256, "Meta's model card, 2024", "LlamaForCausalLM", true}, tokens);
}
// Each position sees the 4096 before it: all of them in sequences that are no longer.
Workload Mistral7B(std::int64_t tokens) {
  return Llama({"mistral_7b", "Mistral 7B", "mistralai/Mistral-7B-v0.1", 32, 4096, 32},
               {8, 14336, 32000, "Jiang et al., arXiv 2310.06825", "MistralForCausalLM"}, tokens);
}

}  // namespace stepcast
