// One record of a batch; see batch_answer.hpp.
#include "cli/batch_answer.hpp"

#include <utility>

#include "cli/failure.hpp"
#include "cli/inputs.hpp"
#include "cli/report.hpp"
#include "core/error.hpp"
#include "core/layer.hpp"
#include "io/json_text.hpp"
#include "io/output.hpp"

namespace attn::cli {
namespace {

std::string error_line(const Record& record, const Failure& failure) {
    std::string error = "{";
    io::append_member(error, "kind", failure.kind);
    io::append_member(error, "where", io::one_line(failure.where));
    io::append_member(error, "message", io::one_line(failure.message));
    std::string line = "{";
    io::append_member(line, "id", id_of(record));
    return line + ",\"error\":" + error + "}}\n";
}

/// An answer is one line of JSON.
void check_output(const Request& request) {
    if (request.format != io::Format::json && request.format != io::Format::ndjson)
        throw Error(ErrorKind::usage, place_of(request, "format"),
                    "is no line of a batch; expected json or ndjson");
    if (request.pretty)
        throw Error(ErrorKind::usage, place_of(request, "pretty"),
                    "an answer of a batch is one line; expected false");
}

}  // namespace

Answer Answerer::answer(const Record& record) {
    Request request = defaults_;
    try {
        return {answer_line(request, record), {}};
    } catch (...) {
        const Failure failure = current_failure(request);
        return {error_line(record, failure), failure.where + ": " + failure.message};
    }
}

std::string Answerer::answer_line(Request& request, const Record& record) {
    request.id = record.id;
    std::optional<io::Source> document;
    if (record.line == 0)
        request.input = record.file;
    else if (record.text.size() < record.size)
        throw Error(ErrorKind::input, record.place(),
                    "a line of " + std::to_string(record.size) + " bytes; expected at most " +
                        std::to_string(io::LineReader::longest_line));
    else
        document = io::source_of_line(record.file, record.text, record.line);
    workers_.set_threads(threads_);
    Operands operands = read_operands(request, workers_, models_, std::move(document));
    check_output(request);
    request.settings = resolve(request.settings, operands, true);
    if (dry_run_) return cost_line(request, cost_of(request.settings, operands, true));
    io::TextOutput out;
    Result result = compute(request.settings, std::move(operands), workers_, true);
    write_result(out, request, std::move(result), workers_);
    return std::move(out.text());
}

}  // namespace attn::cli
