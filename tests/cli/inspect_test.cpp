// attn inspect, through the real binary: what it shows of a file is what the file was made of.
#include "io/file/bytes.hpp"
#include "io/text/text.hpp"
#include "tests/support/answers.hpp"
#include "tests/support/model_cases.hpp"
#include "tests/support/process.hpp"

namespace inspect_test {
namespace {

using namespace attn::test;
using nlohmann::json;

json inspected(const Words& words, const std::string& input = "") {
    return answer(Words{"inspect"} + words + Words{"--format", "json"}, input);
}

json array_named(const json& found, const std::string& name) {
    for (const json& array : found["arrays"])
        if (array["name"] == name) return array;
    return {};
}

std::string problem_of(const json& found) {
    return found.value("problem", "");
}

/// A file of safetensors with these tensors of float32, and `size` bytes of zeros that take no
/// space on the disk.
void write_tensors(const std::string& path, const json& shapes) {
    json header = json::object();
    std::uint64_t end = 0;
    for (const auto& [name, shape] : shapes.items()) {
        std::uint64_t bytes = 4;
        for (const json& size : shape) bytes *= size.get<std::uint64_t>();
        header[name] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {end, end + bytes}}};
        end += bytes;
    }
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    write_text(path, attn::io::bytes_of_number(text.size(), 8) + text);
    std::filesystem::resize_file(path, 8 + text.size() + end);
}

TEST_CASE("inspect: every file of data/arrays has the shapes and types that NumPy gave it") {
    const json expected = load_data("arrays/expected.json");
    std::size_t count = 0;
    for (const json& entry : expected["readable"]) {
        const std::string file = entry["file"];
        CAPTURE(file);
        const json found = inspected({data_path("arrays/" + file)});
        const std::string name = entry.value("array", "");
        const json array = name.empty() ? found["arrays"][0] : array_named(found, name);
        CHECK(array["shape"] == entry["shape"]);
        std::uint64_t elements = 1;
        for (const json& size : entry["shape"]) elements *= size.get<std::uint64_t>();
        CHECK(array["elements"] == elements);
        if (entry.contains("dtype") && !file.ends_with(".safetensors")) {
            CHECK(array["dtype"] == entry["dtype"]);
            const std::string dtype = entry["dtype"];
            CHECK(array["bytes"] == elements * static_cast<std::uint64_t>(dtype.back() - '0'));
        }
        if (!name.empty()) {
            const json one = inspected({data_path("arrays/" + file) + ":" + name});
            CHECK(one["kind"] == "array");
            CHECK(one["arrays"] == json::array({array}));
        }
        ++count;
    }
    CHECK(count > 40);
    // Types that cannot be read are there all the same.
    CHECK(inspected({data_path("arrays/complex.npy")})["arrays"][0]["dtype"] == "<c8");
}

TEST_CASE("inspect: a result has the same arrays, shapes and settings in every format") {
    for (const Words& mode : {Words{"self", data_path("journey.csv")},
                              {"multihead", data_path("journey_twice.json"), "--heads", "3"}})
        for (const std::string format : {"json", "ndjson", "npz", "safetensors"})
            for (const std::string emit : {"all", "context_vectors"}) {
                CAPTURE(format);
                const Words words = mode + Words{"--emit", emit};
                const json result = result_of(words + Words{"--format", "json"});
                const std::string path = "result." + format;
                REQUIRE(run_attn(words + Words{"-o", path}).code == 0);
                const json found = inspected({path});
                CHECK(found["kind"] == "result");
                CHECK(found["format"] == format);
                CHECK(found["members"]["mode"] == mode[0]);
                CHECK(found["members"]["shapes"] == result["shapes"]);
                json config = found["members"]["config"];
                config["format"] = result["config"]["format"];
                CHECK(config == result["config"]);
                CHECK(found["arrays"].size() >= (emit == "all" ? 8 : 1));
                for (const json& array : found["arrays"]) {
                    const std::string name = array["name"];
                    CHECK(array["shape"] == json(shape_of(result[name])));
                    CHECK((array["dtype"] == "number") == format.ends_with("json"));
                }
                for (const auto& [name, axes] : result["layout"]["axes"].items())
                    CHECK_FALSE(array_named(found, name).is_null());
            }
}

