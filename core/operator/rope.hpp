// Rotary position embedding of queries and keys.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "core/base/number_type.hpp"
#include "core/base/tensor.hpp"
#include "core/operator/choices.hpp"

namespace attn {

/// A rope_type of transformers' modeling_rope_utils, `axial` (Qwen2-VL's vision part) or `divisors`
/// (GGUF's).
struct RopeType {
    std::string_view name;
    std::array<std::string_view, 4> required = {};  ///< keys
    std::array<std::string_view, 7> optional = {};
};
inline constexpr RopeType rope_types[] = {
    {"default"},
    {"linear", {"factor"}},
    {"dynamic", {"factor", "max_position_embeddings"}},
    {"yarn",
     {"factor", "original_max_position_embeddings"},
     {"max_position_embeddings", "attention_factor", "beta_fast", "beta_slow", "mscale",
      "mscale_all_dim", "truncate"}},
    {"longrope",
     {"short_factor", "long_factor", "original_max_position_embeddings", "factor"},
     {"max_position_embeddings", "attention_factor"}},
    {"llama3",
     {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"},
     {"max_position_embeddings"}},
    {"proportional", {}, {"factor"}},
    {"axial"},
    {"divisors", {"divisors"}}};

/// A model's rope_parameters: numbers and lists of numbers; null is an empty list.
struct RopeScaling {
    const RopeType* type = &rope_types[0];
    std::map<std::string, std::vector<double>, std::less<>> numbers;
    std::string text;   ///< the same in JSON
    double tokens = 0;  ///< length of the sequence, which `dynamic` and `longrope` depend on

    bool is(std::string_view name) const { return type->name == name; }
    bool reads(std::string_view key) const;
    static bool is_list(std::string_view key);
    double number(std::string_view key, double otherwise) const;
    /// Numbers of pairs that turn by each axis of the positions; empty: there is one axis.
    std::vector<double> sections(std::size_t pairs) const;
    std::size_t axes() const { return std::max<std::size_t>(sections(0).size(), 1); }
};

/// YaRN's factor on cosine and sine, or on scores: 0.1 mscale ln(factor) + 1 for factors above 1.
/// Peng et al. 2023, arXiv 2309.00071.
double yarn_factor(double factor, double mscale = 1);

struct RopeAngles {
    std::vector<double> frequencies;  ///< of each pair, the angle from one position to the next
    std::vector<std::size_t> axis;    ///< axis of the positions that rotates each pair
    double factor = 1;                ///< on cosine and sine
};

/// The rotary embedding of a head's first `dims` columns; 0: none. If `dims` is odd, the last
/// column turns with the next one.
struct RopeSettings {
    Rope pairs = Rope::half;
    double base = 0;
    std::size_t dims = 0;
    std::shared_ptr<const RopeScaling> scaling = nullptr;  ///< null: base^(-2i/dims) of pair i

    /// `by`: the D of base^(-2i/D), if not `dims`.
    RopeAngles angles(std::size_t by = 0) const;
    std::vector<double> frequencies() const { return angles().frequencies; }
    /// What is wrong with `scaling`, and what was expected; empty: nothing.
    std::string problem() const;
};

/// Rotates each of n pairs of a row by an angle: pairs are (i, i + n) for `half` and (2i, 2i + 1)
/// for `interleaved`. Each result is rounded to T once; in a type that is rounded to, cosine, sine
/// and both products are too, as in transformers.
template <class T>
void rotate_row(T* row, Rope layout, std::span<const double> cosine, std::span<const double> sine,
                NumberType type = NumberType::float32) {
    const bool is_half = layout == Rope::half;
    const auto in_type = [&](double x) { return is_rounded(type) ? rounded(x, type) : x; };
    for (std::size_t i = 0; i < cosine.size(); ++i) {
        T& first = row[is_half ? i : 2 * i];
        T& second = row[is_half ? i + cosine.size() : 2 * i + 1];
        const auto a = static_cast<double>(first), b = static_cast<double>(second);
        const double c = in_type(cosine[i]), s = in_type(sine[i]);
        first = static_cast<T>(in_type(in_type(c * a) - in_type(s * b)));
        second = static_cast<T>(in_type(in_type(s * a) + in_type(c * b)));
    }
}

/// The positions of tokens: given numbers, or their indices.
struct TokenPositions {
    std::shared_ptr<const Array<double>> ids;  ///< ([axes,] batch, tokens); null: the indices
    std::size_t first = 0;                     ///< the index of the first token that has an id

    std::size_t axes() const { return ids == nullptr || ids->dimension() == 2 ? 1 : ids->shape(0); }
    /// With one axis, `axis` has no effect.
    double at(std::size_t batch, std::size_t index, std::size_t axis = 0) const {
        if (ids == nullptr) return static_cast<double>(index);
        const std::size_t rank = ids->dimension(), row = axes() == 1 ? 0 : axis;
        return ids
            ->data()[(row * ids->shape(rank - 2) + batch) * ids->shape(rank - 1) + index - first];
    }
};

/// Rotates the first columns of each row of x, (batch, heads, rows, d), in place. Row r has the
/// position of index first + r; pair i turns by position * frequencies[i]. Angles are
/// computed in float64. Source: Su et al. 2021, arXiv 2104.09864; ONNX
/// RotaryEmbedding.
template <class T>
void rotate(Tensor4<T>& x, Rope layout, const RopeAngles& angles, const TokenPositions& positions,
            std::size_t first, NumberType type = NumberType::float32);

}  // namespace attn
