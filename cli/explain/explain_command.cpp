// `attn explain`: a mode with its input and flags, and a few flags of its own.
#include <unistd.h>

#include <cstdint>

#include "cli/args/args.hpp"
#include "cli/explain/explanation.hpp"
#include "cli/output/output.hpp"
#include "cli/request/request_builder.hpp"
#include "core/base/error.hpp"
#include "core/layer/mask_rows.hpp"
#include "io/file/output.hpp"
#include "io/file/path.hpp"
#include "io/file/screen.hpp"
#include "io/file/source.hpp"
#include "io/read/input_file.hpp"
#include "io/text/number_text.hpp"

namespace attn::cli {
namespace {

constexpr auto page_format_names = names_of(page_formats);

struct ExplainRequest {
    const PageFormat* format = nullptr;  ///< null: by the output's suffix
    std::optional<std::uint64_t> head, batch;
    bool full = false;  ///< show every key, number and term
};

/// Without --head, a question with more heads shows only the first: the page would be long.
constexpr std::size_t max_heads = 4;

constexpr int default_decimals = 4;

const PageFormat& format_of(const PageFormat* given, const Request& request) {
    const OutputName name{request.output, location_of(request, "output"),
                          "an explanation is text, Markdown or HTML", ", or --format with it"};
    const PageFormat* const format = format_of_flag(page_formats, given, name);
    return format == nullptr ? page_formats.front() : *format;
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

/// Writes the page.
void write_page(const Selection& shown, const Request& request, const ExplanationSource& source,
                std::unique_ptr<Page> page) {
    const Plan& plan = source.plan;
    if (plan.operands.weights && plan.operands.weights->has_head_norms)
        throw Error(ErrorKind::unsupported, source.file.empty() ? "attn explain" : source.file,
                    "the layer has norms of queries and keys, which are not explained; expected a "
                    "layer without them");
    Explanation e{
        request,
        source,
        plan,
        axis_labels(request, plan),
        shown.batch,
        shown.first_head,
        shown.end_head,
        TraceArrays(source.result.arrays, plan.first_query, shown.batch, plan.heads),
        TraceArrays(source.maps.arrays, plan.first_query, shown.batch, plan.heads),
        TraceArrays(source.gradients.arrays, plan.first_query, shown.batch, plan.heads),
        NumberFormat(static_cast<int>(request.precision.value_or(default_decimals)), shown.most),
        std::move(page)};
    e.known = known_words(e);
    if (!source.is_stored) e.draws = draws_of(plan);
    write_before_heads(e);
    for (std::size_t head = e.first_head; head < e.end_head; ++head) write_head(e, head);
    write_after_heads(e);
    io::write_file(request.output, [&](io::Output& to) { to << e.page->text(); });
}

/// A question, each step of whose query is computed.
struct Traced {
    PlannedQuestion planned;           ///< without gradients
    std::optional<Question> backward;  ///< of all queries, whose gradients are asked for
};

Traced plan_trace(RequestWithInput asked, const Runtime& runtime) {
    const PlanOptions options{.trace = true, .emit = {{"all"}}, .kernel = recording_kernel};
    Question question = read_question(std::move(asked), runtime);
    Settings& settings = question.request.settings;
    const Settings given = settings;
    if (!given.backward) return {plan_question(std::move(question), options), std::nullopt};
    if (given.mode == Mode::linear)
        throw setting_error(question.request, "backward",
                            "gradients of linear attention are not explained; expected attn "
                            "linear --backward, which computes them, or no --backward");
    settings.backward = false;
    settings.loss.reset();
    RealArray gradient = std::exchange(question.operands["grad_output"], {}),
              target = std::exchange(question.operands["target"], {});
    Traced traced{plan_question(std::move(question), options), std::nullopt};
    // Planning has drawn what is drawn.
    Question& backward = traced.backward.emplace(traced.planned.question);
    backward.request.settings = given;
    backward.request.settings.token.reset();
    backward.request.settings.rows.clear();
    backward.operands["grad_output"] = std::move(gradient);
    backward.operands["target"] = std::move(target);
    return traced;
}

/// Computes and explains the question. `stored` is the result that it is of, or null. Settings for
/// the form of an answer (emit, format, pretty, nonfinite, average_heads) are ignored. Returns the
/// question's notes.
std::vector<std::string> explain_question(const ExplainRequest& explain, const PageFormat& format,
                                          Traced traced, const StoredResult* stored,
                                          const Runtime& runtime) {
    PlannedQuestion& planned = traced.planned;
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
    if (traced.backward) {
        Answer all = answer(
            std::move(*traced.backward),
            {.computed_order = true, .emit = {{"gradients"}}, .kernel = recording_kernel}, runtime);
        for (const NamedArray& array : all.result.arrays)
            source.gradients.arrays.push_back(row_of_query(array, source.plan.first_query));
        source.of_gradients = all.plan.config;
    }
    source.result = std::move(answered.result);
    if (stored != nullptr) {
        source.file = stored->view.location();
        require_same_result(*stored, source, runtime.pool);
    }
    write_page(shown, answered.question.request, source, std::move(page));
    return std::move(answered.question.notes);
}

/// Explains a result: its question, or its arrays if that cannot be asked again. Only token,
/// precision and output of the request apply.
void explain_result(const ExplainRequest& explain, const std::string& path, const Request& flags,
                    const Runtime& runtime) {
    const PageFormat& format = format_of(explain.format, flags);
    io::InputFile file = io::open_result(path);
    StoredResult stored(file, flags);
    std::optional<Traced> planned;
    std::string lacking;
    if (!stored.part) {
        Request asked = flags;
        asked.is_question = true;
        asked.has_mode = false;
        asked.input = path;
        try {
            planned = plan_trace(open_request(asked, std::move(file)), runtime);
        } catch (const Error& error) {
            if (error.kind() == ErrorKind::usage) throw;
            lacking = error.location() + " " + error.what();
        }
    }
    if (planned) {
        explain_question(explain, format, std::move(*planned), &stored, runtime);
        return;
    }
    ExplanationSource source = stored_source(stored, runtime.pool);
    source.lacking = std::move(lacking);
    write_page(selection_of(explain, source.plan), stored.request, source,
               page_of(format, stored.request));
}

/// The path of the result to explain; empty if a mode comes first.
std::optional<std::string> result_in(const std::vector<std::string>& words) {
    if (words.empty()) {
        refuse_keyboard("attn explain", "no mode and no result; expected " + listed_modes() +
                                            ", then INPUT; or a result, as in attn causal "
                                            "--example journey --emit all | attn explain");
        return "-";
    }
    if (words[0].empty())
        throw Error(ErrorKind::usage, "attn explain",
                    "an empty name; expected " + listed_modes() + ", then INPUT; or a result");
    if (mode_named(words[0]) != nullptr) return std::nullopt;
    return words[0];
}

/// Refuses modes' flags for a result, except those about the page.
void check_result_flags(const Args& args, const std::string& result) {
    for (const FlagValue& given : args.flags) {
        const std::string_view key = given.option->key;
        const bool is_own = find_option(key) != given.option;
        const bool is_of_page =
            key == "precision" || key == "output" || key == "token" || key == "layer";
        const bool is_mode_setting = !is_own && !is_of_page && given.origin != Origin::environment;
        if (is_mode_setting && args.names().empty())
            throw Error(ErrorKind::usage, location_of(given),
                        "requires a mode; expected attn explain MODE, one of " + listed_modes());
        const bool is_position = key == "query" && io::number_of_text<std::uint64_t>(given.text);
        constexpr std::string_view inputs[] = {"example", "rand",      "randn",
                                               "text",    "text_file", "token_ids"};
        const bool is_input = std::ranges::find(inputs, key) != std::end(inputs);
        if (is_mode_setting)
            throw Error(ErrorKind::usage, location_of(given), "is a setting of a mode, and ",
                        io::shortened(result),
                        " is taken for a result, whose settings are its own; expected ",
                        is_position ? "--token " + given.text + " to choose a query, or " : "",
                        "a mode ",
                        is_input ? "in place of " + io::shortened(result) : "before INPUT", ": ",
                        listed_modes());
    }
    if (args.names().size() > 1)
        throw Error(
            ErrorKind::usage, io::shortened(args.names()[0]),
            "is not a mode; expected " + listed_modes() + ", then INPUT; or one result alone");
    if (result != "-" && !io::path_exists(io::split_data_path(result).file))
        throw Error(ErrorKind::usage, io::shortened(result),
                    "file not found, and not a mode; expected a result, or a mode and INPUT: " +
                        listed_modes());
}

int run_explain(const Args& args) {
    ExplainRequest request;
    if (const auto format = args.choice("format"))
        request.format = page_format_names[*format].first;
    request.head = args.whole("head");
    request.batch = args.whole("batch");
    request.full = args.has("full");
    ThreadPool workers;
    io::LoadedModels models;
    const Runtime runtime{workers, models};
    if (const std::optional<std::string> result = result_in(args.names())) {
        check_result_flags(args, *result);
        explain_result(request, *result, with_flags({}, args), runtime);
        return 0;
    }
    const Request flags = with_flags(request_of_mode(args.names()), args);
    check_defaults(flags);
    require_input(flags, "attn explain");
    const PageFormat& format = format_of(request.format, flags);
    RequestWithInput asked = open_request(flags);
    require_recording_kernel(asked.request);
    show_notes(
        explain_question(request, format, plan_trace(std::move(asked), runtime), nullptr, runtime));
    return 0;
}

constexpr Option explain_options[] = {
    {.key = "head",
     .limits = {.expected = "an integer from 0"},
     .argument = "N",
     .help = "one head, from 0 (default all where there are at most 4, else 0)"},
    {.key = "batch",
     .limits = {.expected = "an integer from 0"},
     .argument = "N",
     .help = "the batch entry, from 0 (default 0)"},
    {.key = "full",
     .field = no_value,
     .help = "every key, number and term, also where there are many"},
    {.key = "format",
     .field = choice_among<page_format_names>,
     .help = "how it is written (default text, or by -o's suffix)",
     .letter = 'f'},
};

constexpr HelpOverride explain_help[] = {
    {"layer", "the layer of a model's result or of --weights"},
    {"token", "the query to explain, from 0 or by its label (default one in the middle)"},
    {"precision", "digits after the point (default 4)"},
    {"output", "write there, whole or not at all (default -, standard output)"}};

}  // namespace

constexpr CommandRow explain_command{
    .name = "explain",
    .summary = "one query of a question, step by step, in words and numbers",
    .examples =
        "  attn explain self --example journey --d-out 2 --seed 123 --token 1\n"
        "  attn explain multihead tokens.csv --heads 2 --head 1 -o explained.md\n"
        "  attn causal tokens.csv --emit all | attn explain --token 3 -o explained.html\n"
        "  attn explain sdpa --query q.json --key k.json --value v.json --causal\n",
    .usage =
        "MODE [INPUT]\n\nMODE is self, causal, multihead, cross, sdpa or linear; INPUT and every "
        "flag are "
        "the mode's own: see\nattn MODE --help. A result as INPUT is the input of a next layer, as "
        "it is for the mode; alone,\nwithout a MODE, it is explained as it is. Flags that "
        "shape arrays are not accepted: --emit,\n--format of arrays, --nonfinite, --pretty, "
        "--average-heads, --save-weights; as keys of a request\nthey are ignored.",
    .takes = in_explain,
    .shown_flags = explain_help,
    .own = explain_options,
    .names = [](const Program&) { return mode_names(); },
    .run = run_explain};

}  // namespace attn::cli
