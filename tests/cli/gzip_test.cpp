// Inputs in gzip files: the lines inside, and errors at their places. That answers are those of the
// files inside: same_answers.txt.
#include <zlib.h>

#include "tests/support/answers.hpp"
#include "tests/support/requests.hpp"

namespace gzip_test {
namespace {

using namespace attn;
using namespace attn::test;

std::string compressed(const std::string& text, int level = 6) {
    z_stream state{};
    REQUIRE(deflateInit2(&state, level, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    std::string out(deflateBound(&state, text.size()) + 64, '\0');
    state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    state.avail_in = static_cast<uInt>(text.size());
    state.next_out = reinterpret_cast<Bytef*>(out.data());
    state.avail_out = static_cast<uInt>(out.size());
    REQUIRE(deflate(&state, Z_FINISH) == Z_STREAM_END);
    out.resize(out.size() - state.avail_out);
    deflateEnd(&state);
    return out;
}

/// In members of `size` bytes of text each.
std::string in_members(const std::string& text, std::size_t size) {
    std::string out;
    for (std::size_t at = 0; at < text.size(); at += size) out += compressed(text.substr(at, size));
    return out;
}

/// All lines of a file, and the error that ends them.
struct Read {
    Words lines;
    std::string error;
};

Read lines_in(const std::string& path) {
    Read read;
    read.error = error_of([&] {
        io::LineReader reader(path);
        for (io::Line line; reader.next(line) == io::Next::found;) {
            CHECK(line.number == read.lines.size() + 1);
            read.lines.emplace_back(line.text);
        }
    });
    return read;
}

TEST_CASE("gzip: any members hold the lines of the text, whatever follows in zeros") {
    std::string text;
    for (std::size_t i = 0; i < 3000; ++i)
        text += std::string(i * 7 % 211, char('a' + i % 26)) + "\n";
    for (const std::string& whole :
         {text, text + "no end", std::string("\n\n"), std::string("x"), text.substr(0, 131072),
          text.substr(0, 131073), std::string(300000, 'y') + "\n" + text}) {
        write_text("plain", whole);
        const Words expected = lines_in("plain").lines;
        for (std::size_t size :
             {std::size_t{1}, std::size_t{1000}, std::size_t{131072}, whole.size()})
            for (const std::string& zeros : {std::string(), std::string(1000, '\0')}) {
                if (size == 1 && whole.size() > 5000) continue;
                write_text("z.gz", in_members(whole, size) + zeros);
                const Read read = lines_in("z.gz");
                CHECK(read.error == "");
                CHECK((read.lines == expected));
            }
    }
}

TEST_CASE("gzip: cut or damaged anywhere, the lines before are whole and the error has the line") {
    std::string text;
    for (int i = 0; i < 40; ++i) text += "line " + std::to_string(i * i) + "\n";
    write_text("plain", text);
    const Words expected = lines_in("plain").lines;
    const std::string whole = in_members(text, 150);
    const auto check = [&](const std::string& bytes) {
        write_text("z.gz", bytes);
        const Read read = lines_in("z.gz");
        REQUIRE(read.lines.size() <= expected.size());
        CAPTURE(read.error);
        CHECK(read.error.starts_with("z.gz:" + std::to_string(read.lines.size() + 1) + ": "));
        return read.error;
    };
    for (std::size_t length = 2; length < whole.size(); ++length) {
        write_text("z.gz", whole.substr(0, length));
        const auto [lines, error] = lines_in("z.gz");
        CAPTURE(length);
        for (std::size_t i = 0; i < lines.size(); ++i)
            CHECK(expected[i].starts_with(lines[i]));  // the last may end with a member
        if (!error.empty()) CHECK(contains(error, "cut off"));
    }
    for (std::size_t at = 2; at < whole.size(); ++at) {
        std::string bytes = whole;
        bytes[at] = static_cast<char>(bytes[at] ^ 0x55);
        write_text("z.gz", bytes);
        const auto [lines, error] = lines_in("z.gz");
        CAPTURE(at);
        // Some bytes of a header do not matter: the time, the system, flags of the compressor.
        if (!error.empty()) CHECK(error.starts_with("z.gz:"));
        if (error.empty()) CHECK((lines == expected));
    }
    CHECK(contains(check(whole + "more"), "other bytes after the end"));
    CHECK(contains(check(whole + std::string(5, '\0') + "xx"), "other bytes"));
    std::string wrong_sum = compressed(text), wrong_length = wrong_sum;
    wrong_sum[wrong_sum.size() - 8] ^= 1;
    wrong_length[wrong_length.size() - 4] ^= 1;
    CHECK(contains(check(wrong_sum), "damaged here (incorrect data check)"));
    CHECK(contains(check(wrong_length), "damaged here (incorrect length check)"));
}

TEST_CASE("gzip: however reading ends, a batch answers all lines before, in every run") {
    const std::string requests = quick_requests(400);
    const std::string one = compressed(requests), several = in_members(requests, 3000);
    const auto changed = [&](std::size_t from_end) {
        std::string bytes = one;
        bytes[bytes.size() - from_end] ^= 1;
        return bytes;
    };
    const std::size_t first = compressed(requests.substr(0, 3000)).size();
    std::vector<std::string> ends{several,  // undamaged
                                  changed(8),
                                  changed(4),
                                  one + "more",
                                  one + compressed("{").substr(0, 5),
                                  several.substr(0, several.size() - 9),
                                  several.substr(0, first),
                                  several.substr(0, first + 1),
                                  compressed(requests.substr(0, requests.size() - 1)),
                                  requests.substr(0, 9000),
                                  requests};  // then a file that cannot be read
    std::mt19937 random(5);
    std::printf("seed 5\n");
    for (int i = 0; i < 4; ++i) ends.push_back(one.substr(0, 30 + random() % (one.size() - 40)));
    Sample sample(4);
    for (const std::string& bytes : ends) {
        CAPTURE(bytes.size());
        write_text("r.ndjson.gz", bytes);
        const bool has_unreadable = &bytes == &ends[10];
        const auto [lines, error] = lines_in("r.ndjson.gz");
        std::string before;
        for (const std::string& line : lines) before += line + "\n";
        CHECK(requests.starts_with(before.substr(0, before.size() - (error.empty() ? 1 : 0))));
        std::filesystem::create_directory("whole");
        write_text("whole/r.ndjson.gz", before);
        const Words inputs =
            has_unreadable ? Words{"r.ndjson.gz", "/proc/self/mem"} : Words{"r.ndjson.gz"};
        const Outcome plain = run_shell("cd whole && attn batch r.ndjson.gz --jobs 1");
        const std::string answers = plain.out;
        const int code = has_unreadable ? 4 : error.empty() ? plain.code : 3;
        for (const std::string jobs : {"1", "2", "3", "8"})
            for (const Words& output : std::vector<Words>{{},
                                                          {"-o", "new.ndjson"},
                                                          {"-o", "old.ndjson"},
                                                          {"--resume", "part.ndjson"},
                                                          {"--out-dir", "out"}}) {
                if (!sample.takes()) continue;
                std::filesystem::remove("new.ndjson");
                std::filesystem::remove_all("out");
                write_text("old.ndjson", "old\n");
                write_text("part.ndjson", answers.substr(0, answers.size() / 3));
                const Outcome ran = run_attn(with(with({"batch", "--jobs", jobs}, inputs), output));
                CAPTURE(jobs);
                CAPTURE(output);
                CHECK(ran.code == code);
                if (!error.empty())
                    CHECK(ran.err.starts_with(
                        "attn: error: r.ndjson.gz:" + std::to_string(lines.size() + 1) + ": "));
                const bool is_folder = !output.empty() && output[1] == "out";
                const std::string found = output.empty() ? ran.out
                                          : is_folder    ? read_text("out/index.ndjson")
                                                         : read_text(output[1]);
                CHECK(lines_of(found).size() == lines_of(answers).size());
                if (has_unreadable)
                    CHECK(contains(ran.err, "/proc/self/mem: "));
                else if (!is_folder)
                    CHECK((found == answers));
            }
    }
}

}  // namespace
}  // namespace gzip_test
