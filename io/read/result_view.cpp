#include "io/read/result_view.hpp"

#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/memory.hpp"
#include "core/operator/arrays.hpp"
#include "io/read/input_formats.hpp"
#include "io/text/number_text.hpp"
#include "io/text/text.hpp"

namespace attn::io {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 17> head_keys{"schema",
                                                     "kv_range",
                                                     "digest",
                                                     "mode",
                                                     "id",
                                                     passed_on_key,
                                                     "config",
                                                     "asked",
                                                     "shapes",
                                                     "layout",
                                                     "rng_consumed",
                                                     "layers",
                                                     label_keys[0],
                                                     label_keys[1],
                                                     label_keys[2],
                                                     layer_numbers_key,
                                                     "num_truncated_tokens"};

constexpr const char* generated_key = "generated";

std::shared_ptr<const json> shared_member(const InputFile& file, const char* key) {
    return std::make_shared<const json>(head_member(file, key));
}

/// Nothing for any value but a list.
std::optional<std::vector<std::string>> labels_in(const InputFile& file, const char* key) {
    const json list = head_member(file, key);
    if (!list.is_array()) return std::nullopt;
    std::vector<std::string> labels;
    labels.reserve(list.size());
    for (const json& label : list)
        labels.push_back(label.is_string() ? label.get<std::string>() : label.dump());
    return labels;
}

/// A type that is rounded to may be that of --store: the config has the one of the computation.
std::optional<NumberType> computed_type_of(const StoredArray& array) {
    if (!array.type || is_rounded(*array.type)) return std::nullopt;
    return (row_of(*array.type).uses & use::computes) != 0 ? array.type : std::nullopt;
}

/// The type that holds the elements of a floating-point array.
std::optional<NumberType> precision_of(const StoredArray& array) {
    if (!array.type || !is_float(*array.type)) return std::nullopt;
    return (row_of(*array.type).uses & use::judges) != 0 ? *array.type : NumberType::float32;
}

/// What the words of an array mean; half-precision types are those of a result's `store`, and no
/// program computes in float8.
std::optional<StoredType> words_of(const StoredArray& array, const ResultHead& head) {
    if (array.words) return array.words;
    const json store = member(*head.config, "store");
    StoredType type;
    const bool is_known =
        store.is_string() && parse_stored_type(store.get<std::string>(), type).empty();
    if (is_known && array.type == type.kind) return type;
    const bool is_float8 = array.type && (row_of(*array.type).uses & use::quantises) != 0;
    return is_float8 ? std::optional(StoredType{.kind = *array.type}) : std::nullopt;
}

/// Whether an array of a request or a result has a row for each key.
bool has_rows_of_keys(std::string_view name) {
    const auto array = find_array(name);
    const Axis rows = array ? array->row().axes[2] : Axis::none;
    return rows == Axis::new_keys || rows == Axis::kv_len;
}

/// The layers of statistics of attn scan, in the order of their rows: "3", "decoder 0".
std::vector<std::string> names_of_layers(const json& sums) {
    std::vector<std::string> names;
    for (const json& layer : member(sums, "layers")) {
        const json part = member(layer, "part"), number = member(layer, "layer");
        names.push_back((part.is_string() ? part.get<std::string>() + " " : "") + number.dump());
    }
    return names;
}

}  // namespace

json head_member(const InputFile& file, const char* key) {
    if (file.arrays)
        return file.arrays->metadata == nullptr ? json() : member(*file.arrays->metadata, key);
    const JsonMember* found = file.holds_object() ? file.document->find(key) : nullptr;
    if (found == nullptr || (!is_label_key(key) && file.document->holds_array(*found))) return {};
    return file.document->read_value(*found);
}

std::string schema_of(const InputFile& file) {
    const json schema = head_member(file, "schema");
    return schema.is_string() ? schema.get<std::string>() : std::string();
}

bool is_head_key(std::string_view key) {
    return std::ranges::find(head_keys, key) != head_keys.end();
}

json member(const json& object, const std::string& key) {
    return object.is_object() && object.contains(key) ? object[key] : json();
}

ResultHead::ResultHead(const InputFile& file)
    : location(file.location), tokens(labels_in(file, "tokens")),
      context_tokens(labels_in(file, "context_tokens")),
      decoder_tokens(labels_in(file, "decoder_tokens")), config(shared_member(file, "config")),
      asked(shared_member(file, "asked")), shapes(shared_member(file, "shapes")),
      layout(shared_member(file, "layout")), layers(shared_member(file, "layers")),
      corpus(shared_member(file, "corpus")) {
    // Before this key, keys after the query were favoured.
    if (member(*config, "alibi") == true && !config->contains("alibi_distance")) {
        json completed = *config;
        completed["alibi_distance"] = "signed";
        config = std::make_shared<const json>(std::move(completed));
    }
    const json name = head_member(file, "mode"), number = head_member(file, "id");
    layer_numbers = file.arrays
                        ? layer_numbers_of(head_member(file, layer_numbers_key), file.location)
                    : file.holds_object() ? layer_numbers_of(*file.document)
                                          : std::vector<std::size_t>();
    if (name.is_string()) mode = name.get<std::string>();
    scanned_layers = names_of_layers(head_member(file, "sums"));
    if (number.is_string()) id = number.get<std::string>();
    if (number.is_number()) id = "id " + number.dump();
}

