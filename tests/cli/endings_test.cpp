// What is left where a result cannot go where it should: descriptors that are open already, readers
// that go away, one file for two outputs, signals. Full disks and other faults: tests/faults.py.
#include <chrono>
#include <csignal>
#include <thread>

#include "tests/support/answers.hpp"
#include "tests/support/process.hpp"

namespace endings_test {
namespace {

using namespace attn::test;
namespace fs = std::filesystem;

// Sanitizers make a program many times slower: then a part has to do.
#ifdef ATTN_SANITIZED
constexpr int part = 3;
#else
constexpr int part = 1;
#endif

const std::string matrix = "1,2\n3,4\n5,7\n";

/// A flag that names a file to write, in a command that then writes it.
struct Writer {
    std::string words;   ///< the name follows
    std::string suffix;  ///< that the name needs
};
const std::vector<Writer> writers{{"self m.csv -o", ".json"},
                                  {"self m.csv --emit all -o", ".npz"},
                                  {"causal m.csv --emit attention_weights -o", ".tsv"},
                                  {"explain self m.csv -o", ".txt"},
                                  {"plot r.json -o", ".svg"},
                                  {"batch q.ndjson -o", ".ndjson"},
                                  {"self m.csv --format none --plot", ".png"},
                                  {"self m.csv --format none --save-weights", ".safetensors"}};

void write_inputs() {
    write_text("m.csv", matrix);
    write_text("q.ndjson", "{\"mode\": \"self\", \"inputs\": [[1, 2]]}\n[]\n");
    write_text("r.json", run_attn({"self", "m.csv", "--emit", "all"}).out);
}

/// Starts from an empty folder `out`.
void empty_folder() {
    fs::remove_all("out");
    fs::create_directory("out");
}

Words files_in_folder() {
    Words names;
    for (const auto& file : fs::directory_iterator("out")) names.push_back(file.path().filename());
    std::sort(names.begin(), names.end());
    return names;
}

void make_link(const std::string& to, const std::string& path) {
    fs::remove(path);
    fs::create_symlink(to, path);
}

bool is_one_error(const std::string& text) {
    return text.starts_with("attn: error: ") && text.find('\n') + 1 == text.size();
}

TEST_CASE("descriptors: what is open already is written behind what is there, by every name") {
    write_inputs();
    // As root a fault here must not replace a device: names in /dev are tried behind links.
    int number = 0;
    for (const Writer& writer : writers) {
        const std::string file = "whole" + writer.suffix, name = "link" + writer.suffix;
        run_shell("attn " + writer.words + " " + file);
        const std::string whole = read_text(file);
        REQUIRE(whole != "");
        for (const char* to : {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1",
                               "/proc/thread-self/fd/1", "/dev/fd/../fd/1", "second", "shared"}) {
            CAPTURE(writer.words);
            CAPTURE(to);
            if (number++ % part != 0) continue;
            if (std::string(to).starts_with("/proc") && !fs::exists("/proc/thread-self")) continue;
            make_link("/dev/stdout", "second");
            make_link(to, name);
            const std::string once = "attn " + writer.words + " " + name + " 2>>errors; ";
            fs::remove("errors");
            run_shell("{ echo head; " + once + once + "echo tail; } >shared");
            CHECK((read_text("shared") == "head\n" + whole + whole + "tail\n"));
            CHECK(fs::is_symlink(name));
            // A file that has no name any more.
            if (std::string(to) == "shared") continue;
            run_shell("exec 3>gone 4<gone; rm gone; { " + once + "} >&3; cat <&4 >kept");
            CHECK((read_text("kept") == whole));
            CHECK(fs::is_symlink(name));
        }
        make_link("/dev/fd/7", name);
        run_shell("{ echo head >&7; attn " + writer.words + " " + name +
                  "; echo tail >&7; } 7>shared");
        CHECK((read_text("shared") == "head\n" + whole + "tail\n"));
    }
}

TEST_CASE("descriptors: what cannot be written to is refused, and nothing is touched") {
    write_inputs();
    const std::string asked = "attn self m.csv -o ";
    write_text("kept", "old\n");
    for (const std::string& line :
         {asked + "/dev/stdout >&-", asked + "/dev/fd/0 <kept", asked + "/dev/fd/9",
          asked + "/proc/self/fd/5 5<kept", std::string("attn batch q.ndjson -o /dev/fd/9"),
          std::string("attn batch q.ndjson -o /dev/fd/3 3>&- 4>&-"),  // its own
          std::string("attn batch q.ndjson -o /dev/fd/4 3>&- 4>&-"),
          std::string("attn batch q.ndjson --resume /dev/stdout >>kept"),
          std::string("attn batch <&-"), std::string("attn batch q.ndjson >&-"),
          std::string("attn batch <&- >&-"),
          std::string("attn batch q.ndjson --resume kept >>kept"),
          "exec 6>>kept; sh -c 'exec 6>&-; " + asked + "/proc/$PPID/fd/6; exit $?'"}) {
        CAPTURE(line);
        const Outcome outcome = run_shell(line);
        CHECK(outcome.code == 4);
        CHECK(is_one_error(outcome.err));
        CHECK(outcome.out == "");
        CHECK(read_text("kept") == "old\n");
    }
}

TEST_CASE("outputs: two that would be one file are refused, however it is named") {
    write_inputs();
    make_link("r.json", "same.json");
    make_link("r.json", "same.svg");
    fs::create_directories("folder");
    const Words names{"r.json", "./r.json", "folder/../r.json", "same.json"};
    const std::string before = read_text("r.json");
    Words lines{"-o new.json --save-weights ./new.json"};
    for (const std::string& name : names) {
        for (const std::string& other : names)
            lines.push_back("-o " + name + " --save-weights " + other);
        lines.push_back("-o " + name + " --plot same.svg");
        lines.push_back("--plot same.svg --save-weights " + name);
        for (const char* to : {">>", "1<>"}) {
            lines.push_back("--save-weights " + name + " " + to + "r.json");
            lines.push_back("--plot same.svg " + std::string(to) + name);
        }
    }
    for (const std::string& line : lines) {
        CAPTURE(line);
        const Outcome outcome = run_shell("attn self m.csv " + line);
        CHECK(outcome.code == 2);
        CHECK(contains(outcome.err, ": the same file as "));
        CHECK(is_one_error(outcome.err));
        CHECK(read_text("r.json") == before);
    }
    CHECK(run_shell("attn self m.csv --format none --save-weights w.json >w.json").code == 0);
    CHECK(read_text("w.json").starts_with("{\"schema\":\"attn.weights/1\""));
}

TEST_CASE(
    "readers that exit early: files are written, the verdict is unchanged, and it is not an "
    "error") {
    write_inputs();
    write_text("other.json", run_attn({"self", "m.csv", "--seed", "5"}).out);
    const std::string same = run_attn({"self", "m.csv"}).out;
    const auto run = [](const Words& words, const std::string& input) {
        Process attn(words);
        attn.close_output();
        attn.write(input);
        attn.close_input();
        return attn.wait();
    };
    for (const Words& more : {Words{}, Words{"--format", "json"}}) {
        const Words words = Words{"compare", "-", "other.json"} + more;
        CHECK(run(words, same).code == 1);
        CHECK(run(words, read_text("other.json")).code == 0);
    }
    for (const Words& shown : {Words{}, Words{"--heatmap"}, Words{"--format", "npz"},
                               Words{"--format", "none", "--heatmap"}}) {
        empty_folder();
        const Words words = words_in("self - --save-weights out/w.npz --plot out/p.svg");
        const Ending ending = run(words + shown, matrix);
        CHECK(ending.code == 0);
        CHECK((ending.err == "" || shown == Words{"--heatmap"}));  // which goes there
        CHECK(files_in_folder() == Words{"p.svg", "w.npz"});
    }
    for (const Words& words : {Words{"inspect"}, Words{"explain", "self"}, Words{"plot"}})
        CHECK(run(words, words[0] == "explain" ? matrix : same).code == 0);
    // Failures among the answers so far are reported.
    for (const std::string jobs : {"1", "2"}) {
        CHECK(run({"batch", "--jobs", jobs}, "[]\n").code == 1);
        CHECK(run({"batch", "--jobs", jobs, "--mode", "self"}, "[[1]]\n[[2]]\n").err == "");
    }
}

void wait_for_temporary() {
    for (int tries = 0; tries < 10000; ++tries) {
        for (const std::string& name : files_in_folder())
            if (name.starts_with(".attn-")) return;
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
}

TEST_CASE("signals: those that were ignored at the start stay ignored") {
    write_inputs();
    for (const std::string signal : {"HUP", "INT", "TERM"})
        CHECK(run_shell("trap '' " + signal +
                        "; rm -f r.csv; { sleep 0.1; cat m.csv; } | sh -c 'exec 3<&0; " +
                        "attn self - -o r.csv <&3 & sleep 0.05; kill -" + signal +
                        " $!; wait $!' && test -s r.csv")
                  .code == 0);
}

TEST_CASE("signals: a second one ends --retry-failed at once, and nothing is left") {
    empty_folder();
    std::string text;
    for (int word = 0; word < 1500 / part; ++word) text += "w" + std::to_string(word) + " ";
    write_text("q.ndjson",
               "{\"id\": 1, \"mode\": \"self\", \"embed_dim\": 64, \"text\": \"" + text + "\"}\n");
    const std::string old = "{\"id\":1,\"error\":{\"where\":\"a\",\"message\":\"b\"}}\n";
    write_text("out/a.ndjson", old);
    Process attn(words_in("batch q.ndjson - --emit all --retry-failed --resume out/a.ndjson"));
    wait_for_temporary();
    attn.send(SIGTERM);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    attn.send(SIGINT);
    const Ending ending = attn.wait();
    CAPTURE(ending.err);
    CHECK((ending.signal == SIGTERM || ending.signal == SIGINT));
    CHECK(files_in_folder() == Words{"a.ndjson"});
    CHECK(read_text("out/a.ndjson") == old);
}

}  // namespace
}  // namespace endings_test
