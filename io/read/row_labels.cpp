#include "io/read/row_labels.hpp"

#include <algorithm>
#include <cstdint>

#include <nlohmann/json.hpp>

#include "core/operator/arrays.hpp"

namespace attn::io {
namespace {

/// Whether an array of a request or a result has a row for each key.
bool has_rows_of_keys(std::string_view name) {
    const auto array = find_array(name);
    if (!array) return name == "key" || name == "value" || name == "context";
    const Axis rows = array->row().axes[2];
    return rows == Axis::new_keys || rows == Axis::kv_len;
}

/// The metadata of the file; null if there is none.
nlohmann::json metadata_member(const InputFile& file, std::string_view key) {
    const std::string name(key);
    if (file.arrays) {
        const auto& metadata = file.arrays->metadata;
        return metadata != nullptr && metadata->contains(name) ? (*metadata)[name]
                                                               : nlohmann::json();
    }
    const JsonMember* member = file.holds_object() ? file.document->find(name) : nullptr;
    return member == nullptr ? nlohmann::json() : file.document->read_value(*member);
}

/// The label of the query of a one-query result.
std::vector<std::string> only(const std::vector<std::string>& words, const nlohmann::json& config) {
    const nlohmann::json token =
        config.is_object() ? config.value("token", nlohmann::json()) : config;
    if (!token.is_number_unsigned() || token.get<std::uint64_t>() >= words.size()) return {};
    return {words[token.get<std::size_t>()]};
}

}  // namespace

std::vector<std::string> row_labels(const InputFile& file, const std::vector<std::size_t>& shape) {
    if (shape.size() < 2) return {};
    const bool is_alone = file.array.empty() && file.arrays && file.arrays->arrays.size() == 1;
    const bool of_keys = has_rows_of_keys(is_alone ? file.arrays->arrays[0].name : file.array);
    nlohmann::json labels = metadata_member(file, label_keys[of_keys ? 1 : 0]);
    if (of_keys && labels.is_null() && metadata_member(file, "mode") != "cross")
        labels = metadata_member(file, label_keys[0]);
    if (!labels.is_array() ||
        !std::all_of(labels.begin(), labels.end(), [](const auto& l) { return l.is_string(); }))
        return {};
    auto words = labels.get<std::vector<std::string>>();
    const std::size_t rows = shape[shape.size() - 2];
    if (rows == 1 && words.size() > 1 && !of_keys)
        words = only(words, metadata_member(file, "config"));
    return words.size() == rows ? words : std::vector<std::string>{};
}

}  // namespace attn::io
