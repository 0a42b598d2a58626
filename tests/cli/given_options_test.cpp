// What matters is whether an option was given, by flag or by key, not that its value differs from
// the default; and config has only keys that a request may have.
#include "cli/args/args.hpp"
#include "cli/commands.hpp"
#include "cli/output/output.hpp"
#include "cli/question/question.hpp"
#include "cli/request/field.hpp"
#include "cli/request/request.hpp"
#include "cli/request/request_builder.hpp"
#include "core/layer/layer.hpp"
#include "tests/support/answers.hpp"

namespace given_options_test {
namespace {

using namespace attn;
using namespace attn::cli;
using nlohmann::json;
using test::data_path;
using test::Words;
using test::operator+;
using attn::test::contains;

constexpr Mode all_modes[] = {Mode::self,  Mode::causal, Mode::multihead,
                              Mode::cross, Mode::sdpa,   Mode::linear};

struct Settled {
    std::string error;  ///< empty where the question can be answered
    json config;
    bool needs_another() const { return contains(error, ": requires "); }
};

/// What main does before it computes.
Settled settle(Words words) {
    words.insert(words.begin(), "attn");
    std::vector<const char*> argv;
    for (const std::string& word : words) argv.push_back(word.c_str());
    Settled settled;
    settled.error = test::error_of([&] {
        RequestWithInput asked = open_request(
            make_request(parse(static_cast<int>(argv.size()), argv.data(), attn_program())));
        const auto computed = plan_output(asked.request);
        ThreadPool workers(1);
        io::LoadedModels models;
        const PlannedQuestion planned =
            plan_question(read_question(std::move(asked), {workers, models}), {.emit = computed});
        settled.config = json::parse(config_of(planned.question.request));
    });
    return settled;
}

struct Asked {
    Words operands;  ///< flags that name files
    json inputs;     ///< of a request; null where the operands are all
    Words more;      ///< flags that other options may need, or contradict
};

std::vector<Asked> questions_of(Mode mode) {
    const std::string matrix = data_path("journey.csv"),
                      square = test::scratch_folder() + "/q.json";
    test::write_text(square, "[[1,2],[3,4]]");
    std::vector<Words> more{{}, {"-o", "x.csv"}, {"-o", "x.npz"}, {"--plot", "x.svg"}};
    if (mode == Mode::linear)
        more.insert(more.end(), {{"--decay", "-0.1"},
                                 {"--beta", "0.5", "--qk-norm"},
                                 {"--decay", "-0.1", "--beta", "0.5"}});
    else
        more.push_back({"--dropout", "0.5", "--dropout-seed", "3"});
    if (mode != Mode::sdpa) more.push_back({"--save-weights", "w.npz"});
    if (mode != Mode::sdpa && mode != Mode::linear)
        more.push_back({"--d-out", "4", "--rope", "half"});
    if (mode == Mode::multihead || mode == Mode::cross || mode == Mode::linear)
        more.push_back({"--heads", "3"});
    std::vector<Asked> all;
    for (const Words& flags : more) {
        if (mode == Mode::sdpa)
            all.push_back({{"--query", square, "--key", square, "--value", square}, {}, flags});
        else if (mode == Mode::cross)
            all.push_back({{"--context", matrix}, matrix, flags});
        else
            all.push_back({{}, matrix, flags});
    }
    return all;
}

/// Texts that a flag of this option may have, its default among them where it has one.
Words values_of(const Option& option) {
    const std::string argument = argument_of(option);
    if (option.field.kind == FieldKind::token) return {"0", "2", "50000"};
    if (argument.find('|') != std::string::npos) {
        Words names;
        std::istringstream list(argument);
        for (std::string name; std::getline(list, name, '|');) names.push_back(name);
        return names;
    }
    if (option.field.kind == FieldKind::integer) return {"0", "2", "50000"};
    if (option.field.kind == FieldKind::seed) return {"0", "7"};
    if (option.field.kind == FieldKind::number) return {"0", "0.5", "10000"};
    return contains(argument, "...") ? Words{"0", "1"} : Words{};
}

/// The input as a flag's question has it, or in a request with more members.
Words as_words(Mode mode, const Asked& question, json members = json::object()) {
    Words words{std::string(row_of(mode).name)};
    if (members.empty() && !question.inputs.is_null()) {
        words.push_back(question.inputs.get<std::string>());
    } else if (!members.empty()) {
        if (!question.inputs.is_null()) members["inputs"] = question.inputs;
        test::write_text(test::scratch_folder() + "/request.json", members.dump());
        words.push_back(test::scratch_folder() + "/request.json");
    }
    return words + question.operands + question.more;
}

/// Calls `take` for the flags of each mode with each of its questions, or a sample of them.
template <class Take>
void for_each_flag(const Take& take) {
    test::Sample sample;
    for (const Mode mode : all_modes)
        for (const Asked& question : questions_of(mode))
            for (const Option& option : options())
                if ((option.modes & in(mode)) != 0 && (option.use & as_flag) != 0 && sample.takes())
                    take(mode, question, option);
}

TEST_CASE("options: one that needs another is refused with its default as with any other value") {
    std::map<std::string, std::size_t> refused;  // by option
    for_each_flag([&](Mode mode, const Asked& question, const Option& option) {
        const std::string name = flag_name(option), flag = flag_of(option);
        // Of --format it is a value, none, that needs another; of --rule, all but linear.
        if (name == "format" || name == "rule") return;
        std::vector<Settled> outcomes;
        for (const std::string& value : values_of(option)) {
            const bool taken = std::count(question.more.begin(), question.more.end(), flag) != 0;
            if (taken) continue;
            outcomes.push_back(settle(as_words(mode, question) + Words{flag, value}));
            if ((option.use & as_key) == 0) continue;
            outcomes.push_back(
                settle(as_words(mode, question, {{option.key, value_of(option, value)}})));
        }
        const bool needs = std::any_of(outcomes.begin(), outcomes.end(),
                                       [](const Settled& s) { return s.needs_another(); });
        if (!needs) return;
        ++refused[name];
        CAPTURE(std::string(row_of(mode).name));
        CAPTURE(name);
        CAPTURE((question.more.empty() ? "" : question.more.back()));
        for (const Settled& outcome : outcomes) CHECK_FALSE(outcome.error.empty());
    });
    for (const std::string name :
         {"rope-base", "rope-dims", "dropout-skip", "nonfinite", "precision", "causal-align",
          "color-scale", "save-family", "layer", "norm-eps", "embed-dim", "kv-heads"}) {
        CAPTURE(name);
        CHECK((refused[name] != 0 || test::one_in != 1));
    }
}

TEST_CASE(
    "options: the config of any accepted setting is accepted again and gives the same config") {
    std::size_t accepted = 0;
    for_each_flag([&](Mode mode, const Asked& question, const Option& option) {
        std::vector<Words> flags;
        for (const std::string& value : values_of(option))
            flags.push_back({flag_of(option), value});
        if (is_boolean(option))
            flags.insert(flags.end(), {{flag_of(option)}, {"--no-" + flag_name(option)}});
        for (const Words& given : flags) {
            const Settled first = settle(as_words(mode, question) + given);
            if (!first.error.empty()) continue;
            ++accepted;
            // The destinations of the result and further files are not in config.
            Asked again = question;
            again.more.clear();
            for (const char* kept : {"-o", "--plot", "--save-weights"})
                if (!question.more.empty() && question.more[0] == kept) again.more = question.more;
            if ((option.use & in_config) == 0 && std::string_view(option.group) != "Input")
                again.more = again.more + given;
            const Settled second = settle(as_words(mode, again, first.config));
            CAPTURE(std::string(row_of(mode).name));
            CAPTURE(given[0]);
            CAPTURE(given.back());
            CHECK(second.error == "");
            CHECK(second.config == first.config);
        }
    });
    if (test::one_in == 1) CHECK(accepted > 1000);
}

}  // namespace
}  // namespace given_options_test
