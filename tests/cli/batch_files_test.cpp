// Files that requests and flags name: never written over, never waited for, and none at all where
// the caller says so.
#include <fcntl.h>
#include <sys/stat.h>

#include "cli/request/request.hpp"
#include "tests/support/answers.hpp"
#include "tests/support/requests.hpp"

namespace batch_files_test {
namespace {

using namespace attn;
using namespace attn::test;
using nlohmann::json;
namespace fs = std::filesystem;

/// A key that may name a file, and a mode that has it.
struct FileKey {
    std::string key, mode;
    bool is_flag;
};

std::vector<FileKey> file_keys() {
    std::vector<FileKey> keys{{"inputs", "self", false}};
    for (const cli::Option& option : cli::options()) {
        if (!cli::names_file(option) || (option.use & cli::as_key) == 0) continue;
        for (const ModeRow& row : mode_rows)
            if ((option.modes & in(row.mode)) != 0) {
                keys.push_back({option.key, std::string(row.name), true});
                break;
            }
    }
    REQUIRE(keys.size() > 10);
    return keys;
}

/// A request that names `path` by the key, with all else that it needs.
std::string naming(const FileKey& key, const std::string& path) {
    json request{{"id", key.key}, {"mode", key.mode}};
    if (key.key == "kv")
        request["query"] = {{{1.0}}};
    else if (key.mode == "sdpa" && key.key != "qkv")
        request["query"] = request["key"] = request["value"] = {{1.0}};
    else if (key.mode != "sdpa")
        request["inputs"] = {{1.0}};
    if (key.key == "value_input") request["context"] = {{1.0}};
    request[key.key] = path;
    if (key.key == "model_config") request["weights"] = "gpt2/model.safetensors";
    return request.dump() + "\n";
}

void make_folder() {
    fs::remove_all("f");
    fs::create_directory("f");
    fs::copy(data_path("models/gpt2"), "f/gpt2");
}

const std::string good_lines = good() + "\n" + good() + "\n";

TEST_CASE("batch: what flags and requests name is never written over, by any link") {
    const std::string text = R"({"query": [[1, 2], [3, 4]]})";
    make_folder();
    write_text("f/good.ndjson", good_lines);
    write_text("f/op.json", text);
    fs::create_symlink("op.json", "f/soft.json");
    fs::create_hard_link("f/op.json", "f/hard.json");
    for (const FileKey& key : file_keys())
        for (const std::string out : {"op.json", "soft.json", "hard.json"}) {
            CAPTURE(key.key);
            CAPTURE(out);
            const std::string line = naming(key, "op.json");
            write_text("f/r.ndjson", good_lines + line + good_lines);
            write_text("f/last.ndjson", line + good_lines);
            Words forms{"attn batch r.ndjson -o " + out, "attn batch - -o " + out + " <last.ndjson",
                        "attn batch r.ndjson --resume " + out};
            if (key.is_flag)
                for (const std::string to : {"-o ", ">>", "--resume "})
                    forms.push_back("attn batch good.ndjson --mode " + key.mode + " " +
                                    flag_of_key(key.key) + " op.json " + to + out);
            for (const std::string& form : forms) {
                CAPTURE(form);
                const Outcome outcome = run_shell("cd f; " + form);
                CHECK((outcome.code == 2 || outcome.code == 3));
                CHECK(lines_of(outcome.err).size() == 1);
                CHECK(outcome.out == "");
                REQUIRE(read_text("f/op.json") == text);
            }
        }
}

TEST_CASE(
    "batch: a later request from a pipe that names the output ends the batch, and no sooner") {
    const std::string line = R"({"mode": "self", "inputs": "out.ndjson"})";
    const std::string answers = run_attn({"batch"}, good_lines).out;
    for (const std::string jobs : {"1", "3"}) {
        const Outcome outcome = run_attn({"batch", "-o", "out.ndjson", "--jobs", jobs},
                                         good_lines + line + "\n" + good_lines);
        CHECK(outcome.code == 2);
        CHECK(outcome.err.starts_with("attn: error: out.ndjson: is read and written"));
        CHECK(read_text("out.ndjson") == answers);
    }
}

TEST_CASE("pipes and devices behind a folder or in a request are refused, not waited for") {
    make_folder();
    const std::string header = read_text("f/gpt2/model.safetensors");
    const auto make_special = [](const std::string& path, bool is_pipe) {
        fs::remove(path);
        if (is_pipe)
            REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
        else
            fs::create_symlink("/dev/zero", path);
    };
    for (bool is_pipe : {true, false}) {
        CAPTURE(is_pipe);
        const auto check = [&](const std::string& line) {
            CAPTURE(line);
            const Outcome outcome = run_shell("cd f; timeout 20 " + line);
            CHECK((outcome.code == 4 || outcome.code == 1 || line == "attn inspect m"));
            const std::string all = outcome.out + outcome.err;
            CHECK(contains(all, "is a pipe or device"));
        };
        make_special("f/special", is_pipe);
        for (const FileKey& key : file_keys()) {
            json request = json::parse(naming(key, "special"));
            write_text("f/one.ndjson", request.dump() + "\n");
            check("attn batch one.ndjson");
            json rest = request;
            rest.erase(key.key);
            write_text("f/rest.ndjson", rest.dump() + "\n");
            if (key.is_flag) check("attn batch rest.ndjson " + flag_of_key(key.key) + " special");
            request.erase("id");
            write_text("f/one.json", request.dump());
            check("attn " + key.mode + " one.json");
        }
        for (const std::string file :
             {"model.safetensors", "config.json", "model.safetensors.index.json", "part"}) {
            CAPTURE(file);
            fs::remove_all("f/m");
            fs::copy("f/gpt2", "f/m");
            if (file == "part")
                write_text("f/m/model.safetensors.index.json",
                           R"({"weight_map": {"h.0.attn.c_attn.weight": "part"}})");
            if (file != "config.json") fs::remove("f/m/model.safetensors");
            make_special("f/m/" + file, is_pipe);
            check("attn multihead --weights m --token-ids 1");
            check("attn inspect m");
            write_text("f/one.ndjson",
                       "{\"mode\": \"multihead\", \"token_ids\": [1], \"weights\": \"m\"}\n");
            check("attn batch one.ndjson");
            check("attn explain multihead --weights m --token-ids 1");
        }
    }
    const Outcome of_batch = run_shell(
        "cd f; mkfifo p.json; echo '{\"mode\": \"self\", \"inputs\": \"/dev/stdin\"}' | cat | "
        "attn batch - p.json --jobs 1");
    CHECK(contains(of_batch.err, "2 of 2 records failed; the first: /dev/stdin: is a pipe or"));
    // On the command line they keep working.
    CHECK(run_shell("cd f; mkfifo p; (echo '[[1]]' >p &) ; echo '[[1]]' | "
                    "attn cross --context p --emit inputs")
              .code == 0);
}

TEST_CASE("batch: --no-files refuses every key that names a file, whatever is there") {
    make_folder();
    write_text("f/there.json", "[[1]]");
    REQUIRE(::mkfifo("f/fifo", 0600) == 0);
    for (const FileKey& key : file_keys()) {
        CAPTURE(key.key);
        std::string first;
        for (const std::string path : {"there.json", "missing.json", "fifo", "gpt2", "/dev/zero",
                                       "-", "there.json:x", "a.npz:b", "none", ""}) {
            CAPTURE(path);
            write_text("f/r.ndjson", naming(key, path));
            const Outcome outcome = run_shell("cd f; timeout 20 attn batch --no-files r.ndjson");
            CHECK(outcome.code == 1);
            CHECK(contains(outcome.out,
                           "\\\"" + key.key + "\\\" names a file, and --no-files is on"));
            if (first.empty()) first = outcome.out;
            CHECK(outcome.out == first);
        }
        // The caller's own files, and arrays.
        json rest = json::parse(naming(key, ""));
        rest.erase(key.key);
        rest.erase("weights");
        write_text("f/r.ndjson", rest.dump() + "\n");
        if (!key.is_flag) continue;
        const std::string line = "cd f; attn batch r.ndjson " + flag_of_key(key.key) +
                                 " there.json" +
                                 (key.key == "model_config" ? " --weights gpt2" : "");
        const Outcome free = run_shell(line), bound = run_shell(line + " --no-files");
        CHECK(free.out == bound.out);
        CHECK(free.err == bound.err);
    }
    write_text("f/each.json", R"({"mode": "self", "inputs": "there.json"})");
    CHECK(contains(run_shell("cd f; attn batch --no-files each.json").out, "names a file"));
    CHECK(run_shell("cd f; attn batch --no-files --mode self there.json").code == 0);
}

TEST_CASE("batch: an error shows nothing of what is in a file that a request names") {
    make_folder();
    const std::string secret = "Qz7Secret";
    std::size_t errors = 0;
    for (const std::string& name :
         {std::string("journey.csv"), std::string("softmax.json"), std::string("requests.ndjson"),
          std::string("journey_result.json"), std::string("models/gpt2/config.json"),
          std::string("models/gpt2/model.safetensors"), std::string("arrays/matrix_f4.npy"),
          std::string("arrays/large_deflated.npz")}) {
        CAPTURE(name);
        const std::string text = read_text(data_path(name)), suffix = fs::path(name).extension();
        std::string lines;
        for (std::size_t at = 0; at < std::min<std::size_t>(text.size(), 900); at += 11) {
            const std::string file = "m" + std::to_string(at) + suffix;
            std::string other = text;
            other.replace(at, at % 2 == 0 ? secret.size() : 0, secret);
            write_text("f/" + file, other);
            for (const char* key : {"inputs", "mask", "weights", "model_config"})
                lines += naming({key, "self", true}, file);
        }
        write_text("f/r.ndjson", lines);
        for (const std::string& line : lines_of(run_shell("cd f; attn batch r.ndjson").out)) {
            const json answer = json::parse(line);
            if (!answer.contains("error")) continue;
            ++errors;
            CAPTURE(line);
            CHECK_FALSE(contains(line, secret));
            CHECK_FALSE(contains(line, "Secret"));
        }
    }
    CHECK(errors > 500);
    // What an index names, a file that is not there among it.
    fs::create_directory("f/m");
    write_text("f/m/model.safetensors.index.json",
               R"({"weight_map": {"h.0.attn.c_attn.weight": ")" + secret + " words\"}}");
    write_text("f/r.ndjson", naming({"weights", "self", true}, "m"));
    const std::string answer = run_shell("cd f; attn batch r.ndjson").out;
    CHECK(contains(answer, "file not found"));
    CHECK_FALSE(contains(answer, secret));
    CHECK(contains(run_shell("cd f; attn inspect m").err, secret));
    // To who names the file, it is shown.
    write_text("f/x.json", "[[1, " + secret + "]]");
    CHECK(contains(run_shell("cd f; attn self x.json").err, secret));
    CHECK(contains(run_shell("cd f; attn batch --each --mode self x.json").out, secret));
}

}  // namespace
}  // namespace batch_files_test
