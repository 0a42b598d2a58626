#include "cli/output/output.hpp"

#include <unistd.h>

#include <cstdlib>
#include <variant>

#include "cli/args/args.hpp"
#include "cli/output/pictures.hpp"
#include "cli/page/page.hpp"
#include "core/base/error.hpp"
#include "io/file/access.hpp"
#include "io/file/screen.hpp"
#include "io/model/find_layer.hpp"
#include "io/text/json_text.hpp"
#include "io/text/utf8.hpp"

namespace attn::cli {
namespace {

/// The origin of the parameters in titles of pictures: "  random parameters  seed 123", "  gpt2
/// layer 3".
std::string parameters_origin(const Request& request, const Plan& plan) {
    const auto weights = request.operand_files.find("weights");
    if (weights == request.operand_files.end()) {
        const Seed& seed = request.settings.seed;
        return text_of_draws(plan, seed.negative
                                       ? std::to_string(static_cast<std::int64_t>(seed.bits))
                                       : std::to_string(seed.bits));
    }
    const std::string layer = request.layer ? "  layer " + std::to_string(*request.layer) : "";
    return "  " + io::last_part(weights->second) + layer;
}

}  // namespace

bool is_on_terminal(const Request& request) {
    return request.output == "-" && !request.of_batch && request.format->write == io::write_table &&
           ::isatty(STDOUT_FILENO) != 0;
}

namespace {

/// Files, pipes and answers of a batch are complete. COLUMNS limits the width in a pipe too.
io::TableLimits table_limits(const Request& request) {
    if (request.output != "-" || request.of_batch) return {};
    const bool is_terminal = ::isatty(STDOUT_FILENO) != 0;
    io::TableLimits limits;
    if (!is_terminal && std::getenv("COLUMNS") == nullptr) return limits;
    limits.width = io::screen_columns(STDOUT_FILENO);
    limits.way = is_terminal ? "all: -o FILE or --format json, more: a wider terminal"
                             : "all: -o FILE, or unset COLUMNS";
    if (!is_terminal) return limits;
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

}  // namespace

io::Report make_report(const Request& request, const Plan& plan, Result result,
                       ThreadPool& workers) {
    io::Report report;
    report.title_start = std::string(row_of(plan.config.mode).name) + "  ";
    report.title_end = parameters_origin(request, plan);
    report.averaged_heads = plan.shown.average_heads ? plan.heads : 0;
    report.has_dropout = plan.config.dropout > 0;
    report.head = head_of(request, plan, result.draws);
    report.arrays = std::move(result.arrays);
    if (request.format->one_array) {
        const auto written =
            std::ranges::find(report.arrays, request.settings.emit.front(), &NamedArray::name);
        if (written != report.arrays.end()) std::iter_swap(report.arrays.begin(), written);
    }
    if (!request.format->json || request.wants_pictures()) {
        AxisLabels labels = axis_labels(request, plan);
        report.query_labels = std::move(labels.queries);
        report.key_labels = std::move(labels.keys);
    }
    report.workers = &workers;
    report.first_query = plan.first_query;
    report.heads = plan.shown.heads;
    return report;
}

void write_report(io::Output& out, const Request& request, const io::Report& report) {
    if (request.format->write == nullptr) return;
    if (request.format->name == std::string_view("table"))
        for (const auto& [name, value] : report.head)
            if (name == "generated_text") out << name << "\n" << io::printable(value) << "\n\n";
    request.format->write(out, report, style_of(request));
}

std::string head_text(HeadMembers head) {
    io::Report report;
    report.head = std::move(head);
    std::string text = io::head_text(report);
    text.pop_back();  // the closing brace
    return text;
}

void write_after_head(io::Output& out, const Request& request,
                      const std::vector<NamedArray>& arrays, ThreadPool& workers) {
    io::write_json_arrays(out, arrays, style_of(request), &workers);
}

bool must_name_format(const std::string& path) {
    const bool is_known = format_of_suffix(io::output_formats, path) != nullptr ||
                          format_of_suffix(io::picture_formats, path) != nullptr ||
                          format_of_suffix(page_formats, path) != nullptr;
    if (is_known || io::suffix_of_name(path).empty()) return is_known;
    return !io::is_empty_or_special(path);
}

void refuse_name(const OutputName& name, const std::vector<std::string_view>& suffixes) {
    throw Error(ErrorKind::usage, name.location,
                name.problem + "; expected a name that ends in " + listed(suffixes) + name.way);
}

void refuse_format(const std::string& location, const OutputName& name, std::string_view named) {
    throw Error(ErrorKind::usage, location, "contradicts ", name.location, "; expected format ",
                named, ", or another name");
}

namespace {

/// The names for saved weights: of --save-family, else of the weights' family, else of their
/// initialiser.
io::LayerName saved_layer(const Request& request, const Plan& plan) {
    const auto number = static_cast<std::size_t>(request.layer.value_or(0));
    if (request.save_family != nullptr) return {*request.save_family, number, "save_family"};
    if (request.family != nullptr && !request.family->of_class)
        return {*request.family, number, "family"};
    const bool is_mha = plan.config.init == Init::mha;
    return {*io::find_family(is_mha ? "mha" : "notebook"), number, "family"};
}

io::Report weights_report(const Request& request, const Plan& plan, const Result& result) {
    if (!result.weights)
        throw setting_error(request, "save_weights",
                            "--init none has no parameters; expected another --init, or --weights");
    io::Report report;
    report.head.emplace_back("schema", io::value_text(schemas::weights));
    report.head.emplace_back("config", config_of(request));
    report.arrays = std::visit(
        [&](const auto& weights) {
            return io::name_layer_weights(*weights, saved_layer(request, plan), plan.heads);
        },
        *result.weights);
    for (NamedArray& array : report.arrays)
        if (is_rounded(plan.config.dtype)) array.type = plan.config.dtype;
    return report;
}

/// Which cells are masked; null if no output marks masked cells.
io::MaskedOf masked_cells(const std::optional<Mask>& mask, const Plan& plan) {
    if (!mask) return nullptr;
    return io::of_every_array(
        [&mask = *mask, &chosen = plan.shown.heads,
         heads = plan.size_of<std::uint64_t>(Axis::heads)](std::size_t batch, std::size_t head,
                                                           std::size_t query, std::size_t key) {
            return io::in_heads(head, heads, [&](std::size_t h) {
                return !mask.allows(batch, chosen.empty() ? h : chosen[h], query, key);
            });
        });
}

/// Completes the report with what the request's format needs besides the arrays. Returns notes on
/// saturated numbers, to be shown when the output is complete.
std::vector<std::string> prepare_to_write(const Request& request, io::Report& report) {
    report.command = request.command;
    if (!io::inherited_descriptor(request.output)) report.file = io::last_part(request.output);
    std::vector<std::string> notes;
    const bool is_csv = request.format->one_array && request.format->decimals;
    if (is_csv && report.arrays.front().axes.size() > 2)
        notes.push_back(location_of(request, request.has("format") ? "format" : "output") + ": " +
                        report.arrays.front().name +
                        " is written as rows of several matrices; "
                        "csv-long has a line for each element, with its indices and labels");
    if (!request.store) return notes;
    const io::StoredArrays& stored =
        report.stored.emplace(io::stored_arrays(report.arrays, *request.store));
    for (std::size_t i = 0; i < report.arrays.size(); ++i)
        if (stored.saturated[i] != 0)
            notes.push_back(location_of(request, "store") + ": " + report.arrays[i].name + ": " +
                            io::saturation_text(stored, i));
    return notes;
}

}  // namespace

std::vector<std::string> write_files(const Request& request, io::Report report,
                                     io::OutputFile* weights) {
    std::vector<std::string> notes = prepare_to_write(request, report);
    std::optional<io::OutputFile> plot;
    const std::string heatmap =
        request.wants_pictures() ? draw_pictures(request, report, plot) : std::string();
    // No file appears before all are complete. Output that cannot be undone comes last.
    if (request.format->is_folder) {
        const auto folder = io::write_folder(request.output, std::move(report));
        if (weights != nullptr) weights->commit();
        if (plot) plot->commit();
        folder->commit();
        if (!heatmap.empty()) io::show(heatmap, descriptor_of_heatmap(request));
        return notes;
    }
    io::OutputFile out(request.output);
    const auto fill = [&] { out.fill([&](io::Output& to) { write_report(to, request, report); }); };
    if (!out.is_in_place()) fill();
    if (weights != nullptr) weights->commit();
    if (plot) plot->commit();
    if (out.is_in_place()) fill();
    out.commit();
    if (!heatmap.empty()) io::show(heatmap, descriptor_of_heatmap(request));
    return notes;
}

std::vector<std::string> write_outputs(Answer answer, ThreadPool& workers) {
    const Request& request = answer.question.request;
    const Plan& plan = answer.plan;
    Result& result = answer.result;
    // Writing computes streams and names parameters, which may throw errors of settings.
    return at_locations(request, [&] {
        std::optional<io::OutputFile> weights;
        if (!request.save_weights.empty()) {
            const io::Report saved = weights_report(request, plan, result);
            weights.emplace(request.save_weights);
            weights->fill([&](io::Output& to) { format_of_weights(request).write(to, saved, {}); });
        }
        result.weights.reset();
        io::Report report = make_report(request, plan, std::move(result), workers);
        report.masked_of = masked_cells(answer.mask, plan);
        return write_files(request, std::move(report), weights ? &*weights : nullptr);
    });
}

}  // namespace attn::cli
