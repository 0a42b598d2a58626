// The operator's alternatives, and their names.
#pragma once

#include "core/base/names.hpp"

namespace attn {

enum class Rope { half, interleaved };
enum class MaskMethod { neg_inf, renormalize };
enum class DropoutStream { mt19937, mkl };

inline constexpr Names<Rope, 2> rope_names{
    {{Rope::half, "half"}, {Rope::interleaved, "interleaved"}}};
inline constexpr Names<MaskMethod, 2> mask_method_names{
    {{MaskMethod::neg_inf, "neg-inf"}, {MaskMethod::renormalize, "renormalize"}}};
inline constexpr Names<DropoutStream, 2> dropout_stream_names{
    {{DropoutStream::mt19937, "mt19937"}, {DropoutStream::mkl, "mkl"}}};

}  // namespace attn
