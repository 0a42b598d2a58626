// A result as it is written, and the writers of its formats behind one interface; the table that
// names them is in output_formats.hpp.
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

/// Everything that a writer may show.
struct Report {
    /// schema, id, mode, tokens, config, shapes: each name with its value as JSON.
    std::vector<std::pair<std::string, std::string>> head;
    std::vector<NamedArray> arrays;
    /// One label a query, and one a key with the cached keys first; or empty.
    std::vector<std::string> query_labels, key_labels;
    std::size_t first_query = 0;  ///< the query that row 0 belongs to
    /// "layer 3" and "head 5": one an entry of axis "layer" and of axis "heads", or empty.
    std::vector<std::string> layer_labels, head_labels;
    std::string heading;  ///< of pictures; empty: what the array and the settings say
    /// What titles of pictures say before an array's name and behind it: "causal  " and
    /// "  seed 123".
    std::string title_start, title_end;
    ThreadPool* workers = nullptr;  ///< that may help to write; null: none
};

/// Labels of the `length` entries of an axis of this name: of inputs and queries those of the
/// queries, of keys the last of the keys', since cached ones come first. Empty where there are
/// none.
std::span<const std::string> labels_of(const Report& report, std::string_view axis,
                                       std::size_t length);

/// The head as a JSON object.
std::string head_text(const Report& report);

/// The same to stand beside arrays. Errors: kind input, where it is too large to be read back.
std::string metadata_text(const Report& report);

/// How much of a table is shown; 0: all of it. The middle of what is longer is left out.
struct TableLimits {
    std::size_t width = 0;      ///< terminal columns of a line, but for one label and one number
    std::size_t rows = 0;       ///< of a matrix
    std::size_t matrices = 0;   ///< of an array
    std::string_view way = {};  ///< to all of it, for the line that says how much is shown
};

struct NumberStyle {
    std::optional<int> decimals;  ///< empty: json and csv shortest, torch and table 4
    Nonfinite nonfinite = Nonfinite::string;
    bool pretty = false;
    TableLimits limits = {};
};

/// The contract's JSON: the head's members, then one member an array, on one line unless pretty.
/// Takes streams.
void write_json(Output& out, const Report& report, const NumberStyle& style);

/// The same behind a head that is written already: the arrays, and the end of the object.
void write_json_arrays(Output& out, const std::vector<NamedArray>& arrays, const NumberStyle& style,
                       ThreadPool* workers, bool is_first = false);

/// Each array as `print(tensor)` shows it in PyTorch: the same choice of fixed, integer or
/// scientific notation, line breaks at 80 columns, and summary above 1000 elements.
void write_torch(Output& out, const Report& report, const NumberStyle& style);

/// Aligned columns with token labels, for people.
void write_table(Output& out, const Report& report, const NumberStyle& style);

/// The report's first array, as read_csv reads it back: rows of the last axis. Rows of a matrix
/// whose labels are known begin with them, below a header where those of the columns are known too
/// and are no numbers. Where the rank is not 2, or unlabelled rows begin with 0, 1, 2, ..., they
/// stand below a comment with the shape. Non-finite numbers are nan, inf and -inf. Takes streams.
void write_csv(Output& out, const Report& report, const NumberStyle& style);

/// The same with tabs.
void write_tsv(Output& out, const Report& report, const NumberStyle& style);

/// The report's first array, without anything beside it. Takes streams.
void write_npy(Output& out, const Report& report, const NumberStyle& style);

/// Every array, and the head as JSON beside them (array_file.hpp). Take streams.
void write_npz(Output& out, const Report& report, const NumberStyle& style);
void write_safetensors(Output& out, const Report& report, const NumberStyle& style);

using Writer = void (*)(Output&, const Report&, const NumberStyle&);

/// A tensor's text as PyTorch prints it, "tensor([...])".
std::string torch_text(const AnyArray& array, int decimals);

}  // namespace attn::io
