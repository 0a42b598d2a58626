// Decoding of ggml's blocks of few bits to float32. Products and sums are those of ggml, in its
// order, so that the numbers have the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace attn::io {

void decode_q4_0(const std::uint8_t* from, std::size_t blocks, float* to);
void decode_q4_1(const std::uint8_t* from, std::size_t blocks, float* to);
void decode_q5_0(const std::uint8_t* from, std::size_t blocks, float* to);
void decode_q5_1(const std::uint8_t* from, std::size_t blocks, float* to);
void decode_q8_0(const std::uint8_t* from, std::size_t blocks, float* to);
void decode_q2_k(const std::uint8_t* from, std::size_t blocks, float* to);
void decode_q3_k(const std::uint8_t* from, std::size_t blocks, float* to);
void decode_q4_k(const std::uint8_t* from, std::size_t blocks, float* to);
void decode_q5_k(const std::uint8_t* from, std::size_t blocks, float* to);
void decode_q6_k(const std::uint8_t* from, std::size_t blocks, float* to);
void decode_iq4_nl(const std::uint8_t* from, std::size_t blocks, float* to);
void decode_iq4_xs(const std::uint8_t* from, std::size_t blocks, float* to);
void decode_mxfp4(const std::uint8_t* from, std::size_t blocks, float* to);

}  // namespace attn::io
