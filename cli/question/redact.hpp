// Reports errors in files without the files' contents.
#pragma once

#include "cli/request/request.hpp"
#include "core/base/error.hpp"

namespace attn::cli {

/// Rethrows an error in a file without the file's contents; call it from the handler of the error.
/// Kind input keeps the file, line and column, and what was expected unless that contains a
/// quotation. What was found is kept only if it consists of plain words and counts. Kinds shape and
/// io lose only the member, key or value in their location. Other errors are rethrown unchanged.
[[noreturn]] void throw_redacted(const Error& error);

/// Runs `read`, which opens a file named by the request's document (`by_document`) or by a flag. A
/// batch record may name a file that belongs to someone else, so errors do not show its contents.
template <class Read>
void read_named(const Request& request, bool by_document, const Read& read) {
    try {
        read();
    } catch (const SettingError&) {
        throw;
    } catch (const Error& error) {
        if (request.of_batch && by_document) throw_redacted(error);
        throw;
    }
}

}  // namespace attn::cli
