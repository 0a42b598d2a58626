// OPT and related models: LayerNorms, positions from the third row of a table on.
#include <cmath>
#include <vector>

#include "io/transformer/block_reader.hpp"
#include "io/transformer/family_row.hpp"
#include "io/transformer/model.hpp"

namespace attn::io {
namespace rows_opt {
namespace {

constexpr std::size_t first_row = 2;

void adjust_opt_row(const ModelConfig& config, FamilyRow& row) {
    const bool is_pre_norm = config.flag("do_layer_norm_before", true);
    const bool has_no_final_norm = config.flag("_remove_final_layer_norm");
    if (!is_pre_norm || has_no_final_norm) row.final_norm = {};
    row.norm_has_weight = config.flag("layer_norm_elementwise_affine", true);
    if (is_pre_norm) return;
    row.attention_sum_norm = row.attention_norm;
    row.ffn_sum_norm = row.ffn_norm;
    row.attention_norm = row.ffn_norm = {};
}

void adjust_opt(ModelReader& reader) {
    EmbeddingSpec& embedding = reader.spec.embedding;
    embedding.first_position = first_row;
    embedding.counts_valid = true;
    embedding.projects_before_sum = true;
    const std::size_t width = reader.config.whole("hidden_size"),
                      own = reader.config.whole("word_embed_proj_dim", width);
    if (own == width) return;
    embedding.projection = reader.tensors.linear("project_in", own, width);
    reader.spec.final_projection = reader.tensors.linear("project_out", width, own);
}

constexpr FamilyRow opt{.type = "opt",
                        .prefix = "model.decoder.",
                        .positions = "embed_positions",
                        .final_norm = "final_layer_norm",
                        .rms = false,
                        .eps = {},
                        .attention_norm = "self_attn_layer_norm",
                        .ffn_norm = "final_layer_norm",
                        .out = "self_attn.out_proj",
                        .rotary = Rotary::none,
                        .gate = {},
                        .up = "fc1",
                        .down = "fc2",
                        .activation = "activation_function",
                        .adjust_model = adjust_opt,
                        .adjust_row = adjust_opt_row,
                        .inner_key = "ffn_dim"};

double embedding_scale(const ModelConfig& config) {
    return config.flag("scale_embedding", true)
               ? std::sqrt(static_cast<double>(config.whole("hidden_size")))
               : 1;
}

void adjust_biogpt(ModelReader& reader) {
    reader.config.at("layer_norm_eps");  // the class has it, but its norms do not take it
    reader.spec.embedding.first_position = first_row;
    reader.spec.embedding.scale = embedding_scale(reader.config);
}

constexpr FamilyRow biogpt = with(opt, "biogpt", [](FamilyRow& row) {
    row.prefix = "biogpt.";
    row.final_norm = "layer_norm";
    row.head = "output_projection";
    row.activation = "hidden_act";
    row.inner_key = "intermediate_size";
    row.adjust_model = adjust_biogpt;
    row.adjust_row = nullptr;
});

/// Sines of all angles, then their cosines; the row of the padding token is 0.
std::vector<double> sinusoids(std::size_t row, std::size_t width, std::int64_t padding) {
    std::vector<double> values(width);
    if (static_cast<std::int64_t>(row) == padding) return values;
    const std::size_t half = width / 2;
    for (std::size_t i = 0; i < half; ++i) {
        const double angle =
            static_cast<double>(row) *
            std::exp(-static_cast<double>(i) * std::log(10000.0) / static_cast<double>(half - 1));
        values[i] = std::sin(angle);
        values[half + i] = std::cos(angle);
    }
    return values;
}

void adjust_xglm(ModelReader& reader) {
    reader.config.require("add_cross_attention", false);
    EmbeddingSpec& embedding = reader.spec.embedding;
    embedding.scale = embedding_scale(reader.config);
    const std::size_t width = reader.config.whole("hidden_size");
    if (width < 4) reader.config.fail("d_model", "at least 4");
    const nlohmann::json& given = reader.config.at("pad_token_id");
    const std::int64_t padding = given.is_number_integer() ? given.get<std::int64_t>() : -1;
    embedding.position_row = [width, padding](std::size_t position) {
        return sinusoids(position + first_row, width, padding);
    };
}

constexpr FamilyRow xglm = with(biogpt, "xglm", [](FamilyRow& row) {
    row.prefix = "model.";
    row.positions = {};
    row.head = "lm_head";
    row.activation = "activation_function";
    row.inner_key = "ffn_dim";
    row.adjust_model = adjust_xglm;
});

constexpr FamilyRow rows[] = {opt, biogpt, xglm};

}  // namespace
}  // namespace rows_opt

FamilyRows rows_of_opt() {
    return rows_opt::rows;
}

}  // namespace attn::io
