// `attn partial`: a mode with its input and flags, and the range of keys.

#include "cli/output/output.hpp"
#include "cli/partial/partial.hpp"
#include "cli/request/field.hpp"
#include "cli/request/request_builder.hpp"

namespace attn::cli {
namespace {

constexpr std::string_view arrays_of_parts[] = {"context_vectors", "head_outputs", "logsumexp"};

KeyRange range_in(const Args& args) {
    const std::string text = args.text("kv_range").value_or("");
    if (text.empty())
        throw Error(ErrorKind::usage, "attn partial",
                    "no range of keys; expected --kv-range A:B, from A to before B, as in 0:1024");
    const KeyRanges ranges = ranges_of_text(text);
    if (ranges.size() != 1)
        throw Error(ErrorKind::usage, "--kv-range " + text,
                    "not a range of keys; expected A:B with A below B, as in 0:1024");
    return ranges.front();
}

/// Refuses what requires all keys at once.
void check_part(const Request& request) {
    check_array_names(request.settings.emit);
    if (is_rounded(request.settings.dtype))
        throw setting_error(request, "dtype",
                            "the weights are rounded after a sum over all keys; expected float32 "
                            "or float64");
    for (const std::string& name : request.settings.emit)
        if (std::ranges::find(arrays_of_parts, name) == std::end(arrays_of_parts))
            throw setting_error(request, "emit",
                                name +
                                    " needs all keys at once; expected context_vectors, "
                                    "head_outputs or logsumexp, or the mode without partial");
    if (!request.settings.prob_mod.text.empty())
        throw setting_error(request, "prob_mod",
                            "needs the weights of all keys at once; expected none");
    if (request.settings.top_k)
        throw setting_error(request, "top_k",
                            "needs the scores of all keys at once; expected none");
    if (request.settings.backward)
        throw setting_error(request, "backward",
                            "gradients need all keys at once; expected the mode without partial");
    if (request.settings.mask_method != MaskMethod::neg_inf)
        throw setting_error(request, "mask_method",
                            "the weights are divided by a sum over all keys; expected neg-inf");
}

/// As for the result of a mode.
std::vector<std::string> check_part_size(Request request, const Plan& plan) {
    request.format = &format_of_part(request.output);
    constexpr double of_text = 21;  // digits, sign, point, comma, and a bracket of short rows
    const double of_binary =
        plan.config.dtype == NumberType::float32 ? sizeof(float) : sizeof(double);
    const std::size_t rows = plan.batch * plan.heads * plan.rows,
                      projection = *plan.config.out_proj ? plan.heads * plan.d_v * plan.d_out : 0;
    const double bytes = static_cast<double>(rows * (plan.d_v + 1) + projection) *
                         (request.format->json ? of_text : of_binary);
    return at_locations(
        request, [&] { return check_output_size(request, bytes, [](double) { return ""; }); });
}

int run_partial(const Args& args) {
    Request flags = with_flags(request_of_words(args.names(), {"attn partial"}), args);
    if (row_of(flags.settings.mode).mechanism != Mechanism::softmax)
        throw Error(ErrorKind::usage, "attn partial linear",
                    "linear attention has no softmax, so its parts cannot be merged; expected "
                    "attn linear with --past-state, which continues from an earlier state");
    check_defaults(flags);
    const KeyRange range = range_in(args);
    format_of_part(flags.output);
    require_input(flags, "attn partial");
    if (const auto emit = args.text("emit")) {
        flags.settings.emit = split_list(*emit);
        flags.locations["emit"] = Location("--emit " + *emit);
    } else {
        flags.settings.emit = {"context_vectors"};
    }
    flags.locations["kv_range"] = Location("--kv-range " + text_of_ranges({range}));
    ThreadPool pool;
    io::LoadedModels models;
    const Runtime runtime{pool, models};
    OperandRows rows{OperandRows::Of::keys};
    Question question = read_question(open_request(flags), runtime, &rows);
    question.request.bare = false;
    check_part(question.request);
    Plan plan = plan_of(question, {.keys = range});
    PartFile file{"", {range}, {}, {}};
    for (auto& [key, value] : head_of(question.request, plan))
        if (key != "schema" && key != "id" && key != "meta" && key != "num_truncated_tokens")
            file.question[key] = io::parse_own<nlohmann::ordered_json>(value);
    plan.operands = shapes_of_range(std::move(plan.operands), rows, plan.new_keys());
    show_notes(check_part_size(question.request, plan));
    PlannedQuestion planned = with_cost(std::move(question), std::move(plan));
    file.question["digest"] = digest_of(planned.question.operands, rows);
    file.part = at_locations(planned.question.request, [&] {
        Operands& operands = planned.question.operands;
        read_range(operands, rows, planned.plan.new_keys(), planned.plan.config.dtype, pool);
        return compute_part(planned.plan, std::move(operands), pool);
    });
    write_part(planned.question.request.output, std::move(file), pool);
    show_notes(planned.question.notes);
    return 0;
}

constexpr Option partial_options[] = {
    {.key = "kv_range",
     .argument = "A:B",
     .help = "the keys to attend to, from A to before B, counted from 0 with cached ones first"},
    {.key = "emit",
     .argument = "NAME,...",
     .help = "arrays of the merged result: context_vectors, head_outputs, logsumexp (default "
             "context_vectors)"},
};

constexpr HelpOverride common_partial_flags[] = {
    {"kv_range", "the keys to attend to, A to B - 1; required"},
    {"output", "write there: .npz, .safetensors or .json"},
    {"emit", "arrays of the merged result"},
    {"rows", "query rows A to B - 1 only"},
    {"weights", "parameters from a model's file or folder"},
    {"seed", "the generator's (default 0)"},
};

constexpr HelpOverride partial_help[] = {
    {"output",
     "write the part there, whole or not at all: .npz, .safetensors or .json (default -, "
     "standard output, as JSON)"}};

}  // namespace

constexpr CommandRow partial_command{
    .name = "partial",
    .summary = "attention over part of the keys, for attn merge",
    .examples =
        "  attn partial sdpa --query q.npy --key k.npy --value v.npy --kv-range 0:4096 -o a.npz\n"
        "  attn partial sdpa --query q.npy --key k.npy --value v.npy --kv-range 4096:8192 -o "
        "b.npz\n"
        "  attn merge a.npz b.npz -o result.npz\n",
    .usage =
        "MODE [INPUT]\n\n--kv-range A:B is required. MODE is self, causal, multihead, cross or "
        "sdpa; INPUT and the flags are the\nmode's own: see attn MODE --help, and attn help "
        "scaling.",
    .common_flags = common_partial_flags,
    .takes = in_explain | in_check | in_part,
    .shown_flags = partial_help,
    .own = partial_options,
    .names = [](const Program&) { return mode_names(); },
    .run = run_partial};

}  // namespace attn::cli
