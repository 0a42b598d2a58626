#include "cli/explain/explain.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "cli/explain/token_label.hpp"
#include "cli/explain/walk.hpp"
#include "cli/explain/walk_result.hpp"
#include "cli/request/question.hpp"
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
constexpr std::size_t most_heads = 4;

const PageFormat& format_of(const PageFormat* given, const Request& request) {
    const OutputName name{request.output, place_of(request, "output"),
                          "the walk is text, Markdown or HTML", ", or --format beside it"};
    const PageFormat* promised = given == nullptr ? named_format(page_formats, name)
                                                  : promised_format(page_formats, name.path);
    if (given == nullptr) return promised == nullptr ? page_formats.front() : *promised;
    if (promised != nullptr && promised != given)
        refuse_format("--format " + std::string(given->name), name, promised->name);
    return *given;
}

/// Only the reference path records every step.
constexpr std::string_view tracing_kernel = "reference";

void check_kernel(const Request& request) {
    const std::string_view kernel = request.settings.kernel;
    if (kernel != "auto" && kernel != tracing_kernel)
        throw Error(ErrorKind::usage, place_of(request, "kernel"),
                    "a fused kernel writes no steps down; expected auto or reference");
}

/// Output to the screen fits it, with text no wider than in a book. Numbers in a file are not
/// wrapped.
PageWidth page_width(const Request& request) {
    if (request.output != "-") return {};
    const std::size_t columns = io::screen_columns(STDOUT_FILENO);
    return {std::min(columns, PageWidth{}.words), columns};
}

std::unique_ptr<Page> page_of(const PageFormat& format, const Request& request) {
    switch (format.kind) {
        case PageKind::text: return make_text_page(page_width(request));
        case PageKind::markdown: return make_markdown_page();
        case PageKind::html: return make_html_page();
    }
    return nullptr;
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
Result computed_maps(const PlannedQuestion& walked, const Runtime& runtime) {
    constexpr std::size_t most_numbers = std::size_t{1} << 23;
    const Plan& plan = walked.plan;
    if (plan.batch * plan.heads * plan.q_len * plan.kv_len > most_numbers) return {};
    Question all = walked.question;
    all.request.settings.token.reset();
    return answer(std::move(all), {.emit = {{"mask", "attention_weights"}}}, runtime).result;
}

/// Refuses a full page that is too long. It counts all keys of each head with their columns; the
/// rest of a page is smaller.
void check_full(const Plan& plan, std::size_t heads) {
    constexpr double most_numbers = 1e6, columns_by_key = 12;
    const double of_head = static_cast<double>(plan.kv_len) *
                           (static_cast<double>(plan.d_k + plan.d_v) + columns_by_key);
    const double numbers = of_head * static_cast<double>(heads);
    if (numbers <= most_numbers) return;
    throw Error(
        ErrorKind::usage, "--full",
        "the page would hold some " + io::fixed_text(numbers, 0) + " numbers; expected at most " +
            io::fixed_text(most_numbers, 0) +
            (of_head <= most_numbers ? ", as of one head by --head N" : ", as of fewer keys"));
}

struct Told {
    std::size_t batch, first_head, end_head, most;
};

Told told_by(const ExplainRequest& explain, const Plan& plan) {
    const std::size_t batch = pick("--batch", "batch entry", explain.batch, plan.batch);
    const std::size_t head = pick("--head", "head", explain.head, plan.heads);
    const bool is_one_head = explain.head || plan.heads > most_heads;
    const std::size_t end_head = is_one_head ? head + 1 : plan.heads;
    if (explain.full) check_full(plan, end_head - head);
    return {batch, head, end_head, explain.full ? std::string::npos : most_shown};
}

int decimals_of(const Request& request) {
    return static_cast<int>(request.precision.value_or(default_precision));
}

/// Writes the page.
void tell(const Told& told, const Request& request, const WalkSource& source,
          std::unique_ptr<Page> page) {
    const Plan& plan = source.plan;
    Walk walk{request,
              source,
              plan,
              axis_labels(request, plan),
              told.batch,
              told.first_head,
              told.end_head,
              WalkArrays(source.result.arrays, plan.first_query, told.batch, plan.heads),
              WalkArrays(source.maps.arrays, plan.first_query, told.batch, plan.heads),
              NumberWords(decimals_of(request), plan.dtype, told.most, source.file, source.digits),
              std::move(page)};
    walk_to_heads(walk);
    for (std::size_t shown = walk.first_head; shown < walk.end_head; ++shown)
        walk_head(walk, shown);
    walk_from_heads(walk);
    io::OutputFile out(request.output);
    out.fill([&](io::Output& to) { to << walk.page->text(); });
    out.commit();
}

}  // namespace

std::vector<std::string> explain(const ExplainRequest& explain, const Request& flags) {
    const PageFormat& format = format_of(explain.format, flags);
    RequestWithInput asked = open_request(flags);
    check_kernel(asked.request);
    ThreadPool workers;
    io::LoadedModels models;
    const Runtime runtime{workers, models};
    Question question = read_question(std::move(asked), runtime);
    PlanOptions options{.trace = true, .emit = {{"all"}}, .kernel = tracing_kernel};
    if (!explain.token_label.empty())
        options.token = token_called(explain.token_label, question.request);
    PlannedQuestion planned = plan_question(std::move(question), options);
    const Request& request = planned.question.request;
    const Told told = told_by(explain, planned.plan);
    std::unique_ptr<Page> page = page_of(format, request);
    WalkSource source;
    source.additive_masks = additive_masks(planned.plan.operands);
    source.norm = planned.question.operands.norm;
    if (page->shows_pictures()) source.maps = computed_maps(planned, runtime);
    Answer answered = answer(std::move(planned), runtime);
    source.plan = std::move(answered.plan);
    source.result = std::move(answered.result);
    tell(told, answered.question.request, source, std::move(page));
    return std::move(answered.question.notes);
}

void explain_result(const ExplainRequest& explain, const std::string& path, const Request& flags) {
    const PageFormat& format = format_of(explain.format, flags);
    ThreadPool workers;
    const auto [request, source] = read_computed(path, explain.token_label, flags, workers);
    tell(told_by(explain, source.plan), request, source, page_of(format, request));
}

}  // namespace attn::cli
