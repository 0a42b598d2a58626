#include "cli/tokenize/tokenize.hpp"

#include <unistd.h>

#include <cstdint>
#include <vector>

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
std::vector<std::uint32_t> ids_of(std::string_view text, const std::string& place) {
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
            throw Error(
                ErrorKind::input, place,
                io::quoted_name(word) + " is not an id; expected integers, as 12,7 or [12, 7]");
        ids.push_back(*id);
        text.remove_prefix(word.size());
    }
    const bool is_closed = text.starts_with(']');
    if (is_closed) text.remove_prefix(1);
    trim();
    if (!text.empty() || is_list != is_closed)
        throw Error(ErrorKind::input, place, "is not a list of ids; expected 12,7 or [12, 7]");
    return ids;
}

class TokenWriter {
public:
    TokenWriter(const TokenizeRequest& request, const io::Tokenizer& tokenizer, io::Output& output)
        : request_(request), tokenizer_(tokenizer), output_(output) {}

    /// One text, or one list of ids. `place` is its location in errors.
    void write(std::string_view text, const std::string& place) {
        try {
            output_ << (request_.decodes ? decoded(ids_of(text, place)) : encoded(text));
        } catch (const Error& error) {
            if (error.where() != "text") throw;
            throw Error(error.kind(), place, error.what());
        }
        ++count_;
    }

private:
    std::string encoded(std::string_view text) const {
        const bool adds = request_.adds_special_tokens;
        const io::TokenizedText found = request_.pair
                                            ? tokenizer_.encode_pair(text, *request_.pair, adds)
                                            : tokenizer_.encode(text, adds);
        if (request_.form == TokenForm::table) return table(found);
        std::string line = head();
        io::append_member(line, "ids", found.ids);
        io::append_member(line, "tokens", found.pieces);
        if (request_.pair) io::append_member(line, "type_ids", found.type_ids);
        return line + "}\n";
    }

    std::string decoded(const std::vector<std::uint32_t>& ids) const {
        const std::string text = tokenizer_.decode(ids, !request_.adds_special_tokens);
        // A pipe gets the text as it is, a terminal without control characters.
        const bool is_seen = request_.output == "-" && isatty(STDOUT_FILENO) != 0;
        if (request_.form == TokenForm::table) return (is_seen ? shown(text) : text) + "\n";
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
        for (std::string_view rest = text; !rest.empty();) {
            const std::size_t end = std::min(rest.find('\n'), rest.size());
            lines += io::printable(std::string(rest.substr(0, end)));
            if (end < rest.size()) lines += '\n';
            rest.remove_prefix(std::min(end + 1, rest.size()));
        }
        return lines;
    }

    std::string table(const io::TokenizedText& found) const {
        io::Cells cells{{"token", "id"}};
        if (request_.pair) cells[0].push_back("type");
        for (std::size_t i = 0; i < found.ids.size(); ++i) {
            cells.push_back(
                {"\"" + io::printable(found.pieces[i]) + "\"", std::to_string(found.ids[i])});
            if (request_.pair) cells.back().push_back(std::to_string(found.type_ids[i]));
        }
        return (count_ == 0 ? "" : "\n") + io::align_columns(cells);
    }

    const TokenizeRequest& request_;
    const io::Tokenizer& tokenizer_;
    io::Output& output_;
    std::size_t count_ = 0;
};

}  // namespace

void tokenize(const TokenizeRequest& request) {
    const io::Tokenizer tokenizer = io::read_tokenizer(request.tokenizer);
    std::string text, place = request.decodes ? "ids" : "text";
    if (request.text) {
        text = *request.text;
    } else {
        const auto bytes = io::Bytes::open("-", {.expected = nullptr});
        text = bytes->read(0, bytes->size());
        place = bytes->name();
    }
    io::OutputFile output(request.output);
    output.fill([&](io::Output& out) {
        TokenWriter writer(request, tokenizer, out);
        if (!request.by_line) return writer.write(text, place);
        std::size_t number = 0;
        for (std::string_view rest = text; !rest.empty();) {
            const std::size_t end = std::min(rest.find('\n'), rest.size());
            std::string_view line = rest.substr(0, end);
            if (line.ends_with('\r')) line.remove_suffix(1);
            writer.write(line, place + ":" + std::to_string(++number));
            rest.remove_prefix(std::min(end + 1, rest.size()));
        }
    });
    output.commit();
}

}  // namespace attn::cli
