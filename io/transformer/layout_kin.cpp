// Models whose programs write no config.json: nanoGPT's model.py and Meta's llama/model.py.
#include "io/transformer/family_row.hpp"

namespace attn::io {
namespace {

constexpr std::string_view compiled_prefix[] = {"_orig_mod.transformer."};
constexpr std::string_view causal_buffer_name[] = {"attn.bias"};

constexpr FamilyRow nanogpt{.type = "nanogpt",
                            .prefix = "transformer.",
                            .layer = "h.#.",
                            .ids = "wte",
                            .positions = "wpe",
                            .final_norm = "ln_f",
                            .rms = false,
                            .eps = {},
                            .attention_norm = "ln_1",
                            .ffn_norm = "ln_2",
                            .joined = JoinedHeads::parts,
                            .query = "attn.c_attn",
                            .out = "attn.c_proj",
                            .rotary = Rotary::none,
                            .gate = {},
                            .up = "mlp.c_fc",
                            .down = "mlp.c_proj",
                            .activation = {},  // nn.GELU()
                            .ignored = causal_buffer_name,
                            .eps_value = 1e-5,
                            .other_prefixes = compiled_prefix};

constexpr std::string_view meta_frequencies[] = {"attention.inner_attention.rope.freqs"};

constexpr FamilyRow meta{.type = "meta",
                         .prefix = "",
                         .ids = "tok_embeddings",
                         .head = "output",
                         .attention_norm = "attention_norm",
                         .ffn_norm = "ffn_norm",
                         .query = "attention.wq",
                         .key = "attention.wk",
                         .value = "attention.wv",
                         .out = "attention.wo",
                         .rotary = Rotary::interleaved,
                         .gate = "feed_forward.w1",
                         .up = "feed_forward.w3",
                         .down = "feed_forward.w2",
                         .ignored = meta_frequencies,
                         .activation_name = "silu"};

constexpr FamilyRow rows[] = {nanogpt, meta};

}  // namespace

namespace family_rows {
extern const std::span<const FamilyRow> layout_kin;
const std::span<const FamilyRow> layout_kin = rows;
}  // namespace family_rows

}  // namespace attn::io
