// The formats and arrays to write, determined before any array is read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/output/output_name.hpp"
#include "cli/request/request.hpp"
#include "io/write/output_formats.hpp"

namespace attn::cli {

/// Checks the request's format, which was given, against the name of its file. Errors: kind usage
/// if the name specifies another format.
void check_format_of_name(const Request& request, const OutputName& name);

/// Errors: kind usage for settings that the request's format would ignore or cannot hold.
void check_style_and_store(const Request& request);

/// How an answer is written.
struct OutputPlan {
    const io::OutputFormat* format;
    std::vector<std::string> emit;  ///< as in the answer's config
    /// `emit` and the arrays that are only drawn, if the format holds one array.
    std::optional<std::vector<std::string>> computed;
};

/// Determines the format from the flag or the file's suffix, and the arrays to emit if the format
/// holds one, before any array is read. Errors: kind usage for settings that the format would
/// ignore, and for names that specify no format or another one.
OutputPlan plan_output(Request request);

/// The request with the plan's format and arrays.
Request with_output(Request request, const OutputPlan& output);

/// Whether arrays are written while they are computed: if the format allows it, there are no
/// pictures, and no numbers to check before they are stored in another type.
bool streams_arrays(const Request& request);

/// The format of --save-weights, which the file's suffix names. Errors: kind usage for a suffix of
/// a format that does not hold weights.
const io::OutputFormat& format_of_weights(const Request& request);

}  // namespace attn::cli
