#include "cli/output/output.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>

#include "cli/output/answer_cost.hpp"
#include "cli/output/head.hpp"
#include "cli/output/pictures.hpp"
#include "cli/question/labels.hpp"
#include "cli/request/config.hpp"
#include "cli/request/schemas.hpp"
#include "core/base/error.hpp"
#include "core/layer/layer.hpp"
#include "core/operator/arrays.hpp"
#include "io/file/descriptor.hpp"
#include "io/file/output_file.hpp"
#include "io/file/screen.hpp"
#include "io/model/name_weights.hpp"
#include "io/plot/picture_formats.hpp"
#include "io/text/json_text.hpp"
#include "io/write/output_formats.hpp"

namespace attn::cli {
namespace {

/// Refuses settings that the request's format would ignore.
void check_style(const Request& request) {
    const auto require = [&](const char* key, bool is_given, bool applies, const char* formats) {
        if (is_given && !applies)
            throw Error(ErrorKind::usage, location_of(request, key),
                        std::string("requires ") + formats);
    };
    const io::OutputFormat& format = *request.format;
    require("pretty", request.pretty, format.breaks_lines, "--format json");
    require("bare", request.bare, format.has_head, "--format json, ndjson, npz or safetensors");
    require("nonfinite", request.nonfinite.has_value(), format.json, "--format json or ndjson");
    require("precision", request.precision.has_value(), format.decimals,
            "a format with digits, as json or csv");
}

const io::OutputFormat& format_of_weights(const Request& request) {
    return *named_format(io::output_formats,
                         {request.save_weights, location_of(request, "save_weights"),
                          "names no format that holds several arrays"},
                         true, &io::OutputFormat::holds_weights);
}

/// The names for saved weights: of --save-family, else of the weights' family, else of their
/// initialiser.
io::LayerName saved_layer(const Request& request, const Plan& plan) {
    const auto number = static_cast<std::size_t>(request.layer.value_or(0));
    if (request.save_family != nullptr) return {*request.save_family, number, "save_family"};
    if (request.family != nullptr) return {*request.family, number, "family"};
    const bool is_mha = plan.parameters.init == Init::mha;
    return {is_mha ? io::families::mha : io::families::notebook, number, "family"};
}

io::Report weights_report(const Request& request, const Plan& plan, const Result& result) {
    if (!result.weights)
        throw Error(ErrorKind::usage, location_of(request, "save_weights"),
                    "init none has no parameters; expected another init, or --weights");
    io::Report report;
    report.head.emplace_back("schema", io::value_text(schemas::weights));
    report.head.emplace_back("config", config_of(request));
    report.arrays = std::visit(
        [&](const auto& weights) {
            return io::name_layer_weights(*weights, saved_layer(request, plan), plan.heads);
        },
        *result.weights);
    return report;
}

void check_saved(const Request& request) {
    if (request.save_weights.empty()) {
        if (request.save_family != nullptr)
            throw Error(ErrorKind::usage, location_of(request, "save_family"),
                        "requires --save-weights");
        return;
    }
    format_of_weights(request);
}

/// Output files must differ: of two with one name, only one would remain.
void check_files(const Request& request) {
    const bool has_output = request.format->write != nullptr;
    const std::array<std::pair<const char*, std::string>, 3> files{
        {{"output", has_output ? request.output : ""},
         {"save_weights", request.save_weights},
         {"plot", request.plot}}};
    for (const auto& [key, path] : files)
        for (const auto& [other_key, other] : files) {
            if (key == other_key) break;  // each pair once
            if (path.empty() || other.empty() || !io::is_same_output(path, other)) continue;
            const std::string first = request.has(other_key) ? location_of(request, other_key)
                                                             : std::string("standard output");
            throw Error(ErrorKind::usage, location_of(request, key),
                        "the same file as " + first + "; expected another");
        }
}

}  // namespace

void check_promise(const Request& request, const OutputName& name) {
    const io::OutputFormat& format = *request.format;
    const io::OutputFormat* promised = promised_format(io::output_formats, name.path);
    if (promised == nullptr || promised == &format || format.write == nullptr) return;
    const bool is_one_line = promised->json && format.json && !request.pretty;
    if (!is_one_line) refuse_format(location_of(request, "format"), name, promised->name);
}

namespace {

const io::OutputFormat* format_named(std::string_view name) {
    return std::find_if(io::output_formats.begin(), io::output_formats.end(),
                        [&](const io::OutputFormat& format) { return format.name == name; });
}

/// The format for a terminal if none is specified. It is JSON if a setting of JSON is given. With
/// --heatmap and without --precision it is none, which leaves the picture alone. Otherwise it is a
/// table.
const io::OutputFormat* format_for_people(const Request& request) {
    if (request.pretty || request.nonfinite) return io::default_format;
    return format_named(request.heatmap && !request.precision ? "none" : "table");
}

/// A flag takes precedence over the request's key: --format, else the suffix of --output.
const io::OutputFormat* format_of(const Request& request) {
    const std::string suffix = io::suffix_of_name(request.output);
    const bool is_picture = promised_format(io::picture_formats, request.output) != nullptr;
    const OutputName name{
        request.output, location_of(request, "output"), "a result cannot be written as " + suffix,
        is_picture ? ", --plot FILE for a picture, or --format as well" : ", or --format as well"};
    const bool by_flag = request.has("format") && location_of(request, "format").starts_with("--");
    if (by_flag) return check_promise(request, name), request.format;
    const io::OutputFormat* promised = request.has("format")
                                           ? promised_format(io::output_formats, name.path)
                                           : named_format(io::output_formats, name);
    const bool is_free = !request.has("format") && !request.has("output");
    if (is_free && ::isatty(STDOUT_FILENO) != 0) return format_for_people(request);
    return promised != nullptr ? promised : request.format;
}

/// The arrays to write: exactly one if the format holds one.
std::vector<std::string> arrays_to_write(const Request& request) {
    const io::OutputFormat& format = *request.format;
    const std::vector<std::string>& emit = request.settings.emit;
    if (!format.one_array) return emit;
    if (!request.has("emit")) return {"context_vectors"};
    if (emit.size() != 1 || emit.front() == "all")
        throw Error(ErrorKind::usage, location_of(request, "emit"),
                    std::string(format.name) +
                        " holds one array; expected one name, or npz, safetensors or json");
    return emit;
}

/// Arrays that are drawn but not written, if the format holds one array or none.
std::vector<std::string> arrays_to_draw_besides(const Request& request) {
    std::vector<std::string> drawn;
    if (!request.has("emit") && request.plot_array.empty()) drawn.emplace_back("attention_weights");
    // Drawing reports unknown names, with the names that exist.
    std::copy_if(request.plot_array.begin(), request.plot_array.end(), std::back_inserter(drawn),
                 [](const std::string& name) { return find_array(name).has_value(); });
    return drawn;
}

}  // namespace

OutputPlan plan_output(Request request) {
    request.format = format_of(request);
    check_style(request);
    check_saved(request);
    check_files(request);
    check_pictures(request);
    if (request.format->binary && request.output == "-" && ::isatty(STDOUT_FILENO) != 0)
        throw Error(ErrorKind::usage, location_of(request, "format"),
                    "bytes that no terminal shows; expected -o FILE, or a pipe");
    const io::OutputFormat& format = *request.format;
    OutputPlan plan{&format, arrays_to_write(request), std::nullopt};
    if (format.write != nullptr && !format.one_array) return plan;
    if (!request.wants_pictures()) {
        if (format.write == nullptr) plan.emit.clear();
        return plan;
    }
    std::vector<std::string> all = plan.emit;
    for (std::string& name : arrays_to_draw_besides(request)) all.push_back(std::move(name));
    (format.one_array ? plan.computed.emplace() : plan.emit) = std::move(all);
    return plan;
}

Request with_output(Request request, const OutputPlan& output) {
    request.format = output.format;
    request.settings.emit = output.emit;
    return request;
}

bool takes_streams(const Request& request) {
    return request.format->streams && !request.wants_pictures();
}

namespace {

/// The origin of the parameters in titles of pictures: "  seed 123", "  gpt2 layer 3".
std::string origin_of(const Request& request) {
    const auto weights = request.operand_files.find("weights");
    if (weights == request.operand_files.end()) {
        const Seed& seed = request.settings.seed;
        return "  seed " + (seed.negative ? std::to_string(static_cast<std::int64_t>(seed.bits))
                                          : std::to_string(seed.bits));
    }
    const std::string layer = request.layer ? "  layer " + std::to_string(*request.layer) : "";
    return "  " + io::last_part(weights->second) + layer;
}

io::Report report_of(const Request& request, const Plan& plan, Result result, ThreadPool& workers) {
    io::Report report;
    report.title_start = std::string(row_of(plan.mode).name) + "  ";
    report.title_end = origin_of(request);
    report.head = head_of(request, plan);
    report.arrays = std::move(result.arrays);
    if (request.format->one_array) {
        const auto written = std::find_if(
            report.arrays.begin(), report.arrays.end(),
            [&](const NamedArray& array) { return array.name == request.settings.emit.front(); });
        if (written != report.arrays.end()) std::iter_swap(report.arrays.begin(), written);
    }
    if (!request.format->json || request.wants_pictures()) {
        AxisLabels labels = axis_labels(request, plan);
        report.query_labels = std::move(labels.queries);
        report.key_labels = std::move(labels.keys);
    }
    report.workers = &workers;
    report.first_query = plan.first_query;
    return report;
}

/// Files and answers of a batch are complete; pipes get all rows, of limited width.
io::TableLimits table_limits(const Request& request) {
    if (request.output != "-" || request.of_batch) return {};
    io::TableLimits limits;
    limits.width = io::screen_columns(STDOUT_FILENO);
    limits.way = "all: -o FILE or --format json, more: a wider terminal";
    if (::isatty(STDOUT_FILENO) == 0) return limits;
    limits.rows = 40;
    limits.matrices = 16;
    return limits;
}

io::NumberStyle style_of(const Request& request) {
    io::NumberStyle style;
    if (request.precision) style.decimals = static_cast<int>(*request.precision);
    style.nonfinite = request.nonfinite.value_or(io::Nonfinite::string);
    style.pretty = request.pretty;
    style.limits = table_limits(request);
    return style;
}

void write(io::Output& out, const Request& request, const io::Report& report) {
    if (request.format->write != nullptr) request.format->write(out, report, style_of(request));
}

}  // namespace

void write_result(io::Output& out, const Request& request, const Plan& plan, Result result,
                  ThreadPool& workers) {
    write(out, request, report_of(request, plan, std::move(result), workers));
}

std::string head_text(const Request& request, const Plan& plan) {
    io::Report report;
    report.head = head_of(request, plan);
    std::string text = io::head_text(report);
    text.pop_back();  // the closing brace
    return text;
}

void write_behind_head(io::Output& out, const Request& request,
                       const std::vector<NamedArray>& arrays, ThreadPool& workers) {
    io::write_json_arrays(out, arrays, style_of(request), &workers);
}

namespace {

/// Appends the number as an integer if it is below 2^63.
void append_whole(std::string& line, std::string_view name, double number) {
    if (number < 0x1p63)
        io::append_member(line, name, static_cast<std::uint64_t>(number));
    else
        io::append_member(line, name, number);
}

}  // namespace

std::string cost_line(const Request& request, const Plan& plan, const Cost& cost) {
    const AnswerCost answer = answer_cost(request, plan, cost);
    std::uint64_t bytes = answer.bytes;
    for (const auto& [name, value] : head_of(request, plan))
        bytes += name.size() + value.size() + 4;
    plan.emit.for_each([&](ArrayId array) { bytes += array.row().name.size() + 4; });
    std::string line = "{";
    io::append_member(line, "schema", schemas::cost);
    io::append_member(line, "id", io::JsonText{request.id});
    io::append_member(line, "mode", row_of(plan.mode).name);
    ((line += ",\"shapes\":") += shapes_json(plan.shapes()));
    append_whole(line, "flops", cost.flops);
    append_whole(line, "memory_bytes", answer.memory);
    io::append_member(line, "output_numbers", cost.numbers);
    io::append_member(line, "output_bytes", bytes);
    return line + "}\n";
}

namespace {

/// Whether a cell of a picture is masked; null if there are no pictures.
io::IsBlocked blocked_cells(const std::optional<Mask>& mask, std::size_t heads) {
    if (!mask) return nullptr;
    return [&mask = *mask, heads](std::size_t batch, std::size_t head, std::size_t query,
                                  std::size_t key) {
        return io::in_heads(head, heads,
                            [&](std::size_t h) { return !mask.allows(batch, h, query, key); });
    };
}

void write_files(Answer& answer, ThreadPool& workers) {
    const Request& request = answer.question.request;
    const Plan& plan = answer.plan;
    Result& result = answer.result;
    std::optional<io::OutputFile> weights;
    if (!request.save_weights.empty()) {
        const io::Report saved = weights_report(request, plan, result);
        weights.emplace(request.save_weights);
        weights->fill([&](io::Output& to) { format_of_weights(request).write(to, saved, {}); });
    }
    result.weights.reset();
    const io::Report report = report_of(request, plan, std::move(result), workers);
    std::optional<Pictures> pictures;
    if (request.wants_pictures())
        pictures.emplace(request, report, blocked_cells(answer.mask, plan.heads));
    // No file appears before all are complete. Output that cannot be undone comes last.
    io::OutputFile out(request.output);
    const auto fill = [&] { out.fill([&](io::Output& to) { write(to, request, report); }); };
    if (!out.is_in_place()) fill();
    if (weights) weights->commit();
    if (pictures) pictures->commit();
    if (out.is_in_place()) fill();
    out.commit();
    if (pictures) pictures->show();
}

}  // namespace

void write_outputs(Answer answer, ThreadPool& workers) {
    // Writing computes streams and names parameters, which may throw errors of settings.
    at_locations(answer.question.request, [&] { write_files(answer, workers); });
}

}  // namespace attn::cli
