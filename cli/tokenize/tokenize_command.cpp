// `attn tokenize`: converts a text to token ids, and token ids to a text.
#include <unistd.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/args/args.hpp"
#include "cli/output/output.hpp"
#include "cli/question/question.hpp"
#include "cli/request/request.hpp"
#include "core/base/error.hpp"
#include "io/file/bytes.hpp"
#include "io/file/output.hpp"
#include "io/file/source.hpp"
#include "io/text/json_text.hpp"
#include "io/text/number_text.hpp"
#include "io/text/text.hpp"
#include "io/text/utf8.hpp"
#include "io/tokenizer/tokenizer.hpp"

namespace attn::cli {
namespace {

/// Ids with commas or blanks between them, or a list in JSON.
std::vector<std::uint32_t> ids_of(std::string_view text, const std::string& location) {
    constexpr std::string_view between = ", \t\r\n";
    const auto trim = [&] {
        text.remove_prefix(std::min(text.find_first_not_of(between), text.size()));
    };
    trim();
    const bool is_list = text.starts_with('[');
    if (is_list) text.remove_prefix(1);
    std::vector<std::uint32_t> ids;
    for (trim(); !text.empty() && text[0] != ']'; trim()) {
        const std::string_view word = text.substr(0, text.find_first_of(", \t\r\n]"));
        const auto id = io::number_of_text<std::uint32_t>(word);
        if (!id)
            throw Error(ErrorKind::input, location, io::quoted_name(word),
                        " is not an id; expected integers, as 12,7 or [12, 7]");
        ids.push_back(*id);
        text.remove_prefix(word.size());
    }
    const bool is_closed = text.starts_with(']');
    if (is_closed) text.remove_prefix(1);
    trim();
    if (!text.empty() || is_list != is_closed)
        throw Error(ErrorKind::input, location, "is not a list of ids; expected 12,7 or [12, 7]");
    return ids;
}

class TokenWriter {
public:
    TokenWriter(const Args& args, bool as_table, bool is_seen, const io::Tokenizer& tokenizer,
                io::Output& output)
        : pair_(args.text("text_pair")), decodes_(args.has("decode")),
          most_(static_cast<std::size_t>(args.whole("truncate").value_or(io::Tokenizer::all))),
          adds_(!args.has("no_special_tokens")), as_table_(as_table), is_seen_(is_seen),
          tokenizer_(tokenizer), output_(output) {}

    /// One text, or one list of ids. `location` is for errors.
    void write(std::string_view text, const std::string& location) {
        try {
            output_ << (decodes_ ? decoded(ids_of(text, location)) : encoded(text, location));
        } catch (const Error& error) {
            if (error.location() != "text") throw;
            throw Error(error.kind(), location, error.what());
        }
        ++count_;
    }

private:
    std::string encoded(std::string_view text, const std::string& location) const {
        const io::TokenizedText found = pair_ ? tokenizer_.encode_pair(text, *pair_, adds_, most_)
                                              : tokenizer_.encode(text, adds_, most_);
        if (found.left_out != 0)
            show_notes({note_of_truncation(location, found.ids.size(), found.left_out)});
        if (as_table_) return table(found);
        std::string line = head();
        io::append_member(line, "ids", found.ids);
        io::append_member(line, "tokens", found.pieces);
        if (pair_) io::append_member(line, "type_ids", found.type_ids);
        return line + "}\n";
    }

    std::string decoded(const std::vector<std::uint32_t>& ids) const {
        const std::string text = tokenizer_.decode(ids, !adds_);
        if (as_table_) return (is_seen_ ? shown(text) : text) + "\n";
        std::string line = head();
        std::vector<std::string> pieces;
        pieces.reserve(ids.size());
        for (const std::uint32_t id : ids) pieces.push_back(tokenizer_.piece(id));
        io::append_member(line, "ids", ids);
        io::append_member(line, "tokens", pieces);
        io::append_member(line, "text", text);
        return line + "}\n";
    }

    static std::string head() {
        std::string line = "{";
        io::append_member(line, "schema", schemas::tokens);
        return line;
    }

    static std::string shown(const std::string& text) {
        std::string lines;
        for (const std::string_view line : io::lines_of(text))
            (lines += io::printable(line)) += '\n';
        if (!text.ends_with('\n') && !lines.empty()) lines.pop_back();
        return lines;
    }

