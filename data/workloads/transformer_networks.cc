// Devlin et al.: BERT (arXiv 1810.04805); Radford et al.: Language Models are Unsupervised
// Multitask Learners (2019); Zhang et al.: OPT (arXiv 2205.01068); Touvron et al.: LLaMA (arXiv
// 2302.13971) and Llama 2 (2307.09288); Grattafiori et al.: Llama 3 (2407.21783); Dosovitskiy et
// al.: ViT (2010.11929). As Hugging Face transformers builds them, and torchvision ViT.
#include <string>

#include "data/workloads/families.h"
#include "data/workloads/network_builder.h"

namespace stepcast {
namespace {

using std::to_string;

Workload Bert(const std::string& size, int blocks, std::int64_t features, std::int64_t heads,
              std::int64_t tokens) {
  NetworkBuilder net("bert_" + size,
                     "BERT-" + size + " uncased with pooler, " + to_string(tokens) + " tokens" +
                         (tokens == kSquadTokens ? " (as for SQuAD)" : ""),
                     "Hugging Face BertModel, bert-" + size +
                         "-uncased; Devlin et al., "
                         "arXiv 1810.04805",
                     {tokens, 1, 1});
  net.Embedding("embeddings.word", {.rows = 30522, .features = features, .tokens = tokens});
  net.Embedding("embeddings.token_type", {.rows = 2, .features = features, .tokens = tokens});
  const Shape sequence = net.shape();
  net.Add("embeddings.add_token_type", sequence);
  net.Embedding("embeddings.position",
                {.rows = kBertPositions, .features = features, .tokens = tokens});
  net.Add("embeddings.add_position", sequence);
  net.LayerNorm("embeddings.norm");
  net.Dropout("embeddings.dropout");
  for (int i = 0; i < blocks; ++i) {
    const std::string layer = "layer." + to_string(i) + ".";
    net.Attention(layer + "attention", {.heads = heads, .in_passes = true});
    net.Dropout(layer + "attention.output.dropout");
    net.Add(layer + "attention.add", sequence);
    net.LayerNorm(layer + "attention.norm");
    net.Dense(layer + "intermediate", {.units = 4 * features});
    net.Activation(layer + "gelu", Function::kGelu);
    net.Dense(layer + "output", {.units = features});
    net.Dropout(layer + "output.dropout");
    net.Add(layer + "output.add", sequence);
    net.LayerNorm(layer + "output.norm");
  }
  net.set_shape({1, 1, features});  // the first token
  net.Dense("pooler", {.units = features});
  net.Activation("pooler.tanh", Function::kTanh);
  return net.Finish(Statistics::kNotInTotal);
}

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

Workload Gpt(const LanguageModel& model, std::int64_t tokens) {
  constexpr std::int64_t kVocabulary = 50257;
  const std::int64_t features = model.features;
  NetworkBuilder net(
      model.name, std::string(model.title) + ", " + to_string(tokens) + kTiedHead,
      "Hugging Face GPT2LMHeadModel, " + std::string(model.repository) + "; Radford et al. 2019",
      {tokens, 1, 1});
  net.Embedding("wte", {.rows = kVocabulary, .features = features, .tokens = tokens});
  net.Embedding("wpe", {.rows = kGpt2Positions, .features = features, .tokens = tokens});
  const Shape sequence = net.shape();
  net.Add("add_wpe", sequence);
  net.Dropout("drop");
  for (std::int64_t i = 0; i < model.blocks; ++i) {
    const std::string block = "h." + to_string(i) + ".";
    net.LayerNorm(block + "ln_1");
    net.Attention(
        block + "attn",
        {.heads = model.heads, .fused_projections = true, .in_passes = true, .causal = true});
    net.Dropout(block + "attn.resid_dropout");
    net.Add(block + "attn.add", sequence);
    net.LayerNorm(block + "ln_2");
    net.Dense(block + "mlp.c_fc", {.units = 4 * features});
    net.Activation(block + "mlp.gelu", Function::kGeluTanh);
    net.Dense(block + "mlp.c_proj", {.units = features});
    net.Dropout(block + "mlp.dropout");
    net.Add(block + "mlp.add", sequence);
  }
  net.LayerNorm("ln_f");
  net.Dense("lm_head", {.units = kVocabulary, .bias = false, .tied = true});
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
  std::int64_t key_value_heads;
  std::int64_t hidden;  // of the feed-forward part
  std::int64_t vocabulary;
  const char* paper;
};

// No layer has a bias, and the output layer has a weight of its own. They were trained with fused
// attention (arXiv 2302.13971, section 2.4), which their successors kept; networks before them
// were not.
Workload Llama(const LanguageModel& model, const LlamaSizes& sizes, std::int64_t tokens) {
  NetworkBuilder net(
      model.name, std::string(model.title) + ", " + to_string(tokens) + " tokens",
      "Hugging Face LlamaForCausalLM, " + std::string(model.repository) + "; " + sizes.paper,
      {tokens, 1, 1});
  net.FuseAttention();
  net.Embedding("embed_tokens",
                {.rows = sizes.vocabulary, .features = model.features, .tokens = tokens});
  const Shape sequence = net.shape();
  for (std::int64_t i = 0; i < model.blocks; ++i) {
    const std::string layer = "layers." + to_string(i) + ".";
    net.RmsNorm(layer + "input_layernorm");
    net.Attention(layer + "self_attn", {.heads = model.heads,
                                        .key_value_heads = sizes.key_value_heads,
                                        .bias = false,
                                        .rotary = true,
                                        .causal = true});
    net.Add(layer + "self_attn.add", sequence);
    net.RmsNorm(layer + "post_attention_layernorm");
    net.Dense(layer + "mlp.gate_proj", {.units = sizes.hidden, .bias = false});
    net.Activation(layer + "mlp.silu", Function::kSwish);
    const Shape gate = net.shape();
    net.set_shape(sequence);
    net.Dense(layer + "mlp.up_proj", {.units = sizes.hidden, .bias = false});
    net.Multiply(layer + "mlp.gate", gate);
    net.Dense(layer + "mlp.down_proj", {.units = model.features, .bias = false});
    net.Add(layer + "mlp.add", sequence);
  }
  net.RmsNorm("norm");
  net.Dense("lm_head", {.units = sizes.vocabulary, .bias = false});
  return net.Finish(Statistics::kNotInTotal);
}

// A position is learnt for each patch and the class token, so that the table of positions is that
// of the image: who trains at another size interpolates it once, before.
Workload Vit(const char* name, const char* title, std::int64_t patch, std::int64_t blocks,
             std::int64_t features, std::int64_t heads, std::int64_t pixels) {
  NetworkBuilder net(name, std::string(title) + ", " + ImageText(pixels),
                     "torchvision " + std::string(name) + "; Dosovitskiy et al., arXiv 2010.11929",
                     {pixels, pixels, 3});
  net.Conv2d("conv_proj",
             {.filters = features, .kernel = patch, .stride = patch, .padding = Padding::Valid()});
  const std::int64_t tokens = net.shape().positions() + 1;
  net.Embedding("class_token", {.rows = 1, .features = features});
  net.Rearrange("concat_class_token", {tokens, 1, features});
  const Shape sequence = net.shape();
  net.Embedding("encoder.pos_embedding", {.rows = tokens, .features = features, .tokens = tokens});
  net.Add("encoder.add_pos_embedding", sequence);
  for (std::int64_t i = 0; i < blocks; ++i) {
    const std::string layer = "encoder.layers." + to_string(i) + ".";
    net.LayerNorm(layer + "ln_1");
    net.Attention(layer + "self_attention", {.heads = heads, .fused_projections = true});
    net.Add(layer + "self_attention.add", sequence);
    net.LayerNorm(layer + "ln_2");
    net.Dense(layer + "mlp.0", {.units = 4 * features});
    net.Activation(layer + "mlp.gelu", Function::kGelu);
    net.Dense(layer + "mlp.3", {.units = features});
    net.Add(layer + "mlp.add", sequence);
  }
  net.LayerNorm("encoder.ln");
  net.set_shape({1, 1, features});  // the class token
  net.Dense("heads.head", {.units = 1000});
  return net.Finish(Statistics::kNotInTotal);
}

}  // namespace

Workload BertBase(std::int64_t tokens) { return Bert("base", 12, 768, 12, tokens); }
Workload BertLarge(std::int64_t tokens) { return Bert("large", 24, 1024, 16, tokens); }

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

Workload Llama7B(std::int64_t tokens) {
  return Llama({"llama_7b", "LLaMA-7B", "huggyllama/llama-7b", 32, 4096, 32},
               {32, 11008, 32000, "Touvron et al., arXiv 2302.13971"}, tokens);
}
Workload Llama13B(std::int64_t tokens) {
  return Llama({"llama_13b", "LLaMA-13B", "huggyllama/llama-13b", 40, 5120, 40},
               {40, 13824, 32000, "Touvron et al., arXiv 2302.13971"}, tokens);
}
Workload Llama2With70B(std::int64_t tokens) {
  return Llama({"llama2_70b", "Llama 2 70B", "meta-llama/Llama-2-70b-hf", 80, 8192, 64},
               {8, 28672, 32000, "Touvron et al., arXiv 2307.09288"}, tokens);
}
Workload Llama3With8B(std::int64_t tokens) {
  return Llama({"llama3_8b", "Llama 3 8B", "meta-llama/Meta-Llama-3-8B", 32, 4096, 32},
               {8, 14336, 128256, "Grattafiori et al., arXiv 2407.21783"}, tokens);
}

Workload VitB16(std::int64_t pixels) {
  return Vit("vit_b_16", "ViT-B/16", 16, 12, 768, 12, pixels);
}
Workload VitB32(std::int64_t pixels) {
  return Vit("vit_b_32", "ViT-B/32", 32, 12, 768, 12, pixels);
}
Workload VitL16(std::int64_t pixels) {
  return Vit("vit_l_16", "ViT-L/16", 16, 24, 1024, 16, pixels);
}

}  // namespace stepcast
