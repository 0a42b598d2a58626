#include "cli/repro/repro.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "cli/output/output.hpp"
#include "cli/question/question.hpp"
#include "core/base/error.hpp"
#include "io/file/output_file.hpp"
#include "io/file/path.hpp"
#include "io/read/input_file.hpp"
#include "io/text/number_text.hpp"

namespace attn::cli {
namespace {

/// Only the reference path records the masks that programs start from.
constexpr std::string_view recording_kernel = "reference";

void check_name(const LanguageRow& language, const Request& request) {
    const std::string suffix = io::suffix_of_name(request.output);
    const bool fits = suffix == language.suffixes.front() || !must_name_format(request.output);
    if (!fits)
        refuse_name({request.output, location_of(request, "output"),
                     "a program by --to " + std::string(language.name) + " is not of this kind"},
                    {language.suffixes.front()});
    // Python looks for modules in the program's folder first.
    constexpr std::string_view imported[] = {"math.py",        "numpy.py",   "onnx.py",
                                             "onnxruntime.py", "pathlib.py", "torch.py"};
    const std::string file = request.output.substr(request.output.find_last_of('/') + 1);
    if (std::find(std::begin(imported), std::end(imported), file) != std::end(imported))
        throw Error(ErrorKind::usage, location_of(request, "output"),
                    "a program of this name hides the module " + file.substr(0, file.find('.')) +
                        ", which it imports; expected another name");
}

/// Refuses what selects a part of the answer, and what a program cannot choose.
void check_settings(const Request& request) {
    if (request.settings.token || !request.token_label.empty())
        throw setting_error(request, "token", "a program computes every query; expected no token");
    if (!request.settings.head.empty())
        throw setting_error(request, "head", "a program computes every head; expected no head");
    if (!request.settings.rows.empty())
        throw setting_error(request, "rows", "a program computes every query; expected no rows");
    if (is_from_flag(request, "precision"))
        throw setting_error(request, "precision",
                            "a program has every digit; expected no precision");
    if (request.settings.kernel != "auto" && request.settings.kernel != recording_kernel)
        throw setting_error(request, "kernel",
                            "a fused kernel records no steps; expected auto or reference");
}

/// What a result has of its question: a program computes all of it.
void clear_selection(Request& request) {
    Settings& settings = request.settings;
    if (!is_from_flag(request, "token")) settings.token.reset();
    if (!is_from_flag(request, "head")) settings.head.clear();
    if (!is_from_flag(request, "rows")) settings.rows.clear();
}

/// Where the numbers of a program go, and how many there may be.
class DataFile {
public:
    DataFile(const LanguageRow& language, const Request& request)
        : language_(language), request_(request),
          has_suffix_(io::suffix_of_name(request.output) == language.suffixes.front()) {}

    /// Errors: kind usage if neither the program nor the file can hold them.
    void check(double numbers) const {
        const std::size_t most = has_suffix_ ? max_data_numbers : max_program_numbers;
        if (numbers <= static_cast<double>(most)) return;
        const std::string suffix(language_.suffixes.front()), data(language_.data_suffix);
        throw Error(
            ErrorKind::usage, "attn repro",
            "the program would hold " + io::fixed_text(numbers, 0) +
                " numbers or more; expected at most " + std::to_string(most) +
                ", as of fewer tokens or heads" +
                (has_suffix_ ? ""
                             : ", or -o FILE" + suffix + ", which writes numbers to FILE" + data));
    }

    /// The file's path. Errors: kind usage if it exists without the program.
    std::string path() const {
        const std::string program = request_.output;
        std::string data = program.substr(0, program.size() - language_.suffixes.front().size()) +
                           std::string(language_.data_suffix);
        if (io::path_exists(data) && !io::path_exists(program))
            throw Error(ErrorKind::usage, data,
                        "the program's numbers would replace this file; expected another name "
                        "after -o");
        return data;
    }

private:
    const LanguageRow& language_;
    const Request& request_;
    bool has_suffix_;
};

/// Of arrays by query and key, and by query and column: less than all, but known before anything is
/// computed.
double number_count(const Plan& plan) {
    const auto count = [](auto... sizes) { return (static_cast<double>(sizes) * ...); };
    constexpr std::size_t with_tolerances = 2;
    return count(with_tolerances, plan.batch, plan.heads, plan.q_len, plan.kv_len) +
           count(plan.batch, plan.q_len, plan.d_in + with_tolerances * plan.d_out) +
           count(plan.batch, plan.kv_heads, plan.kv_len, plan.d_k + plan.d_v);
}

std::size_t number_count(const Repro& program) {
    std::size_t all = 0;
    program.for_each_array([&](const ProgramArray& array) { all += array.values.size(); });
    return all;
}

void write_program(const LanguageRow& language, const Repro& program, const Request& request,
                   const DataFile& file) {
    const std::string text = language.text(program);
    std::optional<io::OutputFile> data;
    if (program.has_data_file) {
        data.emplace(file.path());
        data->fill([&](io::Output& to) { language.write_data(to, program); });
    }
    io::OutputFile out(request.output);
    out.fill([&](io::Output& to) { to << text; });
    // Neither appears before both are complete.
    if (data) data->commit();
    out.commit();
}

}  // namespace

std::vector<std::string> write_repro(const LanguageRow& language, const Request& flags) {
    check_name(language, flags);
    RequestWithInput asked = open_request(flags);
    const bool is_saved = asked.input && asked.input->layout != nullptr && !flags.has_mode;
    ThreadPool workers;
    io::LoadedModels models;
    const Runtime runtime{workers, models};
    Question question = read_question(std::move(asked), runtime);
    if (is_saved) clear_selection(question.request);
    check_settings(question.request);
    // They shape what is written, and a program has all arrays of each head.
    question.request.settings.average_heads = false;
    const PlannedQuestion planned =
        plan_question(std::move(question), {.emit = emit_of_program, .kernel = recording_kernel});
    const DataFile file(language, planned.question.request);
    file.check(number_count(planned.plan));
    const Answer answered = answer(PlannedQuestion(planned), runtime);
    Repro program = make_program(planned, answered.result, workers);
    program.command = "attn " + std::string(row_of(planned.plan.mode).name) +
                      (is_saved ? " --config" : "") + flags.command;
    const std::size_t numbers = number_count(program);
    file.check(static_cast<double>(numbers));
    program.has_data_file = numbers > max_program_numbers;
    write_program(language, program, planned.question.request, file);
    return answered.question.notes;
}

}  // namespace attn::cli
