// Flags that are unknown, given twice, or in a file; and the pages of help.
#include "cli/args/args.hpp"
#include "cli/args/names.hpp"
#include "cli/commands.hpp"
#include "cli/request/field.hpp"
#include "cli/request/request.hpp"
#include "cli/request/request_builder.hpp"
#include "core/base/did_you_mean.hpp"
#include "io/text/text.hpp"
#include "tests/support/answers.hpp"

namespace flags_test {
namespace {

using namespace attn;
using namespace attn::cli;
using nlohmann::json;
using test::write_text;

using test::Words;
using test::operator+;
using attn::test::contains;

Args parsed(const Words& words) {
    std::vector<const char*> argv{"attn"};
    for (const std::string& word : words) argv.push_back(word.c_str());
    return parse(static_cast<int>(argv.size()), argv.data(), attn_program());
}

/// A flag's own words are a value that its type takes, and another.
std::pair<std::string, std::string> two_values(const Option& option) {
    if (const auto names = names_of(option.field); !names.empty()) {
        return {std::string(names.front()), std::string(names[names.size() > 1])};
    }
    const auto number = [&](int more) {
        return std::to_string(static_cast<long>(std::max(option.limits.lowest, 0.0)) + more);
    };
    return {number(0), number(1)};
}

Words words_of(const Option& option, const std::string& value) {
    if (is_boolean(option)) return {value == "0" ? "--no-" + flag_name(option) : flag_of(option)};
    return {flag_of(option), value};
}

/// All options that a command may be given, by their flag.
std::map<std::string, const Option*> flags_of(const CommandRow& command) {
    std::map<std::string, const Option*> flags;
    for (const Option& option : attn_program().options)
        if (takes(command, option)) flags[flag_name(option)] = &option;
    for (const Option& option : command.own) flags[flag_name(option)] = &option;
    return flags;
}

std::string unknown(const CommandRow& command, const std::string& flag) {
    return unknown_flag(attn_program(), command, flag);
}

/// The flags that a message names.
std::vector<std::string> named_in(const std::string& message) {
    std::vector<std::string> names;
    std::istringstream words(message);
    for (std::string word; words >> word;)
        if (word.starts_with("--")) names.push_back(word.substr(2, word.find('?') - 2));
    return names;
}

std::vector<std::string> slips_of(const std::string& name) {
    std::vector<std::string> slips;
    for (std::size_t i = 1; i < name.size(); ++i) {
        slips.push_back(name.substr(0, i) + name.substr(i + 1));
        slips.push_back(name.substr(0, i) + name[i] + name.substr(i));
        std::string swapped = name;
        std::swap(swapped[i - 1], swapped[i]);
        slips.push_back(swapped);
    }
    return slips;
}

TEST_CASE(
    "unknown flags: a slip in any flag of any command names that flag, or one as near; in a "
    "negation a negation") {
    for (const CommandRow* command : attn_program().commands) {
        const auto flags = flags_of(*command);
        for (const auto& entry : flags) {
            const std::string& name = entry.first;
            const std::string negation = "--no-" + name.substr(0, name.size() - 1) + "x";
            CAPTURE(negation);
            if (is_boolean(*entry.second)) CHECK(contains(unknown(*command, negation), "--no-"));
            for (const std::string& slip : slips_of(name)) {
                if (flags.contains(slip) || slip == "help" || name.size() < 4) continue;
                const std::string message = unknown(*command, "--" + slip);
                CAPTURE(std::string(command->name));
                CAPTURE(slip);
                CAPTURE(message);
                // Never the negation of what was meant.
                CHECK((!contains(message, "--no-") || name.starts_with("no-")));
                const auto named = named_in(message);
                CHECK(std::any_of(named.begin(), named.end(), [&](const std::string& near) {
                    return near == name || did_you_mean(slip, {near}) == near ||
                           contains(message, "calls it");
                }));
            }
        }
    }
}

TEST_CASE("unknown flags: for those of another command, the error names it") {
    for (const CommandRow* command : attn_program().commands) {
        const auto flags = flags_of(*command);
        for (const CommandRow* other : attn_program().commands)
            for (const auto& entry : flags_of(*other)) {
                const auto& name = entry.first;
                const auto& option = entry.second;
                if (flags.contains(name)) continue;
                const std::string message = unknown(*command, "--" + name);
                CAPTURE(std::string(command->name));
                CAPTURE(name);
                CHECK(
                    message.starts_with("not a flag of attn " + std::string(command->name) + "; "));
                // A row of its own, the modes that have it, or the commands where no mode has.
                const bool is_own = option->modes == 0 && find_option(option->key) == nullptr;
                if (const char* words = explanation_of(as_listed(name), command->name))
                    CHECK(message.ends_with(words));
                else if (name != "causal" && (other->mode != nullptr || is_own))
                    CHECK(contains(message, other->name));
            }
    }
}

TEST_CASE("words: every command answers missing, empty and odd words with one line") {
    for (const CommandRow* command : attn_program().commands)
        for (const Words& words : {Words{}, Words{""}, Words{"nothing"}, Words{"."}, Words{"-"},
                                   Words{"nothing", "nothing"}, Words{"", ""}, Words{"-", "-"}}) {
            const Words all = Words{std::string(command->name)} + words;
            CAPTURE(all);
            const test::Outcome outcome = test::run_attn(all);
            const bool fails = outcome.code >= 2 && outcome.code <= 4;
            CHECK((fails || outcome.code == 0));
            if (!fails) continue;
            CHECK(outcome.out.empty());
            CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
        }
}

TEST_CASE("flags: the last of those that are given twice wins, unless each adds a value") {
    for (const CommandRow* command : attn_program().commands)
        for (const auto& entry : flags_of(*command)) {
            const auto& name = entry.first;
            const auto& option = entry.second;
            if (option->field.kind == FieldKind::no_value) continue;
            const auto [one, other] = two_values(*option);
            CAPTURE(std::string(command->name));
            CAPTURE(name);
            Words words{std::string(command->name)};
            for (const std::string& value : {one, other, one, other})
                for (const std::string& word : words_of(*option, value)) words.push_back(word);
            const Args args = parsed(words);
            REQUIRE(args.flags.size() == 1);
            CHECK(args.flags[0].option == option);
            std::string lines = one;
            for (const std::string& value : {other, one, other}) (lines += '\0') += value;
            CHECK(args.flags[0].text == (option->repeats       ? lines
                                         : is_boolean(*option) ? "true"
                                                               : other));
            if (!is_boolean(*option)) continue;
            words.push_back("--no-" + name);
            CHECK(parsed(words).flags[0].text == "false");
        }
}

TEST_CASE("flags: of --x and --no-x the last wins, and one is the default, in every mode") {
    write_text("context.csv", "1,2,3,4\n5,6,7,8\n");
    const auto are_equal = [](const test::Outcome& a, const test::Outcome& b) {
        return a.code == b.code && a.out == b.out && a.err == b.err;
    };
    // A given default is an answer's only member more.
    const auto unasked = [](test::Outcome outcome) {
        const std::size_t at = outcome.out.find("\"asked\":{");
        if (at != std::string::npos) outcome.out.erase(at, outcome.out.find("},", at) + 2 - at);
        return outcome;
    };
    std::size_t count = 0;
    for (const ModeRow& mode : mode_rows)
        for (const Option& option : options()) {
            const bool is_given =
                (option.use & as_flag) != 0 && (option.modes & in(mode.mode)) != 0;
            if (!is_given || !is_boolean(option)) continue;
            const std::string on = flag_of(option), off = "--no-" + flag_name(option);
            // A question that several heads, biases and pictures make sense for.
            Words question{std::string(mode.name), "--rand", "4,4"};
            if (mode.context) question = question + Words{"--context", "context.csv"};
            if (mode.heads_axis != HeadsAxis::never) question = question + Words{"--heads", "2"};
            if (mode.source == Source::operands) question = {"sdpa", "--example", "softmax"};
            CAPTURE(question);
            CAPTURE(on);
            const test::Outcome with = test::run_attn(question + Words{on}),
                                without = test::run_attn(question + Words{off}),
                                plain = unasked(test::run_attn(question));
            REQUIRE_MESSAGE(plain.code == 0, plain.err);
            // Some need an input or a model that these questions do not have.
            if (with.code == 0 || without.code == 0)
                CHECK((are_equal(plain, unasked(with)) || are_equal(plain, unasked(without))));
            CHECK(are_equal(test::run_attn(question + Words{on, off}), without));
            CHECK(are_equal(test::run_attn(question + Words{off, on}), with));
            ++count;
        }
    CHECK(count > 30);
}

TEST_CASE("flags: every flag of a command is allowed in its file") {
    for (const CommandRow* command : attn_program().commands)
        for (const auto& entry : flags_of(*command)) {
            if (command->explains_flags) continue;
            const auto& name = entry.first;
            const auto& option = entry.second;
            CAPTURE(std::string(command->name));
            CAPTURE(name);
            const bool is_word = !has_value(*option);
            const std::string value = two_values(*option).second;
            const json written = is_word ? json(true) : json(value);
            write_text("flags.json", json{{option->key, written}}.dump());
            const Args by_file = parsed({std::string(command->name), "--config", "flags.json"});
            Words words{std::string(command->name)};
            words.push_back(flag_of(*option));
            if (!is_word) words.push_back(value);
            const Args by_flag = parsed(words);
            REQUIRE(by_file.flags.size() == 1);
            CHECK(by_file.flags[0].option == by_flag.flags[0].option);
            CHECK(by_file.flags[0].text == by_flag.flags[0].text);
        }
}

TEST_CASE("help: every short page fits a screen of 24 lines, and every page its width") {
    for (const CommandRow* command : attn_program().commands) {
        CAPTURE(std::string(command->name));
        const std::string page = short_page(attn_program(), *command, 80);
        CHECK(std::count(page.begin(), page.end(), '\n') <= 24);
    }
    CHECK(parsed({}).exit_code == 2);
    const std::string first = program_page(attn_program(), 80);
    CHECK(std::count(first.begin(), first.end(), '\n') <= 39);
    for (std::size_t columns = 40; columns <= 140; ++columns)
        for (const CommandRow* command : attn_program().commands) {
            std::istringstream lines(full_page(attn_program(), *command, columns) +
                                     short_page(attn_program(), *command, columns));
            for (std::string line; std::getline(lines, line);) {
                // Examples are never broken, and no word is.
                const bool is_example = line.starts_with("  attn ") || line.starts_with("  echo ");
                const std::size_t word = line.find_first_not_of(' ');
                const bool is_one_word =
                    word == std::string::npos || line.find(' ', word) == std::string::npos;
                const bool is_flag = word != std::string::npos && line[word] == '-';
                CAPTURE(line);
                CAPTURE(columns);
                CHECK((io::display_width(line) <= columns || is_example || is_one_word ||
                       (is_flag && columns < 78)));
            }
        }
}

}  // namespace
}  // namespace flags_test