bool ResultHead::has_config() const {
    return config->is_object();
}

bool ResultHead::has_layout() const {
    return !layout->is_null();
}

bool ResultHead::has_decoder() const {
    return mode == "model" && !member(*config, "decoder_ids").is_null();
}

std::vector<std::size_t> ResultHead::heads_of(std::string_view array, std::size_t& axis) const {
    const auto heads = unsigned_list(member(*layout, "heads"));
    const json axes = member(member(*layout, "axes"), std::string(array));
    const auto known = find_array(array);
    const bool has_chosen =
        known && (known->row().axes[1] == Axis::heads || known->row().axes[1] == Axis::kv_heads);
    if (!heads || !axes.is_array() || !has_chosen) return {};
    const auto found = std::ranges::find(axes, "heads");
    if (found == axes.end()) return {};
    axis = static_cast<std::size_t>(found - axes.begin());
    return *heads;
}

std::optional<std::uint64_t> ResultHead::number(const std::string& key) const {
    const json value = member(*config, key);
    return value.is_number_unsigned() ? std::optional(value.get<std::uint64_t>()) : std::nullopt;
}

std::vector<std::string> row_labels(const InputFile& file, const std::vector<std::size_t>& shape) {
    if (shape.size() < 2) return {};
    const bool is_alone = file.array.empty() && file.arrays && file.arrays->arrays.size() == 1;
    const std::string_view name = is_alone ? file.arrays->arrays[0].name : file.array;
    const bool of_keys = has_rows_of_keys(name);
    const ResultHead head(file);
    const bool has_own = of_keys && (head.context_tokens || head.mode == "cross"),
               of_decoder = head.has_decoder() && !name.starts_with("encoder_");
    auto labels = (of_decoder ? head.decoder_tokens
                   : has_own  ? head.context_tokens
                              : head.tokens)
                      .value_or(std::vector<std::string>{});
    const std::size_t rows = shape[shape.size() - 2];
    if (labels.size() == rows) return labels;
    const auto first = member(*head.layout, "first_query"), all = member(*head.layout, "queries");
    const bool is_part = first.is_number_unsigned() && all == labels.size() &&
                         first.get<std::size_t>() <= labels.size() &&
                         rows <= labels.size() - first.get<std::size_t>();
    if (of_keys || !is_part) return {};
    const auto begin = labels.begin() + first.get<std::ptrdiff_t>();
    return {begin, begin + static_cast<std::ptrdiff_t>(rows)};
}

ResultView::ResultView(InputFile file, Scope scope)
    : file_(std::move(file)), scope_(scope), head_(file_) {
    find_arrays();
    if (arrays_.empty())
        throw Error(ErrorKind::input, file_.location,
                    "holds no array; expected a result or an array");
}

void ResultView::add_array(ArrayView array) {
    constexpr std::array<std::string_view, 5> integers{"token_ids", "argmax_key", "top_keys",
                                                       "next_tokens", "generated"};
    const bool is_real = std::ranges::find(integers, array.name) == integers.end();
    if (is_text() && is_real && dtype_ && is_rounded(*dtype_)) array.type = dtype_;
    indices_.emplace(array.name, arrays_.size());
    arrays_.push_back(std::move(array));
}

namespace {

/// A number where attn has an array of one, the loss; else null.
std::shared_ptr<const Array<double>> scalar_in(const JsonDocument& document,
                                               const JsonMember& member) {
    const auto array = find_array(member.key);
    if (!array || array->row().axes[0] != Axis::scalar) return nullptr;
    std::string_view text = document.text(member);
    if (text.starts_with('"')) text = text.substr(1, text.size() - 2);  // "NaN"
    const std::optional<double> number = number_of_text<double>(text);
    if (!number) return nullptr;
    Array<double> values = Array<double>::from_shape({1});
    values.fill(*number);
    return std::make_shared<const Array<double>>(std::move(values));
}

}  // namespace

