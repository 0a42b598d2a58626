// A request of `attn model`: the flags of a command, or the keys of a request.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/args/args.hpp"
#include "cli/request/request.hpp"
#include "core/base/real_array.hpp"
#include "io/read/input_file.hpp"

namespace attn::cli {

struct ModelAsked {
    Args args;                            ///< the keys of a request are flags as well
    Request request;                      ///< without labels
    std::string path;                     ///< of the model
    std::optional<io::InputFile> file{};  ///< the request, which may hold arrays

    /// The array of a flag that is given, from the file that it names, or from the request. Errors:
    /// those of files.
    RealArray read_array(std::string_view key, const io::ArrayRules& rules) const;
};

/// Whether a file holds a request of this command.
bool is_model_request(const io::InputFile& file);

/// `attn model DIR` or `attn model REQUEST.json`. Flags take precedence over the request's keys.
/// Errors: kind usage; those of files.
ModelAsked model_of_command(const Args& args);

/// A record of a batch, whose keys take precedence over `defaults`. `path` is the model of records
/// that name none; empty: each must. Errors: kind usage; with no_files of `defaults`, also for a
/// record that names a file.
ModelAsked model_of_record(const Request& defaults, const Program& program, io::InputFile record,
                           const std::string& path = {});

}  // namespace attn::cli
