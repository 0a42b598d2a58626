// Parses the command line and runs the command. Errors become one line and an exit code here.
#include <fcntl.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <new>
#include <optional>
#include <string_view>

#include "cli/commands.hpp"
#include "cli/mpi/communicator.hpp"
#include "cli/request/errors.hpp"
#include "io/file/access.hpp"
#include "io/file/bytes.hpp"
#include "io/file/output.hpp"
#include "io/file/temporary.hpp"

namespace {

using namespace attn;

/// If a standard descriptor (0, 1 or 2) is closed, the next opened file would get its number and be
/// mistaken for it. /dev/null replaces it, not readable as 0 and not writable as 1 or 2.
void hold_standard_files() {
    for (int file = 0; file < 3; ++file)
        if (::fcntl(file, F_GETFD) == -1 && errno == EBADF)
            ::open("/dev/null", file == 0 ? O_WRONLY : O_RDONLY);
}

int show(const cli::Args& args) {
    if (args.exit_code != 0) return std::fputs(args.message.c_str(), stderr), args.exit_code;
    io::show(args.message);
    return 0;
}

/// Files that flags name as outputs are not read from here on, so that a long run does not end with
/// an output that cannot be written.
void guard_outputs(const cli::Args& args) {
    for (const cli::FlagValue& flag : args.flags)
        for (const char* key : {"output", "save_weights", "plot", "resume"})
            if (std::string_view(flag.option->key) == key && !io::inherited_descriptor(flag.text))
                io::guard_written(flag.text);
}

int run_args(const cli::Args& args) {
    guard_outputs(args);
    return args.message.empty() ? args.command->run(args) : show(args);
}

int run(int argc, char** argv) {
    const auto run_here = [](const cli::Args& args) { return run_args(args); };
    const auto parse = [&] { return cli::parse(argc, argv, cli::attn_program()); };
    try {
        if (const std::optional<int> code = cli::run_on_ranks(parse, run_here)) return *code;
        return run_args(parse());
    } catch (...) {
        return cli::show_error(cli::current_error());
    }
}

}  // namespace

int main(int argc, char** argv) {
    hold_standard_files();
    // Ignored, these signals leave failed writes: to a closed pipe, or above the file size limit.
    for (int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);
    attn::io::remove_temporaries_at_signals();
    attn::io::end_at_lost_pages(attn::cli::bad_file);
    attn::cli::prepare_for_out_of_memory();
    const attn::io::FileGuard guard;
    try {
        return run(argc, argv);
    } catch (const std::bad_alloc&) {
        return attn::cli::report_out_of_memory();
    }
}
