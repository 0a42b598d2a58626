// `attn explain`: a mode, its input and its flags, and a few flags of its own.
#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "cli/args/commands.hpp"
#include "core/base/error.hpp"
#include "io/file/source.hpp"

namespace attn::cli {
namespace {

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
constexpr const char* summary = "one query of a question, step by step, in words and numbers";

/// Flags of an answer of arrays; the walk is none.
constexpr std::array<std::string_view, 7> of_arrays{
    "format", "emit", "nonfinite", "pretty", "average-heads", "save-weights", "save-family"};

/// Flags that stand in its own help, since they mean something else here, or more.
constexpr std::array<std::pair<std::string_view, const char*>, 3> own_help{
    {{"token", "the query to walk through, from 0 (default the last)"},
     {"precision", "digits after the point (default 4)"},
     {"output", "write there, whole or not at all (default -, standard output)"}}};

}  // namespace

ExplainCommand::ExplainCommand(CLI::App& program, bool is_named)
    : Command(program, "explain", summary), own_(app_) {
    if (!is_named) return;
    own_.add("head", "N", "one head, from 0 (default all where there are at most 4, else 0)");
    own_.add("batch", "N", "the batch entry, from 0 (default 0)");
    own_.add("format", "text|markdown", "how it is written (default text, or by -o's suffix)");
    for (Option option : options()) {
        if (!option.is_flag || option.group == "Pictures" ||
            std::count(of_arrays.begin(), of_arrays.end(), option.name) != 0)
            continue;
        const auto own = std::find_if(own_help.begin(), own_help.end(),
                                      [&](const auto& help) { return help.first == option.name; });
        option.group = own == own_help.end() ? "" : "Options";
        if (own != own_help.end()) option.help = own->second;
        flags_.add(app_, option, false);
    }
}

std::string ExplainCommand::help() const {
    app_.description("");
    return help_text(
        app_,
        "  attn explain self --example journey --d-out 2 --seed 123 --token 1\n"
        "  attn explain multihead tokens.csv --heads 2 --head 1 -o walk.md\n"
        "  attn explain sdpa --query q.json --key k.json --value v.json --causal\n",
        std::string("attn explain: ") + summary,
        "MODE [INPUT]\n\nMODE is self, causal, multihead, cross or sdpa; INPUT and every flag are "
        "the mode's own: see\nattn MODE --help. A result as INPUT is the input of a next layer, as "
        "it is for the mode. Flags\nthat shape arrays have no place here: --emit, --format of "
        "arrays, --nonfinite, --pretty,\n--average-heads, --save-weights; as keys of a request "
        "they "
        "are passed over.");
}

Mode ExplainCommand::mode_of(const std::string& word) const {
    if (const std::optional<Mode> mode = value_named(mode_names, word)) return *mode;
    throw Error(ErrorKind::usage, word.empty() ? "attn explain" : io::shortened(word),
                std::string(word.empty() ? "no mode" : "no mode of attn") +
                    "; expected self, causal, multihead, cross or sdpa, then INPUT");
}

/// The mode, then the input.
void ExplainCommand::take_words(Request& request) const {
    const std::vector<std::string> words = words_of(app_, {&own_.by_name(), &flags_.by_name()});
    request.settings.mode = mode_of(words.empty() ? "" : words[0]);
    if (words.size() > 2) throw Error(ErrorKind::usage, words[2], "a second input; expected one");
    if (words.size() < 2) return;
    if (words[1].empty())
        throw Error(ErrorKind::usage, "INPUT", "an empty name; expected a path or -");
    request.input = words[1];
}

CommandLine ExplainCommand::read() const {
    CommandLine line;
    ExplainRequest explain;
    take_words(line.request);
    flags_.store(line.request);
    check_defaults(line.request);
    if (const auto text = own_.text("format")) {
        explain.format = value_named(page_format_names, *text);
        if (!explain.format) own_.fail("format", "text or markdown");
    }
    explain.head = own_.whole("head", 0, most, "a whole number from 0");
    explain.batch = own_.whole("batch", 0, most, "a whole number from 0");
    if (waits_for_keyboard(line.request)) return message_only(help(), 2);
    line.explain = explain;
    return line;
}

}  // namespace attn::cli
