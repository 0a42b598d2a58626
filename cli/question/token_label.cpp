#include "cli/question/operands.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/base/did_you_mean.hpp"
#include "core/base/error.hpp"
#include "io/file/source.hpp"
#include "io/plot/text_line.hpp"

namespace attn::cli {
namespace {

constexpr std::size_t max_listed = 12, max_listed_columns = 24;

std::string_view trimmed(std::string_view label) {
    constexpr std::string_view blanks = " \t\r\n\f\v";
    const std::size_t first = label.find_first_not_of(blanks);
    if (first == std::string_view::npos) return {};
    return label.substr(first, label.find_last_not_of(blanks) + 1 - first);
}

/// "a, b, c", truncated if there are many.
template <class Item>
std::string list_of(std::size_t count, Item item) {
    std::string list;
    for (std::size_t i = 0; i < std::min(count, max_listed); ++i)
        list += (i == 0 ? "" : ", ") + item(i);
    return list + (count > max_listed ? ", ..." : "");
}

}  // namespace

std::string shown_label(const std::string& label, std::size_t columns) {
    const std::string_view word = trimmed(label);
    return word.empty() ? "\"" + io::label_text(label, columns) + "\""
                        : io::label_text(word, columns);
}

std::size_t token_labelled(const Request& request, std::size_t queries) {
    const std::string& label = request.token_label;
    const std::vector<std::string>& tokens = request.tokens;
    const std::string place = location_of(request, "token");
    // In sdpa they may be labels of the keys.
    if (tokens.size() != queries)
        throw Error(ErrorKind::usage, place,
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
    if (found.size() == 1) return found[0];
    if (!found.empty())
        throw Error(
            ErrorKind::usage, place,
            std::to_string(found.size()) + " tokens have this label; expected the index of one: " +
                list_of(found.size(), [&](std::size_t i) { return std::to_string(found[i]); }));
    const std::string near = did_you_mean(label, tokens);
    const std::string nearest =
        near.empty() ? "" : "; did you mean " + shown_label(near, max_listed_columns) + "?";
    throw Error(ErrorKind::usage, place,
                "no token has this label; expected " +
                    list_of(tokens.size(),
                            [&](std::size_t i) {
                                return io::one_line(shown_label(tokens[i], max_listed_columns));
                            }) +
                    ", or an integer from 0 to " + std::to_string(queries - 1) +
                    io::one_line(nearest));
}

}  // namespace attn::cli
