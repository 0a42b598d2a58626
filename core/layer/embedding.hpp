// Inputs of the notebooks: texts as token vectors, of their vocabulary and nn.Embedding, and
// torch.rand and torch.randn.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/real_array.hpp"
#include "core/layer/random_stream.hpp"

namespace attn {

struct Words {
    std::vector<std::string> tokens;  ///< the words in order, commas removed
    std::vector<std::int64_t> ids;    ///< each word's index in the sorted set of words
    std::size_t vocabulary = 0;       ///< the number of distinct words
};

inline constexpr std::size_t max_words = std::size_t{1} << 21;  ///< of a text

/// `text.replace(',', '').split()`, and ids by sorted(set(words)) in code point order. White space
/// is that of Python's str.split. `text` must be UTF-8. Errors: kind input, for more than
/// max_words.
Words split_words(std::string_view text);

/// The rows `ids` of nn.Embedding(vocab_size, embed_dim) after manual_seed(seed), in the settings'
/// dtype, on their GPU if they draw there: (ids, embed_dim). The whole table is drawn, so
/// vocab_size matters, but only the rows are stored, in that type.
RealArray embed(std::span<const std::int64_t> ids, std::uint64_t vocab_size,
                std::uint64_t embed_dim, const Seed& seed, const Settings& settings);

/// The shapes of the tensors that --rand or --randn draws: of the inputs, or of query, key and
/// value, whose heads are those of the query unless kv_heads is given; none without a shape.
std::vector<std::vector<std::uint64_t>> drawn_shapes(const Settings& settings);

/// These tensors in the settings' dtype, one after the other. The parameters' draws follow them.
std::vector<RealArray> draw_inputs(const Settings& settings, RandomStream& stream);

}  // namespace attn
