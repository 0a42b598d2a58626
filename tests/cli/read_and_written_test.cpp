// No command replaces a file that it has read, by whatever name.
#include "tests/support/answers.hpp"

namespace read_and_written_test {
namespace {

using namespace attn::test;
namespace fs = std::filesystem;

struct Reader {
    std::string command;  ///< a line of shell, with OUT for the output
    std::string suffix;   ///< of an output of this command
    Words files;          ///< that it reads
};

const std::vector<Reader>& readers() {
    static const std::vector<Reader> all{
        {"attn self x.csv -o OUT", ".json", {"x.csv"}},
        {"attn self x.csv --emit context_vectors -o OUT", ".csv", {"x.csv"}},
        {"attn self x.csv --format none --save-weights OUT", ".safetensors", {"x.csv"}},
        {"attn self x.csv --format none --plot OUT", ".svg", {"x.csv"}},
        {"attn self -o OUT < x.csv", ".json", {"x.csv"}},
        {"attn self - -o OUT < x.csv", ".npz", {"x.csv"}},
        {"attn cross x.csv --context c.csv -o OUT", ".npz", {"x.csv", "c.csv"}},
        {"attn sdpa --query q.npz:context_vectors --key q.npz:context_vectors "
         "--value q.npz:context_vectors -o OUT",
         ".npz",
         {"q.npz"}},
        {"attn self x.csv --mask mask.json --past-key past.csv --past-value past.csv -o OUT",
         ".json",
         {"x.csv", "past.csv", "mask.json"}},
        {"attn self x.csv --config flags.json -o OUT", ".json", {"x.csv", "flags.json"}},
        {"ATTN_CONFIG=flags.json attn self x.csv -o OUT", ".json", {"flags.json"}},
        {"attn self --config r.json -o OUT", ".json", {"r.json"}},
        {"attn self r.npz -o OUT", ".npz", {"r.npz"}},
        {"attn self request.json -o OUT", ".json", {"request.json", "x.csv"}},
        {"attn multihead --weights gpt2 --token-ids 1,2 -o OUT",
         ".json",
         {"gpt2/model.safetensors", "gpt2/config.json"}},
        {"attn model gpt2 --token-ids 1,2 -o OUT",
         ".safetensors",
         {"gpt2/model.safetensors", "gpt2/config.json"}},
        {"attn model model.json -o OUT",
         ".json",
         {"model.json", "gpt2/model.safetensors", "gpt2/config.json"}},
        {"attn tokenize words hello -o OUT", ".json", {"words/tokenizer.json"}},
        {"attn batch many.ndjson -o OUT",
         ".ndjson",
         {"many.ndjson", "x.csv", "gpt2/model.safetensors", "gpt2/config.json"}},
        {"attn batch -o OUT < many.ndjson", ".ndjson", {"many.ndjson"}},
        {"attn batch many.ndjson >> OUT", ".ndjson", {"many.ndjson", "x.csv"}},
        {"attn batch one.ndjson --weights gpt2 --mode multihead -o OUT",
         ".ndjson",
         {"one.ndjson", "gpt2/model.safetensors"}},
        {"attn batch one.ndjson --weights gpt2/model.safetensors --mode multihead -o OUT",
         ".json",
         {"gpt2/config.json"}},
        {"attn batch one.ndjson --weights gpt2/w.safetensors.index.json --mode multihead -o OUT",
         ".json",
         {"gpt2/part.safetensors", "gpt2/w.safetensors.index.json"}},
        {"attn batch one.ndjson --weights gpt2 --mode multihead --config flags.json --resume OUT",
         ".json",
         {"flags.json"}},
        {"ATTN_CONFIG=flags.json attn batch many.ndjson -o OUT", ".json", {"flags.json"}},
        {"attn batch many.ndjson --shard 1/2 -o OUT", ".ndjson", {"many.ndjson", "x.csv"}},
        {"attn scan gpt2 texts.ndjson -o OUT",
         ".json",
         {"texts.ndjson", "gpt2/model.safetensors", "gpt2/config.json"}},
        {"attn partial sdpa --query c.csv --key c.csv --value c.csv --kv-range 0:2 -o OUT",
         ".npz",
         {"c.csv"}},
        {"attn merge a.npz b.npz -o OUT", ".json", {"a.npz", "b.npz"}},
        {"attn explain self x.csv -o OUT", ".md", {"x.csv"}},
        {"attn explain r.json -o OUT", ".html", {"r.json"}},
        {"attn check self x.csv --against r.json -o OUT", ".json", {"x.csv", "r.json"}},
        {"attn check self x.csv --against r.npz:context_vectors -o OUT", ".json", {"r.npz"}},
        {"attn check r.npz --against r.json -o OUT", ".txt", {"r.npz", "r.json"}},
        {"attn check many.ndjson --against answers.ndjson -o OUT",
         ".ndjson",
         {"many.ndjson", "answers.ndjson", "x.csv", "gpt2/model.safetensors"}},
        {"attn repro self x.csv -o OUT", ".py", {"x.csv"}},
        {"attn repro r.json --to c -o OUT", ".c", {"r.json"}},
        {"attn plot r.json -o OUT", ".svg", {"r.json"}},
        {"attn plot x.csv -o OUT", ".html", {"x.csv"}},
    };
    return all;
}

void write_files() {
    write_text("x.csv", "1,2\n0.5,3\n");
    write_text("c.csv", "1,2\n0.5,-1\n0,1\n");
    write_text("past.csv", "1,2\n0,1\n1,1\n");
    write_text("mask.json", "[0,-1,0,0,0]");
    write_text("flags.json", R"({"seed": 3})");
    write_text("request.json", R"({"inputs": "x.csv"})");
    write_text("model.json", R"({"mode": "model", "model": "gpt2", "token_ids": [1, 2]})");
    write_text("one.ndjson", R"({"token_ids": [1, 2]})"
                             "\n");
    write_text("many.ndjson", R"({"mode": "self", "inputs": "x.csv"}
{"mode": "multihead", "weights": "gpt2", "token_ids": [1, 2]}
)");
    write_text("texts.ndjson", R"({"token_ids": [1, 2, 3]})"
                               "\n");
    fs::create_directory("words");
    write_text("words/tokenizer.json",
               R"({"model": {"type": "WordLevel", "vocab": {"hello": 0, "[UNK]": 1},
                   "unk_token": "[UNK]"}, "pre_tokenizer": {"type": "Whitespace"}})");
    fs::create_directory("gpt2");
    for (const char* file : {"model.safetensors", "config.json"})
        fs::copy(data_path(std::string("models/gpt2/") + file), std::string("gpt2/") + file,
                 fs::copy_options::overwrite_existing);
    write_text("gpt2/part.safetensors", read_text("gpt2/model.safetensors"));
    std::string parts = R"("wte.weight": "part.safetensors", "wpe.weight": "part.safetensors")";
    for (const std::string name : {"ln_f", "h.0.ln_1", "h.0.ln_2", "h.0.attn.c_attn",
                                   "h.0.attn.c_proj", "h.0.mlp.c_fc", "h.0.mlp.c_proj"})
        for (const std::string kind : {".weight", ".bias"})
            parts += ", \"" + name + kind + R"(": "part.safetensors")";
    write_text("gpt2/w.safetensors.index.json", R"({"weight_map": {)" + parts + "}}");
    const Outcome made = run_shell(
        "attn self x.csv --emit all -o r.json && attn self x.csv --emit all -o r.npz && "
        "attn self c.csv -o q.npz && attn batch many.ndjson -o answers.ndjson && "
        "attn partial sdpa --query c.csv --key c.csv --value c.csv --kv-range 0:2 -o a.npz && "
        "attn partial sdpa --query c.csv --key c.csv --value c.csv --kv-range 2:3 -o b.npz");
    CAPTURE(made.err);
    REQUIRE(made.code == 0);
}

