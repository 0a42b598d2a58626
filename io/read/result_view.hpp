// The arrays of the layers of a model's result: in JSON lists with an entry per layer, in other
// formats names such as "attention_weights.7".
#pragma once

#include <algorithm>
#include <array>

#include "io/read/input_file.hpp"

namespace attn::io {

/// The member of a model's result that lists its layers, ascending.
inline constexpr const char* layer_numbers_key = "layer_numbers";

/// "attention_weights.7": the array of one layer.
struct LayerArray {
    std::string array;
    std::size_t layer = 0;
};
std::string layer_name(std::string_view array, std::size_t layer);
/// Nothing if the name does not end with the number of a layer.
std::optional<LayerArray> split_layer_name(const std::string& name);

/// The name without the stack of an encoder-decoder model: "queries" of "decoder_queries".
std::string_view without_stack(std::string_view name);

/// The layers of a model's result, from the value of that member; empty for null, which all other
/// files have. Errors: kind input at `location` if it is not a list of ascending numbers.
std::vector<std::size_t> layer_numbers_of(const nlohmann::json& value, const std::string& location);
std::vector<std::size_t> layer_numbers_of(const JsonDocument& document);

/// One entry of a list of layers.
struct LayerMember {
    std::size_t layer = 0;
    JsonMember value;
    bool is_absent = false;  ///< null: the layer has no such array
};

/// The entries of a member that has one array per layer; none if it is a single array. An array of
/// a layer has at least two axes, and one of the whole model at most two. A list of hidden states
/// may have one entry more, the output of its last layer. Errors: kind input if entries and layers
/// differ in number.
std::vector<LayerMember> layers_in(const JsonDocument& document, const JsonMember& member,
                                   const std::vector<std::size_t>& layers);

/// The entry that `name` selects, as "attention_weights.7"; nothing if the document is not a
/// model's result or has no such array. Errors: kind input if the layer has no such array.
std::optional<JsonMember> layer_member(const JsonDocument& document, const std::string& name);

// A result of attn, or arrays of any file, opened without reading the arrays.

/// The members that hold labels: of the tokens, of the keys if they differ, and of a decoder's
/// tokens.
inline constexpr std::array<std::string_view, 3> label_keys{"tokens", "context_tokens",
                                                            "decoder_tokens"};
constexpr bool is_label_key(std::string_view key) {
    return std::ranges::find(label_keys, key) != label_keys.end();
}

/// The schema that a file states, or empty.
std::string schema_of(const InputFile& file);

/// A member of the head of a file; null if there is none. An array is not part of a head.
nlohmann::json head_member(const InputFile& file, const char* key);

/// Whether a result has a member of this name besides its arrays.
bool is_head_key(std::string_view key);

/// A member of an object, or null.
nlohmann::json member(const nlohmann::json& object, const std::string& key);

/// What a file states besides its arrays, if it is a result of attn. Any part may be missing.
struct ResultHead {
    std::string location;  ///< of the file, in errors
    std::string mode;
    std::string id;  ///< as pictures show it: a number is "id 7"
    std::optional<std::vector<std::string>> tokens, context_tokens, decoder_tokens;
    /// As written, JSON's null where the file has none; a config with the meaning of later keys.
    std::shared_ptr<const nlohmann::json> config, asked, shapes, layout;
    /// Of a model's result: an object with the config, shapes and layout of each layer, by number.
    std::shared_ptr<const nlohmann::json> layers;
    std::shared_ptr<const nlohmann::json> corpus;  ///< of statistics: what texts they are of
    std::vector<std::size_t> layer_numbers;        ///< of a model's result, ascending; or empty
    std::vector<std::string> scanned_layers;  ///< the names of the rows of statistics, or empty

    /// Errors: kind input if the layers' numbers are not ascending.
    explicit ResultHead(const InputFile& file);

