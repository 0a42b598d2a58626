#include "io/read/result_view.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/base/memory.hpp"
#include "core/operator/arrays.hpp"
#include "io/read/input_formats.hpp"

namespace attn::io {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 8> head_keys{
    "schema", "mode", "id", "config", "shapes", "layout", label_keys[0], label_keys[1]};

constexpr std::size_t max_results = 4096;

/// A member of the head of a file; null if there is none.
json head_member(const InputFile& file, std::string_view key) {
    if (file.arrays)
        return file.arrays->metadata == nullptr ? json()
                                                : member(*file.arrays->metadata, std::string(key));
    const JsonMember* found = file.holds_object() ? file.document->find(std::string(key)) : nullptr;
    return found == nullptr ? json() : file.document->read_value(*found);
}

std::shared_ptr<const json> head_of(const InputFile& file) {
    json head = json::object();
    for (std::string_view key : head_keys)
        if (json value = head_member(file, key); !value.is_null())
            head.emplace(key, std::move(value));
    return std::make_shared<const json>(std::move(head));
}

bool has_config(const json& head) {
    return member(head, "config").is_object();
}

std::optional<Dtype> dtype_of(const json& head) {
    if (!has_config(head)) return std::nullopt;
    const bool is_wide = member(head["config"], "dtype") == "float64";
    return is_wide ? Dtype::float64 : Dtype::float32;
}

std::optional<Dtype> dtype_of(const StoredArray& array) {
    if (array.type == ElementType::float32) return Dtype::float32;
    if (array.type == ElementType::float64) return Dtype::float64;
    return std::nullopt;
}

/// Whether an array of a request or a result has a row for each key.
bool has_rows_of_keys(std::string_view name) {
    const auto array = find_array(name);
    if (!array) return name == "key" || name == "value" || name == "context";
    const Axis rows = array->row().axes[2];
    return rows == Axis::new_keys || rows == Axis::kv_len;
}

/// The label of the query of a one-query result.
std::vector<std::string> only(const std::vector<std::string>& words, const json& config) {
    const json token = member(config, "token");
    if (!token.is_number_unsigned() || token.get<std::uint64_t>() >= words.size()) return {};
    return {words[token.get<std::size_t>()]};
}

/// Whether the file has one object per line, as `attn batch` writes it; checks only the first.
bool holds_lines(const InputFile& file) {
    if (!file.source || file.document) return false;
    const std::string_view text = file.source->text;
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    return file.format == ndjson_input && first != std::string_view::npos && text[first] == '{';
}

}  // namespace

