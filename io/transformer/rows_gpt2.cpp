// GPT-2 and related models: LayerNorms, tables of positions, a plain feed-forward layer.
#include <cmath>

#include "io/transformer/block_reader.hpp"
#include "io/transformer/family_row.hpp"
#include "io/transformer/model.hpp"
#include "io/transformer/shared_rows.hpp"

namespace attn::io {
namespace rows_gpt2 {
namespace {

constexpr std::string_view buffers[] = {"attn.bias", "attn.masked_bias"};

void adjust_gpt2(BlockReader& reader, TransformerBlock& block) {
    auto& part = attention_of(block);
    if (!reader.config.flag("scale_attn_weights", true)) part.scale = 1;
    if (reader.config.flag("scale_attn_by_inverse_layer_idx"))
        part.scale /= static_cast<double>(reader.layer + 1);
}

constexpr FamilyRow gpt2{.type = "gpt2",
                         .prefix = "transformer.",
                         .layer = "h.#.",
                         .ids = "wte",
                         .positions = "wpe",
                         .final_norm = "ln_f",
                         .rms = false,
                         .eps = "layer_norm_epsilon",
                         .attention_norm = "ln_1",
                         .ffn_norm = "ln_2",
                         .joined = JoinedHeads::parts,
                         .in_out = true,
                         .query = "attn.c_attn",
                         .out = "attn.c_proj",
                         .rotary = Rotary::none,
                         .gate = {},
                         .up = "mlp.c_fc",
                         .down = "mlp.c_proj",
                         .activation = "activation_function",
                         .ignored = buffers,
                         .adjust = adjust_gpt2,
                         .inner_key = "n_inner"};

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

constexpr FamilyRow rows[] = {gpt2, nanogpt};

}  // namespace
}  // namespace rows_gpt2

FamilyRows rows_of_gpt2() {
    return rows_gpt2::rows;
}

}  // namespace attn::io
