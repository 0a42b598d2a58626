// What the names of arrays, and of a request's members, mean: names.tsv has those of PyTorch and
// of other programs.
#include <algorithm>

#include "cli/args/names.hpp"
#include "cli/request/request_builder.hpp"
#include "core/operator/arrays.hpp"
#include "io/text/text.hpp"

namespace attn::cli {
namespace {

constexpr std::size_t axes_of_keys = 2;  // (batch, kv_len)

bool is_key(std::string_view name, Modes modes) {
    const Option* const option = find_option(name);
    return option != nullptr && (option->use & as_key) != 0 && (option->modes & modes) != 0;
}

}  // namespace

std::string key_meant(std::string_view name, Mode mode, std::size_t axes) {
    if (is_key(name, in(mode))) return std::string(name);
    const std::string word = " " + std::string(name) + " ";
    for (const NameRow& row : all_other_names) {
        const bool is_table = row.table == "input" ||
                              (row.table == "input of keys" && 0 < axes && axes <= axes_of_keys);
        if (is_table && row.names.find(word) != std::string_view::npos && is_key(row.of, in(mode)))
            return std::string(row.of);
    }
    return {};
}

bool names_result(std::string_view name) {
    if (is_key(name, every_mode)) return false;
    const auto array = find_array(name, all_arrays);
    return array ? !array->row().is_operand()
                 : find_other_name("result", " " + std::string(name) + " ") != nullptr;
}

bool is_ignored(const Request& request, std::string_view name) {
    return std::ranges::find(request.ignore_arrays, name) != request.ignore_arrays.end();
}

void take_name(Request& request, const std::string& key, const std::string& name,
               const std::string& location) {
    const auto [taken, is_new] = request.array_names.try_emplace(key, name);
    if (!is_new)
        throw Error(ErrorKind::usage, location, name, " and ", taken->second, " are both ", key,
                    " here; expected one, or --ignore-arrays ", name);
}

std::string note_of_results(const std::string& file, const std::vector<std::string>& names) {
    const std::string list = io::comma_list(names);
    return file + ": " + list + (names.size() == 1 ? " is a result" : " are results") +
           " by name, and not read; --ignore-arrays " + io::replaced(list, {{' ', ""}}) +
           " omits this note";
}

}  // namespace attn::cli
