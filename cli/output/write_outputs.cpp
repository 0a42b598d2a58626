#include <optional>
#include <utility>
#include <variant>

#include "cli/args/args.hpp"
#include "cli/output/output.hpp"
#include "cli/output/pictures.hpp"
#include "cli/page/page.hpp"
#include "cli/request/request.hpp"
#include "core/base/error.hpp"
#include "io/file/output.hpp"
#include "io/model/find_layer.hpp"
#include "io/plot/picture.hpp"
#include "io/text/json_text.hpp"
#include "io/write/output_formats.hpp"

namespace attn::cli {

bool must_name_format(const std::string& path) {
    const bool is_known = format_of_suffix(io::output_formats, path) != nullptr ||
                          format_of_suffix(io::picture_formats, path) != nullptr ||
                          format_of_suffix(page_formats, path) != nullptr;
    if (is_known || io::suffix_of_name(path).empty()) return is_known;
    return !io::is_empty_or_special(path);
}

void refuse_name(const OutputName& name, const std::vector<std::string_view>& suffixes) {
    throw Error(ErrorKind::usage, name.where,
                name.problem + "; expected a name that ends in " + listed(suffixes) + name.way);
}

void refuse_format(const std::string& where, const OutputName& name, std::string_view named) {
    throw Error(ErrorKind::usage, where,
                "contradicts " + name.where + "; expected format " + std::string(named) +
                    ", or another name");
}

namespace {

/// The names for saved weights: of --save-family, else of the weights' family, else of their
/// initialiser.
io::LayerName saved_layer(const Request& request, const Plan& plan) {
    const auto number = static_cast<std::size_t>(request.layer.value_or(0));
    if (request.save_family != nullptr) return {*request.save_family, number, "save_family"};
    if (request.family != nullptr) return {*request.family, number, "family"};
    const bool is_mha = plan.config.init == Init::mha;
    return {is_mha ? io::families::mha : io::families::notebook, number, "family"};
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

std::vector<std::string> write_files(Answer& answer, ThreadPool& workers) {
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
    io::Report report = make_report(request, plan, std::move(result), workers);
    report.masked_of = masked_cells(answer.mask, plan);
    std::vector<std::string> notes = prepare_to_write(request, report);
    std::optional<Pictures> pictures;
    if (request.wants_pictures()) pictures.emplace(request, report);
    // No file appears before all are complete. Output that cannot be undone comes last.
    io::OutputFile out(request.output);
    const auto fill = [&] { out.fill([&](io::Output& to) { write_report(to, request, report); }); };
    if (!out.is_in_place()) fill();
    if (weights) weights->commit();
    if (pictures) pictures->commit();
    if (out.is_in_place()) fill();
    out.commit();
    if (pictures) pictures->show();
    return notes;
}

}  // namespace

std::vector<std::string> write_outputs(Answer answer, ThreadPool& workers) {
    // Writing computes streams and names parameters, which may throw errors of settings.
    return at_locations(answer.question.request, [&] { return write_files(answer, workers); });
}

}  // namespace attn::cli