TEST_CASE("inspect: every kind of file is recognised") {
    run_shell("attn causal --example journey --save-weights weights.npz -o result.json");
    run_shell("attn compare result.json result.json --format json > comparison.json");
    run_shell("attn inspect result.json --format json > inspection.json");
    run_shell("attn batch " + data_path("requests.ndjson") + " > results.ndjson");
    run_shell("attn batch --dry-run " + data_path("requests.ndjson") + " | head -n 1 > cost.json");
    const std::vector<std::pair<std::string, std::string>> texts{
        {"[[1, 2], [3, 4]]", "array"},
        {"1,2\n3,4\n", "array"},
        {"[1, 2]\n[3, 4]\n", "array"},
        {R"({"inputs": [[1, 2]], "d_out": 2})", "request"},
        {R"({"mode": "self", "seed": 3})", "request"},
        {R"({"query": [[1]], "key": [[1]], "value": [[1]]})", "request"},
        {R"({"a": [[1, 2]], "b": [[[true]]]})", "arrays"},
        {R"({"W_query": [[1]], "W_key": [[1]], "W_value": [[1]], "mask": [[0]]})", "model"},
        {R"({"id": 1, "error": {"kind": "usage", "where": "a", "message": "b"}})", "error"},
        {R"({"model_type": "gpt2", "n_head": 12})", "config"},
        {"{\"id\": 7, \"inputs\": [[1]]}\n\n{\"id\": \"b\", \"error\": {}}\n", "lines"}};
    for (const auto& each : texts) {
        INFO(each.first);
        CHECK(inspected({}, each.first)["kind"] == each.second);
    }
    CHECK(inspected({"-"}, texts.back().first)["lines"] ==
          json{{"count", 2},
               {"kinds", {{"error", 1}, {"request", 1}}},
               {"first_id", 7},
               {"last_id", "b"}});
    for (const auto& [file, kind] : {std::pair("result.json", "result"),
                                     {"weights.npz", "weights"},
                                     {"comparison.json", "comparison"},
                                     {"inspection.json", "inspection"},
                                     {"results.ndjson", "lines"},
                                     {"cost.json", "cost"}})
        CHECK(inspected({file})["kind"] == kind);
    CHECK(inspected({"results.ndjson"})["lines"]["kinds"] == json{{"result", 3}});
    const json csv = inspected({data_path("journey.csv")});
    CHECK(csv["header"] == json{"token", "x1", "x2", "x3"});
    CHECK(csv["tokens"].size() == 6);
    CHECK(inspected({}, "1,2\n3,4\n").contains("header") == false);
    const json request = inspected({}, R"({"mode": "causal", "inputs": [[1, 2]], "window": [1, 0],
                                           "tokens": ["a"], "seed": 3})");
    CHECK(request["members"] == json{{"mode", "causal"}, {"window", {1, 0}}, {"seed", 3}});
    CHECK(request["arrays"].size() == 1);
    CHECK(problem_of(request) == "");
    CHECK(problem_of(inspected({}, R"({"mode": "causal", "inputs": [[1]], "sede": 3})")) ==
          "<stdin>:1:37: unknown key \"sede\"; did you mean \"seed\"?");
}

TEST_CASE("inspect: a model's heads, norms and positions are those of its library") {
    std::size_t count = 0;
    const json cases = load_data("models/expected.json")["cases"];
    for (const json& model : cases) {
        if (!model.contains("heads")) continue;
        const std::string family = model["family"];
        const std::string path = data_path("models/" + model["path"].get<std::string>());
        CAPTURE(path);
        Words words{path};
        if (model.contains("layer")) words = words + Words{"--layer", model["layer"].dump()};
        const json found = inspected(words);
        CHECK(found["kind"] == "model");
        json facts = found["model"];
        const bool is_relative = family == "mistral" || family == "qwen2";
        CHECK(facts["family"] == (is_relative ? "llama" : family));
        const json inputs = model.value("inputs", model.value("hidden", json()));
        if (!inputs.is_null()) CHECK(facts["d_in"] == shape_of(inputs).back());
        if (facts.contains("head_dim") && model.contains("keys"))
            CHECK(facts["head_dim"] == shape_of(model["keys"]).back());
        ++count;
        if (!std::filesystem::exists(path + "/config.json")) continue;
        CHECK(problem_of(found) == "");
        CHECK(facts.contains("norm") == (family != "bert"));
        CHECK(facts["vocab_size"] == 11);
        const json set = facts.value("settings", json::object());
        CHECK(set.value("heads", 0) == model["heads"]);
        CHECK(set.value("kv_heads", model["heads"]) == model["kv_heads"]);
        CHECK(set.value("causal", true) == model["causal"]);
        const json rope = model.value("rope", json::object());
        CHECK(set.value("rope", "off") == rope.value("style", "off"));
        CHECK(set.value("rope_base", 0.0) == rope.value("base", 0.0));
        const int dims = rope.value("dims", 0);
        CHECK(set.value("rope_dims", dims) == dims);
        const json window = model.value("sliding_window", json());
        CHECK(set.contains("window") == !window.is_null());
        if (set.contains("window")) CHECK(set["window"][0] == window.get<int>() - 1);
    }
    CHECK(count >= 17);
}

