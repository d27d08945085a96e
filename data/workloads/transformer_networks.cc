// Devlin et al.: BERT (arXiv 1810.04805); Radford et al.: Language Models are Unsupervised
// Multitask Learners (2019). As Hugging Face transformers builds them.
#include <string>

#include "data/workloads/families.h"
#include "data/workloads/network_builder.h"

namespace stepcast {
namespace {

using std::to_string;

// The sequence length of the SQuAD fine-tuning in google-research/bert, README.
constexpr std::int64_t kSquadTokens = 384;

Workload Bert(const std::string& size, int blocks, std::int64_t features, std::int64_t heads) {
  NetworkBuilder net("bert_" + size,
                     "BERT-" + size + " uncased with pooler, 384 tokens (as for SQuAD)",
                     "Hugging Face BertModel, bert-" + size +
                         "-uncased; Devlin et al., "
                         "arXiv 1810.04805",
                     {kSquadTokens, 1, 1});
  net.Embedding("embeddings.word", {.rows = 30522, .features = features, .tokens = kSquadTokens});
  net.Embedding("embeddings.token_type", {.rows = 2, .features = features, .tokens = kSquadTokens});
  const Shape sequence = net.shape();
  net.Add("embeddings.add_token_type", sequence);
  net.Embedding("embeddings.position", {.rows = 512, .features = features, .tokens = kSquadTokens});
  net.Add("embeddings.add_position", sequence);
  net.LayerNorm("embeddings.norm");
  for (int i = 0; i < blocks; ++i) {
    const std::string layer = "layer." + to_string(i) + ".";
    net.Attention(layer + "attention", {.heads = heads});
    net.Add(layer + "attention.add", sequence);
    net.LayerNorm(layer + "attention.norm");
    net.Dense(layer + "intermediate", {.units = 4 * features});
    net.Activation(layer + "gelu", Function::kGelu);
    net.Dense(layer + "output", {.units = features});
    net.Add(layer + "output.add", sequence);
    net.LayerNorm(layer + "output.norm");
  }
  net.set_shape({1, 1, features});  // the first token
  net.Dense("pooler", {.units = features});
  net.Activation("pooler.tanh", Function::kTanh);
  return net.Finish(Statistics::kNotInTotal);
}

}  // namespace

Workload BertBase() { return Bert("base", 12, 768, 12); }
Workload BertLarge() { return Bert("large", 24, 1024, 16); }

// The output layer shares its weight with the token embedding: its work counts here, its tensor
// there, where the shared gradient is complete, at the end of the backward pass.
Workload Gpt2() {
  constexpr std::int64_t kTokens = 1024;
  constexpr std::int64_t kFeatures = 768;
  constexpr std::int64_t kVocabulary = 50257;
  NetworkBuilder net("gpt2", "GPT-2 small, 1024 tokens, output layer tied to the embedding",
                     "Hugging Face GPT2LMHeadModel, gpt2; Radford et al. 2019", {kTokens, 1, 1});
  net.Embedding("wte", {.rows = kVocabulary, .features = kFeatures, .tokens = kTokens});
  net.Embedding("wpe", {.rows = kTokens, .features = kFeatures, .tokens = kTokens});
  const Shape sequence = net.shape();
  net.Add("add_wpe", sequence);
  for (int i = 0; i < 12; ++i) {
    const std::string block = "h." + to_string(i) + ".";
    net.LayerNorm(block + "ln_1");
    net.Attention(block + "attn", {.heads = 12, .fused_projections = true});
    net.Add(block + "attn.add", sequence);
    net.LayerNorm(block + "ln_2");
    net.Dense(block + "mlp.c_fc", {.units = 4 * kFeatures});
    net.Activation(block + "mlp.gelu", Function::kGeluTanh);
    net.Dense(block + "mlp.c_proj", {.units = kFeatures});
    net.Add(block + "mlp.add", sequence);
  }
  net.LayerNorm("ln_f");
  net.Dense("lm_head", {.units = kVocabulary, .bias = false, .tied = true});
  return net.Finish(Statistics::kNotInTotal);
}

}  // namespace stepcast
