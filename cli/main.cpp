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

constexpr int found_difference = 1, internal_fault = 70;

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
        if (line.exit_code != 0) return std::fputs(line.message.c_str(), stderr), line.exit_code;
        (io::OutputFile("-") << line.message).commit();
        return 0;
    }
    if (line.compare) return cli::compare(*line.compare) ? 0 : found_difference;
    request = line.request;
    Workers workers;
    cli::ModelFiles models;
    Operands operands = cli::read_operands(request, workers, models);
    cli::settle_output(request);
    const bool may_stream = cli::takes_streams(request);
    request.settings = resolve(request.settings, operands, may_stream);
    Result result = compute(request.settings, std::move(operands), workers, may_stream);
    cli::write_report(request, std::move(result), workers);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    // A closed pipe and a file that grows too large are seen as failed writes.
    for (int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);
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
