#include "cli/request/result_file.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/base/memory.hpp"
#include "core/operator/arrays.hpp"
#include "io/read/input_file.hpp"
#include "io/read/input_formats.hpp"
#include "io/read/row_labels.hpp"

namespace attn::cli {
namespace {

using nlohmann::json;

/// The members of a result besides its arrays.
constexpr std::array<const char*, 7> head_keys{"mode",   "id",     "config",        "shapes",
                                               "layout", "tokens", "context_tokens"};

io::ArrayRules any_array(std::size_t highest_rank) {
    io::ArrayRules rules;
    rules.dtype = Dtype::float64;
    rules.nonfinite = rules.boolean = rules.null_is_nan = true;
    rules.lowest_rank = 0;
    rules.highest_rank = highest_rank;
    return rules;
}

bool has_config(const json& head) {
    return head.contains("config") && head["config"].is_object();
}

std::optional<Dtype> dtype_of(const json& head) {
    if (!has_config(head)) return std::nullopt;
    const bool is_wide = head["config"].value("dtype", json()) == "float64";
    return is_wide ? Dtype::float64 : Dtype::float32;
}

std::optional<Dtype> dtype_of(std::optional<io::ElementType> type) {
    if (type == io::ElementType::float32) return Dtype::float32;
    if (type == io::ElementType::float64) return Dtype::float64;
    return std::nullopt;
}

/// Whether only one array is read. An array that the path names is not read alone if it belongs to
/// a result and `whole` is set.
bool holds_one_array(const io::InputFile& file, bool whole, const json& head) {
    if (!file.array.empty()) return !whole || !has_config(head);
    if (file.arrays) return file.arrays->arrays.size() == 1 && file.arrays->metadata == nullptr;
    return !file.holds_object();
}

/// Integers that float64 may not hold exactly are read a second time, for their rounding errors.
template <class Read>
ResultArray read_exactly(std::string name, bool text_integers, io::ArrayRules rules, Read read) {
    io::NumberArray numbers = read(rules);
    ResultArray array{
        std::move(name), std::move(numbers.values), {}, numbers.integers || numbers.boolean};
    const auto is_large = [](double value) {
        return std::abs(value) >= 0x1p53 && std::abs(value) <= 0x1p64;
    };
    if (!(array.integers || text_integers) ||
        std::none_of(array.values.begin(), array.values.end(), is_large))
        return array;
    rules.rounding_errors = true;
    array.rounding_errors = read(rules).values;
    return array;
}

/// Whether the elements are text of unknown dtype. Text in a result has the dtype of its config.
bool is_text_without_dtype(const ResultFile& result) {
    return result.is_text && !dtype_of(*result.head);
}

void read_one(const io::InputFile& file, ResultFile& result, ThreadPool& workers,
              const io::ArrayRules& rules, bool whole, const io::CsvStyle& style) {
    result.is_one_array = true;
    io::MatrixLabels labels;
    const bool has_name = whole && file.arrays && file.format->named;
    const std::string name = !file.array.empty() ? file.array
                             : has_name          ? file.arrays->arrays[0].name
                                                 : "array";
    result.arrays.push_back(read_exactly(
        name, is_text_without_dtype(result), rules, [&](const io::ArrayRules& of_pass) {
            return io::read_one_array(file, of_pass, &workers, style, &labels);
        }));
    const bool says_all = !result.head->empty();
    if (!labels.rows.empty() && !says_all)
        result.head = std::make_shared<const json>(json{{"tokens", labels.rows}});
    result.column_labels = std::move(labels.columns);
    result.note = std::move(labels.note);
    if (!file.arrays) return;
    const io::ArrayFile& all = *file.arrays;
    result.dtype = dtype_of(file.array.empty() ? all.arrays[0].type : all.find(file.array)->type);
}

void read_all(const io::InputFile& file, ResultFile& result, ThreadPool& workers,
              const io::ArrayRules& rules) {
    result.dtype = dtype_of(*result.head);
    if (file.arrays) {
        require_memory(bytes_to_read(file, true), file.name,
                       "reading all of its arrays (FILE:NAME reads one)");
        for (const io::StoredArray& array : file.arrays->arrays) {
            result.arrays.push_back(
                read_exactly(array.name, false, rules, [&](const io::ArrayRules& of_pass) {
                    return io::read_numbers(array, of_pass, &workers);
                }));
            result.arrays.back().dtype = dtype_of(array.type);
        }
        return;
    }
    const io::JsonDocument& document = *file.document;
    for (const io::JsonMember& member : document.members()) {
        const bool is_array = !io::is_label_key(member.key) && document.holds_array(member);
        if (!is_array && find_array(member.key) && result.head->contains("layout"))
            throw Error(ErrorKind::input, file.place,
                        member.key + " is not an array; expected the array of a result");
        if (is_array)
            result.arrays.push_back(read_exactly(member.key, is_text_without_dtype(result), rules,
                                                 [&](const io::ArrayRules& of_pass) {
                                                     return document.read_array(member, of_pass,
                                                                                &workers);
                                                 }));
    }
}

/// A layers axis precedes (batch, heads, rows, columns).
constexpr std::size_t max_axes = 4, max_drawn_axes = 5;

constexpr std::size_t max_results = 4096;

/// Whether the file has one object per line, as `attn batch` writes it; checks only the first.
bool holds_lines(const io::InputFile& file) {
    if (!file.source || file.document) return false;
    const std::string_view text = file.source->text;
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    return file.format == io::ndjson_input && first != std::string_view::npos && text[first] == '{';
}

}  // namespace

json head_in(const io::InputFile& file) {
    json head = json::object();
    for (const char* key : head_keys) {
        if (file.arrays && file.arrays->metadata != nullptr) {
            const json& said = *file.arrays->metadata;
            if (said.contains(key)) head[key] = said[key];
        } else if (file.holds_object()) {
            const io::JsonMember* member = file.document->find(key);
            if (member != nullptr) head[key] = file.document->read_value(*member);
        }
    }
    return head;
}

json member(const json& object, const std::string& key) {
    return object.is_object() && object.contains(key) ? object[key] : json();
}

std::optional<std::vector<std::string>> labels_in(const json& head, const char* key) {
    const json list = member(head, key);
    if (!list.is_array()) return std::nullopt;
    std::vector<std::string> labels;
    labels.reserve(list.size());
    for (const json& label : list)
        labels.push_back(label.is_string() ? label.get<std::string>() : label.dump());
    return labels;
}

double bytes_to_read(const io::InputFile& file, bool whole) {
    double numbers = 0;
    if (file.arrays) {
        const bool reads_one = holds_one_array(file, whole, head_in(file));
        for (const io::StoredArray& array : file.arrays->arrays)
            if (!reads_one || file.array.empty() || array.name == file.array)
                numbers += static_cast<double>(array.elements());
    } else {
        // In JSON and CSV, a separator or a line break precedes every element but the first.
        const std::string_view text = file.source->text;
        numbers = 1 + static_cast<double>(std::count_if(text.begin(), text.end(), [](char c) {
                      return c == ',' || c == '\n' || c == '\t' || c == ';';
                  }));
    }
    return sizeof(double) * numbers;
}

ResultFile read_result(const io::InputFile& file, ThreadPool& workers, bool whole,
                       const io::CsvStyle& style) {
    ResultFile result;
    result.place = file.place;
    result.named = file.array;
    result.is_text = !file.arrays;
    result.head = std::make_shared<const json>(head_in(file));
    const io::ArrayRules rules = any_array(whole ? max_drawn_axes : max_axes);
    if (holds_one_array(file, whole, *result.head))
        read_one(file, result, workers, rules, whole, style);
    else
        read_all(file, result, workers, rules);
    if (result.arrays.empty())
        throw Error(ErrorKind::input, file.place, "holds no array; expected a result or an array");
    return result;
}

std::vector<io::InputFile> open_results(const std::string& path) {
    io::InputFile file = io::open_input_file(path);
    std::vector<io::InputFile> results;
    if (!holds_lines(file)) {
        results.push_back(std::move(file));
        return results;
    }
    std::size_t number = 1;
    for (std::string_view rest = file.source->text; !rest.empty(); ++number) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(line.size() + 1, rest.size()));
        if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
        if (results.size() == max_results)
            throw Error(ErrorKind::input, file.name,
                        "holds more than " + std::to_string(max_results) +
                            " results; expected fewer, as head -n takes them");
        io::Source source = io::source_of_line(file.name, line, number);
        source.memory = file.source->memory;
        results.push_back(io::input_file_of_line(std::move(source)));
        results.back().array = file.array;
        if (results.back().document->find("error") != nullptr)
            throw Error(ErrorKind::input, results.back().place,
                        "a record that failed in its batch; expected a result on every line");
    }
    return results;
}

}  // namespace attn::cli
