#include "cli/request/request.hpp"

#include <algorithm>
#include <vector>

#include "cli/args/names.hpp"
#include "core/base/did_you_mean.hpp"
#include "core/base/error.hpp"
#include "core/operator/arrays.hpp"

namespace attn::cli {
namespace {

/// Words separated by blanks; short ones are similar to everything.
std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words;
    for (std::size_t from = 0, blank; from < text.size(); from = blank + 1) {
        blank = std::min(text.find(' ', from), text.size());
        if (blank - from > 4) words.emplace_back(text.substr(from, blank - from));
    }
    return words;
}

/// "unknown array "probs"; attn calls it attention_weights": the array that other programs and
/// papers call so, else the nearest name, else all names.
std::string unknown_array(std::string_view name) {
    if (name.empty()) return "an empty name; expected names separated by commas, or all";
    const std::string small(name.substr(0, 40)), start = "unknown array \"" + small + "\"; ";
    if (const NameRow* const other = find_other_name("array", as_listed(small)))
        return start + "attn calls it " + std::string(other->of);
    const std::vector<std::string> names = names_of_arrays();
    std::string near = did_you_mean(name, names);
    for (const NameRow& row : all_other_names)
        if (near.empty() && row.table == "array" &&
            !did_you_mean(name, words_of(row.names)).empty())
            near = row.of;
    if (!near.empty()) return start + "did you mean " + near + "?";
    std::string list;
    for (const std::string& known : names) list += known + ", ";
    return start + "expected " + list + "or all";
}

}  // namespace

void check_array_names(const std::vector<std::string>& emit) {
    for (const std::string& name : emit)
        if (name != "all" && !find_array(name))
            throw SettingError(ErrorKind::usage, "emit", unknown_array(name));
}

}  // namespace attn::cli
