// The notebooks' classes (SelfAttention_v1 and v2, CausalAttention, MultiHeadAttention and its
// wrapper), and attn's own arrays.
#include "io/model/families.hpp"

namespace attn::io {
namespace {

/// The notebooks register the causal mask, with 1 for masked keys.
constexpr HarmlessTensor notebook_buffers[] = {{"mask", Form::upper_mask}};

/// As nn.Linear.
constexpr LayerNames linear_names{.needs_out = false,
                                  .query = {"W_query.weight", "W_query.bias", true},
                                  .key = {"W_key.weight", "W_key.bias", true},
                                  .value = {"W_value.weight", "W_value.bias", true},
                                  .out = {"out_proj.weight", "out_proj.bias"},
                                  .others = notebook_buffers,
                                  .query_norm = "q_norm",
                                  .key_norm = "k_norm"};

/// As nn.Parameter(torch.rand(d_in, d_out)), and as in attn's own arrays.
constexpr LayerNames bare_names{.in_out = true,
                                .is_open = true,
                                .needs_out = false,
                                .query = {"W_query", "b_query", true},
                                .key = {"W_key", "b_key", true},
                                .value = {"W_value", "b_value", true},
                                .out = {"W_out", "b_out", true},
                                .others = notebook_buffers};

constexpr LayerNames each_head_of(LayerNames names) {
    names.layer = "heads.#.";
    names.is_wrapper = true;
    names.query_norm = names.key_norm = {};
    return names;
}

constexpr LayerNames notebook_layers[] = {each_head_of(linear_names), each_head_of(bare_names),
                                          linear_names, bare_names};

}  // namespace

constinit const Family families::notebook{
    .name = "notebook", .layers = notebook_layers, .is_plain = true};

}  // namespace attn::io
