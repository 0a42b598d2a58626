// The modes' commands; see commands.hpp.
#include <unistd.h>

#include <algorithm>

#include "cli/args/commands.hpp"
#include "core/base/error.hpp"

namespace attn::cli {
namespace {

struct ModeHelp {
    Mode mode;
    const char* summary;
    const char* examples;
};

constexpr ModeHelp mode_helps[] = {
    {Mode::self, "one head, every token attends to every token",
     "  attn self --example journey --d-out 2 --seed 789\n"
     "  attn self tokens.csv --init none --format table\n"
     "  attn self --text \"Life is short, eat dessert first\" --embed-seed 123 --format torch\n"},
    {Mode::causal, "one head, a token attends to itself and to the tokens before it",
     "  attn causal --example journey --d-out 2 --seed 789 --format torch\n"
     "  attn causal tokens.json --dropout 0.5 --seed 123 -o result.json\n"
     "  attn self tokens.json | attn causal - --emit scores,mask,attention_weights\n"},
    {Mode::multihead, "h heads, causal unless --no-causal, output projection",
     "  attn multihead --example pair --heads 2 --seed 789\n"
     "  attn multihead tokens.json --heads 4 --init mha --no-causal --qkv-bias\n"
     "  attn multihead tokens.csv --heads 2 --style wrapper --d-out 2 --format table\n"},
    {Mode::cross, "queries from INPUT, keys and values from --context",
     "  attn cross tokens.csv --context tokens.json --d-out 4\n"
     "  attn cross tokens.json --context tokens.json --heads 2 --causal --format table\n"},
    {Mode::sdpa, "the bare operator softmax(scale Q K^T + bias) V, no projections",
     "  attn sdpa --query q.json --key k.json --value v.json\n"
     "  attn sdpa --query q.json --key k.json --value v.json --causal --window 1 --softcap 30\n"
     "  echo '{\"query\": [[1]], \"key\": [[0.1], [0.5]], \"value\": [[0], [1]]}' | attn sdpa\n"},
};

const ModeHelp& help_of(Mode mode) {
    return *std::find_if(std::begin(mode_helps), std::end(mode_helps),
                         [&](const ModeHelp& help) { return help.mode == mode; });
}

}  // namespace

bool waits_for_keyboard(const Request& request) {
    const bool given = !request.input.empty() || request.example || request.text ||
                       !request.token_ids.empty() || request.has_file("query") ||
                       request.has_file("key") || request.has_file("value");
    return !given && ::isatty(STDIN_FILENO) != 0;
}

ModeCommand::ModeCommand(CLI::App& program, Mode mode, bool is_named)
    : Command(program, std::string(name_of(mode_names, mode)), help_of(mode).summary), mode_(mode) {
    const std::string input_help =
        mode == Mode::sdpa
            ? "a request as JSON, or npz or safetensors, with query, key and value; - or nothing: "
              "standard input"
            : "a matrix, a batch, a request or an earlier result, as json, ndjson, csv, npy, npz "
              "or safetensors (FILE:NAME picks one of several arrays); - or nothing: standard "
              "input";
    input_ = app_.add_option("INPUT", input_help);
    input_->type_name(" ");
    if (!is_named) return;
    for (const Option& option : options())
        if ((option.modes & in(mode)) != 0 && option.is_flag)
            flags_.add(app_, option, (option.negated_in & in(mode)) != 0);
}

std::string ModeCommand::help() const {
    app_.description("");
    return help_text(app_, help_of(mode_).examples,
                     "attn " + name() + ": " + help_of(mode_).summary);
}

void ModeCommand::fail_at(const std::string& word) const {
    if (!word.starts_with('-') || word == "-")
        throw Error(ErrorKind::usage, word, "a second input; expected one");
    fail_unknown(app_, {&flags_.by_name()}, word);
}

CommandLine ModeCommand::read() const {
    CommandLine line;
    Request& request = line.request;
    request.settings.mode = mode_;
    for (const std::string& word : app_.remaining()) {
        // An array of standard input, which CLI11 takes for a flag.
        const bool is_input = word.starts_with("-:") && request.input.empty();
        if (is_input)
            request.input = word;
        else
            fail_at(word);
    }
    flags_.store(request);
    if (input_->count() != 0) {
        if (!request.input.empty()) fail_at(request.input.substr(0, 1));
        request.input = input_->results().front();
        if (request.input.empty())
            throw Error(ErrorKind::usage, "INPUT", "an empty name; expected a path or -");
    }
    if (waits_for_keyboard(request)) return message_only(help(), 2);
    return line;
}

}  // namespace attn::cli
