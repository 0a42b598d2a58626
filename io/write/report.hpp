// The contents of a written result, and the common interface of its writers; output_formats.hpp has
// the table of them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/named_array.hpp"
#include "core/base/names.hpp"
#include "core/base/thread_pool.hpp"
#include "io/file/output.hpp"

namespace attn::io {

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
    std::size_t first_query = 0;            ///< the query of row 0
    std::vector<std::size_t> heads;         ///< of arrays of chosen heads; empty: all, from 0
    std::vector<std::string> layer_labels;  ///< "layer 3": one per entry of the axis, or empty
    std::string heading;  ///< of pictures; empty: made from the array and the settings
    /// Text of picture titles before and after an array's name: "causal  " and "  seed 123".
    std::string title_start, title_end;
    ThreadPool* workers = nullptr;  ///< for parallel writing; null: none
};

/// Labels of the `length` entries of an axis of this name: for inputs and queries those of the
/// queries, for keys the last ones of the keys, since cached ones come first. Empty if there are
/// none.
std::span<const std::string> labels_of(const Report& report, std::string_view axis,
                                       std::size_t length);

/// Whether the report's heads are those of the array's axis of heads, which others have whole: a
/// cache, and context vectors of each head.
bool has_chosen_heads(const Report& report, const NamedArray& array);

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
std::string torch_text(const AnyArray& array, int decimals);

}  // namespace attn::io
