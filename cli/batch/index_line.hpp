// A line of the index of --out-dir: an answer's head, and the location of its arrays.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/batch/outcome.hpp"
#include "io/file/source.hpp"
#include "io/read/json_document.hpp"

namespace attn::cli {

/// The first member after an answer's head.
inline constexpr std::string_view record_key = "record";

struct IndexLine {
    std::string head;          ///< of the answer, without its closing brace
    std::uint64_t record = 0;  ///< its number among all records, from 0
    std::string file;          ///< the part's name in the folder
    std::vector<PackedArray> arrays;
    std::vector<std::uint64_t> offsets;  ///< of the arrays' first elements in the file
};

/// An array's name in its part: "r17.context_vectors". Ids may be any strings, and repeat.
std::string entry_name(std::uint64_t record, const std::string& array);

/// The line with its line break.
std::string text_of(const IndexLine& line);

/// Empty if the document, whose text is `source`'s, is not such a line.
std::optional<IndexLine> read_index_line(const io::JsonDocument& document,
                                         const io::Source& source);

/// The answer, with its arrays read from the part. Errors: kind io or input, at the part, if it
/// does not hold them.
RecordOutcome load_answer(const std::string& folder, const IndexLine& line);

}  // namespace attn::cli