TEST_CASE("inspect: the command that it shows runs, of every model and of what attn saves") {
    std::size_t ran = 0;
    const auto check = [&](const std::string& path) {
        CAPTURE(path);
        const json found = inspected({path});
        CHECK((found["kind"] == "model" || found["kind"] == "weights"));
        if (found.contains("problem")) {
            CHECK(problem_of(found).starts_with("--heads: missing"));
            return;
        }
        std::string command = found["command"];
        if (command.ends_with(" FILE")) return;  // an image or sound
        if (const std::size_t at = command.find("INPUT"); at != std::string::npos) {
            const std::size_t d_in = found["model"]["d_in"];
            write_text("input.json", nested({2, d_in}, [] { return 0.5; }).dump());
            command.replace(at, 5, "input.json");
        }
        const Outcome outcome = run_shell(command);
        CHECK_MESSAGE(outcome.code == 0, outcome.err);
        ++ran;
    };
    for (const auto& entry : std::filesystem::recursive_directory_iterator(data_path("models"))) {
        const std::string path = entry.path();
        if (path.ends_with("config.json") || contains(path, ".safetensors") ||
            contains(path, "/notebook/"))
            if (!contains(path, "-of-0000")) check(path);
    }
    for (const std::string family : {"gpt2", "llama", "bert", "neox", "mha", "notebook"}) {
        const std::string file = family + " it's.safetensors";
        run_attn({"multihead", "--example", "pair", "--heads", "1", "--kv-heads", "1", "--d-out",
                  "3", "--save-family", family, "--save-weights", file, "--format", "none"});
        check(file);
    }
    std::size_t count = 0;
    for (const json& c : model_cases()) {
        if (count++ % 4 != 0 || is_refused(c)) continue;
        CAPTURE(c["name"].get<std::string>());
        write_model(c, "model");
        check("model");
    }
    CHECK(ran >= 40);
    const json gguf = inspected({data_path("gguf/tiny.gguf"), "--layer", "0"});
    CHECK(gguf["kind"] == "model");
    CHECK(gguf["model"]["family"] == "llama");
}

TEST_CASE("inspect: what --weights refuses shows as the line that it refuses it with") {
    for (const std::string model : {"gpt2", "llama", "bert", "neox"}) {
        CAPTURE(model);
        std::filesystem::remove_all("m");
        std::filesystem::copy(data_path("models/" + model), "m");
        const json config = json::parse(read_text("m/config.json"));
        for (const auto& [key, value] : {std::pair("model_type", json("other")),
                                         {"attention_gate", json(3)},
                                         {"rope_scaling", json{{"type", "yarn"}}},
                                         {"qk_norm", json(true)}}) {
            const std::string changed_key = key;
            CAPTURE(changed_key);
            json changed = config;
            changed[key] = value;
            write_text("m/config.json", changed.dump());
            const json found = inspected({"m"});
            const Outcome asked = run_attn({"multihead", "--weights", "m", "--token-ids", "0"});
            if (asked.code == 0) {  // GPT-2 and BERT have no angles to scale
                CHECK(problem_of(found) == "");
            } else if (found.contains("command")) {
                CHECK(run_attn({"model", "m", "--token-ids", "0", "-o", "out.json"}).code == 0);
                CHECK(found["command"].get<std::string>().starts_with("attn model "));
                CHECK(problem_of(found) == "");
            } else {
                CHECK("attn: error: " + problem_of(found) + "\n" == asked.err);
            }
        }
    }
    write_tensors("x.safetensors", {{"h.0.attn.c_attn.weight", {4, 12}},
                                    {"h.0.attn.c_proj.weight", {4, 4}},
                                    {"h.0.attn.q_norm.weight", {4}}});
    CHECK(contains(problem_of(inspected({"x.safetensors"})), "h.0.attn.q_norm.weight"));
}

TEST_CASE("inspect: a file of 100 GB is looked at in little memory") {
    json shapes;
    for (int i = 0; i < 32; ++i)
        for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
            shapes["model.layers." + std::to_string(i) + ".self_attn." + name + ".weight"] = {
                14000, 14000};
    write_tensors("large.safetensors", shapes);
    Process attn({"inspect", "large.safetensors"});
    attn.close_input();
    std::string all;
    while (const auto line = attn.read_line()) all += *line + "\n";
    const Ending ending = attn.wait();
    CHECK(ending.err == "");
    CHECK(ending.code == 0);
#ifndef ATTN_SANITIZED
    CHECK(ending.peak_kib < 64 << 10);
#endif
    CHECK(contains(all, "layers        0 to 31"));
    CHECK(contains(all, "GiB ("));
    std::filesystem::remove("large.safetensors");
}

TEST_CASE("inspect: the page is as wide as the place, whatever the names") {
    write_text("names.json",
               json{{std::string(300, 'n'), {{1, 2}}},
                    {"日本語の名前がとても長い場合でも表は崩れないはずです日本語の名前", {{1, 2}}},
                    {"tab\tand \x1b[31mred", {{1, 2}}}}
                   .dump());
    run_shell("attn causal --example journey -o result.json");
    for (const std::string& path : {std::string("names.json"), std::string("result.json"),
                                    data_path("models/neox"), data_path("journey.csv")})
        for (std::size_t columns = 50; columns <= 120; columns += 7) {
            CAPTURE(path);
            CAPTURE(columns);
            for (const std::string& line :
                 lines_of(run_shell("COLUMNS=" + std::to_string(columns) + " attn inspect " + path)
                              .out)) {
                for (char c : line) CHECK(static_cast<unsigned char>(c) >= 0x20);
                const bool may_be_long = line.starts_with("try: ") || contains(line, ": ") ||
                                         contains(line, "; and ") || contains(line, "[");
                if (!may_be_long) CHECK(attn::io::display_width(line) <= columns);
            }
        }
}

}  // namespace
}  // namespace inspect_test
