// `attn inspect FILE`: what is in a file, without computing anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "io/read/array_file.hpp"
#include "io/read/csv.hpp"

namespace attn::cli {

struct InspectRequest {
    std::string path;                    ///< a file, a model's folder, FILE:NAME, or -
    std::optional<std::uint64_t> layer;  ///< of a model; empty: the first
    io::CsvStyle csv;
};

/// The contents of a file, in the order of display.
struct Inspection {
    std::string file;    ///< the path, or <stdin>
    std::string format;  ///< a name of io/read/input_formats.hpp
    /// array, arrays, request, result, weights, model, config, lines, error, cost, comparison or
    /// inspection
    std::string kind;
    std::shared_ptr<const nlohmann::ordered_json>
        members;  ///< an object: members that are not arrays
    std::shared_ptr<const nlohmann::ordered_json> model;  ///< an object; null: not a model
    std::shared_ptr<const nlohmann::ordered_json> lines;  ///< an object; null: none
    std::string note;                 ///< as in io::MatrixLabels; not part of the document
    std::vector<std::string> header;  ///< fields of a CSV's first line
    std::vector<std::string> tokens, context_tokens, decoder_tokens;  ///< labels
    std::vector<io::StoredArray> arrays;  ///< for text, with the bytes that it takes
    std::string problem;                  ///< why attn would refuse it; empty if not known
    std::string command;                  ///< that computes with it; empty if none is known
};

/// Reads only the headers of binary formats, but all of a text. Errors: as for reading the file;
/// kind usage for a missing layer.
Inspection inspect(const InspectRequest& request);

/// The document that data/schema/inspection.json describes, on one line.
std::string inspection_json(const Inspection& found);

/// The same as text, at most `columns` wide if names can be shortened.
std::string inspection_page(const Inspection& found, std::size_t columns);

/// Fills in `model`, `problem` and `command` if the names of the arrays show attention layers.
/// `path` leads to the file; empty: piped input. Errors: kind usage for a missing layer.
void inspect_model(Inspection& found, const io::ArrayFile& file, const std::string& path,
                   const std::string& prefix, std::optional<std::uint64_t> layer);

}  // namespace attn::cli
