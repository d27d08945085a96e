// Radford et al.: Language Models are Unsupervised Multitask Learners (2019); Zhang et al.: OPT
// (arXiv 2205.01068); Black et al.: GPT-NeoX-20B (2204.06745); Workshop et al.: BLOOM (2211.05100);
// Touvron et al.: LLaMA (2302.13971) and Llama 2 (2307.09288); Roziere et al.: Code Llama
// (2308.12950); Grattafiori et al.: Llama 3 (2407.21783); Jiang et al.: Mistral 7B (2310.06825);
// Qwen Team: Qwen2.5 (2412.15115) and Qwen3 (2505.09388); Abdin et al.: Phi-3 (2404.14219) and
// Phi-4 (2412.08905); Gemma Team: Gemma (2403.08295) and Gemma 2 (2408.00118). As Hugging Face
// transformers builds them.
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

// In what decoders after LLaMA differ from it.
struct LlamaForm {
  bool tied = false;               // the output layer, to the embedding
  bool projection_bias = false;    // of queries, keys and values, not of their output
  bool head_norms = false;         // of queries and keys
  std::int64_t head_features = 0;  // where heads do not divide the features of a token
  bool fused_projections = false;  // one for queries, keys and values, and one for gate and up
  Function gate = Function::kSwish;
  bool scaled_embedding = false;
  bool norms_behind = false;  // attention and feed-forward part are normalised before the sums too
  bool capped = false;        // scores of attention, and of the vocabulary
};

struct LlamaSizes {
  std::int64_t key_value_heads = 0;
  std::int64_t hidden = 0;  // of the feed-forward part
  std::int64_t vocabulary = 0;
  const char* paper = nullptr;
  const char* architecture = "LlamaForCausalLM";
  LlamaForm form = {};
};

// No layer has a bias, and the output layer has a weight of its own, unless the form says
// otherwise. They were trained with fused attention (arXiv 2302.13971, section 2.4; 2310.06825,
// section 2), which their successors kept; networks before them were not.
void WriteLlama(NetworkBuilder& net, const DecoderNumbers& n, std::int64_t tokens,
                const LlamaForm& form) {
  net.FuseAttention();
  net.Embedding("embed_tokens", {.rows = n.vocabulary, .features = n.hidden, .tokens = tokens});
  const Shape sequence = net.shape();
  if (form.scaled_embedding) net.Rearrange("embed_tokens.scale", sequence);
  for (std::int64_t i = 0; i < n.layers; ++i) {
    const std::string layer = "layers." + to_string(i) + ".";
    net.RmsNorm(layer + "input_layernorm");
    net.Attention(layer + "self_attn", {.heads = n.heads,
                                        .fused_projections = form.fused_projections,
                                        .key_value_heads = n.key_value_heads,
                                        .head_features = form.head_features,
                                        .bias = form.projection_bias,
                                        .output_bias = false,
                                        .head_norms = form.head_norms,
                                        .capped_scores = form.capped,
                                        .rotary = true,
                                        .causal = true});
    if (form.norms_behind) net.RmsNorm(layer + "post_attention_layernorm");
    net.Add(layer + "self_attn.add", sequence);
    net.RmsNorm(layer +
                (form.norms_behind ? "pre_feedforward_layernorm" : "post_attention_layernorm"));
    const Shape inner = {tokens, 1, n.mlp};
    if (form.fused_projections) {
      net.Dense(layer + "mlp.gate_up_proj", {.units = 2 * n.mlp, .bias = false});
      net.set_shape(inner);
      net.Activation(layer + "mlp.silu", form.gate);
    } else {
      net.Dense(layer + "mlp.gate_proj", {.units = n.mlp, .bias = false});
      net.Activation(layer + (form.gate == Function::kSwish ? "mlp.silu" : "mlp.gelu"), form.gate);
      net.set_shape(sequence);
      net.Dense(layer + "mlp.up_proj", {.units = n.mlp, .bias = false});
    }
    net.Multiply(layer + "mlp.gate", inner);
    net.Dense(layer + "mlp.down_proj", {.units = n.hidden, .bias = false});
    if (form.norms_behind) net.RmsNorm(layer + "post_feedforward_layernorm");
    net.Add(layer + "mlp.add", sequence);
  }
  net.RmsNorm("norm");
  net.Dense("lm_head", {.units = n.vocabulary, .bias = false, .tied = form.tied});
  if (form.capped) net.CapAt("lm_head.cap");
}

