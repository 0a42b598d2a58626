// The tables of options, modes and commands: every row is whole, and config is a request again.
#include "cli/args/args.hpp"
#include "cli/commands.hpp"
#include "cli/request/field.hpp"
#include "cli/request/request.hpp"
#include "cli/request/request_builder.hpp"
#include "tests/support/answers.hpp"

namespace options_test {
namespace {

using namespace attn;
using namespace attn::cli;
using attn::test::contains;
using nlohmann::json;

/// With single blanks, so that it does not matter where lines break.
std::string unwrapped(const std::string& page) {
    std::istringstream words(page);
    std::string text = " ";
    for (std::string word; words >> word;) text += word + " ";
    return text;
}

std::string page_of(const CommandRow& command) {
    return unwrapped(full_page(attn_program(), command, 100));
}

bool shows(const std::string& page, const std::string& text) {
    return contains(page, " " + text + " ");
}

/// A text within a page.
std::string part(const std::string& text) {
    const std::string words = unwrapped(text);
    return words.substr(1, words.size() - 2);
}

std::string value_text(const Option& option, const Request& request) {
    std::string text;
    append_value(text, option, request);
    return text;
}

/// The value as a flag spells it.
std::string spelled(const std::string& value_as_json) {
    const json value = json::parse(value_as_json);
    if (value.is_number()) return value_as_json.substr(0, value_as_json.find(".0"));
    if (!value.is_array()) return value.is_string() ? value.get<std::string>() : value.dump();
    std::string list;
    for (const json& item : value) list += (list.empty() ? "" : ",") + item.get<std::string>();
    return list;
}

TEST_CASE("options: every one has a key of its own, a group, a mode, help with its default") {
    std::set<std::string> keys;
    for (const Option& option : options()) {
        CAPTURE(std::string(option.key));
        CHECK(keys.insert(option.key).second);
        CHECK(find_option(option.key) == &option);
        CHECK(std::string_view(option.group) != "");
        CHECK(option.modes != 0);
        CHECK(option.field.kind != FieldKind::word);
        CHECK(option.field.kind != FieldKind::no_value);
        if ((option.use & as_flag) != 0) CHECK(is_boolean(option) == argument_of(option).empty());
        const std::set<std::string> inputs{"example", "rand", "randn", "text"};  // no default
        CHECK((contains(help_of(option), "default") || inputs.contains(option.key)));
    }
}

TEST_CASE(
    "options: every flag stands with its words in its modes' help, no other's, and in the manual") {
    const std::string manual = test::manual_text();
    for (const CommandRow* command : attn_program().commands) {
        if (command->mode == nullptr) continue;
        const std::string page = page_of(*command);
        for (const Option& option : options()) {
            CAPTURE(std::string(command->name));
            CAPTURE(std::string(option.key));
            const bool is_here = takes(*command, option);
            CHECK(is_here == shows(page, spelling_of(option) + " " + part(help_of(option))));
            if (is_here && is_boolean(option))
                CHECK(contains(manual, "`--no-" + flag_name(option) + "`"));
            if (is_here)
                CHECK((contains(manual, "`" + flag_of(option)) ||
                       contains(manual, "`--no-" + flag_name(option))));
        }
    }
}

TEST_CASE("options: a default equals that of help, also when it is given explicitly") {
    const Request fresh;
    for (const Option& option : options()) {
        CAPTURE(std::string(option.key));
        const std::string value = value_text(option, fresh);
        // Empty: the default depends on the question, or there is none.
        if (value.empty() || value == R"("")") continue;
        Request again;
        CHECK(store(again, option, json::parse(value)) == "");
        CHECK(value_text(option, again) == value);
        if (is_boolean(option))
            CHECK(value == "false");
        else if (std::string_view(option.key) != "output")
            CHECK(contains(help_of(option), "(default " + spelled(value)));
    }
}

}  // namespace
}  // namespace options_test
