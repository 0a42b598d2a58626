// Errors of files that are told without anything that the files hold.
#pragma once

#include "cli/request/request.hpp"
#include "core/base/error.hpp"

namespace attn::cli {

/// Of an error in a file's contents: where, to line and column, and what was expected; of what was
/// found only how much there is, and what is nothing. All others go on as they are. Always throws,
/// from the handler of the error.
[[noreturn]] void throw_discreetly(const Error& error);

/// Runs `read`, which opens a file that the request's document names (`by_document`), or a flag.
/// What a record of a batch names may be the file of another than who asks.
template <class Read>
void read_named(const Request& request, bool by_document, const Read& read) {
    try {
        read();
    } catch (const SettingError&) {
        throw;
    } catch (const Error& error) {
        if (request.of_batch && by_document) throw_discreetly(error);
        throw;
    }
}

}  // namespace attn::cli
