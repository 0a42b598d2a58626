// `attn inspect FILE`: what is in a file, without computing anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "io/read/array_file.hpp"
#include "io/read/csv.hpp"

namespace attn::cli {

struct InspectRequest {
    std::string path;                    ///< a file, a model's folder, FILE:NAME, or -
    std::optional<std::uint64_t> layer;  ///< of a model; empty: the first
    io::CsvStyle csv;
};

/// As data/schema/inspection.json has it. Reads only the headers of binary formats, but all of a
/// text; shows notes on how CSV was read. Errors: as for reading the file; kind usage for a missing
/// layer.
nlohmann::ordered_json inspect(const InspectRequest& request);

/// The document as text, at most `columns` wide if names can be shortened.
std::string inspection_page(const nlohmann::ordered_json& found, std::size_t columns);

/// Fills in `model`, `problem` and `command` if the names of the arrays show attention layers.
/// `path` leads to the file; empty: piped input. Errors: kind usage for a missing layer.
void inspect_model(nlohmann::ordered_json& found, const io::ArrayFile& file,
                   const std::string& path, const std::string& prefix,
                   std::optional<std::uint64_t> layer);

}  // namespace attn::cli
