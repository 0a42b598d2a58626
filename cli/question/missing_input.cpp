#include "cli/question/question.hpp"

#include <unistd.h>

#include "core/base/error.hpp"

namespace attn::cli {

void refuse_keyboard(const std::string& command, const std::string& missing) {
    if (::isatty(STDIN_FILENO) == 0) return;
    throw Error(ErrorKind::usage, command, missing + " (" + command + " -h has more)");
}

void require_input(const Request& request, const std::string& command) {
    if (request.names_input()) return;
    const ModeRow& mode = row_of(request.settings.mode);
    if (mode.source == Source::operands)
        return refuse_keyboard(command,
                               "no query, key and value; expected --query FILE --key FILE --value "
                               "FILE, or a request that holds them, as a file or piped in");
    if (request.has("weights"))
        return refuse_keyboard(
            command,
            "no input; expected --token-ids N,..., or a file whose rows have the "
            "width of the weights");
    const bool lacks_context = mode.context && !request.has_file("context");
    refuse_keyboard(
        command,
        "no input; expected a file, '-' with data piped in, or --example "
        "journey" +
            std::string(lacks_context ? ", and --context FILE" : "") +
            (mode.source == Source::either ? ", or --query FILE --key FILE --value FILE" : ""));
}

}  // namespace attn::cli