    std::string table(const io::TokenizedText& found) const {
        io::Cells cells{{"token", "id"}};
        if (pair_) cells[0].push_back("type");
        for (std::size_t i = 0; i < found.ids.size(); ++i) {
            cells.push_back(
                {"\"" + io::printable(found.pieces[i]) + "\"", std::to_string(found.ids[i])});
            if (pair_) cells.back().push_back(std::to_string(found.type_ids[i]));
        }
        return (count_ == 0 ? "" : "\n") + io::align_columns(cells);
    }

    const std::optional<std::string> pair_;  // a second text
    const bool decodes_;
    const std::size_t most_;
    const bool adds_, as_table_, is_seen_;
    const io::Tokenizer& tokenizer_;
    io::Output& output_;
    std::size_t count_ = 0;
};

constexpr std::array<NamedFormat, 3> token_formats{
    {{"table", {".txt"}}, {"json", {".json"}}, {"ndjson", {".ndjson", ".jsonl"}}}};
constexpr auto token_format_names = names_of(token_formats);

/// Whether the flag, the name of the output or the terminal asks for a table.
bool wants_table(const Args& args, const std::string& output) {
    const auto index = args.choice("format");
    const NamedFormat* const format =
        format_of_flag(token_formats, index ? &token_formats[*index] : nullptr,
                       {output, "--output " + output, "tokens are written as a table or as JSON"});
    if (format != nullptr) return format == &token_formats.front();
    return args.has("decode") || (output == "-" && isatty(STDOUT_FILENO) != 0);
}

int run_tokenize(const Args& args) {
    const std::vector<std::string>& words = args.names();
    if (words.empty())
        throw Error(ErrorKind::usage, "attn tokenize",
                    "no tokenizer; expected a model's folder, its tokenizer.json or a GGUF file");
    if (words.size() > 2)
        throw Error(ErrorKind::usage, words[2], "a second text; expected one, in quotes");
    const std::string output = args.text("output").value_or("-");
    if (output.empty()) args.fail("output");
    for (const auto& [key, other] :
         {std::pair("text_pair", "decode"), {"text_pair", "lines"}, {"truncate", "decode"}})
        if (args.has(key) && args.has(other))
            throw Error(ErrorKind::usage, flag_of_key(key), "conflicts with --", other);
    const bool as_table = wants_table(args, output), has_text = words.size() == 2;
    const std::string file = args.text("text_file").value_or("-");
    if (has_text && args.has("text_file"))
        throw Error(ErrorKind::usage, "--text-file " + file,
                    "conflicts with a second word; expected one text");
    if (!has_text && file == "-")
        refuse_keyboard("attn tokenize",
                        "no text; expected one, or a text piped in, as by attn tokenize " +
                            words[0] + " <file");
    const io::Tokenizer tokenizer = io::read_tokenizer(words[0]);
    std::string text, location = args.has("decode") ? "ids" : "text";
    if (has_text) {
        text = words[1];
    } else {
        const auto bytes = io::Bytes::open(file, {.expected = nullptr});
        text = io::without_byte_order_mark(bytes->read(0, bytes->size()));
        location = bytes->name();
    }
    io::write_file(output, [&](io::Output& out) {
        // A pipe gets a text as it is, a terminal without control characters.
        TokenWriter writer(args, as_table, output == "-" && isatty(STDOUT_FILENO) != 0, tokenizer,
                           out);
        if (!args.has("lines")) return writer.write(text, location);
        std::size_t number = 0;
        for (std::string_view line : io::lines_of(text)) {
            if (line.ends_with('\r')) line.remove_suffix(1);
            writer.write(line, io::line_location(location, ++number));
        }
    });
    return 0;
}

constexpr Option tokenize_options[] = {
    {.key = "text_file",
     .argument = "FILE|-",
     .help = "the text from a file (default standard input)"},
    {.key = "truncate",
     .limits = {.lowest = 1, .expected = "an integer from 1"},
     .argument = "N",
     .help = "keep N tokens of a longer text (default all)"},
    {.key = "text_pair",
     .field = text_field,
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
     .field = choice_among<token_format_names>,
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
