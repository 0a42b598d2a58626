// BERT and its relatives RoBERTa, XLM-R and CamemBERT, whose positions begin after the padding's:
// transformers' BertAttention, BertConfig, RobertaEmbeddings and RobertaConfig.
#include <nlohmann/json.hpp>

#include "io/model/config.hpp"
#include "io/model/family.hpp"

namespace attn::io {
namespace {

/// After the residual, which is not part of the attention.
constexpr HarmlessTensor bert_norms[] = {{"output.LayerNorm.weight"},
                                         {"output.LayerNorm.bias"},
                                         {"output.LayerNorm.gamma"},
                                         {"output.LayerNorm.beta"}};

constexpr LayerNames bert_layers[] = {{.layer = "encoder.layer.#.attention.",
                                       .query = {"self.query.weight", "self.query.bias"},
                                       .key = {"self.key.weight", "self.key.bias"},
                                       .value = {"self.value.weight", "self.value.bias"},
                                       .out = {"output.dense.weight", "output.dense.bias"},
                                       .others = bert_norms}};

constexpr ConfigKey bert_keys[] = {
    {"position_embedding_type"}, {"pooler_num_attention_heads"},  // of a classifier
    {"pooler_size_per_head"},    {"attention_bias", "[true]"},
    {"is_causal", "[false]"},    {"use_rope", "[false]"}};

/// A BERT decoder is causal.
void read_bert_decoder(ConfigReader& config) {
    const nlohmann::json positions = config.at("position_embedding_type");
    if (!positions.is_null() && positions != "absolute")
        config.fail("position_embedding_type", "\"absolute\"");
    if (config.flag("is_decoder", false) && config.settings().mode == Mode::multihead)
        config.fill("causal", "is_decoder");
}

constexpr ModelType bert_type{.name = "bert",
                              .eps = "layer_norm_eps",
                              .biases = {.inputs = true, .out = true},
                              .others = bert_keys,
                              .read_others = read_bert_decoder};

constexpr ModelType roberta_type(std::string_view name) {
    ModelType type = bert_type;
    type.name = name;
    type.prefix = "roberta.";
    type.has_padding_positions = true;
    return type;
}

constexpr ModelType bert_types[] = {bert_type, roberta_type("roberta"), roberta_type("xlm-roberta"),
                                    roberta_type("camembert")};

}  // namespace

namespace families {
extern constinit const Family bert{
    .name = "bert",
    .published = "bert.",
    .layers = bert_layers,
    .embedding = {.module = "embeddings.",
                  .ids = "embeddings.word_embeddings.weight",
                  .positions = "embeddings.position_embeddings.weight",
                  .segments = "embeddings.token_type_embeddings.weight",
                  .norm = "embeddings.LayerNorm"},
    .eps = 1e-12,
    .causal = false,
    .model_types = bert_types};
}  // namespace families

}  // namespace attn::io
