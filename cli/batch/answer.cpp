#include "cli/batch/answer.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "cli/batch/index_line.hpp"
#include "cli/model/model.hpp"
#include "cli/output/answer_cost.hpp"
#include "cli/output/output_plan.hpp"
#include "cli/output/report.hpp"
#include "cli/request/error_report.hpp"
#include "cli/request/out_of_memory.hpp"
#include "cli/request/schemas.hpp"
#include "core/base/error.hpp"
#include "core/base/free_memory.hpp"
#include "core/base/memory.hpp"
#include "core/layer/layer.hpp"
#include "io/file/output.hpp"
#include "io/file/path.hpp"
#include "io/text/json_text.hpp"

namespace attn::cli {
namespace {

constexpr std::size_t longest_place = 1000;  // a path may be as long as its record

std::string error_line(const Record& record, const ErrorReport& failure) {
    std::string line = start_of_bare(record) + ",\"error\":{";
    io::append_member(line, "kind", failure.kind);
    io::append_member(line, "where", io::one_line(io::shortened(failure.where, longest_place)));
    io::append_member(line, "message", io::one_line(failure.message));
    return line + "}}\n";
}

/// A result as a line of about `bytes` bytes, or as arrays.
RecordOutcome outcome_of(const Request& request, const io::Report& report, std::size_t bytes) {
    if (!request.format->json)
        return {io::TextBuffer(head_text(report.head)),
                {},
                {},
                pack(request, report.arrays, *report.workers)};
    io::BufferOutput out;
    constexpr std::size_t of_config = 2048;
    out.text().reserve(bytes + of_config);
    write_report(out, request, report);
    return {std::move(out.text()), {}};
}

}  // namespace

std::string start_of_result(const Record& record, bool is_index) {
    std::string start = "{";
    io::append_member(start, "schema", is_index ? schemas::index : schemas::result);
    io::append_member(start, "id", io::JsonText{id_of(record)});
    return start;
}

std::string start_of_bare(const Record& record) {
    std::string start = "{";
    io::append_member(start, "id", io::JsonText{id_of(record)});
    const std::string meta = meta_of(record);
    if (!meta.empty()) io::append_member(start, "meta", io::JsonText{meta});
    return start;
}

void check_answer_format(const Request& request, const io::OutputFormat* packed) {
    if (packed != nullptr) {
        if (request.format != packed)
            throw setting_error(request, "format",
                                "--out-dir writes " + std::string(packed->name) + "; expected " +
                                    std::string(packed->name) + ", or no such setting");
        return check_style_and_store(request);
    }
    if (!request.format->json)
        throw setting_error(request, "format",
                            request.format->write_archive != nullptr
                                ? "a batch writes lines of JSON; expected json or ndjson, or "
                                  "--out-dir DIR as well"
                                : "a batch writes lines of JSON; expected json or ndjson");
    if (request.pretty)
        throw setting_error(request, "pretty", "an answer of a batch is one line; expected false");
    if (request.store)
        throw setting_error(request, "store",
                            "an answer of a batch is JSON, which keeps numbers as computed; "
                            "expected --out-dir DIR as well, or no such setting");
}

RecordOutcome Answerer::answer(const Record& record) {
    if (record.answer) return known_answer(*record.answer);
    keep_memory_aside();
    try {
        const Line line = line_of(record);
        if (Line model = model_request(record, line))
            return answer_model(record, std::move(*model));
        Prepared* const alike = line && !dry_run_ ? alike_to(*line) : nullptr;
        if (alike != nullptr)
            if (auto known = answer_as_before(record, *line, *alike)) return std::move(*known);
        return answer_line(record, line, alike);
    } catch (const io::WrittenFile&) {
        return {{}, {}, std::current_exception()};
    } catch (const BeyondShare&) {
        throw;
    } catch (...) {
        const ErrorReport failure = current_error(true);
        // There may be enough memory while no other record is answered.
        if (failure.kind == "memory" && MemoryShare::is_part()) throw BeyondShare();
        return {io::TextBuffer(error_line(record, failure)),
                io::shortened(failure.where, longest_place) + ": " + failure.message};
    }
}

std::string Answerer::beginning(const Record& record) {
    try {
        const Line line = line_of(record);
        if (Line model = model_request(record, line)) {
            const ModelAsked asked = ask_model(record, std::move(*model));
            const ModelPlan plan(asked, files_of(asked));
            // The labels of generated tokens are not known yet.
            if (plan.question().generate != 0) return {};
            return head_text(plan.head());
        }
        const PlannedQuestion planned = plan(record, line);
        return head_text(planned.question.request, planned.plan);
    } catch (const Error&) {
        return {};
    }
}

const io::OutputFormat* Answerer::packed_format() const {
    return folder_.empty() ? nullptr : defaults_.format;
}

RecordOutcome Answerer::known_answer(const std::string& line) const {
    RecordOutcome known;
    if (folder_.empty()) {
        known.line += line;
        return known;
    }
    const std::string_view text = std::string_view(line).substr(0, line.size() - 1);
    const io::Source source = io::source_of_line(folder_, text, 0);
    const std::optional<IndexLine> read = read_index_line(io::JsonDocument(source), source);
    if (!read) throw Error(ErrorKind::input, folder_, "a line of the index that was read is not");
    return load_answer(folder_, *read);
}

bool Answerer::is_answer(const RecordOutcome& outcome, const std::string& line) const {
    const RecordOutcome known = known_answer(line);
    if (known.packed.has_value() != outcome.packed.has_value() ||
        known.line.text() != outcome.line.text())
        return false;
    if (!known.packed) return true;
    const auto is_same = [](const PackedArray& a, const PackedArray& b) {
        return a.name == b.name && a.type.dtype == b.type.dtype && a.type.shape == b.type.shape;
    };
    const std::vector<PackedArray>&a = known.packed->arrays, &b = outcome.packed->arrays;
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), is_same) &&
           known.packed->bytes.text() == outcome.packed->bytes.text();
}

