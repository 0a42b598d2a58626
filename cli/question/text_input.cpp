#include <cmath>
#include <limits>

#include "cli/question/operands.hpp"
#include "core/base/did_you_mean.hpp"
#include "core/base/memory.hpp"
#include "core/layer/embedding.hpp"
#include "io/file/source.hpp"
#include "io/plot/text_line.hpp"
#include "io/read/examples.hpp"
#include "io/text/text.hpp"

namespace attn::cli {

namespace {

constexpr std::uint64_t default_vocab_size = 50000;
constexpr std::uint64_t default_embed_dim = 3;

/// Each element takes two draws, and draws are counted in 64 bits. The table's size costs no time.
void check_table_size(const Request& request, std::size_t words) {
    constexpr std::uint64_t largest = std::numeric_limits<std::int64_t>::max();
    if (*request.vocab_size > largest / *request.embed_dim)
        throw setting_error(request, "vocab_size",
                            "an embedding of " + std::to_string(*request.vocab_size) + " x " +
                                std::to_string(*request.embed_dim) + " numbers; expected at most " +
                                std::to_string(largest) + " in all");
    const double columns = static_cast<double>(*request.embed_dim);
    const auto element = static_cast<double>(row_of(arithmetic_of(request.settings.dtype)).size);
    require_memory(element * columns * static_cast<double>(words), "embed_dim",
                   "the embedded text");
}

/// The operand of one of the tensors that --rand or --randn draws.
OperandId drawn_operand(std::size_t count, std::size_t index) {
    constexpr OperandId three[] = {"query", "key", "value"};
    return count == 1 ? OperandId("inputs") : three[index];
}

RealArray without_elements(const Request& request, const std::vector<std::size_t>& shape) {
    const MemoryMeter no_memory(MemoryMeter::Run::dry);
    return reals_of_shape(shape, request.settings.dtype);
}

}  // namespace

Request with_text(Request request) {
    if (request.settings.rng == Rng::numpy && !request.has("dtype"))
        request.settings.dtype = NumberType::float64;
    if (request.example) {
        const auto names = io::split_text(io::example_names, '|');
        if (std::ranges::find(names, *request.example) == names.end())
            throw setting_error(request, "example",
                                "unknown value; expected " + std::string(io::example_names));
        const io::Example example = io::find_example(*request.example);
        const bool is_operator = row_of(request.settings.mode).source == Source::operands;
        if (is_operator != (example.query.values.dimension() != 0))
            throw setting_error(request, "example",
                                is_operator
                                    ? "tokens, and sdpa takes query, key and value; expected "
                                      "--example softmax"
                                    : "query, key and value, for attn sdpa; expected " +
                                          std::string(io::layer_example_names));
        if (!example.text.empty()) request.text = example.text;
    }
    if (!request.text) return request;
    request.vocab_size = request.vocab_size.value_or(default_vocab_size);
    request.embed_dim = request.embed_dim.value_or(default_embed_dim);
    request.embed_seed = request.embed_seed.value_or(Seed{});
    return request;
}

TextInput read_text(const Request& request) {
    if (!request.text) {
        io::Example example = io::find_example(*request.example);
        return {std::move(example.inputs.values), {}, std::move(example.tokens)};
    }
    attn::Words words = split_words(*request.text);
    if (words.tokens.empty())
        throw Error(ErrorKind::input, location_of(request, "text"),
                    "no word in it; expected at least one");
    if (*request.vocab_size < words.vocabulary)
        throw setting_error(request, "vocab_size",
                            "the text has " + std::to_string(words.vocabulary) +
                                " different words; expected at least as many");
    const std::size_t size = words.tokens.size(),
                      kept = std::min<std::size_t>(size, request.truncate.value_or(size));
    words.tokens.resize(kept);
    words.ids.resize(kept);
    check_table_size(request, words.tokens.size());
    const auto columns = static_cast<std::size_t>(*request.embed_dim);
    return {without_elements(request, {words.ids.size(), columns}), std::move(words.ids),
            std::move(words.tokens), size - kept};
}

void set_shapes_of_draws(const Request& request, Operands& operands) {
    const Settings& settings = request.settings;
    const char* key = settings.randn.empty() ? "rand" : "randn";
    const std::vector<std::uint64_t>& shape = settings.drawn_shape();
    const bool is_operator = row_of(settings.mode).source == Source::operands;
    if (shape.size() > (is_operator ? 4 : 3) || std::ranges::find(shape, 0) != shape.end())
        throw setting_error(
            request, key,
            is_operator ? "not the shape of a query; expected sizes from 1, as 6,3 for (tokens, "
                          "d_k) or 2,4,6,3 for (batch, heads, tokens, d_k)"
                        : "not the shape of an input; expected sizes from 1, as 6,3 for (tokens, "
                          "d_in) or 2,6,3 for (batch, tokens, d_in)");
    double bytes = is_operator ? 3 : 1;
    for (std::uint64_t size : shape) bytes *= static_cast<double>(size);
    require_memory(static_cast<double>(row_of(arithmetic_of(settings.dtype)).size) * bytes, key,
                   "the random input");
    const std::vector<std::vector<std::uint64_t>> shapes = drawn_shapes(settings);
    for (std::size_t i = 0; i < shapes.size(); ++i) {
        const OperandId operand = drawn_operand(shapes.size(), i);
        Shape computed(shapes[i].begin(), shapes[i].end());
        const auto order = computed_order(request, operand, computed.size(), computed.size());
        for (std::size_t axis = 0; axis < order.size(); ++axis)
            computed[axis] = static_cast<std::size_t>(shapes[i][order[axis]]);
        operands[operand] = without_elements(request, computed);
    }
}

bool draws_inputs(const Request& request) {
    return request.text || !request.settings.drawn_shape().empty();
}

namespace {

/// The number of a corner: of the type that numbers are stored in, if there is one.
double number_of(Corner corner, const Request& request) {
    if (corner == Corner::zeros) return 0;
    if (corner != Corner::largest && corner != Corner::smallest) return 1;
    const bool is_largest = corner == Corner::largest;
    const auto of_row = [&](const NumberTypeRow& row) {
        return is_largest ? row.largest : row.least;
    };
    if (!request.store)
        return of_row(row_of(request.settings.quantised_type.value_or(request.settings.dtype)));
    const StoredType& type = *request.store;
    if (!type.is_integer()) return of_row(row_of(type.kind));
    // Of more than 53 bits, float64 does not have the largest word.
    const double limit = std::ldexp(1.0, type.width() - 1);
    return type.step() * (is_largest ? std::min(limit - 1, std::nextafter(limit, 0)) : 1);
}

/// The numbers of --corners in place of drawn ones, if it is given.
RealArray with_corners(RealArray drawn, const Request& request) {
    if (!request.corners) return drawn;
    const Corner corner = *request.corners;
    const double number = number_of(corner, request);
    drawn.visit([&](auto& numbers) {
        using T = typename std::decay_t<decltype(numbers)>::value_type;
        // Towards zero: beyond the range, a stored number may wrap.
        T nearest = static_cast<T>(number);
        if (!std::isfinite(nearest) || (nearest == 0 && number != 0))
            throw setting_error(
                request, "corners",
                concat(row_of(request.settings.dtype).name, " cannot hold that of ",
                       io::text_of(*request.store), "; expected --dtype float64, or another type"));
        if (double{nearest} > number) nearest = std::nextafter(nearest, T{0});
        const std::size_t columns = numbers.shape().back();
        const bool alternates = corner == Corner::alternating;
        for (std::size_t i = 0; i < numbers.size(); ++i)
            numbers.data()[i] =
                alternates && (i / columns + i % columns) % 2 == 1 ? -nearest : nearest;
    });
    return drawn;
}

}  // namespace

void draw_inputs(const Request& request, Operands& operands) {
    if (request.text) {
        operands["inputs"] = embed(operands.token_ids, *request.vocab_size, *request.embed_dim,
                                   *request.embed_seed, request.settings);
        return;
    }
    RandomStream stream(request.settings);
    std::vector<RealArray> drawn = attn::draw_inputs(request.settings, stream);
    operands.after_inputs = std::make_shared<const RandomStream>(stream);
    for (std::size_t i = 0; i < drawn.size(); ++i) {
        const OperandId operand = drawn_operand(drawn.size(), i);
        operands[operand] = with_corners(std::move(drawn[i]), request);
        if (request.settings.quantised_type && i != 0)
            operands[operand].visit([&](auto& numbers) {
                for (auto& x : numbers)
                    x = static_cast<std::decay_t<decltype(x)>>(
                        quantised(double{x}, *request.settings.quantised_type, operand.row().key));
            });
        to_computed_order(request, operands, operand);
    }
}

namespace {

constexpr std::size_t max_listed = 12, max_listed_columns = 24;

std::string_view trimmed(std::string_view label) {
    constexpr std::string_view blanks = " \t\r\n\f\v";
    const std::size_t first = label.find_first_not_of(blanks);
    if (first == std::string_view::npos) return {};
    return label.substr(first, label.find_last_not_of(blanks) + 1 - first);
}

/// "a, b, c", truncated if there are many.
template <class Item, class TextOf>
std::string list_of(const std::vector<Item>& items, const TextOf& text_of) {
    const std::span first(items.data(), std::min(items.size(), max_listed));
    return io::comma_list(first, text_of) + (items.size() > max_listed ? ", ..." : "");
}

}  // namespace

std::string shown_label(const std::string& label, std::size_t columns) {
    const std::string_view word = trimmed(label);
    return word.empty() ? "\"" + io::label_text(label, columns) + "\""
                        : io::label_text(word, columns);
}

namespace {

void check_count(const Request& request, const char* key, const std::vector<std::string>& labels,
                 std::size_t count) {
    if (labels.size() == count) return;
    throw Error(ErrorKind::input, location_of(request, key), io::count_text(labels.size(), "label"),
                "; expected ", count, ", one per token");
}

}  // namespace

void check_tokens(const Request& request, ReadOperands& read) {
    const Operands& operands = read.operands;
    const bool is_operator = !request.projects();
    const auto rows = [](const RealArray& array) {
        const auto& shape = array.shape();
        return shape.size() < 2 ? std::size_t{0} : shape[shape.size() - 2];
    };
    const std::size_t queries = rows(is_operator ? operands["query"] : operands["inputs"]),
                      keys = rows(is_operator ? operands["key"] : operands["context"]);
    if (request.has("context_tokens"))
        check_count(request, "context_tokens", request.context_tokens, keys);
    const std::vector<std::string>& tokens = read.tokens ? *read.tokens : request.tokens;
    // With cached keys, the number of labels alone does not show whether they name queries or
    // keys.
    const bool has_context_tokens =
        !(read.context_tokens ? *read.context_tokens : request.context_tokens).empty();
    const bool names_new_keys = is_operator && operands["past_key"].dimension() != 0 &&
                                !has_context_tokens && tokens.size() == keys;
    if (names_new_keys) read.context_tokens = tokens;
    if (!request.has("tokens") || tokens.size() == queries) return;
    // Of given operands they may name the keys.
    if (!is_operator || tokens.size() != keys)
        check_count(request, "tokens", tokens, is_operator ? keys : queries);
}

std::size_t token_labelled(const Request& request, std::size_t queries) {
    const std::string& label = request.token_label;
    const std::vector<std::string>& tokens = request.tokens;
    const std::string location = location_of(request, "token");
    // In sdpa they may be labels of the keys.
    if (tokens.size() != queries)
        throw Error(ErrorKind::usage, location,
                    std::string(tokens.empty() ? "the tokens have no labels"
                                               : "the labels are those of the keys") +
                        "; expected an integer from 0 to " + std::to_string(queries - 1));
    const auto matching = [&](const auto& is_meant) {
        std::vector<std::size_t> found;
        for (std::size_t i = 0; i < tokens.size(); ++i)
            if (is_meant(tokens[i])) found.push_back(i);
        return found;
    };
    std::vector<std::size_t> found =
        matching([&](std::string_view token) { return token == label; });
    if (found.empty())
        found = matching([&](std::string_view token) { return trimmed(token) == trimmed(label); });
    // As pages name one of several: "the (5)".
    for (std::size_t i = 0; i < tokens.size() && found.empty(); ++i)
        if (trimmed(label) == concat(trimmed(tokens[i]), " (", i, ")")) return i;
    if (found.size() == 1) return found[0];
    if (!found.empty())
        throw Error(ErrorKind::usage, location, found.size(),
                    " tokens have this label; expected the index of one: ",
                    list_of(found, [](std::size_t i) { return std::to_string(i); }));
    const std::string near = did_you_mean(label, tokens);
    const std::string nearest =
        near.empty() ? "" : "; did you mean " + shown_label(near, max_listed_columns) + "?";
    throw Error(ErrorKind::usage, location, "no token has this label; expected ",
                list_of(tokens,
                        [](const std::string& token) {
                            return io::one_line(shown_label(token, max_listed_columns));
                        }),
                ", or an integer from 0 to ", queries - 1, io::one_line(nearest));
}

}  // namespace attn::cli
