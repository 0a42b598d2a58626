// `attn repro`: a mode with its input and flags, and the language of the program, which computes
// the question and compares with attn's numbers.
#include <algorithm>
#include <span>

#include "cli/args/args.hpp"
#include "cli/output/output.hpp"
#include "cli/repro/program.hpp"
#include "cli/request/request.hpp"
#include "cli/request/request_builder.hpp"
#include "core/base/error.hpp"
#include "io/file/path.hpp"
#include "io/text/number_text.hpp"
#include "io/text/text.hpp"
#include "io/text/utf8.hpp"

namespace attn::cli {
namespace {

constexpr auto language_names = names_of(language_rows);

/// The most numbers in a program: it is read and pasted. More are in a file of their own, with the
/// program's name and another suffix.
constexpr std::size_t max_program_numbers = 20000, max_data_numbers = 20'000'000;

void check_name(const LanguageRow& language, const Request& request) {
    if (io::suffix_of_name(request.output) != language.suffix && must_name_format(request.output))
        refuse_name({request.output, location_of(request, "output"),
                     "a program by --to " + std::string(language.name) + " is not of this kind"},
                    {language.suffix});
    const std::string file = request.output.substr(request.output.find_last_of('/') + 1);
    const std::string module = file.substr(0, file.find('.'));
    const auto modules = io::lines_of(python_modules);
    if (file == module + ".py" && std::ranges::find(modules, module) != modules.end())
        throw Error(ErrorKind::usage, location_of(request, "output"),
                    "a program of this name hides Python's module ", module,
                    " from what it imports; expected another name, as attention_", file);
}

/// Refuses what selects a part of the answer, and what a program cannot choose.
void check_settings(const Request& request, const LanguageRow& language) {
    const Settings& s = request.settings;
    refuse(request, {{"token", s.token || !request.token_label.empty(),
                      "a program computes every query; expected no token"},
                     {"top_k", s.top_k.has_value(), "programs do not choose keys; expected none"},
                     {"head", !s.head.empty(), "a program computes every head; expected no head"},
                     {"dtype", s.quantised_type.has_value(),
                      "is not supported; expected a dtype of 16 bits or more"},
                     {"rows", !s.rows.empty(), "a program computes every query; expected no rows"},
                     {"precision", is_from_flag(request, "precision"),
                      "a program has every digit; expected no precision"}});
    for (const auto& [key, is_missing] : {std::pair("normalize", s.normalize.has_value()),
                                          {"position_ids", s.rope.has_value()},
                                          {"cu_seqlens", s.rope.has_value()},
                                          {"relative_bias", language.name == "onnx"}})
        if (request.has(key) && is_missing && (language.name == "onnx" || language.name == "c"))
            throw setting_error(
                request, key,
                concat("is not supported in ", language.name, "; expected --to numpy or torch"));
    const bool has_type =
        language.name == "torch" || (language.name == "numpy" && s.dtype == NumberType::float16);
    if (is_rounded(s.dtype) && !has_type)
        throw setting_error(request, "dtype",
                            concat("programs in ", language.name, " do not compute in ",
                                   row_of(s.dtype).name, "; expected --to torch"));
    const auto refuse_gradients = [&](bool is_missing, const char* of, const char* expected) {
        if (s.backward && is_missing)
            throw setting_error(request, "backward",
                                concat("gradients", of, " are not supported in ", language.name,
                                       "; expected ", expected, ", or no --backward"));
    };
    if (s.backward && is_rounded(s.dtype))
        throw setting_error(request, "backward",
                            concat("gradients in ", row_of(s.dtype).name,
                                   " are not supported; expected --dtype float32 or float64, "
                                   "or no --backward"));
    refuse_gradients(language.name == "onnx", "", "--to numpy, torch or c");
    refuse_gradients(language.name == "c" && s.mode == Mode::linear, " of linear attention",
                     "--to numpy or torch");
    refuse_gradients(language.name == "numpy" && s.normalize, " of normalised outputs",
                     "--to torch");
    require_recording_kernel(request);
}

/// What a result has of its question: a program computes all of it.
void clear_selection(Request& request) {
    Settings& settings = request.settings;
    if (!is_from_flag(request, "token")) settings.token.reset();
    if (!is_from_flag(request, "head")) settings.head.clear();
    if (!is_from_flag(request, "rows")) settings.rows.clear();
}

/// Errors: kind usage if neither the program nor a file of numbers can hold so many.
void check_count(double numbers, const LanguageRow& language, const Request& request) {
    const bool has_suffix = io::suffix_of_name(request.output) == language.suffix;
    const std::size_t most = has_suffix ? max_data_numbers : max_program_numbers;
    if (numbers <= static_cast<double>(most)) return;
    std::string fix = ", as of fewer tokens or heads";
    if (!has_suffix)
        ((fix += ", or -o FILE") += language.suffix).append(", which writes numbers to FILE") +=
            language.data_suffix;
    throw Error(ErrorKind::usage, "attn repro",
                "the program would hold " + io::fixed_text(numbers, 0) +
                    " numbers or more; expected at most " + std::to_string(most) + fix);
}

/// The path of the file of numbers. Errors: kind usage if it exists without the program.
std::string data_path(const LanguageRow& language, const std::string& program) {
    std::string path = program.substr(0, program.size() - language.suffix.size());
    path += language.data_suffix;
    if (io::path_exists(path) && !io::path_exists(program))
        throw Error(ErrorKind::usage, path,
                    "the program's numbers would replace this file; expected another name after "
                    "-o");
    return path;
}

/// Of arrays by query and key, and by query and column: less than all, but known before anything is
/// computed.
double number_count(const Plan& plan) {
    const auto count = [](auto... sizes) { return (static_cast<double>(sizes) * ...); };
    constexpr std::size_t with_tolerances = 2;
    return count(with_tolerances, plan.batch, plan.heads, plan.q_len, plan.kv_len) +
           count(plan.batch, plan.q_len, plan.d_in + with_tolerances * plan.d_out) +
           count(plan.batch, plan.kv_heads, plan.kv_len, plan.d_k + plan.d_v);
}

void write_program(const LanguageRow& language, const Repro& program, const std::string& path) {
    const std::string text = program_text(language, program);
    std::optional<io::OutputFile> data;
    if (program.has_data_file) {
        data.emplace(data_path(language, path));
        data->fill([&](io::Output& to) { language.write_data(to, program); });
    }
    io::OutputFile out(path);
    out.fill([&](io::Output& to) { to << text; });
    // Neither appears before both are complete.
    if (data) data->commit();
    out.commit();
}

/// Computes the request's question, and writes the program to the request's output. The mode may be
/// in the request's document alone. Settings for the form of an answer are ignored. Returns the
/// question's notes.
std::vector<std::string> write_repro(const LanguageRow& language, const Request& flags) {
    check_name(language, flags);
    RequestWithInput asked = open_request(flags);
    const bool is_saved = asked.input && asked.input->layout != nullptr && !flags.has_mode;
    ThreadPool workers;
    io::LoadedModels models;
    const Runtime runtime{workers, models};
    Question question = read_question(std::move(asked), runtime);
    if (is_saved) clear_selection(question.request);
    check_settings(question.request, language);
    // They shape what is written, and a program has all arrays of each head.
    question.request.settings.average_heads = false;
    const PlannedQuestion planned = plan_question(
        std::move(question),
        {.computed_order = true, .emit = emit_of_program, .kernel = recording_kernel});
    const Request& request = planned.question.request;
    check_count(number_count(planned.plan), language, request);
    const Answer answered = answer(PlannedQuestion(planned), runtime);
    Repro program = make_program(planned, answered.result, workers);
    program.command = "attn " + std::string(row_of(planned.plan.config.mode).name) +
                      (is_saved ? " --config" : "") + flags.command;
    double numbers = 0;
    program.for_each_array(
        [&](const ProgramArray& array) { numbers += static_cast<double>(array.values.size()); });
    check_count(numbers, language, request);
    program.has_data_file = numbers > max_program_numbers;
    write_program(language, program, request.output);
    return answered.question.notes;
}

/// Of the mode's command that computes the same, what follows the mode; on one line.
std::string words_after_mode(const Args& args, bool has_mode) {
    const std::vector<std::string> words = args.names();
    return io::printable(words_text(std::span(words).subspan(has_mode ? 1 : 0)) +
                         flags_text(args.flags, {"to", "output"}));
}

int run_repro(const Args& args) {
    const LanguageRow& language = language_rows[args.choice("to").value_or(0)];
    Request flags =
        with_flags(request_of_words(args.names(), {"attn repro", "a request with its mode"}), args);
    flags.command = words_after_mode(args, flags.has_mode);
    if (flags.has_mode) check_defaults(flags);
    require_input(flags, "attn repro");
    show_notes(write_repro(language, flags));
    return 0;
}

constexpr Option repro_options[] = {
    {.key = "to",
     .field = choice_among<language_names>,
     .help = "NumPy, PyTorch with its own functions, an ONNX model, or C99 (default numpy)"},
};

constexpr HelpOverride repro_help[] = {
    {"dtype", "type of the program's numbers (default float32)"},
    {"output", "write there, whole or not at all (default -, standard output)"}};

}  // namespace

constexpr CommandRow repro_command{
    .name = "repro",
    .summary = "a short program that computes the same and checks it",
    .examples =
        "  attn repro causal --example journey --d-out 2 --seed 123 | python3 -\n"
        "  attn repro multihead tokens.csv --heads 2 --to torch -o bug.py\n"
        "  attn repro request.json --to onnx | python3 -\n"
        "  attn repro sdpa request.json --to c -o bug.c && cc bug.c -lm && ./a.out\n",
    .usage =
        "MODE [INPUT]\n\nMODE is self, causal, multihead, cross, sdpa or linear; INPUT and "
        "the flags are the mode's own, but\nnot those that shape arrays: see attn MODE --help, "
        "and attn help repro. In place of MODE and INPUT,\none request, as a file or - for "
        "standard "
        "input, may name its \"mode\".",
    .takes = in_explain,
    .shown_flags = repro_help,
    .own = repro_options,
    .names = [](const Program&) { return mode_names(); },
    .run = run_repro};

}  // namespace attn::cli