Answerer::Line Answerer::model_request(const Record& record, const Line& line) const {
    if (line) return is_model_request(*line) ? line : Line();
    if (io::suffix_of_name(record.file) != ".json") return {};
    io::InputFile file = io::open_input_file(record.file, defaults_.input_format, defaults_.access);
    return is_model_request(file) ? Line(std::move(file)) : Line();
}

ModelAsked Answerer::ask_model(const Record& record, io::InputFile file) const {
    ModelAsked asked = model_of_record(defaults_, program_, std::move(file));
    if (asked.request.id.empty()) asked.request.id = record.id;
    check_answer_format(asked.request, packed_format());
    return asked;
}

ModelFiles& Answerer::files_of(const ModelAsked& asked) {
    return whole_models_.open(asked.request, asked.path);
}

RecordOutcome Answerer::answer_model(const Record& record, io::InputFile file) {
    const ModelAsked asked = ask_model(record, std::move(file));
    workers_.set_threads(asked.request.threads.value_or(threads_));
    const ModelPlan plan(asked, files_of(asked));
    if (dry_run_) return {io::TextBuffer(plan.cost_line(true)), {}};
    plan.require_memory(true);
    return outcome_of(plan.request(), plan.run(workers_, nullptr), 0);
}

RequestWithInput Answerer::open(const Record& record, Line line) const {
    if (line) return open_request(defaults_, std::move(line));
    Request request = defaults_;
    request.input = record.file;
    return open_request(request);
}

PlannedQuestion Answerer::plan(const Record& record, Line line) {
    workers_.set_threads(threads_);
    RequestWithInput asked = open(record, std::move(line));
    if (asked.request.id.empty()) asked.request.id = record.id;
    check_answer_format(asked.request, packed_format());
    const PlanOptions options{.stream = streams_arrays(asked.request)};
    return plan_question(read_question(std::move(asked), {workers_, models_}), options);
}

Prepared* Answerer::alike_to(const io::InputFile& line) {
    const auto found = std::find_if(alike_.begin(), alike_.end(),
                                    [&](const Prepared& alike) { return alike.hold(line); });
    return found == alike_.end() ? nullptr : &*found;
}

/// Answers with what is known from an earlier record. After an error, the full evaluation reports
/// the problem.
std::optional<RecordOutcome> Answerer::answer_as_before(const Record& record,
                                                        const io::InputFile& line,
                                                        Prepared& alike) {
    workers_.set_threads(threads_);
    try {
        return alike.answer(line, record.id, {workers_, models_});
    } catch (const Error&) {
        return {};
    }
}

void Answerer::remember(const io::InputFile& line, Answer&& answered, double memory,
                        Prepared* kind) {
    constexpr std::size_t max_kinds = 8;
    if (!Prepared::may_be(line, answered.question.request, answered.plan, memory)) return;
    if (kind == nullptr) {
        Prepared alike(line, std::move(answered.question.request));
        kind = alike_.size() < max_kinds ? &alike_.emplace_back(std::move(alike))
                                         : &(alike_[oldest_++ % max_kinds] = std::move(alike));
    }
    kind->add(std::move(answered.plan));
}

RecordOutcome Answerer::answer_line(const Record& record, const Line& line, Prepared* alike) {
    PlannedQuestion planned = plan(record, line);
    const Request& request = planned.question.request;
    if (dry_run_) return {io::TextBuffer(cost_line(request, planned.plan, planned.cost)), {}};
    const AnswerCost cost = answer_cost(request, planned.plan, planned.cost);
    at_locations(request,
                 [&] { require_memory(cost.memory, "emit", "the answer's text and its arrays"); });
    // A step of a large question passes on only its result, so the rest of its memory is returned.
    constexpr double large = 0x1p23;
    const bool is_large = cost.memory > large;
    if (is_large) return_free_memory();
    Answer answered = cli::answer(std::move(planned), {workers_, models_});
    answered.result.weights.reset();
    if (is_large) return_free_memory();
    RecordOutcome outcome = at_locations(answered.question.request, [&] {
        return outcome_of(answered.question.request,
                          make_report(answered.question.request, answered.plan,
                                      std::move(answered.result), workers_),
                          cost.bytes);
    });
    if (line) remember(*line, std::move(answered), cost.memory, alike);
    return outcome;
}

}  // namespace attn::cli
