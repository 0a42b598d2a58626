#include "io/write/report.hpp"

#include "core/base/error.hpp"
#include "core/operator/arrays.hpp"
#include "io/read/array_file.hpp"
#include "io/read/json_document.hpp"
#include "io/read/result_view.hpp"
#include "io/write/row_text.hpp"

namespace attn::io {

std::span<const std::string> labels_of(const Report& report, std::string_view axis,
                                       std::size_t length) {
    const std::span<const std::string> queries = report.query_labels, keys = report.key_labels;
    if (axis == "kv_len") return length <= keys.size() ? keys.last(length) : keys.first(0);
    if (axis != "q_len" && axis != "tokens") return {};
    const std::size_t first = axis == "q_len" ? report.first_query : 0;
    const bool has_all = first <= queries.size() && length <= queries.size() - first;
    return has_all ? queries.subspan(first, length) : queries.first(0);
}

std::span<const std::string> labels_of(const Report& report, const NamedArray& array,
                                       std::size_t axis) {
    const std::string_view name = array.axes[axis];
    const std::vector<std::string>& layers = array.layer_labels;
    if (name == "layer" && layers.size() == shape_of(array)[axis]) return layers;
    if (name == "rank" && report.rank_labels.size() == shape_of(array)[axis])
        return report.rank_labels;
    if (name == "new_tokens") {  // the last ones
        const auto& all = report.decoder_labels ? *report.decoder_labels : report.query_labels;
        const std::span<const std::string> labels = all;
        return labels.last(std::min(labels.size(), shape_of(array)[axis]));
    }
    const bool of_encoder = array.name.starts_with("encoder_") ||
                            (array.name.starts_with("cross_") && name == "kv_len");
    const std::size_t length = shape_of(array)[axis];
    if (!report.decoder_labels || of_encoder) return labels_of(report, name, length);
    const bool is_of_tokens = name == "q_len" || name == "kv_len" || name == "tokens";
    const std::span<const std::string> labels = *report.decoder_labels;
    return is_of_tokens && labels.size() == length ? labels : labels.first(0);
}

bool has_chosen_heads(const Report& report, const NamedArray& array) {
    const auto id = find_array(without_stack(array.name));
    const Axis heads = id ? id->row().axes[1] : Axis::heads;
    const bool is_whole = heads == Axis::cache_heads || heads == Axis::heads_apart;
    return !report.heads.empty() && !is_whole &&
           length_of_axis(array, "heads") == report.heads.size();
}

bool counts_queries_and_keys(const NamedArray& array) {
    const std::size_t rank = array.axes.size();
    return rank >= 2 && array.axes[rank - 2] == "q_len" && array.axes[rank - 1] == "kv_len";
}

MaskedOf of_every_array(IsMasked cells) {
    return [cells = std::move(cells)](const NamedArray&) { return cells; };
}

IsMasked masked_cells_of(const Report& report, const NamedArray& array) {
    return report.masked_of ? report.masked_of(array) : nullptr;
}

MaskedCells::MaskedCells(const NamedArray& array, IsMasked is_masked, std::size_t first_query)
    : first_query_(first_query) {
    const auto of_layer = array.layer ? split_layer_name(array.name) : std::nullopt;
    const std::string_view name = without_stack(of_layer ? of_layer->array : array.name);
    if (counts_queries_and_keys(array) && name != "mask") is_masked_ = std::move(is_masked);
    const std::size_t rank = array.axes.size();
    has_heads_ = rank > 2 && array.axes[rank - 3] == "heads";
    if (has_heads_) heads_ = shape_of(array)[rank - 3];
}

std::string head_text(const Report& report) {
    std::string text = "{";
    for (const auto& [name, value] : report.head)
        (((text += text.size() == 1 ? "\"" : ",\"") += name) += "\":") += value;
    return text += "}";
}

std::string metadata_text(const Report& report) {
    std::string text = head_text(report);
    if (text.size() > max_metadata_length || has_too_many_values(text))
        throw Error(ErrorKind::input, "metadata", text.size(),
                    " bytes of labels, settings and meta; "
                    "expected at most ",
                    max_metadata_length, " and ", max_json_values, " values, or --format json");
    return text;
}

}  // namespace attn::io
