// Computes a question and walks through one of its queries; see explain.hpp.
#include "cli/explain/explain.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "cli/explain/walk.hpp"
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
                          "the walk is text or Markdown", ", or --format beside it"};
    const PageFormat* promised = given == nullptr ? named_format(page_formats, name)
                                                  : promised_format(page_formats, name.path);
    if (given == nullptr) return promised == nullptr ? page_formats.front() : *promised;
    if (promised != nullptr && promised != given)
        refuse_format("--format " + std::string(given->name), name, promised->name);
    return *given;
}

/// The token of a label. Errors: kind usage, where none or more than one is called so.
std::size_t token_called(const Request& request) {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < request.tokens.size(); ++i)
        if (request.tokens[i] == request.token_label) found.push_back(i);
    if (found.size() == 1) return found[0];
    const std::string place = place_of(request, "token");
    if (found.empty())
        throw Error(ErrorKind::usage, place,
                    request.tokens.empty()
                        ? "the tokens have no labels; expected a whole number from 0"
                        : "no token is called that; expected one of the labels, or a whole number "
                          "from 0 to " +
                              std::to_string(request.tokens.size() - 1));
    std::string list;
    constexpr std::size_t most_listed = 12;
    for (std::size_t i = 0; i < std::min(found.size(), most_listed); ++i)
        list += (i == 0 ? "" : ", ") + std::to_string(found[i]);
    if (found.size() > most_listed) list += ", ...";
    throw Error(ErrorKind::usage, place,
                std::to_string(found.size()) +
                    " tokens are called that; expected the number of one: " + list);
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
    if (!request.token_label.empty()) s.token = token_called(request);
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

}  // namespace

void explain(const ExplainRequest& explain, Request& request) {
    const PageFormat& format = format_of(explain.format, request);
    ThreadPool workers;
    io::LoadedModels models;
    Question question =
        read_question(request, {workers, models}, {.settle = settle, .walks = true});
    const Plan& plan = question.plan;
    const std::size_t batch = pick("--batch", "batch entry", explain.batch, plan.batch);
    const std::size_t head = pick("--head", "head", explain.head, plan.heads);
    const bool is_one_head = explain.head || plan.heads > most_heads;
    const std::vector<std::string> additive = additive_masks(question.operands);

    const Result result = compute(plan, std::move(question.operands), workers);
    const auto decimals = static_cast<int>(request.precision.value_or(default_precision));
    Walk walk{request,
              plan,
              axis_labels(request, plan),
              batch,
              is_one_head ? head : 0,
              is_one_head ? head + 1 : plan.heads,
              additive,
              WalkArrays(result.arrays, plan.first_query, batch, plan.heads),
              NumberWords(decimals, plan.dtype),
              page_of(format, request)};
    walk_to_heads(walk);
    for (std::size_t shown = walk.first_head; shown < walk.end_head; ++shown)
        walk_head(walk, shown);
    walk_from_heads(walk);
    io::OutputFile out(request.output);
    out.fill([&](io::Output& to) { to << walk.page->text(); });
    out.commit();
}

}  // namespace attn::cli
