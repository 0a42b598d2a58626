// Lines of files and pipes, as they come.
#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <utility>

#include "io/file/source.hpp"
#include "tests/support/support.hpp"

namespace line_reader_test {

using namespace attn::test;
using attn::io::Line;
using attn::io::LineReader;
using attn::io::Next;

namespace {

constexpr std::size_t piece = std::size_t{1} << 17;  // that the reader asks for at once

/// The lines of a text in a file.
std::vector<std::string> read_lines(const std::string& text,
                                    std::size_t longest = LineReader::longest_line) {
    scratch_folder();
    write_text("lines.txt", text);
    LineReader reader("lines.txt", -1, longest);
    CHECK(reader.size() == text.size());
    std::vector<std::string> lines;
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

/// A pipe with a name, so that the reader opens its end itself. Open for both, so that neither side
/// waits for the other.
class NamedPipe {
public:
    NamedPipe() {
        scratch_folder();
        ::unlink(name);
        if (::mkfifo(name, 0600) != 0 || (fd_ = ::open(name, O_RDWR)) < 0)
            throw std::runtime_error("no named pipe");
    }
    NamedPipe(const NamedPipe&) = delete;
    NamedPipe& operator=(const NamedPipe&) = delete;
    ~NamedPipe() { close(); }

    void write(const std::string& text) const {
        REQUIRE(::write(fd_, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    }
    void close() {
        if (fd_ >= 0) ::close(std::exchange(fd_, -1));
    }

    static constexpr const char* name = "pipe";

private:
    int fd_ = -1;
};

}  // namespace

TEST_CASE("lines: with and without a break at the end, blank ones, none") {
    using Lines = std::vector<std::string>;
    CHECK(read_lines("") == Lines{});
    CHECK(read_lines("\n") == Lines{""});
    CHECK(read_lines("a") == Lines{"a"});
    CHECK(read_lines("a\n") == Lines{"a"});
    CHECK(read_lines("a\n\n\nb") == Lines{"a", "", "", "b"});
    CHECK(read_lines("\n\n") == Lines{"", ""});
    CHECK(read_lines("a\r\nb\r\n") == Lines{"a\r", "b\r"});
    CHECK(read_lines(std::string("a\0b\n", 4)) == Lines{std::string("a\0b", 3)});
}

TEST_CASE("lines: whether a break ended the last one is reported") {
    scratch_folder();
    write_text("lines.txt", "whole\ntorn");
    LineReader reader("lines.txt");
    Line line;
    REQUIRE(reader.next(line) == Next::found);
    CHECK(line.is_whole);
    REQUIRE(reader.next(line) == Next::found);
    CHECK_FALSE(line.is_whole);
    CHECK(line.text == "torn");
}

TEST_CASE("lines: breaks may be anywhere in the pieces that are read") {
    for (std::size_t length : {piece - 2, piece - 1, piece, piece + 1, 2 * piece, 3 * piece + 7}) {
        CAPTURE(length);
        const std::string line(length, 'x');
        CHECK(read_lines(line + "\nend") == std::vector<std::string>{line, "end"});
        CHECK(read_lines("a\n" + line) == std::vector<std::string>{"a", line});
    }
    std::vector<std::string> lines;
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
            const std::vector<std::string> lines =
                read_lines("before\n" + std::string(length, 'x') + "\nafter" + end, longest);
            CHECK(lines == std::vector<std::string>{"before", "", "after"});
        }
        const std::vector<std::string> last =
            read_lines("before\n" + std::string(length, 'x'), longest);
        CHECK(last == std::vector<std::string>{"before", ""});
    }
    scratch_folder();
    write_text("lines.txt", std::string(3 * piece, 'x') + "\n");
    LineReader reader("lines.txt", -1, longest);
    Line line;
    REQUIRE(reader.next(line) == Next::found);
    CHECK(line.size == 3 * piece);
    CHECK(line.text.empty());
}

TEST_CASE("lines: a long one that is not text is skipped in little memory") {
    constexpr std::size_t mib = std::size_t{1} << 20;
    for (const char filling : {'x', '0', '\0'})
        for (const std::size_t length : {3 * mib, 5 * mib + 7}) {
            const std::vector<std::string> lines =
                read_lines("before\n" + std::string(length, filling) + "\nafter\n");
            CHECK(lines == std::vector<std::string>{"before", "", "after"});
        }
    std::string numbers;
    while (numbers.size() < 5 * mib) numbers += "0.125,";
    CHECK(read_lines("before\n" + numbers + "\nafter\n")[1] == numbers);
}

TEST_CASE("lines: without waiting there are those that a pipe has given whole") {
    NamedPipe pipe;
    LineReader reader(NamedPipe::name);
    CHECK(reader.size() == 0);
    Line line;
    CHECK(reader.next(line, false) == Next::none_yet);
    pipe.write("one\ntwo\nthr");
    REQUIRE(reader.next(line, false) == Next::found);
    CHECK(line.text == "one");
    REQUIRE(reader.next(line, false) == Next::found);
    CHECK(line.text == "two");
    CHECK(reader.next(line, false) == Next::none_yet);  // "thr" is not a line yet
    pipe.write("ee\n");
    REQUIRE(reader.next(line, false) == Next::found);
    CHECK(line.text == "three");
    CHECK(line.number == 3);
    pipe.write("last");
    CHECK(reader.next(line, false) == Next::none_yet);
    pipe.close();
    REQUIRE(reader.next(line, false) == Next::found);
    CHECK(line.text == "last");
    CHECK_FALSE(line.is_whole);
    CHECK(reader.next(line, false) == Next::end);
}

TEST_CASE("lines: wake ends a wait, and what came before it is not lost") {
    NamedPipe pipe;
    std::array<int, 2> wake{};
    REQUIRE(::pipe(wake.data()) == 0);
    LineReader reader(NamedPipe::name, wake[0]);
    pipe.write("one\nhal");
    Line line;
    REQUIRE(reader.next(line) == Next::found);
    CHECK(line.text == "one");
    REQUIRE(::write(wake[1], "", 1) == 1);
    CHECK(reader.next(line) == Next::end);
    CHECK(reader.next(line) == Next::end);  // until the wish is taken back
    char byte;
    REQUIRE(::read(wake[0], &byte, 1) == 1);
    pipe.write("f\n");
    REQUIRE(reader.next(line) == Next::found);
    CHECK(line.text == "half");
    CHECK(line.number == 2);
    for (int end : wake) ::close(end);
}

TEST_CASE("lines: a file that cannot be read is an error with its reason") {
    scratch_folder();
    CHECK(error_of([] {
              LineReader reader("missing.ndjson");
          }).starts_with("missing.ndjson: no such file; "));
    CHECK(error_of([] { LineReader reader("."); }) == ".: is a folder; expected a file");
}

}  // namespace line_reader_test
