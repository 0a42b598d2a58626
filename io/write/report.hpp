// The contents of a written result, and the common interface of its writers; output_formats.hpp has
// the table of them.
#pragma once

#include <limits>
#include <utility>

#include "core/base/names.hpp"
#include "io/write/array_bytes.hpp"

namespace attn::io {

/// The elements of (batch, heads, q_len, kv_len) that the mask excludes; null: none known. With
/// layers, batch entries are counted through all of them. With `every_head`, an element is masked
/// if it is masked in every head.
inline constexpr std::size_t every_head = std::numeric_limits<std::size_t>::max();
using IsMasked =
    std::function<bool(std::size_t batch, std::size_t head, std::size_t query, std::size_t key)>;

/// Whether `is_masked` is true for the head, or for each of this many heads.
template <class OfHead>
bool in_heads(std::size_t head, std::size_t heads, OfHead is_masked) {
    if (head != every_head) return is_masked(head);
    for (std::size_t h = 0; h < heads; ++h)
        if (!is_masked(h)) return false;
    return true;
}

/// The masked cells of an array; null: none.
using MaskedOf = std::function<IsMasked(const NamedArray& array)>;
MaskedOf of_every_array(IsMasked cells);

enum class Nonfinite { string, null, literal };
inline constexpr Names<Nonfinite, 3> nonfinite_names{
    {{Nonfinite::string, "string"}, {Nonfinite::null, "null"}, {Nonfinite::literal, "literal"}}};

/// Everything that a writer may output.
struct Report {
    /// schema, id, mode, tokens, config, shapes: names with their values as JSON.
    std::vector<std::pair<std::string, std::string>> head;
    std::vector<NamedArray> arrays;
    /// One label per query, and one per key with the cached keys first; or empty.
    std::vector<std::string> query_labels, key_labels;
    /// Of an encoder-decoder model: the labels of the decoder's tokens, or none. The others are
    /// of the encoder's.
    std::optional<std::vector<std::string>> decoder_labels = {};
    std::vector<std::string> rank_labels = {};  ///< of the most probable next tokens, or empty
    std::size_t first_query = 0;                ///< the query of row 0
    std::vector<std::size_t> layers;            ///< of a model; empty: the report has no layers
    std::vector<std::size_t> heads;             ///< of arrays of chosen heads; empty: all, from 0
    MaskedOf masked_of = {};                    ///< which cells tables and pictures show as masked
    bool has_dropout = false;  ///< weights of 0 that no mask explains may be dropped
    std::string heading;       ///< of pictures; empty: made from the array and the settings
    /// Text of picture titles before and after an array's name: "causal  " and "  seed 123".
    std::string title_start, title_end;
    std::size_t averaged_heads = 0;  ///< attention_weights are the mean of so many heads; 0: not
    ThreadPool* workers = nullptr;   ///< for parallel writing; null: none
    std::optional<StoredArrays> stored = {};  ///< how real numbers are stored; empty: as they are
    std::string command;                      ///< that asked for the result, for comments
    std::string file;  ///< the name of the file, without folders; empty: standard output
    /// Of a batch in csv-long: the first columns of every line, as record and id, with their
    /// fields.
    std::vector<std::pair<std::string, std::string>> record = {};
};

/// Labels of the `length` entries of an axis of this name: for inputs and queries those of the
/// queries, for keys the last ones of the keys, since cached ones come first. Empty if there are
/// none.
std::span<const std::string> labels_of(const Report& report, std::string_view axis,
                                       std::size_t length);

/// The same for an axis of an array, from 0.
std::span<const std::string> labels_of(const Report& report, const NamedArray& array,
                                       std::size_t axis);

/// Whether the report's heads are those of the array's axis of heads, which others have whole: a
/// cache, and context vectors of each head.
bool has_chosen_heads(const Report& report, const NamedArray& array);

/// What tables show for a masked cell, which 0.0000 would not tell from a weight near zero.
inline constexpr std::string_view masked_cell = ".";

/// The masked cells of an array of the report; null: none.
IsMasked masked_cells_of(const Report& report, const NamedArray& array);

/// Whether the last axes are q_len and kv_len.
bool counts_queries_and_keys(const NamedArray& array);

/// The masked cells of one array: those of every array over queries and keys but the mask itself,
/// whose zeros are its content.
class MaskedCells {
public:
    MaskedCells(const NamedArray& array, IsMasked is_masked, std::size_t first_query);

    /// A cell of the matrix-th matrix in row-major order. Without a heads axis, its numbers are
    /// those of one head, or means over the heads.
    bool operator()(std::size_t matrix, std::size_t row, std::size_t column) const {
        return is_masked_ != nullptr &&
               is_masked_(matrix / heads_, has_heads_ ? matrix % heads_ : every_head,
                          first_query_ + row, column);
    }

private:
    IsMasked is_masked_;  // null: no cell is masked
    std::size_t first_query_, heads_ = 1;
    bool has_heads_;
};

/// The head as a JSON object.
std::string head_text(const Report& report);

/// The same as metadata of arrays. Errors: kind input if it is too large to be read back.
std::string metadata_text(const Report& report);

/// The shown part of a table; 0: all of it. Longer tables are shown without the middle.
struct TableLimits {
    std::size_t width =
        0;  ///< terminal columns of a line, unless one label and one number are wider
    std::size_t rows = 0;      ///< of a matrix
    std::size_t matrices = 0;  ///< of an array
    std::string_view way =
        {};  ///< flags for the whole table, named by the line that counts the shown part
};

struct NumberStyle {
    std::optional<int> decimals;  ///< empty: json and csv shortest, torch and table 4
    Nonfinite nonfinite = Nonfinite::string;
    bool pretty = false;
    TableLimits limits = {};
};

/// JSON after a head that is already written: the arrays, and the end of the object.
void write_json_arrays(Output& out, const std::vector<NamedArray>& arrays, const NumberStyle& style,
                       ThreadPool* workers, bool is_first = false);

/// A tensor's text as PyTorch prints it, "tensor([...])".
std::string torch_text(const AnyArray& array, int decimals, NumberType type = NumberType::float32);

}  // namespace attn::io
