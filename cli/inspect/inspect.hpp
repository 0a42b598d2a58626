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

/// What a file holds, in the order in which it is shown.
struct Inspection {
    std::string file;    ///< the path, or <stdin>
    std::string format;  ///< a name of io/read/input_formats.hpp
    /// array, arrays, request, result, weights, model, config, lines, error, cost, comparison or
    /// inspection
    std::string kind;
    std::shared_ptr<const nlohmann::ordered_json> members;  ///< an object: what is no array
    std::shared_ptr<const nlohmann::ordered_json> model;    ///< an object; null: it is none
    std::shared_ptr<const nlohmann::ordered_json> lines;    ///< an object; null: there are none
    std::string note;                 ///< as io::MatrixLabels has it; no part of the document
    std::vector<std::string> header;  ///< fields of a CSV's first line
    std::vector<std::string> tokens, context_tokens;  ///< labels
    std::vector<io::StoredArray> arrays;              ///< of text: with the bytes that it takes
    std::string problem;  ///< why attn would refuse it; empty where not known
    std::string command;  ///< that computes with it; empty where none is known
};

/// Of binary formats the headers are read, of text all. Errors: as where a file is read; kind usage
/// for a layer that is not there.
Inspection inspect(const InspectRequest& request);

/// The document that data/schema/inspection.json describes, on one line.
std::string inspection_json(const Inspection& found);

/// The same for people, at most `columns` wide where names can be shortened.
std::string inspection_page(const Inspection& found, std::size_t columns);

/// Fills in `model`, `problem` and `command` where the names of the arrays show attention layers.
/// `path` leads to the file; empty: it was piped in. Errors: kind usage, for a layer that is not
/// there.
void inspect_model(Inspection& found, const io::ArrayFile& file, const std::string& path,
                   const std::string& prefix, std::optional<std::uint64_t> layer);

/// Numbers in an array; empty where there are more than 64 bits count.
std::optional<std::uint64_t> elements_of(const io::StoredArray& array);

}  // namespace attn::cli
