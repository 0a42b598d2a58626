#include <algorithm>

#include <nlohmann/json.hpp>

#include "cli/batch/batch.hpp"
#include "cli/output/output.hpp"
#include "cli/request/errors.hpp"
#include "core/base/error.hpp"
#include "core/base/threads.hpp"
#include "io/file/path.hpp"
#include "io/read/json_document.hpp"
#include "io/text/json_text.hpp"
#include "io/write/row_text.hpp"

namespace attn::cli {
namespace {

constexpr std::size_t longest_location = 1000;  // a path may be as long as its record

/// The field of an id in a table.
std::string id_field(const std::string& id) {
    return id.starts_with('"') ? io::quoted_field(io::parse_own(id).get<std::string>()) : id;
}

/// A result as a line of about `bytes` bytes, as the lines of a table with a header, or as arrays.
RecordOutcome outcome_of(const Request& request, io::Report report, const Record& record,
                         std::size_t bytes) {
    if (request.format->lists_elements)
        report.record = {{"record", std::to_string(record.number)}, {"id", id_field(request.id)}};
    else if (!request.format->json)
        return {.line = io::TextBuffer(head_text(report.head)),
                .packed = pack(request, std::move(report.arrays), *report.workers)};
    io::BufferOutput out;
    constexpr std::size_t of_config = 2048;
    out.text().reserve(bytes + of_config);
    write_report(out, request, report);
    return {std::move(out.text())};
}

}  // namespace

PackedArrays pack(const Request& request, std::vector<NamedArray> arrays, ThreadPool& workers) {
    std::optional<io::StoredArrays> stored;
    if (request.store) stored = io::stored_arrays(arrays, *request.store);
    const bool are_words = stored && stored->type.is_integer();
    PackedArrays packed;
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
        packed.arrays.push_back(
            {arrays[i].name, io::describe(arrays[i], stored), stored ? stored->saturated[i] : 0,
             are_words && io::is_real(arrays[i]) ? io::text_of(stored->type) : ""});
        bytes += packed.arrays.back().type.size();
    }
    packed.bytes.reserve(static_cast<std::size_t>(bytes));
    if (request.format->write_archive == nullptr) {
        io::Report report;
        report.arrays = std::move(arrays);
        report.stored = std::move(stored);
        report.workers = &workers;
        report.command = "attn batch: the record with id " + request.id;
        report.file = "record " + request.id;
        io::BufferOutput out;
        request.format->write(out, report, {});
        packed.bytes = std::move(out.text());
        return packed;
    }
    for (const NamedArray& array : arrays)
        io::write_bytes(array, stored, &workers,
                        [&](std::string_view piece) { packed.bytes += piece; });
    return packed;
}

std::string start_of_result(const Record& record, bool is_index) {
    std::string start = "{";
    io::append_member(start, "schema", is_index ? schemas::index : schemas::result);
    io::append_member(start, "id", io::JsonText{record.id()});
    return start;
}

std::string start_of_bare(const Record& record) {
    std::string start = "{";
    io::append_member(start, "id", io::JsonText{record.id()});
    const std::string meta = record.meta();
    if (!meta.empty()) io::append_member(start, "meta", io::JsonText{meta});
    return start;
}

void check_answer_format(Request& request, const io::OutputFormat* packed,
                         const io::OutputFormat* lines) {
    if (packed != nullptr) {
        if (request.format != packed)
            throw setting_error(request, "format",
                                "--out-dir writes " + std::string(packed->name) + "; expected " +
                                    std::string(packed->name) + ", or no such setting");
        request.settings.emit = arrays_to_write(request);
        return check_style_and_store(request);
    }
    const bool is_of_batch = request.format->of_batch;
    const bool is_other =
        lines != nullptr && lines->lists_elements != request.format->lists_elements;
    refuse(
        request,
        {{"format", !is_of_batch && request.format->packs(),
          "a batch writes lines of JSON; expected json, ndjson or csv-long, or --out-dir DIR as "
          "well"},
         {"format", !is_of_batch,
          "a batch writes lines of JSON; expected json, ndjson or csv-long"},
         {"format", is_other,
          "not the format of the batch, which all of its records have; expected no such setting"},
         {"pretty", request.pretty, "an answer of a batch is one line; expected false"},
         {"store", request.store.has_value(),
          "an answer of a batch is JSON, which keeps numbers as computed; expected --out-dir "
          "DIR as well, or no such setting"}});
    request.settings.emit = arrays_to_write(request);
    check_style_and_store(request);
}

Answerer::Answerer(const BatchRequest& batch, io::LoadedModels& models)
    : batch_(batch), defaults_(batch.defaults),
      packed_(batch.parts ? batch.parts->format : nullptr),
      threads_(std::max<std::size_t>(1, processors() / batch.jobs)), workers_(threads_),
      models_(models) {}

