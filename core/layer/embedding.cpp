#include "core/layer/embedding.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "core/base/error.hpp"

namespace attn {
namespace {

/// Length in bytes of the white space at the start of `text`, 0 if there is none. The list is
/// Python's str.isspace: ASCII and its separators, NEL, NBSP and the Unicode spaces.
std::size_t space_length(std::string_view text) {
    const auto c = static_cast<unsigned char>(text.front());
    if (c == ' ' || (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x1f)) return 1;
    static constexpr std::array<std::string_view, 19> wide{
        "\u0085", "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003",
        "\u2004", "\u2005", "\u2006", "\u2007", "\u2008", "\u2009", "\u200a",
        "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"};
    for (std::string_view space : wide)
        if (text.starts_with(space)) return space.size();
    return 0;
}

template <class T>
Array<T> embed_as(std::span<const std::int64_t> ids, std::uint64_t vocab_size,
                  std::uint64_t embed_dim, const Seed& seed, const Settings& s) {
    Array<T> result = Array<T>::from_shape({ids.size(), embed_dim});
    const auto row = [&](std::size_t token) {
        return std::span(result.data() + token * embed_dim, embed_dim);
    };
    // The stream is read from start to end: each distinct row once, in increasing order.
    std::map<std::int64_t, std::size_t> first_tokens;
    for (std::size_t token = 0; token < ids.size(); ++token)
        first_tokens.emplace(ids[token], token);
    const std::uint64_t count = vocab_size * embed_dim;
    NormalStream<T> table(TorchGenerator(seed.bits), count, 0, 1, s.dtype);
    for (const auto& [id, token] : first_tokens) {
        const std::uint64_t first = static_cast<std::uint64_t>(id) * embed_dim;
        if (s.rng == Rng::cuda)
            CudaGenerator(seed.bits, s.gpu()).normal(0, 1, first, count, row(token), s.dtype);
        else
            table.read(first, row(token));
    }
    for (std::size_t token = 0; token < ids.size(); ++token)
        if (const std::size_t first = first_tokens[ids[token]]; first != token)
            std::copy_n(row(first).data(), embed_dim, row(token).data());
    return result;
}

}  // namespace

Words split_words(std::string_view text) {
    Words words;
    std::string word;
    const auto finish = [&] {
        if (word.empty()) return;
        if (words.tokens.size() == max_words)
            throw SettingError(ErrorKind::input, "text", "more than ", max_words,
                               " words; expected fewer");
        words.tokens.push_back(word);
        word.clear();
    };
    while (!text.empty()) {
        const std::size_t space = space_length(text);
        if (space != 0)
            finish();
        else if (text.front() != ',')
            word += text.front();
        text.remove_prefix(std::max<std::size_t>(space, 1));
    }
    finish();

    // UTF-8 sorts by bytes as Python sorts by code points.
    std::map<std::string, std::int64_t> ids;
    for (const std::string& token : words.tokens) ids[token] = 0;
    for (std::int64_t next = 0; auto& [token, id] : ids) id = next++;
    for (const std::string& token : words.tokens) words.ids.push_back(ids[token]);
    words.vocabulary = ids.size();
    return words;
}

RealArray embed(std::span<const std::int64_t> ids, std::uint64_t vocab_size,
                std::uint64_t embed_dim, const Seed& seed, const Settings& settings) {
    return for_dtype(settings.dtype, [&]<class T>(T) -> RealArray {
        return embed_as<T>(ids, vocab_size, embed_dim, seed, settings);
    });
}

namespace {

Distribution of_input(const Settings& s) {
    if (!s.uniform.empty()) return {Distribution::Kind::uniform, s.uniform[0], s.uniform[1]};
    if (!s.randint.empty())
        return {Distribution::Kind::randint, static_cast<double>(s.randint[0]),
                static_cast<double>(s.randint[1])};
    if (s.randn.empty()) return {Distribution::Kind::uniform01};
    return {Distribution::Kind::normal, 0, 1};
}

}  // namespace

std::vector<std::vector<std::uint64_t>> drawn_shapes(const Settings& s) {
    std::vector<std::uint64_t> shape = s.drawn_shape();
    if (shape.empty()) return {};
    if (row_of(s.mode).source != Source::operands) return {shape};
    std::vector<std::uint64_t> of_keys = shape;
    const std::uint64_t kv_heads = s.kv_heads.value_or(0);
    if (kv_heads != 0 && s.heads && shape.size() < 4)
        of_keys.back() = shape.back() / *s.heads * kv_heads;
    else if (kv_heads != 0 && shape.size() > 2)
        of_keys[shape.size() - 3] = kv_heads;
    return {shape, of_keys, of_keys};
}

std::vector<RealArray> draw_inputs(const Settings& settings, RandomStream& stream) {
    std::vector<RealArray> inputs;
    const bool is_operator = row_of(settings.mode).source == Source::operands;
    constexpr std::array of_operator{"query", "key", "value"};
    for (const std::vector<std::uint64_t>& shape : drawn_shapes(settings))
        for_dtype(settings.dtype, [&]<class T>(T) {
            RealArray& input = inputs.emplace_back(
                Array<T>::from_shape(std::vector<std::size_t>(shape.begin(), shape.end())));
            Array<T>& numbers = input.in<T>();
            stream.draw<T>(of_input(settings), {numbers.data(), numbers.size()},
                           {{is_operator ? of_operator[inputs.size() - 1] : "inputs"}});
        });
    return inputs;
}

}  // namespace attn
