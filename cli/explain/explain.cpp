// Computes a question and walks through one of its queries; see explain.hpp.
#include "cli/explain/explain.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "cli/explain/walk.hpp"
#include "cli/explain/walk_result.hpp"
#include "cli/request/question.hpp"
#include "core/base/error.hpp"
#include "core/layer/layer.hpp"
#include "core/layer/mask_rows.hpp"
#include "io/file/output_file.hpp"
#include "io/file/screen.hpp"

namespace attn::cli {
namespace {

constexpr std::uint64_t default_precision = 4;

/// Without --head; the pages of more of them are long.
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

/// Only the reference path writes every step down.
void settle(Request& request) {
    Settings& s = request.settings;
    if (s.kernel != "auto" && s.kernel != "reference")
        throw Error(ErrorKind::usage, place_of(request, "kernel"),
                    "a fused kernel writes no steps down; expected auto or reference");
    s.kernel = "reference";
    s.emit = {"all"};
    s.average_heads = false;
}

/// What stands on the screen fits it; a file's words are wrapped and its numbers are not.
PageWidth page_width(const Request& request) {
    if (request.output != "-") return {};
    const std::size_t columns = io::screen_columns(STDOUT_FILENO);
    return {columns, columns};
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

/// Plans again for the query of this label, which is known once the input is read.
void choose_query(Question& question, const std::string& label, Request& request) {
    Settings settings = question.plan.config;
    settings.token = token_called(label, request);
    Ask ask;
    ask.walks = true;
    question.plan = make_plan(std::move(settings), shapes_of(question.operands), ask);
    request.settings = question.plan.config;
}

/// The weights of all queries and where they are blocked, for pictures. More numbers are not drawn.
Result computed_maps(const Plan& plan, const Operands& operands, ThreadPool& workers) {
    constexpr std::size_t most_numbers = std::size_t{1} << 23;
    if (plan.batch * plan.heads * plan.q_len * plan.kv_len > most_numbers) return {};
    Settings all = plan.config;
    all.token.reset();
    all.emit = {"mask", "attention_weights"};
    const Plan whole = make_plan(std::move(all), shapes_of(operands));
    return compute(whole, Operands(operands), workers);
}

struct Told {
    std::size_t batch, first_head, end_head;
};

Told told_by(const ExplainRequest& explain, const Plan& plan) {
    const std::size_t batch = pick("--batch", "batch entry", explain.batch, plan.batch);
    const std::size_t head = pick("--head", "head", explain.head, plan.heads);
    const bool is_one_head = explain.head || plan.heads > most_heads;
    return {batch, is_one_head ? head : 0, is_one_head ? head + 1 : plan.heads};
}

void write_walk(Walk& walk) {
    walk_to_heads(walk);
    for (std::size_t shown = walk.first_head; shown < walk.end_head; ++shown)
        walk_head(walk, shown);
    walk_from_heads(walk);
    io::OutputFile out(walk.request.output);
    out.fill([&](io::Output& to) { to << walk.page->text(); });
    out.commit();
}

int decimals_of(const Request& request) {
    return static_cast<int>(request.precision.value_or(default_precision));
}

}  // namespace

void explain(const ExplainRequest& explain, Request& request) {
    const PageFormat& format = format_of(explain.format, request);
    ThreadPool workers;
    io::LoadedModels models;
    Question question =
        read_question(request, {workers, models}, {.settle = settle, .walks = true});
    if (!explain.token_label.empty()) choose_query(question, explain.token_label, request);
    const Plan& plan = question.plan;
    const Told told = told_by(explain, plan);
    const std::vector<std::string> additive = additive_masks(question.operands);

    std::unique_ptr<Page> page = page_of(format, request);
    const Result maps =
        page->shows_pictures() ? computed_maps(plan, question.operands, workers) : Result{};
    const Result result = compute(plan, std::move(question.operands), workers);
    Walk walk{request,
              plan,
              axis_labels(request, plan),
              told.batch,
              told.first_head,
              told.end_head,
              additive,
              WalkArrays(result.arrays, plan.first_query, told.batch, plan.heads),
              WalkArrays(maps.arrays, plan.first_query, told.batch, plan.heads),
              NumberWords(decimals_of(request), plan.dtype),
              std::move(page)};
    write_walk(walk);
}

void explain_result(const ExplainRequest& explain, const std::string& path, Request& request) {
    const PageFormat& format = format_of(explain.format, request);
    ThreadPool workers;
    const ComputedResult computed = read_computed(path, explain.token_label, request, workers);
    const Plan& plan = computed.plan;
    const Told told = told_by(explain, plan);
    Walk walk{request,
              plan,
              axis_labels(request, plan),
              told.batch,
              told.first_head,
              told.end_head,
              computed.additive_masks,
              WalkArrays(computed.result.arrays, plan.first_query, told.batch, plan.heads),
              WalkArrays(computed.maps.arrays, plan.first_query, told.batch, plan.heads),
              NumberWords(decimals_of(request), plan.dtype, computed.place, computed.digits),
              page_of(format, request),
              computed.place,
              computed.missing};
    write_walk(walk);
}

}  // namespace attn::cli
