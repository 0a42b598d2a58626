#include "cli/output/output.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "cli/question/question.hpp"
#include "io/file/access.hpp"
#include "io/file/path.hpp"
#include "io/file/screen.hpp"
#include "io/text/json_text.hpp"
#include "io/write/output_formats.hpp"

namespace attn::cli {
namespace {

/// The origin of the parameters in titles of pictures: "  seed 123", "  gpt2 layer 3".
std::string parameters_origin(const Request& request) {
    const auto weights = request.operand_files.find("weights");
    if (weights == request.operand_files.end()) {
        const Seed& seed = request.settings.seed;
        return "  seed " + (seed.negative ? std::to_string(static_cast<std::int64_t>(seed.bits))
                                          : std::to_string(seed.bits));
    }
    const std::string layer = request.layer ? "  layer " + std::to_string(*request.layer) : "";
    return "  " + io::last_part(weights->second) + layer;
}

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
    report.title_end = parameters_origin(request);
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
    report.heads = plan.shown.heads;
    return report;
}

std::vector<std::string> prepare_to_write(const Request& request, io::Report& report) {
    report.command = request.command;
    if (!io::inherited_descriptor(request.output)) report.file = io::last_part(request.output);
    std::vector<std::string> notes;
    if (!request.store) return notes;
    const io::StoredArrays& stored =
        report.stored.emplace(io::stored_arrays(report.arrays, *request.store));
    for (std::size_t i = 0; i < report.arrays.size(); ++i)
        if (stored.saturated[i] != 0)
            notes.push_back(location_of(request, "store") + ": " + report.arrays[i].name + ": " +
                            io::saturation_text(stored, i));
    return notes;
}

void write_report(io::Output& out, const Request& request, const io::Report& report) {
    if (request.format->write != nullptr) request.format->write(out, report, style_of(request));
}

std::string head_text(const Request& request, const Plan& plan) {
    return head_text(head_of(request, plan));
}

std::string head_text(std::vector<std::pair<std::string, std::string>> head) {
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

}  // namespace attn::cli
