// How parameters are drawn: the table of initialisers, and the generators.
#pragma once

#include "core/base/names.hpp"

namespace attn {

enum class Init {
    linear,
    rand,
    randn,
    randint,
    mha,
    xavier,
    none,
    xavier_uniform,
    xavier_normal,
    kaiming_uniform,
    kaiming_normal,
    uniform,
    normal,
    trunc_normal
};

struct InitRow {
    Init init;
    std::string_view name;
    std::string_view form;             ///< how its value is written, with its numbers
    std::size_t fewest = 0, most = 0;  ///< of its numbers
    bool in_out = false;               ///< its weights are (d_in, d_out), for x W
    bool of_numpy = false;             ///< NumPy has it too, or it draws nothing
};

/// In help's order; the first is the default. `xavier` is xavier_uniform with a gain of 1.
inline constexpr std::array<InitRow, 14> init_rows{
    {{Init::linear, "linear", "linear"},
     {Init::rand, "rand", "rand", 0, 0, true, true},
     {Init::randn, "randn", "randn", 0, 0, true, true},
     {Init::randint, "randint", "randint,LOW,HIGH", 2, 2, true, true},
     {Init::mha, "mha", "mha"},
     {Init::xavier, "xavier", "xavier"},
     {Init::none, "none", "none", 0, 0, false, true},
     {Init::xavier_uniform, "xavier_uniform", "xavier_uniform[,GAIN]", 0, 1},
     {Init::xavier_normal, "xavier_normal", "xavier_normal[,GAIN]", 0, 1},
     {Init::kaiming_uniform, "kaiming_uniform", "kaiming_uniform[,A]", 0, 1},
     {Init::kaiming_normal, "kaiming_normal", "kaiming_normal[,A]", 0, 1},
     {Init::uniform, "uniform", "uniform,A,B", 2, 2, false, true},
     {Init::normal, "normal", "normal,MEAN,STD", 2, 2, false, true},
     {Init::trunc_normal, "trunc_normal", "trunc_normal,MEAN,STD", 2, 2}}};
static_assert(are_in_order(init_rows, &InitRow::init));

constexpr const InitRow& row_of(Init init) {
    return init_rows[static_cast<std::size_t>(init)];
}

/// Whose generator draws: torch.manual_seed's of the CPU or of a GPU, or np.random.seed's.
enum class Rng { torch, numpy, cuda };
inline constexpr Names<Rng, 3> rng_names{
    {{Rng::torch, "torch"}, {Rng::numpy, "numpy"}, {Rng::cuda, "cuda"}}};

/// Whether weights are drawn and stored as (d_in, d_out): programs in NumPy compute x W.
constexpr bool draws_in_out(Init init, Rng rng) {
    return row_of(init).in_out || rng == Rng::numpy;
}

/// Where torch.nn.init.trunc_normal_ cuts, on both sides of 0.
inline constexpr double trunc_normal_end = 2;

}  // namespace attn
