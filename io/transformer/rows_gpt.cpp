// Decoders with a plain feed-forward layer: GPT, GPT-2 and those that followed, nanoGPT; and the
// layout of Meta's llama/model.py, which writes no config.json either.
#include <string>
#include <vector>

#include "core/operator/rope.hpp"
#include "io/transformer/shared_rows.hpp"

namespace attn::io::rows_gpt {
namespace {

constexpr std::string_view gpt2_buffers[] = {"attn.bias", "attn.masked_bias"};

void adjust_gpt2(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    if (!reader.config.flag("scale_attn_weights", true)) part.scale = 1;
    if (reader.config.flag("scale_attn_by_inverse_layer_idx"))
        part.scale /= static_cast<double>(reader.layer + 1);
}

constexpr FamilyRow gpt2 = with(layer_norm_row, "gpt2", [](FamilyRow& row) {
    row.prefix = "transformer.";
    row.layer = "h.#.";
    row.ids = "wte";
    row.positions = "wpe";
    row.final_norm = "ln_f";
    row.eps = "layer_norm_epsilon";
    row.attention_norm = "ln_1";
    row.ffn_norm = "ln_2";
    row.joined = JoinedHeads::parts;
    row.in_out = true;
    row.attention = {.query = "attn.c_attn", .out = "attn.c_proj"};
    row.ffn = {{}, "mlp.c_fc", "mlp.c_proj"};
    row.activation = "activation_function";
    row.ignored = gpt2_buffers;
    row.adjust = adjust_gpt2;
    row.inner_key = "n_inner";
});

constexpr std::string_view compiled_prefix[] = {"_orig_mod.transformer."};
constexpr std::string_view causal_buffer_name[] = {"attn.bias"};

// Its model.py has nn.Linear and nn.GELU(), and writes no config.json.
constexpr FamilyRow nanogpt = with(gpt2, "nanogpt", [](FamilyRow& row) {
    row.in_out = false;
    row.eps = {};
    row.eps_value = 1e-5;
    row.activation = {};
    row.ignored = causal_buffer_name;
    row.adjust = nullptr;
    row.inner_key = "intermediate_size";
    row.other_prefixes = compiled_prefix;
});

constexpr std::string_view buffers[] = {
    "attn.bias",      "attn.masked_bias",      "attn.causal_mask",
    "attention.bias", "attention.masked_bias", "rotary_emb.inv_freq"};

// GPT's "gelu" is the approximation by tanh.
void adjust_gpt(BlockReader& reader, TransformerBlock& block, AttentionPart&) {
    auto* const ffn = std::get_if<FeedForward>(&block.ffn);
    if (ffn != nullptr && reader.config.text("afn") == "gelu")
        ffn->activation = find_activation("gelu_new");
}

constexpr FamilyRow pre_norm = with(gpt2, "", [](FamilyRow& row) {
    row.in_out = false;
    row.ignored = buffers;
    row.adjust = nullptr;
});

constexpr FamilyRow gpt = with(gpt2, "openai-gpt", [](FamilyRow& row) {
    row.ids = "tokens_embed";
    row.positions = "positions_embed";
    row.final_norm = row.attention_norm = row.ffn_norm = {};
    row.attention_sum_norm = "ln_1";
    row.ffn_sum_norm = "ln_2";
    row.activation = "afn";
    row.ignored = buffers;
    row.adjust = adjust_gpt;
    row.inner_key = {};
});

/// "global" or "local", of pairs of a list of types and how often it is repeated.
std::string neo_type(const ModelConfig& config, std::size_t layer) {
    std::vector<std::string> types;
    const nlohmann::json& pairs = config.at("attention_types");
    if (config.names("attention_layers")) {  // what these were made into
        const nlohmann::json& type = config.of_layer("attention_layers", layer);
        if (type != "global" && type != "local")
            config.fail("attention_layers", "a list of \"global\" and \"local\"");
        return type.get<std::string>();
    }
    const char* const expected = "a list of pairs of a list of types and a number, for all layers";
    if (!pairs.is_array()) config.fail("attention_types", expected);
    for (const nlohmann::json& pair : pairs) {
        if (!pair.is_array() || pair.size() != 2 || !pair[0].is_array() || pair[0].empty() ||
            !pair[1].is_number_unsigned())
            config.fail("attention_types", expected);
        for (std::size_t i = 0; i < pair[1].get<std::size_t>() && types.size() <= layer; ++i)
            for (const nlohmann::json& type : pair[0])
                types.push_back(type.is_string() ? type.get<std::string>() : "");
    }
    if (types.size() <= layer || (types[layer] != "global" && types[layer] != "local"))
        config.fail("attention_types", expected);
    return types[layer];
}

void adjust_neo(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    part.scale = 1;
    if (neo_type(reader.config, reader.layer) == "local")
        part.window_left = reader.window_left("window_size");
}

constexpr FamilyRow gpt_neo = with(pre_norm, "gpt_neo", [](FamilyRow& row) {
    row.joined = JoinedHeads::separate;
    row.attention = {"attn.attention.q_proj", "attn.attention.k_proj", "attn.attention.v_proj",
                     "attn.attention.out_proj"};
    row.inner_key = "intermediate_size";
    row.passed = "window_size";  // of local layers
    row.adjust = adjust_neo;
});

/// The first rotary_dim columns of heads turn; null: all of them.
void rotate_columns(BlockReader& reader, TransformerBlock&, AttentionPart& part) {
    const std::size_t dims = reader.config.whole("rotary_dim", part.d_k);
    if (dims == 0 || dims > part.d_k || dims % 2 != 0)
        reader.config.fail("rotary_dim",
                           "an even number from 2 to the heads' width " + std::to_string(part.d_k));
    Rotation rotation;
    rotation.pairs = Rope::interleaved;
    rotation.frequencies = rope_frequencies(default_rope_base, dims, {});
    part.rotation = rotation;
}

constexpr FamilyRow gptj = with(pre_norm, "gptj", [](FamilyRow& row) {
    row.positions = {};
    row.order = BlockOrder::parallel;
    row.ffn_shares_norm = true;
    row.ffn_norm = {};
    row.joined = JoinedHeads::separate;
    row.attention = {"attn.q_proj", "attn.k_proj", "attn.v_proj", "attn.out_proj"};
    row.ffn = {{}, "mlp.fc_in", "mlp.fc_out"};
    row.adjust = rotate_columns;
    row.required = R"({"rotary":true,"scale_attn_weights":true})";
});

void adjust_codegen(BlockReader& reader, TransformerBlock& block, AttentionPart& part) {
    part.joined_blocks = 4;
    if (part.heads % part.joined_blocks != 0) reader.config.fail("n_head", "a multiple of 4");
    rotate_columns(reader, block, part);
}

constexpr FamilyRow codegen = with(gptj, "codegen", [](FamilyRow& row) {
    row.joined = JoinedHeads::blocks;
    row.attention.query = "attn.qkv_proj";
    row.adjust = adjust_codegen;
});

constexpr FamilyRow gpt_neox = with(pre_norm, "gpt_neox", [](FamilyRow& row) {
    row.prefix = "gpt_neox.";
    row.layer = "layers.#.";
    row.ids = "embed_in";
    row.positions = {};
    row.final_norm = "final_layer_norm";
    row.head = "embed_out";
    row.eps = "layer_norm_eps";
    row.order = BlockOrder::parallel;
    row.attention_norm = "input_layernorm";
    row.ffn_norm = "post_attention_layernorm";
    row.joined = JoinedHeads::groups;
    row.attention = {.query = "attention.query_key_value", .out = "attention.dense"};
    row.rotary = Rotary::half;
    row.ffn = {{}, "mlp.dense_h_to_4h", "mlp.dense_4h_to_h"};
    row.activation = "hidden_act";
    row.inner_key = "intermediate_size";
    row.adjust_row = [](const ModelConfig& config, FamilyRow& own) {
        if (!config.flag("use_parallel_residual", true)) own.order = BlockOrder::sequential;
    };
});

constexpr FamilyRow gpt_bigcode = with(pre_norm, "gpt_bigcode", [](FamilyRow& row) {
    row.joined = JoinedHeads::groups;
    row.kv_heads = [](const ModelConfig& config) -> std::size_t {
        return config.flag("multi_query", true) ? 1 : config.whole("num_attention_heads");
    };
    row.adjust = [](BlockReader& reader, TransformerBlock&, AttentionPart& part) {
        if (!reader.config.flag("scale_attn_weights", true)) part.scale = 1;
    };
    row.passed = "pad_key_length num_key_value_heads";  // of a server; made from multi_query
    row.required = R"({"scale_attn_by_inverse_layer_idx":false})";
});

constexpr std::string_view meta_frequencies[] = {"attention.inner_attention.rope.freqs"};

constexpr FamilyRow meta{
    .type = "meta",
    .prefix = "",
    .ids = "tok_embeddings",
    .head = "output",
    .attention_norm = "attention_norm",
    .ffn_norm = "ffn_norm",
    .attention = {"attention.wq", "attention.wk", "attention.wv", "attention.wo"},
    .rotary = Rotary::interleaved,
    .ffn = {"feed_forward.w1", "feed_forward.w3", "feed_forward.w2"},
    .ignored = meta_frequencies,
    .activation_name = "silu"};

constexpr FamilyRow rows[] = {gpt2,    nanogpt,  gpt,         gpt_neo, gptj,
                              codegen, gpt_neox, gpt_bigcode, meta};

}  // namespace
}  // namespace attn::io::rows_gpt

constinit const attn::io::FamilyRows attn::io::gpt_rows = rows_gpt::rows;
