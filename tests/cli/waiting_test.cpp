// Pipes, locks and standard input: nothing waits for ever, and nothing is lost.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <csignal>
#include <thread>

#include "tests/support/answers.hpp"
#include "tests/support/process.hpp"
#include "tests/support/requests.hpp"

namespace waiting_test {

using namespace attn;
using namespace attn::test;
namespace fs = std::filesystem;
using namespace std::chrono_literals;

const std::string good_lines = good() + "\n" + good() + "\n";

TEST_CASE("batch: one signal ends any wait") {
    fs::remove("fifo");
    REQUIRE(::mkfifo("fifo", 0600) == 0);
    write_text("many.ndjson", quick_requests(20000));
    for (const Words& words : {Words{"batch", "fifo"},
                               {"batch", "-", "--jobs", "3"},
                               {"batch", "fifo", "--jobs", "3"},
                               {"batch", "many.ndjson", "-o", "fifo"},
                               {"batch", "many.ndjson", "--jobs", "1"},
                               {"batch", "many.ndjson", "--jobs", "3"}}) {
        CAPTURE(words);
        Process attn(words);
        std::this_thread::sleep_for(200ms);  // its output is full, or its input waited for
        attn.send(SIGTERM);
        CHECK(attn.wait().signal == SIGTERM);
    }
}

TEST_CASE("a standard input that does not wait is read to its end by every command") {
    const std::string big = nested({8, 40000}, [] { return 0.25; }).dump();
    write_text("one.json", "[[1, 2]]");
    for (const Words& words : {Words{"self", "--d-out", "1"},
                               {"cross", "one.json", "--context", "-", "--d-out", "1"},
                               {"explain", "self", "--d-out", "1", "--token", "0"},
                               {"compare", "-", "one.json"},
                               {"plot"},
                               {"inspect"},
                               {"batch", "--mode", "self", "--d-out", "1"}})
        for (const std::string& text :
             {std::string(), std::string("[[1, 2]]\n"), good_lines, big}) {
            CAPTURE(words);
            CAPTURE(text.substr(0, 40));
            const Outcome usual = run_attn(words, text);
            Process attn(words, false);
            std::thread writer([&] {
                for (const std::size_t part : {0U, 1U}) {
                    std::this_thread::sleep_for(5ms);
                    attn.write(part == 0 ? text.substr(0, text.size() / 2)
                                         : text.substr(text.size() / 2));
                }
                attn.close_input();
            });
            std::string out;
            while (const auto line = attn.read_line()) out += *line + "\n";
            writer.join();
            const Ending ending = attn.wait();
            CHECK(ending.code == usual.code);
            CHECK(ending.err == usual.err);
            CHECK((out == usual.out || out == usual.out + "\n"));
        }
}

TEST_CASE("line output: what has taken the file's place before it was locked is what is written") {
    write_text("turned", "");
    std::atomic<bool> done{false};
    std::thread turner([&] {  // another batch, which puts a new file there while it has the lock
        while (!done) {
            const int fd = ::open("turned", O_WRONLY);
            ::flock(fd, LOCK_EX);
            write_text("turned.new", "");
            if (io::file_id(fd) == io::file_id("turned")) fs::rename("turned.new", "turned");
            ::close(fd);
        }
    });
    int opened = 0;
    for (int i = 0; i < 3000 || (opened == 0 && i < 1000000); ++i) {
        try {
            io::LineOutput out("turned");
            ++opened;
            REQUIRE(out.id() == io::file_id("turned"));
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::io);
        }
    }
    done = true;
    turner.join();
    CHECK(opened > 0);
}

}  // namespace waiting_test