std::string with_output(std::string command, const std::string& output) {
    return command.replace(command.find("OUT"), 3, output);
}

TEST_CASE("no command replaces a file that it has read: every command, input, output and link") {
    write_files();
    for (const Reader& reader : readers()) {
        CAPTURE(reader.command);
        const std::string output = "out" + reader.suffix;
        // Without a link the command writes its output.
        fs::remove(output);
        const Outcome alone = run_shell(with_output(reader.command, output));
        CAPTURE(alone.err);
        CHECK(alone.code == 0);
        for (const std::string& file : reader.files) {
            CAPTURE(file);
            const std::string before = read_text(file);
            Words names;
            if (file.ends_with(reader.suffix)) names = {file, "./" + file};
            for (const std::string kind : {"hard", "soft"}) {
                const std::string name = kind + output;
                fs::remove(name);
                kind == "hard" ? fs::create_hard_link(file, name) : fs::create_symlink(file, name);
                names.push_back(name);
            }
            for (const std::string& name : names) {
                CAPTURE(name);
                const Outcome outcome = run_shell(with_output(reader.command, name));
                CAPTURE(outcome.err);
                CHECK(outcome.code == 2);
                CHECK(outcome.out.empty());
                CHECK(contains(outcome.err, "is read and written"));
                REQUIRE(read_text(file) == before);
            }
        }
    }
}

TEST_CASE("outputs that replace nothing that is read: pipes, new files, own outputs") {
    write_files();
    for (const char* command :
         {"attn self x.csv -o /dev/stdout | cat", "attn self x.csv -o /dev/stdout > new.json",
          "attn self x.csv >> x2.csv", "attn self x.csv -o new.json && attn self x.csv -o new.json",
          "cat x.csv | attn self -o x.csv.json",
          "attn batch many.ndjson -o b.ndjson && attn batch many.ndjson --resume b.ndjson",
          "attn batch many.ndjson --resume b.ndjson --retry-failed",
          "attn batch many.ndjson --out-dir parts && attn batch many.ndjson --out-dir parts "
          "--resume",
          "attn scan gpt2 texts.ndjson --resume s.json && attn scan gpt2 texts.ndjson --resume "
          "s.json",
          "attn batch one.ndjson --weights gpt2 --mode multihead -o gpt2/out.json",
          "attn model gpt2 --token-ids 1,2 -o gpt2/out.json && "
          "attn model gpt2 --token-ids 1,2 -o gpt2/out.json"}) {
        CAPTURE(command);
        const Outcome outcome = run_shell(command);
        CAPTURE(outcome.err);
        CHECK(outcome.code == 0);
    }
}

}  // namespace
}  // namespace read_and_written_test
