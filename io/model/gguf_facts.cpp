#include "io/model/gguf_architectures.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "io/file/source.hpp"
#include "io/model/find_layer.hpp"
#include "io/read/gguf_header.hpp"
#include "io/read/json_document.hpp"
#include "io/text/text.hpp"

namespace attn::io {

extern const std::string_view gguf_architectures;  // embedded

namespace {

using nlohmann::json;

/// The number of a float32 key as it is stored, 9.99999997e-07 for 1e-06: llama.cpp computes with
/// it. Metadata has the shortest decimal, for people.
json as_stored(const json& value) {
    if (!value.is_number_float()) return value;
    const auto decimal = value.get<double>();
    const auto stored = static_cast<float>(decimal);
    return decimal_of_float(stored) == decimal ? static_cast<double>(stored) : decimal;
}

std::string text_of(const json& value) {
    return shortened(value.dump(-1, ' ', true, json::error_handler_t::replace));
}

const json& gguf_tables() {
    static const json tables = parse_own(gguf_architectures);
    return tables;
}

const json& architecture_row(const std::string& name, const ArrayFile& file) {
    std::vector<std::string> known;
    for (const json& row : gguf_tables()["architectures"]) {
        const std::string needed = row.value("needs", "");
        if (row["name"] == name && (needed.empty() || file.find(needed) != nullptr)) return row;
        if (known.empty() || known.back() != row["name"]) known.push_back(row["name"]);
    }
    throw Error(ErrorKind::unsupported, file.name, "general.architecture is \"",
                one_line(shortened(name)), "\"; expected one of ", comma_list(known));
}

}  // namespace

GgufFacts::GgufFacts(const ArrayFile& file) : file_(file) {
    const json& metadata = *file.gguf_metadata;
    const auto found = metadata.find("general.architecture");
    if (found == metadata.end() || !found->is_string())
        throw Error(ErrorKind::input, file.name,
                    "no general.architecture in it; expected a model in GGUF");
    architecture_ = found->get<std::string>();
    row_ = architecture_row(architecture_, file);
    const std::string prefix = architecture_ + ".";
    for (const auto& [key, value] : metadata.items())
        if (key.starts_with(prefix)) members_[key.substr(prefix.size())] = value;
}

const json* GgufFacts::find(const char* kind, const std::string& name) const {
    for (const json& table : row_.at(kind)) {
        const json& rows = gguf_tables()[kind][table.get_ref<const std::string&>()];
        if (const auto found = rows.find(name); found != rows.end()) return &*found;
    }
    return nullptr;
}

void GgufFacts::fail(std::string_view key, const std::string& found,
                     const std::string& expected) const {
    throw Error(ErrorKind::input, file_.name,
                one_line(shortened(architecture_ + "." + std::string(key), 80)), " is ", found,
                "; expected ", expected);
}

json GgufFacts::at(std::string_view key) const {
    const auto found = members_.find(std::string(key));
    if (found == members_.end()) return {};
    const bool is_list = found->is_array() && !found->empty() && found->front().is_number();
    if (!is_list || key == "rope.dimension_sections") return as_stored(*found);
    const bool is_same =
        std::ranges::all_of(*found, [&](const json& one) { return one == found->front(); });
    if (!is_same) fail(key, text_of(*found), "the same number for every layer");
    return as_stored(found->front());
}

std::uint64_t GgufFacts::whole(std::string_view key, std::optional<std::uint64_t> otherwise) const {
    const json value = at(key);
    if (value.is_null() && otherwise) return *otherwise;
    constexpr std::uint64_t end = std::uint64_t{1} << 31;
    const bool is_whole = value.is_number_integer() && value > 0 && value < end;
    if (!is_whole)
        fail(key, value.is_null() ? "missing" : text_of(value), "an integer from 1 to 2^31 - 1");
    return value.get<std::uint64_t>();
}

double GgufFacts::number(std::string_view key, double otherwise) const {
    const json value = at(key);
    if (value.is_null()) return otherwise;
    if (!value.is_number() || !std::isfinite(value.get<double>()))
        fail(key, text_of(value), "a finite number");
    return value.get<double>();
}

std::uint64_t GgufFacts::head_dim() const {
    if (!at("attention.key_length").is_null()) return whole("attention.key_length");
    const std::uint64_t width = whole("embedding_length");
    if (width % heads() != 0)
        fail("embedding_length", std::to_string(width),
             "a multiple of " + std::to_string(heads()) + " heads");
    return width / heads();
}

json GgufFacts::elements(const StoredArray& array) const {
    constexpr std::size_t most = 65536;
    const std::size_t count = array.elements();
    if (count > most || !array.type)
        throw Error(ErrorKind::input, array.location(), "shape ", shape_text(array.shape),
                    " and type ", one_line(shortened(array.type_name)), "; expected at most ", most,
                    " numbers");
    std::vector<float> values(count);
    read_floats(array, 0, count, values.data());
    return json(values);
}

json GgufFacts::decimals(const StoredArray& array) const {
    json list = json::array();
    for (const json& element : elements(array))
        list.push_back(decimal_of_float(element.get<float>()));
    return list;
}

}  // namespace attn::io