RecordOutcome Answerer::answer(const Record& record) {
    if (record.answer) return {io::TextBuffer(*record.answer)};
    keep_memory_aside();
    try {
        const Line line = record.open_line();
        if (Line model = model_request(record, line))
            return answer_model(record, std::move(*model));
        if (!line || batch_.dry_run) return answer_line(record, line, nullptr);
        const auto alike =
            std::ranges::find_if(alike_, [&](const Prepared& kind) { return kind.hold(*line); });
        if (alike == alike_.end()) return answer_line(record, line, nullptr);
        workers_.set_threads(threads_);
        try {
            if (auto known = alike->answer(*line, record.default_id, {workers_, models_}))
                return std::move(*known);
        } catch (const Error&) {  // the full evaluation reports the problem
        }
        return answer_line(record, line, &*alike);
    } catch (const io::WrittenFile&) {
        return {.line = {}, .end = std::current_exception()};
    } catch (const BeyondShare&) {
        throw;
    } catch (...) {
        ErrorReport failure = current_error(true);
        // There may be enough memory while no other record is answered.
        if (failure.kind == "memory" && MemoryShare::is_part()) throw BeyondShare();
        failure.location = io::shortened(failure.location, longest_location);
        return {io::TextBuffer(error_line(start_of_bare(record), failure)),
                failure.location + ": " + failure.message};
    }
}

std::string Answerer::beginning(const Record& record) {
    try {
        const Line line = record.open_line();
        if (Line model = model_request(record, line)) {
            const ModelAsked asked = ask_model(record, std::move(*model));
            const ModelPlan plan(asked, whole_models_.open(asked.request, asked.path));
            // The labels of generated tokens are not known yet.
            if (plan.question().generate != 0) return {};
            return head_text(plan.head());
        }
        const PlannedQuestion planned = plan(record, line);
        return head_text(
            head_of(planned.question.request, planned.plan, draws_of(planned.plan).end));
    } catch (const Error&) {
        return {};
    }
}

Answerer::Line Answerer::model_request(const Record& record, const Line& line) const {
    if (line) return is_model_request(*line) ? line : Line();
    if (io::suffix_of_name(record.file) != ".json") return {};
    io::InputFile file = io::open_input_file(record.file, defaults_.input_format, defaults_.access);
    return is_model_request(file) ? Line(std::move(file)) : Line();
}

ModelAsked Answerer::ask_model(const Record& record, io::InputFile file) const {
    ModelAsked asked =
        model_of_record(defaults_, *batch_.program, std::move(file), {}, batch_.model_flags);
    if (asked.request.id.empty()) asked.request.id = record.default_id;
    check_answer_format(asked.request, packed_, defaults_.format);
    return asked;
}

RecordOutcome Answerer::answer_model(const Record& record, io::InputFile file) {
    const ModelAsked asked = ask_model(record, std::move(file));
    workers_.set_threads(asked.request.threads.value_or(threads_));
    const ModelPlan plan(asked, whole_models_.open(asked.request, asked.path));
    if (batch_.dry_run) return {io::TextBuffer(plan.cost_line(true))};
    plan.check_size();
    plan.require_memory(true);
    return outcome_of(plan.request(), plan.run(workers_, nullptr), record, 0);
}

PlannedQuestion Answerer::plan(const Record& record, Line line) {
    workers_.set_threads(threads_);
    Request request = defaults_;
    if (!line) request.input = record.file;
    RequestWithInput asked = open_request(request, std::move(line));
    if (asked.request.id.empty()) asked.request.id = record.default_id;
    for (const FlagValue& flag : batch_.model_flags)
        if (find_option(flag.option->key) == nullptr && flag.origin != Origin::environment)
            throw Error(ErrorKind::usage, location_of(flag),
                        "mode " + std::string(row_of(asked.request.settings.mode).name) +
                            " does not have this setting; expected it in records of mode model");
    check_answer_format(asked.request, packed_, defaults_.format);
    const PlanOptions options{.stream = streams_arrays(asked.request)};
    return plan_question(read_question(std::move(asked), {workers_, models_}), options);
}

void Answerer::remember(const io::InputFile& line, Answer&& answered, double memory,
                        Prepared* kind) {
    constexpr std::size_t max_kinds = 8;
    const bool is_table = defaults_.format->lists_elements;
    if (is_table || !Prepared::may_be(line, answered.question.request, answered.plan, memory))
        return;
    std::string asked = answered.question.request.asked;
    if (kind == nullptr) {
        Prepared alike(line, std::move(answered.question.request));
        kind = alike_.size() < max_kinds ? &alike_.emplace_back(std::move(alike))
                                         : &(alike_[oldest_++ % max_kinds] = std::move(alike));
    }
    kind->add(std::move(answered.plan), std::move(asked));
}

RecordOutcome Answerer::answer_line(const Record& record, const Line& line, Prepared* alike) {
    PlannedQuestion planned = plan(record, line);
    const Request& request = planned.question.request;
    if (batch_.dry_run) return {io::TextBuffer(cost_line(request, planned.plan, planned.cost))};
    check_output_size(request, planned.plan, planned.cost);
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
                          record, cost.bytes);
    });
    if (line) remember(*line, std::move(answered), cost.memory, alike);
    return outcome;
}

}  // namespace attn::cli