Workload Llama(const LanguageModel& model, const LlamaSizes& sizes, std::int64_t tokens) {
  NetworkBuilder net(model.name,
                     std::string(model.title) + ", " + to_string(tokens) +
                         (sizes.form.tied ? kTiedHead : " tokens"),
                     "Hugging Face " + std::string(sizes.architecture) + ", " + model.repository +
                         "; " + sizes.paper,
                     {tokens, 1, 1});
  WriteLlama(net,
             {.layers = model.blocks,
              .hidden = model.features,
              .heads = model.heads,
              .key_value_heads = sizes.key_value_heads,
              .mlp = sizes.hidden,
              .vocabulary = sizes.vocabulary},
             tokens, sizes.form);
  return net.Finish(Statistics::kNotInTotal);
}

LlamaForm GemmaForm(std::int64_t head_features) {
  return {.tied = true,
          .head_features = head_features,
          .gate = Function::kGeluTanh,
          .scaled_embedding = true};
}
LlamaForm Gemma2Form(std::int64_t head_features) {
  LlamaForm form = GemmaForm(head_features);
  form.norms_behind = true;
  form.capped = true;
  return form;
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
  WriteLlama(net, numbers, tokens, /*form=*/{});
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
// Of 8 B and 70 B it has the layers of Llama 3, and its positions go on for longer.
Workload Llama31With8B(std::int64_t tokens) {
  return Llama({"llama3.1_8b", "Llama 3.1 8B", "meta-llama/Llama-3.1-8B", 32, 4096, 32},
               {8, 14336, 128256, "Grattafiori et al., arXiv 2407.21783"}, tokens);
}
Workload Llama31With70B(std::int64_t tokens) {
  return Llama({"llama3.1_70b", "Llama 3.1 70B", "meta-llama/Llama-3.1-70B", 80, 8192, 64},
               {8, 28672, 128256, "Grattafiori et al., arXiv 2407.21783"}, tokens);
}
Workload Llama31With405B(std::int64_t tokens) {
  return Llama({"llama3.1_405b", "Llama 3.1 405B", "meta-llama/Llama-3.1-405B", 126, 16384, 128},
               {8, 53248, 128256, "Grattafiori et al., arXiv 2407.21783"}, tokens);
}
Workload Llama32With1B(std::int64_t tokens) {
  return Llama({"llama3.2_1b", "Llama 3.2 1B", "meta-llama/Llama-3.2-1B", 16, 2048, 32},
               {8, 8192, 128256, "Meta's model card, 2024", "LlamaForCausalLM", {.tied = true}},
               tokens);
}
Workload Llama32With3B(std::int64_t tokens) {
  return Llama({"llama3.2_3b", "Llama 3.2 3B", "meta-llama/Llama-3.2-3B", 28, 3072, 24},
               {8, 8192, 128256, "Meta's model card, 2024", "LlamaForCausalLM", {.tied = true}},
               tokens);
}
// Each position of the first version sees the 4096 before it: all of them in sequences that are no
// longer. Later versions see all.
Workload Mistral7B(std::int64_t tokens) {
  return Llama({"mistral_7b", "Mistral 7B", "mistralai/Mistral-7B-v0.1", 32, 4096, 32},
               {8, 14336, 32000, "Jiang et al., arXiv 2310.06825", "MistralForCausalLM"}, tokens);
}
Workload Mistral7BVersion2(std::int64_t tokens) {
  return Llama(
      {"mistral_7b_v0.2", "Mistral 7B v0.2", "mistralai/Mistral-7B-Instruct-v0.2", 32, 4096, 32},
      {8, 14336, 32000, "Jiang et al., arXiv 2310.06825", "MistralForCausalLM"}, tokens);
}
Workload Mistral7BVersion3(std::int64_t tokens) {
  return Llama({"mistral_7b_v0.3", "Mistral 7B v0.3", "mistralai/Mistral-7B-v0.3", 32, 4096, 32},
               {8, 14336, 32768, "Jiang et al., arXiv 2310.06825", "MistralForCausalLM"}, tokens);
}

// Of the sizes that both have, Qwen2 has the layers of Qwen2.5.
Workload Qwen25With500M(std::int64_t tokens) {
  return Llama({"qwen2.5_0.5b", "Qwen2.5 0.5B", "Qwen/Qwen2.5-0.5B", 24, 896, 14},
               {2,
                4864,
                151936,
                "Qwen Team, arXiv 2412.15115",
                "Qwen2ForCausalLM",
                {.tied = true, .projection_bias = true}},
               tokens);
}
Workload Qwen25With1500M(std::int64_t tokens) {
  return Llama({"qwen2.5_1.5b", "Qwen2.5 1.5B", "Qwen/Qwen2.5-1.5B", 28, 1536, 12},
               {2,
                8960,
                151936,
                "Qwen Team, arXiv 2412.15115",
                "Qwen2ForCausalLM",
                {.tied = true, .projection_bias = true}},
               tokens);
}
Workload Qwen25With3B(std::int64_t tokens) {
  return Llama({"qwen2.5_3b", "Qwen2.5 3B", "Qwen/Qwen2.5-3B", 36, 2048, 16},
               {2,
                11008,
                151936,
                "Qwen Team, arXiv 2412.15115",
                "Qwen2ForCausalLM",
                {.tied = true, .projection_bias = true}},
               tokens);
}
Workload Qwen25With7B(std::int64_t tokens) {
  return Llama({"qwen2.5_7b", "Qwen2.5 7B", "Qwen/Qwen2.5-7B", 28, 3584, 28},
               {4,
                18944,
                152064,
                "Qwen Team, arXiv 2412.15115",
                "Qwen2ForCausalLM",
                {.projection_bias = true}},
               tokens);
}
Workload Qwen25With14B(std::int64_t tokens) {
  return Llama({"qwen2.5_14b", "Qwen2.5 14B", "Qwen/Qwen2.5-14B", 48, 5120, 40},
               {8,
                13824,
                152064,
                "Qwen Team, arXiv 2412.15115",
                "Qwen2ForCausalLM",
                {.projection_bias = true}},
               tokens);
}
Workload Qwen25With32B(std::int64_t tokens) {
  return Llama({"qwen2.5_32b", "Qwen2.5 32B", "Qwen/Qwen2.5-32B", 64, 5120, 40},
               {8,
                27648,
                152064,
                "Qwen Team, arXiv 2412.15115",
                "Qwen2ForCausalLM",
                {.projection_bias = true}},
               tokens);
}
Workload Qwen25With72B(std::int64_t tokens) {
  return Llama({"qwen2.5_72b", "Qwen2.5 72B", "Qwen/Qwen2.5-72B", 80, 8192, 64},
               {8,
                29568,
                152064,
                "Qwen Team, arXiv 2412.15115",
                "Qwen2ForCausalLM",
                {.projection_bias = true}},
               tokens);
}

Workload Qwen3With600M(std::int64_t tokens) {
  return Llama({"qwen3_0.6b", "Qwen3 0.6B", "Qwen/Qwen3-0.6B", 28, 1024, 16},
               {8,
                3072,
                151936,
                "Qwen Team, arXiv 2505.09388",
                "Qwen3ForCausalLM",
                {.tied = true, .head_norms = true, .head_features = 128}},
               tokens);
}
Workload Qwen3With1700M(std::int64_t tokens) {
  return Llama({"qwen3_1.7b", "Qwen3 1.7B", "Qwen/Qwen3-1.7B", 28, 2048, 16},
               {8,
                6144,
                151936,
                "Qwen Team, arXiv 2505.09388",
                "Qwen3ForCausalLM",
                {.tied = true, .head_norms = true, .head_features = 128}},
               tokens);
}
Workload Qwen3With4B(std::int64_t tokens) {
  return Llama({"qwen3_4b", "Qwen3 4B", "Qwen/Qwen3-4B", 36, 2560, 32},
               {8,
                9728,
                151936,
                "Qwen Team, arXiv 2505.09388",
                "Qwen3ForCausalLM",
                {.tied = true, .head_norms = true, .head_features = 128}},
               tokens);
}
Workload Qwen3With8B(std::int64_t tokens) {
  return Llama({"qwen3_8b", "Qwen3 8B", "Qwen/Qwen3-8B", 36, 4096, 32},
               {8,
                12288,
                151936,
                "Qwen Team, arXiv 2505.09388",
                "Qwen3ForCausalLM",
                {.head_norms = true, .head_features = 128}},
               tokens);
}
Workload Qwen3With14B(std::int64_t tokens) {
  return Llama({"qwen3_14b", "Qwen3 14B", "Qwen/Qwen3-14B", 40, 5120, 40},
               {8,
                17408,
                151936,
                "Qwen Team, arXiv 2505.09388",
                "Qwen3ForCausalLM",
                {.head_norms = true, .head_features = 128}},
               tokens);
}
Workload Qwen3With32B(std::int64_t tokens) {
  return Llama({"qwen3_32b", "Qwen3 32B", "Qwen/Qwen3-32B", 64, 5120, 64},
               {8,
                25600,
                151936,
                "Qwen Team, arXiv 2505.09388",
                "Qwen3ForCausalLM",
                {.head_norms = true, .head_features = 128}},
               tokens);
}

// Those that take 128 Ki tokens: of the others a position sees but the 2047 before it.
Workload Phi3Mini(std::int64_t tokens) {
  return Llama({"phi3_mini", "Phi-3 mini", "microsoft/Phi-3-mini-128k-instruct", 32, 3072, 32},
               {32,
                8192,
                32064,
                "Abdin et al., arXiv 2404.14219",
                "Phi3ForCausalLM",
                {.fused_projections = true}},
               tokens);
}
Workload Phi3Medium(std::int64_t tokens) {
  return Llama(
      {"phi3_medium", "Phi-3 medium", "microsoft/Phi-3-medium-128k-instruct", 40, 5120, 40},
      {10,
       17920,
       32064,
       "Abdin et al., arXiv 2404.14219",
       "Phi3ForCausalLM",
       {.fused_projections = true}},
      tokens);
}
Workload Phi4(std::int64_t tokens) {
  return Llama({"phi4", "Phi-4", "microsoft/phi-4", 40, 5120, 40},
               {10,
                17920,
                100352,
                "Abdin et al., arXiv 2412.08905",
                "Phi3ForCausalLM",
                {.fused_projections = true}},
               tokens);
}

Workload GemmaWith2B(std::int64_t tokens) {
  return Llama(
      {"gemma_2b", "Gemma 2B", "google/gemma-2b", 18, 2048, 8},
      {1, 16384, 256000, "Gemma Team, arXiv 2403.08295", "GemmaForCausalLM", GemmaForm(256)},
      tokens);
}
Workload GemmaWith7B(std::int64_t tokens) {
  return Llama(
      {"gemma_7b", "Gemma 7B", "google/gemma-7b", 28, 3072, 16},
      {16, 24576, 256000, "Gemma Team, arXiv 2403.08295", "GemmaForCausalLM", GemmaForm(256)},
      tokens);
}
// Every other block sees the 4096 positions before it alone: all of them in sequences that are no
// longer.
Workload Gemma2With2B(std::int64_t tokens) {
  return Llama(
      {"gemma2_2b", "Gemma 2 2B", "google/gemma-2-2b", 26, 2304, 8},
      {4, 9216, 256000, "Gemma Team, arXiv 2408.00118", "Gemma2ForCausalLM", Gemma2Form(256)},
      tokens);
}
Workload Gemma2With9B(std::int64_t tokens) {
  return Llama(
      {"gemma2_9b", "Gemma 2 9B", "google/gemma-2-9b", 42, 3584, 16},
      {8, 14336, 256000, "Gemma Team, arXiv 2408.00118", "Gemma2ForCausalLM", Gemma2Form(256)},
      tokens);
}
Workload Gemma2With27B(std::int64_t tokens) {
  return Llama(
      {"gemma2_27b", "Gemma 2 27B", "google/gemma-2-27b", 46, 4608, 32},
      {16, 36864, 256000, "Gemma Team, arXiv 2408.00118", "Gemma2ForCausalLM", Gemma2Form(128)},
      tokens);
}

}  // namespace stepcast
