// attn: parse, read, attend, write. Errors become one line and an exit code here and nowhere else.
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "cli/inputs.hpp"
#include "cli/options.hpp"
#include "cli/report.hpp"
#include "core/error.hpp"
#include "core/layer.hpp"
#include "io/output_file.hpp"
#include "io/source.hpp"

namespace {

using namespace attn;

constexpr int found_difference = 1;
constexpr int internal_fault = 70;

int exit_code(ErrorKind kind) {
    switch (kind) {
        case ErrorKind::usage:
        case ErrorKind::unsupported: return 2;
        case ErrorKind::input:
        case ErrorKind::shape: return 3;
        case ErrorKind::io: return 4;
    }
    return internal_fault;
}

int complain(const std::string& message, int code) {
    std::fprintf(stderr, "attn: error: %s\n", attn::io::one_line(message).c_str());
    return code;
}

int run(int argc, char** argv, cli::Request& request) {
    const cli::CommandLine line = cli::parse_command_line(argc, argv);
    if (!line.message.empty()) {
        if (line.exit_code == 0)
            (io::OutputFile("-") << line.message).commit();
        else
            std::fputs(line.message.c_str(), stderr);
        return line.exit_code;
    }
    if (line.compare) return cli::compare(*line.compare) ? 0 : found_difference;
    request = line.request;
    Operands operands = cli::read_operands(request);
    cli::apply_environment(request);
    const bool may_stream = cli::takes_streams(request);
    request.settings = resolve(request.settings, operands, may_stream);
    Workers workers(request.threads.value_or(0));
    cli::write_report(request, compute(request.settings, std::move(operands), workers, may_stream),
                      workers);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    std::signal(SIGPIPE, SIG_IGN);  // a closed pipe and a file that
    std::signal(SIGXFSZ, SIG_IGN);  // grows too large are seen as failed writes
    attn::cli::Request request;
    try {
        return run(argc, argv, request);
    } catch (const attn::io::ClosedPipe&) {
        return 0;
    } catch (const attn::SettingError& error) {
        return complain(attn::cli::place_of(request, error.where()) + ": " + error.what(),
                        exit_code(error.kind()));
    } catch (const attn::Error& error) {
        return complain(error.where() + ": " + error.what(), exit_code(error.kind()));
    } catch (const std::bad_alloc&) {
        return complain("memory: this question needs more than there is; expected smaller sizes",
                        exit_code(attn::ErrorKind::input));
    } catch (const std::exception& fault) {
        return complain(std::string("attn itself: ") + fault.what(), internal_fault);
    }
}
