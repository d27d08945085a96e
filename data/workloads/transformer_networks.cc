// Devlin et al.: BERT (arXiv 1810.04805); Liu et al.: RoBERTa (1907.11692); Dosovitskiy et al.: ViT
// (2010.11929). As Hugging Face transformers builds the first two, and torchvision ViT.
#include <string>

#include "data/workloads/families.h"
#include "data/workloads/network_builder.h"

namespace stepcast {
namespace {

using std::to_string;

// What encoders of text, of two names and several sizes, differ in.
struct TextEncoder {
  std::string name;
  std::string title;
  std::string source;
  std::int64_t vocabulary;
  std::int64_t token_types;
  std::int64_t position_rows;
  std::int64_t blocks;
  std::int64_t features;
  std::int64_t heads;
};

Workload EncodeText(const TextEncoder& model, std::int64_t tokens) {
  const std::int64_t features = model.features;
  NetworkBuilder net(model.name, model.title, model.source, {tokens, 1, 1});
  net.Embedding("embeddings.word",
                {.rows = model.vocabulary, .features = features, .tokens = tokens});
  net.Embedding("embeddings.token_type",
                {.rows = model.token_types, .features = features, .tokens = tokens});
  const Shape sequence = net.shape();
  net.Add("embeddings.add_token_type", sequence);
  net.Embedding("embeddings.position",
                {.rows = model.position_rows, .features = features, .tokens = tokens});
  net.Add("embeddings.add_position", sequence);
  net.LayerNorm("embeddings.norm");
  net.Dropout("embeddings.dropout");
  for (std::int64_t i = 0; i < model.blocks; ++i) {
    const std::string layer = "layer." + to_string(i) + ".";
    net.Attention(layer + "attention", {.heads = model.heads, .in_passes = true});
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

Workload Bert(const std::string& size, std::int64_t blocks, std::int64_t features,
              std::int64_t heads, std::int64_t tokens) {
  return EncodeText({.name = "bert_" + size,
                     .title = "BERT-" + size + " uncased with pooler, " + to_string(tokens) +
                              " tokens" + (tokens == kSquadTokens ? " (as for SQuAD)" : ""),
                     .source = "Hugging Face BertModel, bert-" + size +
                               "-uncased; Devlin et al., arXiv 1810.04805",
                     .vocabulary = 30522,
                     .token_types = 2,
                     .position_rows = kBertPositions,
                     .blocks = blocks,
                     .features = features,
                     .heads = heads},
                    tokens);
}

// The table of positions has two rows more, as positions are counted from the padding's index on.
Workload Roberta(const std::string& size, std::int64_t blocks, std::int64_t features,
                 std::int64_t heads, std::int64_t tokens) {
  return EncodeText(
      {.name = "roberta_" + size,
       .title = "RoBERTa-" + size + " with pooler, " + to_string(tokens) + " tokens",
       .source = "Hugging Face RobertaModel, roberta-" + size + "; Liu et al., arXiv 1907.11692",
       .vocabulary = 50265,
       .token_types = 1,
       .position_rows = kBertPositions + 2,
       .blocks = blocks,
       .features = features,
       .heads = heads},
      tokens);
}

// A position is learnt for each patch and the class token, so that the table of positions is that
// of the image: who trains at another size interpolates it once, before.
Workload Vit(const char* name, const char* title, std::int64_t patch, std::int64_t blocks,
             std::int64_t features, std::int64_t heads, std::int64_t pixels,
             const std::string& source = "") {
  NetworkBuilder net(name, std::string(title) + ", " + ImageText(pixels),
                     (source.empty() ? "torchvision " + std::string(name) : source) +
                         "; Dosovitskiy et al., arXiv 2010.11929",
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

Workload RobertaBase(std::int64_t tokens) { return Roberta("base", 12, 768, 12, tokens); }
Workload RobertaLarge(std::int64_t tokens) { return Roberta("large", 24, 1024, 16, tokens); }

Workload VitB16(std::int64_t pixels) {
  return Vit("vit_b_16", "ViT-B/16", 16, 12, 768, 12, pixels);
}
Workload VitB32(std::int64_t pixels) {
  return Vit("vit_b_32", "ViT-B/32", 32, 12, 768, 12, pixels);
}
Workload VitL16(std::int64_t pixels) {
  return Vit("vit_l_16", "ViT-L/16", 16, 24, 1024, 16, pixels);
}
Workload VitL32(std::int64_t pixels) {
  return Vit("vit_l_32", "ViT-L/32", 32, 24, 1024, 16, pixels);
}
// The sizes that DeiT brought (Touvron et al., arXiv 2012.12877).
Workload VitTi16(std::int64_t pixels) {
  return Vit("vit_ti_16", "ViT-Ti/16", 16, 12, 192, 3, pixels, "timm deit_tiny_patch16_224");
}
Workload VitS16(std::int64_t pixels) {
  return Vit("vit_s_16", "ViT-S/16", 16, 12, 384, 6, pixels, "timm deit_small_patch16_224");
}
Workload VitH14(std::int64_t pixels) {
  return Vit("vit_h_14", "ViT-H/14", 14, 32, 1280, 16, pixels);
}

}  // namespace stepcast
