// Meta's llama/model.py, which writes no config.json.
#include "io/transformer/family_row.hpp"

namespace attn::io {
namespace rows_layout {
namespace {

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

constexpr FamilyRow rows[] = {meta};

}  // namespace
}  // namespace rows_layout

FamilyRows rows_of_layout() {
    return rows_layout::rows;
}

}  // namespace attn::io
