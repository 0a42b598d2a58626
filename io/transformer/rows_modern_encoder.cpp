// Encoders with rotary heads: ESM, EuroBERT, ModernBERT, Nomic, GTE, Jina.
#include <cmath>
#include <string>
#include <vector>

#include "io/transformer/model_config.hpp"
#include "io/transformer/shared_rows.hpp"

namespace attn::io::rows_modern_encoder {
namespace {

using nlohmann::json;

constexpr std::string_view inverse_frequencies[] = {"rotary_emb.inv_freq",
                                                    "rotary_embeddings.inv_freq"};

bool is_rotary(const ModelConfig& config) {
    const std::string type = config.text("position_embedding_type", "absolute");
    const bool is_null =
        config.names("position_embedding_type") && !config.gives("position_embedding_type");
    if (is_null || (type != "absolute" && type != "rotary"))
        config.fail("position_embedding_type", "absolute or rotary");
    return type == "rotary";
}

/// Rows of the mask token are 0, and the others are as large as they were in training, where 12 %
/// of the tokens were masked.
std::vector<double> esm_factors(std::uint64_t mask, const std::vector<std::uint64_t>& ids,
                                const std::vector<bool>& valid) {
    const auto masked = static_cast<double>(std::count(ids.begin(), ids.end(), mask));
    const auto padding = std::count(valid.begin(), valid.end(), false);
    const double length = static_cast<double>(ids.size()) - static_cast<double>(padding),
                 factor = (1 - 0.15 * 0.8) / (1 - masked / length);
    std::vector<double> factors;
    factors.reserve(ids.size());
    for (const std::uint64_t id : ids) factors.push_back(id == mask ? 0 : factor);
    return factors;
}
void adjust_esm_model(ModelReader& reader) {
    const ModelConfig& config = reader.config;
    EmbeddingSpec& embedding = reader.spec.embedding;
    adjust_bert_model(reader);
    // The head that predicts contacts takes one weight of each head in each layer.
    const StoredArray* contacts = reader.tensors.find_array("contact_head.regression.weight");
    const std::size_t inputs =
        config.whole("num_hidden_layers") * config.whole("num_attention_heads");
    if (contacts != nullptr && contacts->elements() != inputs)
        throw Error(ErrorKind::input, contacts->place(),
                    std::to_string(contacts->elements()) + " elements; expected " +
                        std::to_string(inputs) +
                        " by num_hidden_layers and num_attention_heads in " + config.place());
    if (!is_rotary(config)) {
        embedding.positions = reader.tensors.get("embeddings.position_embeddings.weight");
        count_after_padding(reader);
    }
    if (config.flag("emb_layer_norm_before")) embedding.norm = reader.norm("embeddings.layer_norm");
    if (config.flag("token_dropout"))
        embedding.id_factors = [mask = config.whole("mask_token_id")](const auto& ids,
                                                                      const auto& valid) {
            return esm_factors(mask, ids, valid);
        };
    embedding.clears_invalid = true;
}
void adjust_esm(BlockReader& reader, TransformerBlock& block, AttentionPart& part) {
    adjust_bert(reader, block, part);
    if (!is_rotary(reader.config)) return;
    part.rotation =
        rotation_of(reader.config, json{{"rope_theta", reader.config.number("rope_theta")}},
                    part.d_k, Rope::half, reader.tokens);
    // Files have the frequencies as they were rounded when the model was made.
    const std::string name = "attention.self.rotary_embeddings.inv_freq";
    for (const std::string& place :
         {reader.full(name), "encoder.layer.*." + name, std::string("rotary_embeddings.inv_freq")})
        if (reader.tensors.has(place)) {
            part.rotation->frequencies =
                elements_of(reader.tensors.get(place, {part.rotation->frequencies.size()}));
            return;
        }
}
constexpr FamilyRow esm = with(bert_row, "esm", [](FamilyRow& row) {
    row.prefix = "esm.";
    row.positions = row.segments = row.embedding_norm = {};
    row.attention_norm = "attention.LayerNorm";
    row.ffn_norm = "LayerNorm";
    row.attention_sum_norm = row.ffn_sum_norm = {};
    row.final_norm = "encoder.emb_layer_norm_after";
    row.activation_name = "gelu";
    row.ignored = inverse_frequencies;
    row.passed = "esmfold_config vocab_list";
    row.required = R"({"is_folding_model":false})";
    row.adjust_model = adjust_esm_model;
    row.adjust = adjust_esm;
});

void adjust_esmc(BlockReader& reader, TransformerBlock& block, AttentionPart&) {
    const auto layers = static_cast<double>(reader.config.whole("num_hidden_layers"));
    block.residual_factor = 1 / std::sqrt(layers / 36);
}
constexpr FamilyRow eurobert{
    .type = "eurobert", .head = {}, .causal = false, .ignored = inverse_frequencies};
constexpr FamilyRow esmc = with(eurobert, "esmc", [](FamilyRow& row) {
    row.prefix = "esmc.";
    row.rms = false;
    row.eps = {};
    set_head_norms(row);
    row.norms_whole = true;
    row.adjust = adjust_esmc;
});

/// Where layer_types is missing, all but every n-th layer slide.
std::size_t modernbert_type(const BlockReader& reader, std::size_t layer) {
    const std::size_t every = reader.config.positive("global_attn_every_n_layers", 3);
    return layer % every != 0;
}
void adjust_modernbert(BlockReader& reader, TransformerBlock& block, AttentionPart& part) {
    const ModelConfig& config = reader.config;
    if (reader.layer != 0) block.attention_norm = reader.norm("attn_norm");
    const std::size_t half = config.whole("local_attention", 0) / 2;
    const std::size_t window =
        config.gives("sliding_window") ? config.whole("sliding_window") : half;
    if (reader.layer_type() != "sliding_attention") return;
    if (part.causal && window == 0) config.fail("local_attention", "at least 2");
    part.window_left = static_cast<std::int64_t>(window) - (part.causal ? 1 : 0);
    if (!part.causal) part.window_right = part.window_left;
}
constexpr FamilyRow modernbert{
    .type = "modernbert",
    .ids = "embeddings.tok_embeddings",
    .embedding_norm = "embeddings.norm",
    .final_norm = "final_norm",
    .head = {},
    .rms = false,
    .eps = "norm_eps",
    .attention_norm = {},
    .ffn_norm = "mlp_norm",
    .joined = JoinedHeads::parts,
    .attention = {.query = "attn.Wqkv", .out = "attn.Wo"},
    .causal = false,
    .ffn = {{}, "mlp.Wi", "mlp.Wo"},
    .ffn_joined = FeedForward::Joined::gate_first,
    .activation = "hidden_activation",
    .ignored = inverse_frequencies,
    .adjust = adjust_modernbert,
    .layer_rule = modernbert_type,
    // Of heads, and of the program that runs the model, too.
    .passed =
        "global_attn_every_n_layers local_rope_theta global_rope_theta cls_token_id "
        "sep_token_id decoder_bias position_embedding_type deterministic_flash_attn "
        "sparse_prediction reference_compile sparse_pred_ignore_index "
        "repad_logits_with_grad"};
constexpr FamilyRow modernbert_decoder = with(modernbert, "modernbert-decoder", [](FamilyRow& row) {
    row.causal = true;
    row.joined = JoinedHeads::separate;
    row.attention = {"attn.q_proj", "attn.k_proj", "attn.v_proj", row.attention.out};
});

/// The names that transformers gives to the modules of the three; files have older ones.
constexpr FamilyRow rotary_bert{.layer = "layers.#.",
                                .ids = "embeddings.word_embeddings",
                                .segments = "embeddings.token_type_embeddings",
                                .embedding_norm = "embeddings.LayerNorm",
                                .final_norm = {},
                                .head = {},
                                .rms = false,
                                .eps = "layer_norm_eps",
                                .attention_norm = {},
                                .attention_sum_norm = "post_attention_layernorm",
                                .ffn_norm = {},
                                .ffn_sum_norm = "post_mlp_layernorm",
                                .causal = false,
                                .ignored = inverse_frequencies};

constexpr FamilyRow nomic_new =
    with(rotary_bert, "nomic_bert", [](FamilyRow& row) { row.prefix = "nomic_bert."; });
constexpr FamilyRow nomic = with(nomic_new, "nomic_bert", [](FamilyRow& row) {
    row.layer = "encoder.layers.#.";
    row.embedding_norm = "emb_ln";
    row.joined = JoinedHeads::parts;
    row.attention = {.query = "attn.Wqkv", .out = "attn.out_proj"};
    row.attention_sum_norm = "norm1";
    row.ffn_sum_norm = "norm2";
    row.ffn = {"mlp.fc12", "mlp.fc11", "mlp.fc2"};
    row.other_names = &nomic_new;
});

constexpr FamilyRow gte_new = with(rotary_bert, "gte", [](FamilyRow& row) { row.prefix = "gte."; });
constexpr FamilyRow gte = with(gte_new, "gte", [](FamilyRow& row) {
    row.layer = "encoder.layer.#.";
    row.joined = JoinedHeads::parts;
    row.attention = {.query = "attention.qkv_proj", .out = "attention.o_proj"};
    row.attention_sum_norm = "attn_ln";
    row.ffn_sum_norm = "mlp_ln";
    row.ffn.gate = {};
    row.ffn.up = "mlp.up_gate_proj";
    row.ffn_joined = FeedForward::Joined::up_first;
    row.other_names = &gte_new;
});

constexpr FamilyRow jina_new = with(rotary_bert, "jina_embeddings_v3", [](FamilyRow& row) {
    row.prefix = "roberta.";
    row.ffn = {{}, "mlp.fc1", "mlp.fc2"};
});
constexpr FamilyRow jina = with(jina_new, "jina_embeddings_v3", [](FamilyRow& row) {
    row.layer = "encoder.layers.#.";
    row.embedding_norm = "emb_ln";
    row.joined = JoinedHeads::parts;
    row.attention = {.query = "mixer.Wqkv", .out = "mixer.out_proj"};
    row.attention_sum_norm = "norm1";
    row.ffn_sum_norm = "norm2";
    row.other_names = &jina_new;
});

constexpr FamilyRow rows[] = {esm,   esmc, eurobert, modernbert, modernbert_decoder,
                              nomic, gte,  jina};

}  // namespace
}  // namespace attn::io::rows_modern_encoder

constinit const attn::io::FamilyRows attn::io::modern_encoder_rows = rows_modern_encoder::rows;
