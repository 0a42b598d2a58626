#include "cli/explain/explain.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "cli/explain/explanation.hpp"
#include "cli/explain/stored_result.hpp"
#include "cli/output/output_name.hpp"
#include "cli/question/question.hpp"
#include "core/base/error.hpp"
#include "core/layer/layer.hpp"
#include "core/layer/mask_rows.hpp"
#include "io/file/output_file.hpp"
#include "io/file/screen.hpp"
#include "io/text/number_text.hpp"

namespace attn::cli {
namespace {

constexpr std::uint64_t default_precision = 4;

/// Without --head, a question with more heads shows only the first: the page would be long.
constexpr std::size_t max_heads = 4;

const PageFormat& format_of(const PageFormat* given, const Request& request) {
    const OutputName name{request.output, location_of(request, "output"),
                          "an explanation is text, Markdown or HTML", ", or --format with it"};
    const PageFormat* named = given == nullptr ? format_of_name(page_formats, name)
                                               : format_of_suffix(page_formats, name.path);
    if (given == nullptr) return named == nullptr ? page_formats.front() : *named;
    if (named != nullptr && named != given)
        refuse_format("--format " + std::string(given->name), name, named->name);
    return *given;
}

/// Only the reference path records every step.
constexpr std::string_view tracing_kernel = "reference";

void check_kernel(const Request& request) {
    const std::string_view kernel = request.settings.kernel;
    if (kernel != "auto" && kernel != tracing_kernel)
        throw setting_error(request, "kernel",
                            "a fused kernel records no steps; expected auto or reference");
}

/// Text on the screen fits it. Numbers in a file are not wrapped.
std::unique_ptr<Page> page_of(const PageFormat& format, const Request& request) {
    const bool is_on_screen = format.render == render_text && request.output == "-";
    return std::make_unique<Page>(
        format, is_on_screen ? screen_width(io::screen_columns(STDOUT_FILENO)) : PageWidth{});
}

std::size_t pick(const char* flag, const char* what, const std::optional<std::uint64_t>& given,
                 std::size_t count) {
    if (given.value_or(0) < count) return static_cast<std::size_t>(given.value_or(0));
    throw Error(ErrorKind::usage, std::string(flag) + " " + std::to_string(*given),
                count == 1 ? std::string("there is one ") + what + "; expected 0"
                           : "there are " + std::to_string(count) + " of them; expected 0 to " +
                                 std::to_string(count - 1));
}

/// The weights and masks of all queries, for pictures; empty if there are more elements than are
/// drawn.
Result computed_maps(const PlannedQuestion& planned, const Runtime& runtime) {
    constexpr std::size_t max_numbers = std::size_t{1} << 23;
    const Plan& plan = planned.plan;
    if (plan.batch * plan.heads * plan.q_len * plan.kv_len > max_numbers) return {};
    Question all = planned.question;
    all.request.settings.token.reset();
    all.request.settings.rows.clear();
    std::vector<std::string> emit{"attention_weights"};
    if (plan.has(ArrayId("mask").row())) emit.emplace_back("mask");
    return answer(std::move(all), {.emit = std::move(emit)}, runtime).result;
}

/// Refuses a full page that is too long. It counts all keys of each head with their columns; the
/// rest of a page is smaller.
void check_full(const Plan& plan, std::size_t heads) {
    constexpr double max_numbers = 1e6, columns_by_key = 12;
    const double of_head = static_cast<double>(plan.kv_len) *
                           (static_cast<double>(plan.d_k + plan.d_v) + columns_by_key);
    const double numbers = of_head * static_cast<double>(heads);
    if (numbers <= max_numbers) return;
    throw Error(
        ErrorKind::usage, "--full",
        "the page would hold some " + io::fixed_text(numbers, 0) + " numbers; expected at most " +
            io::fixed_text(max_numbers, 0) +
            (of_head <= max_numbers ? ", as of one head by --head N" : ", as of fewer keys"));
}

struct Selection {
    std::size_t batch, first_head, end_head, most;
};

Selection selection_of(const ExplainRequest& explain, const Plan& plan) {
    const std::size_t batch = pick("--batch", "batch entry", explain.batch, plan.batch);
    const std::size_t head = pick("--head", "head", explain.head, plan.heads);
    const bool is_one_head = explain.head || plan.heads > max_heads;
    const std::size_t end_head = is_one_head ? head + 1 : plan.heads;
    if (explain.full) check_full(plan, end_head - head);
    return {batch, head, end_head, explain.full ? std::string::npos : max_shown};
}

int decimals_of(const Request& request) {
    return static_cast<int>(request.precision.value_or(default_precision));
}

/// Writes the page.
void write_page(const Selection& shown, const Request& request, const ExplanationSource& source,
                std::unique_ptr<Page> page) {
    const Plan& plan = source.plan;
    if (plan.operands.weights && plan.operands.weights->has_head_norms)
        throw Error(ErrorKind::unsupported, source.file.empty() ? "attn explain" : source.file,
                    "the layer has norms of queries and keys, which are not explained; expected a "
                    "layer without them");
    Explanation e{request,
                  source,
                  plan,
                  axis_labels(request, plan),
                  shown.batch,
                  shown.first_head,
                  shown.end_head,
                  TraceArrays(source.result.arrays, plan.first_query, shown.batch, plan.heads),
                  TraceArrays(source.maps.arrays, plan.first_query, shown.batch, plan.heads),
                  NumberFormat(decimals_of(request), shown.most),
                  std::move(page)};
    write_before_heads(e);
    for (std::size_t head = e.first_head; head < e.end_head; ++head) write_head(e, head);
    write_after_heads(e);
    io::OutputFile out(request.output);
    out.fill([&](io::Output& to) { to << e.page->text(); });
    out.commit();
}

/// Reads and plans a question, each step of whose query is computed.
PlannedQuestion plan_trace(RequestWithInput asked, const Runtime& runtime) {
    const PlanOptions options{.trace = true, .emit = {{"all"}}, .kernel = tracing_kernel};
    return plan_question(read_question(std::move(asked), runtime), options);
}

/// Computes and explains the question. `stored` is the result that it is of, or null.
std::vector<std::string> explain_question(const ExplainRequest& explain, const PageFormat& format,
                                          PlannedQuestion planned, const StoredResult* stored,
                                          const Runtime& runtime) {
    const Selection shown = selection_of(explain, planned.plan);
    std::unique_ptr<Page> page = page_of(format, planned.question.request);
    ExplanationSource source;
    source.additive_masks = additive_masks(planned.plan.operands);
    source.norm = planned.question.operands.norm;
    if (page->shows_pictures()) source.maps = computed_maps(planned, runtime);
    if (stored != nullptr && source.maps.arrays.empty() && page->shows_pictures())
        source.maps = stored_maps(*stored, runtime.pool);
    Answer answered = answer(std::move(planned), runtime);
    source.plan = std::move(answered.plan);
    source.result = std::move(answered.result);
    if (stored != nullptr) {
        source.file = stored->view.place();
        require_same_result(*stored, source, runtime.pool);
    }
    write_page(shown, answered.question.request, source, std::move(page));
    return std::move(answered.question.notes);
}

}  // namespace

std::vector<std::string> explain(const ExplainRequest& explain, const Request& flags) {
    const PageFormat& format = format_of(explain.format, flags);
    RequestWithInput asked = open_request(flags);
    check_kernel(asked.request);
    ThreadPool workers;
    io::LoadedModels models;
    const Runtime runtime{workers, models};
    return explain_question(explain, format, plan_trace(std::move(asked), runtime), nullptr,
                            runtime);
}

void explain_result(const ExplainRequest& explain, const std::string& path, const Request& flags) {
    const PageFormat& format = format_of(explain.format, flags);
    ThreadPool workers;
    io::LoadedModels models;
    const Runtime runtime{workers, models};
    std::vector<io::InputFile> files = io::open_results(path);
    if (files.size() != 1) io::refuse_several(files.empty() ? path : files[0].name, files.size());
    StoredResult stored(files[0], flags);
    std::optional<PlannedQuestion> planned;
    std::string lacking;
    if (!stored.part) {
        Request asked = flags;
        asked.is_question = true;
        asked.has_mode = false;
        asked.input = path;
        try {
            planned = plan_trace(open_request(asked, std::move(files[0])), runtime);
        } catch (const Error& error) {
            if (error.kind() == ErrorKind::usage) throw;
            lacking = error.where() + " " + error.what();
        }
    }
    if (planned) {
        explain_question(explain, format, std::move(*planned), &stored, runtime);
        return;
    }
    ExplanationSource source = stored_source(stored, workers);
    source.lacking = std::move(lacking);
    write_page(selection_of(explain, source.plan), stored.request, source,
               page_of(format, stored.request));
}

}  // namespace attn::cli