bool is_head_key(std::string_view key) {
    return std::find(head_keys.begin(), head_keys.end(), key) != head_keys.end();
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

std::vector<std::string> row_labels(const InputFile& file, const std::vector<std::size_t>& shape) {
    if (shape.size() < 2) return {};
    const bool is_alone = file.array.empty() && file.arrays && file.arrays->arrays.size() == 1;
    const bool of_keys = has_rows_of_keys(is_alone ? file.arrays->arrays[0].name : file.array);
    json labels = head_member(file, label_keys[of_keys ? 1 : 0]);
    if (of_keys && labels.is_null() && head_member(file, "mode") != "cross")
        labels = head_member(file, label_keys[0]);
    if (!labels.is_array() ||
        !std::all_of(labels.begin(), labels.end(), [](const auto& l) { return l.is_string(); }))
        return {};
    auto words = labels.get<std::vector<std::string>>();
    const std::size_t rows = shape[shape.size() - 2];
    if (rows == 1 && words.size() > 1 && !of_keys) words = only(words, head_member(file, "config"));
    return words.size() == rows ? words : std::vector<std::string>{};
}

ResultView::ResultView(InputFile file, Scope scope)
    : file_(std::move(file)), scope_(scope), head_(head_of(file_)) {
    find_arrays();
    if (arrays_.empty())
        throw Error(ErrorKind::input, file_.place, "holds no array; expected a result or an array");
}

void ResultView::find_arrays() {
    const bool is_result = has_config(*head_);
    const ArrayFile* const stored = file_.arrays ? &*file_.arrays : nullptr;
    is_one_array_ = !file_.array.empty() ? scope_ == Scope::named || !is_result
                    : stored != nullptr  ? stored->arrays.size() == 1 && stored->metadata == nullptr
                                         : !file_.holds_object();
    if (is_one_array_) {
        ArrayView array{file_.array.empty() ? "array" : file_.array, {}, {}, {}};
        if (stored != nullptr) {
            const StoredArray* found =
                file_.array.empty() ? stored->arrays.data() : stored->find(file_.array);
            if (found != nullptr) dtype_ = dtype_of(*found);
            if (file_.array.empty() && scope_ == Scope::whole && file_.format->named)
                array.name = found->name;
        }
        array.dtype = dtype_;
        arrays_.push_back(std::move(array));
        return;
    }
    dtype_ = dtype_of(*head_);
    if (stored != nullptr) {
        for (const StoredArray& array : stored->arrays) {
            const std::optional<Dtype> own = dtype_of(array);
            arrays_.push_back({array.name, own ? own : dtype_, &array, nullptr});
        }
        return;
    }
    for (const JsonMember& member : file_.document->members()) {
        const bool is_array = !is_label_key(member.key) && file_.document->holds_array(member);
        if (is_array)
            arrays_.push_back({member.key, dtype_, nullptr, &member});
        else if (find_array(member.key) && head_->contains("layout"))
            throw Error(ErrorKind::input, file_.place,
                        member.key + " is not an array; expected the array of a result");
    }
}

double ResultView::bytes() const {
    double numbers = 0;
    if (file_.arrays) {
        for (const StoredArray& array : file_.arrays->arrays)
            if (!is_one_array_ || file_.array.empty() || array.name == file_.array)
                numbers += static_cast<double>(array.elements());
    } else {
        // In JSON and CSV, a separator or a line break precedes every element but the first.
        const std::string_view text = file_.source->text;
        numbers = 1 + static_cast<double>(std::count_if(text.begin(), text.end(), [](char c) {
                      return c == ',' || c == '\n' || c == '\t' || c == ';';
                  }));
    }
    return sizeof(double) * numbers;
}

void ResultView::require_memory_for_all() const {
    if (file_.arrays && !is_one_array_)
        require_memory(bytes(), file_.name, "reading all of its arrays (FILE:NAME reads one)");
}

NumberArray ResultView::read_by(const ArrayView& array, const ArrayRules& rules,
                                ThreadPool& workers, const CsvStyle& style,
                                MatrixLabels* labels) const {
    if (array.stored != nullptr) return read_numbers(*array.stored, rules, &workers);
    if (array.member != nullptr) return file_.document->read_array(*array.member, rules, &workers);
    return read_one_array(file_, rules, &workers, style, labels);
}

ViewedNumbers ResultView::read(const ArrayView& array, ThreadPool& workers, const CsvStyle& style,
                               MatrixLabels* labels) const {
    ArrayRules rules;
    rules.dtype = Dtype::float64;
    rules.nonfinite = rules.boolean = rules.null_is_nan = true;
    rules.lowest_rank = 0;
    rules.highest_rank = scope_ == Scope::named ? 4 : 5;
    NumberArray numbers = read_by(array, rules, workers, style, labels);
    ViewedNumbers viewed{std::move(numbers.values), numbers.integers || numbers.boolean};
    // Text in a result has the dtype of its config.
    const bool may_be_integers = viewed.integers || (is_text() && !has_config(*head_));
    // Integers that float64 may not hold exactly are read a second time, for their rounding errors.
    if (may_be_integers &&
        std::any_of(viewed.values.begin(), viewed.values.end(), [](double value) {
            return std::abs(value) >= 0x1p53 && std::abs(value) <= 0x1p64;
        })) {
        rules.rounding_errors = true;
        viewed.rounding_errors = read_by(array, rules, workers, style, nullptr).values;
    }
    return viewed;
}

std::vector<InputFile> open_results(const std::string& path) {
    InputFile file = open_input_file(path, nullptr, {.expected = "a result of attn, or arrays"});
    std::vector<InputFile> results;
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
        Source source = source_of_line(file.name, line, number);
        source.memory = file.source->memory;
        results.push_back(input_file_of_line(std::move(source)));
        results.back().array = file.array;
        if (results.back().document->find("error") != nullptr)
            throw Error(ErrorKind::input, results.back().place,
                        "a record that failed in its batch; expected a result on every line");
    }
    return results;
}

ResultView ResultView::open(const std::string& path, Scope scope) {
    std::vector<InputFile> results = open_results(path);
    if (results.size() == 1) return {std::move(results[0]), scope};
    throw Error(ErrorKind::input, results.empty() ? path : results[0].name,
                "holds " + std::to_string(results.size()) +
                    " results; expected one, as jq or sed -n 2p takes it from the others");
}

}  // namespace attn::io
