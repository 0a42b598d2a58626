#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "cli/args/args.hpp"
#include "cli/output/output.hpp"
#include "cli/question/question.hpp"
#include "cli/tokenize/tokenize.hpp"
#include "core/base/error.hpp"

namespace attn::cli {
namespace {

constexpr Names<TokenForm, 3> token_forms{
    {{TokenForm::table, "table"}, {TokenForm::json, "json"}, {TokenForm::ndjson, "ndjson"}}};

struct TokenFormat {
    TokenForm form;
    std::vector<std::string_view> suffixes;
};

/// What the name of the output and the terminal suggest.
TokenForm form_of(const Args& args, const TokenizeRequest& request) {
    const std::array<TokenFormat, 3> formats{{{TokenForm::json, {".json"}},
                                              {TokenForm::ndjson, {".ndjson", ".jsonl"}},
                                              {TokenForm::table, {".txt"}}}};
    const bool is_file = request.output != "-";
    const OutputName name{request.output, "--output " + request.output,
                          "tokens are written as a table or as JSON"};
    if (const auto place = args.place("format")) {
        const auto& [form, word] = token_forms[*place];
        const TokenFormat* const named =
            is_file ? format_of_suffix(formats, request.output) : nullptr;
        if (named != nullptr && named->form != form)
            refuse_format("--format " + std::string(word), name, name_of(token_forms, named->form));
        return form;
    }
    if (is_file)
        if (const TokenFormat* format = format_of_name(formats, name)) return format->form;
    const bool is_text = request.decodes || (!is_file && isatty(STDOUT_FILENO) != 0);
    return is_text ? TokenForm::table : TokenForm::json;
}

int run_tokenize(const Args& args) {
    const std::vector<std::string>& words = args.names();
    if (words.empty())
        throw Error(ErrorKind::usage, "attn tokenize",
                    "no tokenizer; expected a model's folder, its tokenizer.json or a GGUF file");
    if (words.size() > 2)
        throw Error(ErrorKind::usage, words[2], "a second text; expected one, in quotes");
    TokenizeRequest request;
    request.tokenizer = words[0];
    if (words.size() == 2) request.text = words[1];
    request.pair = args.text("text_pair");
    request.decodes = args.has("decode");
    request.by_line = args.has("lines");
    request.adds_special_tokens = !args.has("no_special_tokens");
    request.output = args.text("output").value_or("-");
    if (request.output.empty()) args.fail("output");
    if (request.pair && request.decodes)
        throw Error(ErrorKind::usage, "--text-pair", "conflicts with --decode");
    if (request.pair && request.by_line)
        throw Error(ErrorKind::usage, "--text-pair", "conflicts with --lines");
    request.form = form_of(args, request);
    if (!request.text)
        refuse_keyboard("attn tokenize",
                        "no text; expected one, or a text piped in, as by attn tokenize " +
                            request.tokenizer + " <file");
    tokenize(request);
    return 0;
}

constexpr Option tokenize_options[] = {
    {.key = "text_pair",
     .argument = "TEXT",
     .help = "a second text, for models that read two (default none)"},
    {.key = "no_special_tokens",
     .field = no_value,
     .help = "add no special tokens such as [CLS] or <s>; with --decode, omit them (default off)"},
    {.key = "decode",
     .field = no_value,
     .help = "TEXT is a list of ids, as in 12,7 or [12, 7]; write their text (default off)"},
    {.key = "lines",
     .field = no_value,
     .help = "each line is a text, or a list of ids (default off)"},
    {.key = "format",
     .field = choice_among<token_forms>,
     .limits = {.expected = "table|json|ndjson"},
     .help = "format of the output (default table on a terminal, otherwise json)",
     .letter = 'f'},
    {.key = "output",
     .limits = {.expected = "the name of a file"},
     .argument = "FILE",
     .help = "write there (default standard output)",
     .letter = 'o'},
};

}  // namespace

constexpr CommandRow tokenize_command{
    .name = "tokenize",
    .summary = "the token ids of a text, or the text of token ids",
    .examples =
        "  attn tokenize models/llama \"The quick brown fox\"\n"
        "  attn tokenize tokenizer.json --no-special-tokens --lines <texts.txt >ids.ndjson\n"
        "  attn tokenize models/bert \"first text\" --text-pair \"second text\"\n"
        "  attn tokenize models/gpt2 --decode 464,2068,7586\n",
    .usage =
        "DIR [TEXT]\n\nDIR is a tokenizer.json, a GGUF file, the folder of a model that has "
        "one, or a model's\nfolder in Hugging Face's cache. Without TEXT, standard input is the "
        "text.",
    .own = tokenize_options,
    .run = run_tokenize};

}  // namespace attn::cli
