// BERT and encoders that differ from it in the order of norms, in shared blocks, in factorised
// embeddings or in their positions.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <utility>

#include "core/model/position_bias.hpp"
#include "io/transformer/shared_rows.hpp"

namespace attn::io {
namespace rows_encoder {
namespace {

constexpr FamilyRow roberta = with(bert_row, "roberta", [](FamilyRow& row) {
    row.prefix = "roberta.";
    row.adjust_model = adjust_roberta_model;
});

/// A group of blocks is used by several layers one after the other.
std::string name_of_albert_layer(const ModelConfig& config, std::size_t layer) {
    const std::size_t layers = config.whole("num_hidden_layers"),
                      groups = config.whole("num_hidden_groups"),
                      inner = config.positive("inner_group_num");
    if (groups == 0 || groups > layers)
        config.fail("num_hidden_groups", "1 to " + std::to_string(layers));
    const double per_group = static_cast<double>(layers) / static_cast<double>(groups);
    const std::size_t step = layer / inner;
    const auto group = static_cast<std::size_t>(static_cast<double>(step) / per_group);
    return "encoder.albert_layer_groups." + std::to_string(group) + ".albert_layers." +
           std::to_string(layer % inner) + ".";
}
void adjust_albert_model(ModelReader& reader) {
    reader.spec.layers *= reader.config.whole("inner_group_num");
}
constexpr FamilyRow albert = with(bert_row, "albert", [](FamilyRow& row) {
    row.prefix = "albert.";
    row.layer_name = name_of_albert_layer;
    row.embedding_projection = "encoder.embedding_hidden_mapping_in";
    row.attention = {"attention.query", "attention.key", "attention.value", "attention.dense"};
    row.attention_sum_norm = "attention.LayerNorm";
    row.ffn = {{}, "ffn", "ffn_output"};
    row.ffn_sum_norm = "full_layer_layer_norm";
    row.adjust_model = adjust_albert_model;
    row.adjust = nullptr;
});

constexpr FamilyRow distilbert = with(bert_row, "distilbert", [](FamilyRow& row) {
    row.prefix = "distilbert.";
    row.layer = "transformer.layer.#.";
    row.segments = {};
    row.eps = {};
    row.eps_value = 1e-12;
    row.attention = {"attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin"};
    row.attention_sum_norm = "sa_layer_norm";
    row.ffn = {{}, "ffn.lin1", "ffn.lin2"};
    row.ffn_sum_norm = "output_layer_norm";
    row.activation = "activation";
    row.inner_key = "hidden_dim";
    // The table of positions is in the file, sinusoidal or not.
    row.passed = "hidden_dim sinusoidal_pos_embds";
    row.adjust_model = nullptr;
    row.adjust = nullptr;
});

constexpr FamilyRow electra = with(bert_row, "electra", [](FamilyRow& row) {
    row.prefix = "electra.";
    row.embedding_projection = "embeddings_project";
});

void adjust_ernie_model(ModelReader& reader) {
    adjust_bert_model(reader);
    if (reader.config.flag("use_task_id"))
        reader.spec.embedding.first_rows = {
            reader.tensors.get("embeddings.task_type_embeddings.weight")};
}
constexpr FamilyRow ernie = with(bert_row, "ernie", [](FamilyRow& row) {
    row.prefix = "ernie.";
    row.passed = "task_type_vocab_size";
    row.adjust_model = adjust_ernie_model;
});

constexpr FamilyRow norms_before =
    with(bert_row, {}, [](FamilyRow& row) { row.attention_sum_norm = row.ffn_sum_norm = {}; });
constexpr FamilyRow megatron = with(norms_before, "megatron-bert", [](FamilyRow& row) {
    row.embedding_norm = {};
    row.attention_norm = "attention.ln";
    row.ffn_norm = "ln";
    row.final_norm = "encoder.ln";
});
constexpr FamilyRow roberta_pre = with(norms_before, "roberta-prelayernorm", [](FamilyRow& row) {
    row.prefix = "roberta_prelayernorm.";
    row.attention_norm = "attention.LayerNorm";
    row.ffn_norm = "intermediate.LayerNorm";
    row.final_norm = "LayerNorm";
    row.adjust_model = adjust_roberta_model;
});
constexpr FamilyRow roberta_xl = with(norms_before, "xlm-roberta-xl", [](FamilyRow& row) {
    row.prefix = "roberta.";
    row.embedding_norm = {};
    row.attention_norm = "attention.self_attn_layer_norm";
    row.ffn_norm = "LayerNorm";
    row.final_norm = "encoder.LayerNorm";
    row.adjust_model = adjust_roberta_model;
});

constexpr FamilyRow rembert = with(bert_row, "rembert", [](FamilyRow& row) {
    row.prefix = "rembert.";
    row.embedding_projection = "encoder.embedding_hidden_mapping_in";
    row.passed = "input_embedding_size output_embedding_size";
});

/// Every token has the box (0, 0, 0, 0): a model that is given ids alone.
void adjust_layoutlm_model(ModelReader& reader) {
    for (const char* name : {"x", "y", "x", "y", "h", "w"})
        reader.spec.embedding.first_rows.push_back(
            reader.tensors.get(std::string("embeddings.") + name + "_position_embeddings.weight"));
}
constexpr FamilyRow layoutlm = with(bert_row, "layoutlm", [](FamilyRow& row) {
    row.prefix = "layoutlm.";
    row.passed = "max_2d_position_embeddings";
    row.adjust_model = adjust_layoutlm_model;
    row.adjust = nullptr;
});

/// Whatever pad_token_id is, the padding of positions is 1.
void adjust_mpnet_model(ModelReader& reader) {
    reader.spec.embedding.first_position = 2;
    reader.spec.embedding.padding_id = 1;
}

/// The buckets of T5, of which the class takes the first 32 whatever their number.
void adjust_mpnet(BlockReader& reader, TransformerBlock& block) {
    auto& part = attention_of(block);
    const DistanceBuckets buckets;
    const std::size_t rows = reader.config.whole("relative_attention_num_buckets");
    if (rows < buckets.count) reader.config.fail("relative_attention_num_buckets", "at least 32");
    const Parameter table =
        reader.tensors.get("encoder.relative_attention_bias.weight", {rows, part.heads});
    part.bias = bucket_bias(buckets, table);
}
constexpr FamilyRow mpnet = with(bert_row, "mpnet", [](FamilyRow& row) {
    row.prefix = "mpnet.";
    row.segments = {};
    row.attention = {"attention.attn.q", "attention.attn.k", "attention.attn.v",
                     "attention.attn.o"};
    row.attention_sum_norm = "attention.LayerNorm";
    row.adjust_model = adjust_mpnet_model;
    row.adjust = adjust_mpnet;
});

/// Sines, then cosines of each position: of the file if it has them.
std::shared_ptr<const std::vector<double>> roformer_table(const BlockReader& reader,
                                                          std::size_t width) {
    constexpr const char* name = "encoder.embed_positions.weight";
    const std::size_t pairs = width / 2, rows = reader.config.whole("max_position_embeddings");
    std::vector<double> stored;
    if (reader.tensors.has(name)) stored = elements_of(reader.tensors.get(name, {rows, width}));
    auto table = std::make_shared<std::vector<double>>();
    for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t i = 0; i < pairs; ++i) {
            const double angle =
                static_cast<double>(row) /
                std::pow(10000.0, 2 * static_cast<double>(i) / static_cast<double>(width));
            const double* const at = stored.empty() ? nullptr : stored.data() + row * width + i;
            table->push_back(at == nullptr ? std::cos(angle) : at[pairs]);
            table->push_back(at == nullptr ? std::sin(angle) : *at);
        }
    return table;
}
void adjust_roformer(BlockReader& reader, TransformerBlock& block) {
    adjust_bert(reader, block);
    auto& part = attention_of(block);
    if (part.d_k % 2 != 0)
        reader.config.fail("num_attention_heads", "a number of heads whose width is even");
    Rotation rotation;
    rotation.pairs = Rope::interleaved;
    rotation.frequencies.resize(part.d_k / 2);
    rotation.table = roformer_table(reader, part.d_k);
    part.rotation = std::move(rotation);
    part.rotates_values = reader.config.flag("rotary_value");
}
constexpr FamilyRow roformer = with(bert_row, "roformer", [](FamilyRow& row) {
    row.prefix = "roformer.";
    row.positions = {};
    row.embedding_projection = "embeddings_project";
    row.adjust = adjust_roformer;
});

constexpr FamilyRow rows[] = {bert_row,
                              roberta,
                              with(roberta, "camembert"),
                              with(roberta, "xlm-roberta"),
                              albert,
                              distilbert,
                              electra,
                              ernie,
                              megatron,
                              roberta_pre,
                              roberta_xl,
                              rembert,
                              layoutlm,
                              mpnet,
                              roformer};

}  // namespace
}  // namespace rows_encoder

constinit const FamilyRows encoder_rows = rows_encoder::rows;

}  // namespace attn::io