void ResultView::find_arrays() {
    const ArrayFile* const stored = file_.arrays ? &*file_.arrays : nullptr;
    is_one_array_ = !file_.array.empty() ? scope_ == Scope::named || !head_.has_config()
                    : stored != nullptr  ? stored->arrays.size() == 1 && stored->metadata == nullptr
                                         : !file_.holds_object();
    if (is_one_array_) {
        ArrayView view{file_.array.empty() ? "array" : file_.array};
        const StoredArray* const found = stored == nullptr     ? nullptr
                                         : file_.array.empty() ? stored->arrays.data()
                                                               : stored->find(file_.array);
        if (found != nullptr) {
            view.dtype = dtype_ = computed_type_of(*found);
            view.type = precision_of(*found);
            view.words = words_of(*found, head_);
            view.address = found->address;
            if (file_.array.empty() && scope_ == Scope::whole && file_.format->named)
                view.name = found->name;
        }
        return add_array(std::move(view));
    }
    if (head_.has_config()) {
        dtype_ = NumberType::float32;
        const json name = member(*head_.config, "dtype");
        for (const auto& [type, its_name] : dtype_names)
            if (name == its_name) dtype_ = result_type(type);
    }
    if (stored != nullptr) {
        for (const StoredArray& array : stored->arrays) {
            const std::optional<NumberType> own = computed_type_of(array);
            ArrayView view{array.name, own ? own : dtype_, {&array}};
            view.type = precision_of(array);
            view.words = words_of(array, head_);
            view.address = array.address;
            if (!head_.layer_numbers.empty()) view.of_layer = split_layer_name(array.name);
            add_array(std::move(view));
        }
        return add_generated();
    }
    const JsonDocument& document = *file_.document;
    for (const JsonMember& member : document.members()) {
        const bool is_array = !is_label_key(member.key) && member.key != passed_on_key &&
                              member.key != layer_numbers_key && document.holds_array(member);
        std::vector<LayerMember> entries;
        if (is_array) entries = layers_in(document, member, head_.layer_numbers);
        for (LayerMember& entry : entries)
            add_array({layer_name(member.key, entry.layer),
                       dtype_,
                       {nullptr, &document, std::move(entry.value)},
                       LayerArray{member.key, entry.layer},
                       entry.is_absent});
        if (is_array && entries.empty())
            add_array({member.key, dtype_, {nullptr, &document, member}});
        else if (const auto number = scalar_in(document, member))
            add_array({.name = member.key, .dtype = dtype_, .values = number});
        else if (find_array(member.key) && head_.has_layout())
            throw Error(ErrorKind::input, file_.location, member.key,
                        " is not an array; expected the array of a result");
    }
}

const ArrayView* ResultView::find(std::string_view name) const {
    const auto found = indices_.find(std::string(name));
    return found == indices_.end() ? nullptr : &arrays_[found->second];
}

/// JSON has the generated tokens as an array, other formats have them in their head.
void ResultView::add_generated() {
    const auto tokens = unsigned_list(head_member(file_, generated_key));
    if (!tokens) return;
    Array<double> values = Array<double>::from_shape({tokens->size()});
    std::ranges::transform(*tokens, values.begin(),
                           [](std::size_t token) { return static_cast<double>(token); });
    ArrayView view{generated_key, dtype_};
    view.values = std::make_shared<const Array<double>>(std::move(values));
    add_array(std::move(view));
}

std::vector<std::size_t> ResultView::layers_with(std::string_view array) const {
    std::vector<std::size_t> layers;
    for (const ArrayView& view : arrays_)
        if (view.of_layer && view.of_layer->array == array && !view.is_absent)
            layers.push_back(view.of_layer->layer);
    std::ranges::sort(layers);
    return layers;
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
        numbers = 1 + static_cast<double>(std::ranges::count_if(text, [](char c) {
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
    if (array.values != nullptr) {
        NumberArray head;
        head.values = *array.values;
        head.integers = array.name == generated_key;
        return head;
    }
    if (array.in_file) return array.in_file.read_numbers(rules, &workers);
    return read_one_array(file_, rules, &workers, style, labels);
}

ViewedNumbers ResultView::read(const ArrayView& array, ThreadPool& workers, const CsvStyle& style,
                               MatrixLabels* labels, std::size_t highest_rank) const {
    ArrayRules rules = ArrayRules::anything(highest_rank);
    NumberArray numbers = read_by(array, rules, workers, style, labels);
    ViewedNumbers viewed{std::move(numbers.values), numbers.integers || numbers.boolean};
    if (is_text() && array.type)
        round_all(std::span(viewed.values.data(), viewed.values.size()), *array.type);
    // Text in a result has the dtype of its config.
    const bool may_be_integers = viewed.integers || (is_text() && !head_.has_config());
    // Integers that float64 may not hold exactly are read a second time, for their rounding errors.
    if (may_be_integers && std::ranges::any_of(viewed.values, [](double value) {
            return std::abs(value) >= 0x1p53 && std::abs(value) <= 0x1p64;
        })) {
        rules.rounding_errors = true;
        CsvStyle same = style;
        if (labels != nullptr && labels->counts) same.index = Guess::yes;
        viewed.rounding_errors = read_by(array, rules, workers, same, nullptr).values;
    }
    return viewed;
}

}  // namespace attn::io