    bool has_config() const;
    bool has_layout() const;
    /// Whether the tokens are those of the encoder of an encoder-decoder model.
    bool has_decoder() const;
    /// The chosen heads of the array's axis of heads, and the index of that axis; empty: all.
    std::vector<std::size_t> heads_of(std::string_view array, std::size_t& axis) const;
    /// An unsigned integer of the config.
    std::optional<std::uint64_t> number(const std::string& key) const;
};

/// Labels of the rows of the array named in the path, or of the only one; empty if the file does
/// not have one per row. A result of one query has labels for all tokens: then that query's.
std::vector<std::string> row_labels(const InputFile& file, const std::vector<std::size_t>& shape);

/// The most axes of an array of attn.
inline constexpr std::size_t rank_of_results = 5;

/// An array of a ResultView, not read yet.
struct ArrayView {
    std::string name;  ///< "array" if the file does not name it
    std::optional<NumberType> dtype =
        {};  ///< that of its numbers, if the file or its config has one
    /// Or an entry of a list of layers; neither: the only array of the file.
    FileArray in_file = {};
    /// Of a model's result: the layer and the array's name without its number.
    std::optional<LayerArray> of_layer = {};
    bool is_absent = false;                            ///< null: the layer has no such array
    std::shared_ptr<const Array<double>> values = {};  ///< of a member of the head
    /// Of floating-point elements in a binary file; of text the type that its decimals read back
    /// in, if that is neither float32 nor float64.
    std::optional<NumberType> type = {};
    /// Of an array whose file says that its numbers were rounded by --store.
    std::optional<StoredType> words = {};
    std::optional<std::uint64_t> address = {};  ///< of its first word, in $readmemh's files
};

struct ViewedNumbers {
    Array<double> values;
    bool integers = false;  ///< integers or booleans in the file; text has no types
    /// The rounding errors of values that were 64-bit integers; empty if all are small enough.
    std::optional<Array<double>> rounding_errors = {};
};

class ResultView {
public:
    /// Which arrays of a result belong to the view of FILE:NAME. An array has at most five axes.
    enum class Scope { named, whole };

    /// Errors: kind input if the file holds no array.
    ResultView(InputFile file, Scope scope);
    ResultView(const ResultView&) = delete;
    ResultView& operator=(const ResultView&) = delete;
    ResultView(ResultView&&) = default;
    ResultView& operator=(ResultView&&) = default;
    ~ResultView() = default;

    /// The location in errors: the path, <stdin>, or "path:line".
    const std::string& location() const { return file_.location; }
    /// The array that the path names, or empty.
    const std::string& named() const { return file_.array; }
    /// Whether elements are the shortest decimals of their dtype.
    bool is_text() const { return !file_.arrays; }
    bool is_one_array() const { return is_one_array_; }
    const ResultHead& head() const { return head_; }
    /// Of a result's config, or of the one array in a binary file.
    std::optional<NumberType> dtype() const { return dtype_; }
    /// At least one. The name of a layer's array ends with the layer's number in every format.
    const std::vector<ArrayView>& arrays() const { return arrays_; }
    /// The first array with this name, or null.
    const ArrayView* find(std::string_view name) const;
    /// The layers of a model's result that have this array, ascending.
    std::vector<std::size_t> layers_with(std::string_view array) const;

    /// The maximum number of bytes of all arrays.
    double bytes() const;
    /// Throws OutOfMemory if all arrays together do not fit.
    void require_memory_for_all() const;

    /// Labels of the one array of a file go to `labels`, if not null. Errors: kind input if the
    /// file violates its format or an array needs more memory than there is.
    ViewedNumbers read(const ArrayView& array, ThreadPool& workers, const CsvStyle& style = {},
                       MatrixLabels* labels = nullptr,
                       std::size_t highest_rank = rank_of_results) const;

private:
    void find_arrays();
    void add_array(ArrayView array);
    void add_generated();
    NumberArray read_by(const ArrayView& array, const ArrayRules& rules, ThreadPool& workers,
                        const CsvStyle& style, MatrixLabels* labels) const;

    InputFile file_;
    Scope scope_;
    ResultHead head_;
    bool is_one_array_ = false;
    std::optional<NumberType> dtype_;
    std::vector<ArrayView> arrays_;  // point into file_: they stay valid if both are moved
    std::unordered_map<std::string, std::size_t> indices_;
};

/// A file of one result, or of one per line of NDJSON, each of which is opened when it is asked
/// for.
class ResultFile {
public:
    /// Errors: kind io; kind input if the file violates its format.
    explicit ResultFile(const std::string& path);

    const std::string& name() const { return file_.name; }
    std::size_t size() const { return holds_lines_ ? lines_.size() : 1; }
    /// It may state why a record of a batch failed, by its member `error`. Errors: kind input.
    InputFile at(std::size_t index) const;

private:
    struct Line {
        std::string_view text;
        std::size_t number;
    };
    InputFile file_;
    bool holds_lines_;
    std::vector<Line> lines_;
};

/// All results of a file. Errors: as ResultFile; kind input if it holds too many results or has a
/// line of a failed record.
std::vector<InputFile> open_results(const std::string& path);

/// Opens a file of one result. Errors: as open_results; kind input if there are several.
InputFile open_result(const std::string& path);

/// Throws kind input: the file of this name holds so many results where one is expected.
[[noreturn]] void refuse_several(const std::string& name, std::size_t results);

}  // namespace attn::io
