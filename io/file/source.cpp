#include "io/file/source.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/memory.hpp"
#include "io/text/utf8.hpp"

namespace attn::io {
namespace {

constexpr std::size_t largest_text = std::size_t{1} << 30;

/// Whether the first characters are ASCII in units of `width` bytes, of which the last or first one
/// is not zero.
bool begins_with_units(std::string_view text, std::size_t width, bool little) {
    if (text.size() < 4) return false;
    for (std::size_t i = 0; i < std::min<std::size_t>(text.size() / 4 * 4, 16); ++i)
        if ((text[i] == '\0') != (i % width != (little ? 0 : width - 1))) return false;
    return true;
}

/// The encoding of a text with a zero byte.
const char* fault_of_zero_byte(std::string_view text) {
    using namespace std::string_view_literals;
    if (text.starts_with("\xff\xfe\0\0"sv) || text.starts_with("\0\0\xfe\xff"sv))
        return "is UTF-32; expected UTF-8 text, as iconv -f UTF-32 -t UTF-8 writes it";
    if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
        return "is UTF-16; expected UTF-8 text, as iconv -f UTF-16 -t UTF-8 writes it";
    if (begins_with_units(text, 2, true))
        return "is UTF-16LE; expected UTF-8 text, as iconv -f UTF-16LE -t UTF-8 writes it";
    if (begins_with_units(text, 2, false))
        return "is UTF-16BE; expected UTF-8 text, as iconv -f UTF-16BE -t UTF-8 writes it";
    if (begins_with_units(text, 4, true))
        return "is UTF-32LE; expected UTF-8 text, as iconv -f UTF-32LE -t UTF-8 writes it";
    if (begins_with_units(text, 4, false))
        return "is UTF-32BE; expected UTF-8 text, as iconv -f UTF-32BE -t UTF-8 writes it";
    return "holds a zero byte; expected text (json, ndjson or csv)";
}

/// The source, after its text is checked.
Source checked(Source source, const char* expected) {
    if (source.first_line == 1) source.text = without_byte_order_mark(source.text);
    if (source.text.find_first_not_of(" \t\r\n") == std::string_view::npos)
        throw Error(ErrorKind::input, source.name, std::string("is empty; expected ") + expected);
    const std::size_t bad = find_invalid_utf8(source.text);
    if (bad != std::string_view::npos)
        throw Error(ErrorKind::input, source.place(bad), "not UTF-8; expected UTF-8 text");
    return source;
}

/// Bytes of plain ASCII at the start, rounded down to a multiple of 64.
std::size_t ascii_prefix(std::string_view text) {
    constexpr std::size_t block = 64;
    std::size_t at = 0;
    for (; text.size() - at >= block; at += block) {
        std::array<std::uint64_t, block / 8> words{};
        std::memcpy(words.data(), text.data() + at, block);
        std::uint64_t all = 0;
        for (std::uint64_t word : words) all |= word;
        if ((all & 0x8080808080808080u) != 0) break;
    }
    return at;
}

}  // namespace

std::string_view without_byte_order_mark(std::string_view text) {
    return text.substr(text.starts_with("\xef\xbb\xbf") ? 3 : 0);
}

std::string Source::place(std::size_t offset) const {
    const std::string_view before = text.substr(0, std::min(offset, text.size()));
    const std::size_t line =
        first_line + static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
    const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
    const std::string_view line_before = before.substr(line_start);
    const auto column = 1 + std::count_if(line_before.begin(), line_before.end(), [](char c) {
                            return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
                        });
    return name + ":" + std::to_string(line) + ":" + std::to_string(column);
}

const char* fault_of_text(std::string_view text, std::size_t from) {
    if (std::memchr(text.data() + from, '\0', text.size() - from) != nullptr)
        return fault_of_zero_byte(text);
    // Every word of twice the size fills a piece.
    for (std::size_t at = from / text_piece * text_piece; at + text_piece <= text.size();
         at += text_piece)
        if (text.substr(at, text_piece).find_first_of(" \t\r\n,;|:[]{}\"") ==
            std::string_view::npos)
            return "a word or number of more than 1 MiB; expected blanks, commas or line breaks "
                   "between shorter ones";
    return nullptr;
}

void check_text(const std::string& name, std::string_view text, std::size_t from) {
    if (const char* const fault = fault_of_text(text, from))
        throw Error(ErrorKind::input, name, fault);
}

Source read_source(const std::string& path, const Access& access) {
    return read_source(Bytes::open(path, access, check_text));
}

Source read_source(const std::shared_ptr<const Bytes>& bytes) {
    if (bytes->size() > largest_text)
        throw Error(ErrorKind::input, bytes->name(), "is longer than 1 GiB; expected less text");
    const std::size_t size = static_cast<std::size_t>(bytes->size());
    const char* const expected = bytes->access().expected;
    if (bytes->memory() != nullptr) {
        const std::string_view text(bytes->memory(), size);
        check_text(bytes->name(), text, 0);
        return checked({bytes->name(), text, bytes}, expected);
    }
    const auto memory = std::make_shared<AlignedArray<char>>();
    memory->reserve(size);
    for (std::size_t at = 0; at < size; at += text_piece) {
        const std::size_t count = std::min(text_piece, size - at);
        bytes->read(at, count, memory->data() + at);
        check_text(bytes->name(), {memory->data(), at + count}, at);
    }
    return checked({bytes->name(), {memory->data(), size}, memory}, expected);
}

Source source_of_line(std::string name, std::string_view text, std::size_t line) {
    if (const char* const fault = fault_of_text(text, 0))
        throw Error(ErrorKind::input, name + ":" + std::to_string(line), fault);
    return checked({std::move(name), text, nullptr, line}, "a request");
}

std::size_t find_invalid_utf8(std::string_view text) {
    for (std::size_t i = 0; i < text.size();) {
        if (static_cast<unsigned char>(text[i]) < 0x80) {
            i += std::max<std::size_t>(1, ascii_prefix(text.substr(i)));
            continue;
        }
        const std::size_t length = character_size(text.substr(i));
        if (length == 0) return i;
        i += length;
    }
    return std::string_view::npos;
}

std::string one_line(std::string_view text) {
    return printable(text);
}

std::string quoted_name(std::string_view name) {
    return "\"" + one_line(shortened(name)) + "\"";
}

std::string shortened(std::string_view text, std::size_t longest) {
    if (text.size() <= longest) return std::string(text);
    std::size_t cut = longest;
    while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) --cut;
    return std::string(text.substr(0, cut)) + "...";
}

std::string excerpt(std::string_view text, std::size_t offset) {
    constexpr std::size_t longest = 24;
    if (offset >= text.size()) return "the end of the text";
    std::string piece;
    std::string_view rest = text.substr(offset);
    while (!rest.empty() && piece.size() < longest) {
        const auto c = static_cast<unsigned char>(rest.front());
        if (c < 0x20 || c == 0x7f) break;
        const bool breaks = std::strchr(" ,:[]{}\"", static_cast<char>(c)) != nullptr;
        if (breaks && !piece.empty()) break;
        const std::size_t length = std::max<std::size_t>(character_size(rest), 1);
        piece += rest.substr(0, length);
        rest.remove_prefix(length);
        if (breaks) break;
    }
    return piece.empty() ? "a line break or control character" : "'" + piece + "'";
}

}  // namespace attn::io
