// Devlin et al.: BERT (arXiv 1810.04805); Radford et al.: Language Models are Unsupervised
// Multitask Learners (2019). As Hugging Face transformers builds them.
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

Workload BertBase(std::int64_t tokens) { return Bert("base", 12, 768, 12, tokens); }
Workload BertLarge(std::int64_t tokens) { return Bert("large", 24, 1024, 16, tokens); }

// The output layer shares its weight with the token embedding: its work counts here, its tensor
// there, where the shared gradient is complete, at the end of the backward pass.
Workload Gpt2(std::int64_t tokens) {
  constexpr std::int64_t kFeatures = 768;
  constexpr std::int64_t kVocabulary = 50257;
  NetworkBuilder net(
      "gpt2", "GPT-2 small, " + to_string(tokens) + " tokens, output layer tied to the embedding",
      "Hugging Face GPT2LMHeadModel, gpt2; Radford et al. 2019", {tokens, 1, 1});
  net.Embedding("wte", {.rows = kVocabulary, .features = kFeatures, .tokens = tokens});
  net.Embedding("wpe", {.rows = kGpt2Positions, .features = kFeatures, .tokens = tokens});
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
