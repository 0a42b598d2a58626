// Lines of files: where they break, and how long they may be. Pipes, waits and errors are in the
// tests of attn batch.
#include "tests/support/support.hpp"

namespace line_reader_test {
namespace {

using namespace attn::test;
using attn::io::Line;
using attn::io::LineReader;
using attn::io::Next;

constexpr std::size_t piece = std::size_t{1} << 17;  // that the reader asks for at once

/// The lines of a text in a file.
Words read_lines(const std::string& text, std::size_t longest = LineReader::longest_line) {
    scratch_folder();
    write_text("lines.txt", text);
    LineReader reader("lines.txt", -1, longest);
    CHECK(reader.size() == text.size());
    Words lines;
    std::size_t position = 0;
    for (Line line; reader.next(line) == Next::found;) {
        lines.emplace_back(line.text);
        CHECK(line.number == lines.size());
        position += line.size + (line.is_whole ? 1 : 0);
        CHECK(reader.position() == position);
    }
    CHECK(position == text.size());
    Line line;
    CHECK(reader.next(line) == Next::end);  // the end stays the end
    return lines;
}

TEST_CASE("lines: breaks may be anywhere in the pieces that are read") {
    for (std::size_t length : {piece - 2, piece - 1, piece, piece + 1, 2 * piece, 3 * piece + 7}) {
        CAPTURE(length);
        const std::string line(length, 'x');
        CHECK(read_lines(line + "\nend") == Words{line, "end"});
        CHECK(read_lines("a\n" + line) == Words{"a", line});
    }
    Words lines;
    std::string text;
    for (std::size_t i = 0; i < 3000; ++i) {  // some pieces, each line longer than the one before
        lines.emplace_back(i % 300, static_cast<char>('a' + i % 26));
        text += lines.back() + "\n";
    }
    CHECK(read_lines(text) == lines);
}

TEST_CASE("lines: one of more bytes than allowed comes without its text, and the next ones whole") {
    constexpr std::size_t longest = 10;
    for (std::size_t length : {piece + 1, 2 * piece, 5 * piece + 3}) {
        CAPTURE(length);
        for (const char* end : {"\n", ""}) {
            const Words lines =
                read_lines("before\n" + std::string(length, 'x') + "\nafter" + end, longest);
            CHECK(lines == Words{"before", "", "after"});
        }
        const Words last = read_lines("before\n" + std::string(length, 'x'), longest);
        CHECK(last == Words{"before", ""});
    }
}

}  // namespace
}  // namespace line_reader_test
