// torch.nn.MultiheadAttention, which stores the projections separately if their inputs differ in
// width.
#include "io/model/families.hpp"

namespace attn::io {
namespace {

constexpr LayerNames mha_layers[] = {{.packing = Packing::joined,
                                      .query = {"in_proj_weight", "in_proj_bias"},
                                      .out = {"out_proj.weight", "out_proj.bias"},
                                      .more_key = "bias_k",
                                      .more_value = "bias_v"},
                                     {.joins_bias = true,
                                      .query = {"q_proj_weight", "in_proj_bias"},
                                      .key = {"k_proj_weight", "in_proj_bias"},
                                      .value = {"v_proj_weight", "in_proj_bias"},
                                      .out = {"out_proj.weight", "out_proj.bias"},
                                      .more_key = "bias_k",
                                      .more_value = "bias_v"}};

}  // namespace

constinit const Family families::mha{.name = "mha", .layers = mha_layers, .is_plain = true};

}  // namespace attn::io
