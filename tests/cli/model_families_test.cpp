// Whole models: a small one of each family against the library that published its kind.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"

using namespace attn::test;
using nlohmann::json;

namespace {

/// The elements of a tensor, drawn from its name; see tests/make_model_cases.py.
std::string drawn(const std::string& name, std::size_t count, double mean, double deviation) {
    std::uint64_t state = 0xCBF29CE484222325U;
    for (const char c : name)
        state = (state ^ static_cast<unsigned char>(c)) * std::uint64_t{0x100000001B3U};
    std::string bytes(count * sizeof(float), '\0');
    for (std::size_t i = 0; i < count; ++i) {
        std::uint64_t bits = state + (i + 1) * std::uint64_t{0x9E3779B97F4A7C15U};
        bits = (bits ^ (bits >> 30U)) * std::uint64_t{0xBF58476D1CE4E5B9U};
        bits = (bits ^ (bits >> 27U)) * std::uint64_t{0x94D049BB133111EBU};
        bits ^= bits >> 31U;
        const double uniform = static_cast<double>(bits >> 40U) * 0x1p-23 - 1;
        const auto value = static_cast<float>(mean + deviation * std::sqrt(3.0) * uniform);
        std::memcpy(&bytes[i * sizeof(float)], &value, sizeof(float));
    }
    return bytes;
}

struct Tensor {
    std::string name;
    std::vector<std::size_t> shape;
    std::string data;
};

void write_tensors(const std::vector<Tensor>& tensors, const std::string& path) {
    json header = json::object();
    std::string data;
    for (const Tensor& tensor : tensors) {
        header[tensor.name] = {{"dtype", "F32"},
                               {"shape", tensor.shape},
                               {"data_offsets", {data.size(), data.size() + tensor.data.size()}}};
        data += tensor.data;
    }
    const std::string text = header.dump();
    std::string length(8, '\0');
    for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(text.size() >> (8 * i));
    write_text(path, length + text + data);
}

std::vector<Tensor> tensors_of(const json& c) {
    std::vector<Tensor> tensors;
    for (const auto& [name, row] : c["tensors"].items()) {
        const auto shape = row[0].get<std::vector<std::size_t>>();
        std::size_t count = 1;
        for (const std::size_t size : shape) count *= size;
        tensors.push_back({name, shape, drawn(name, count, row[1], row[2])});
    }
    return tensors;
}

/// The rows of a matrix in another order: row i is the given one.
template <class Source>
void reorder_rows(Tensor& tensor, const Source& source) {
    const std::size_t row = tensor.data.size() / tensor.shape[0];
    std::string data;
    for (std::size_t i = 0; i < tensor.shape[0]; ++i)
        data += tensor.data.substr(source(i) * row, row);
    tensor.data = data;
}

void transpose(Tensor& tensor) {
    std::string data;
    const std::size_t rows = tensor.shape[0], columns = tensor.shape[1];
    for (std::size_t column = 0; column < columns; ++column)
        for (std::size_t row = 0; row < rows; ++row)
            data += tensor.data.substr((row * columns + column) * sizeof(float), sizeof(float));
    tensor.data = data;
    tensor.shape = {columns, rows};
}

std::string renamed(std::string name,
                    const std::vector<std::pair<std::string, std::string>>& changes) {
    for (const auto& [from, to] : changes)
        if (const std::size_t at = name.find(from); at != std::string::npos)
            name.replace(at, from.size(), to);
    return name;
}

/// Writes the case's model into a folder of the scratch folder.
void write_model(const json& c, const std::string& folder) {
    std::filesystem::create_directories(scratch_folder() + "/" + folder);
    write_text(folder + "/config.json", c["config"].dump());
    write_tensors(tensors_of(c), folder + "/model.safetensors");
}

std::string ids_of(const json& c) {
    std::string text;
    for (const json& id : c["token_ids"]) text += (text.empty() ? "" : ",") + id.dump();
    return text;
}

/// The largest difference from the expected array, as a part of its largest number or of 1.
double difference_of(const json& found, const json& expected) {
    const std::vector<double> a = flat(found), b = flat(expected);
    REQUIRE_EQ(a.size(), b.size());
    double largest = 1, difference = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        largest = std::max(largest, std::abs(b[i]));
        if (!(std::abs(a[i] - b[i]) <= difference)) difference = std::abs(a[i] - b[i]);
    }
    return difference / largest;
}

/// Whether the model has state-space layers, which are not computed.
bool is_refused(const json& c) {
    const std::string type = c["config"]["model_type"], name = c["name"];
    return type == "bamba" || type == "falcon_h1" || type == "jamba" || type == "nemotron_h" ||
           name == "granitemoehybrid";
}

std::vector<json> family_cases() {
    std::istringstream lines(read_text(data_path("models/families.ndjson")));
    std::vector<json> cases;
    for (std::string line; std::getline(lines, line);) cases.push_back(json::parse(line));
    return cases;
}

}  // namespace

TEST_CASE("models: a model of each family agrees with the library's float64") {
    const std::vector<json> cases = family_cases();
    REQUIRE_GE(cases.size(), 100);
    for (const json& c : cases) {
        const std::string name = c["name"], folder = "model";
        CAPTURE(name);
        write_model(c, folder);
        const Outcome run = run_attn({"model", folder, "--token-ids", ids_of(c), "--dtype",
                                      "float64", "--emit", "last_hidden_state,attention_weights"});
        if (is_refused(c)) {
            CHECK_EQ(run.code, 2);
            CHECK_NE(run.err.find("is a state-space layer"), std::string::npos);
            continue;
        }
        REQUIRE_MESSAGE(run.code == 0, run.err);
        const json found = json::parse(run.out);
        for (const auto& entry : c["expected"].items()) {
            const std::string& array = entry.key();
            const json& expected = entry.value();
            CAPTURE(array);
            const std::size_t dot = array.find('.');
            const json& own = dot == std::string::npos
                                  ? found[array]
                                  : found[array.substr(0, dot)][std::stoul(array.substr(dot + 1))];
            CHECK_LE(difference_of(own, expected), 1e-8);
        }
    }
}

TEST_CASE("models: multihead computes a layer of a family, or names what it does not compute") {
    std::size_t computed = 0;
    for (const json& c : family_cases()) {
        const json& expected = c["expected"];
        if (is_refused(c)) continue;
        const std::string name = c["name"];
        CAPTURE(name);
        write_model(c, "model");
        for (std::size_t layer = 0; layer < 4; ++layer) {
            const std::string array = "attention_weights." + std::to_string(layer);
            if (!expected.contains(array) && layer != 0) continue;
            const Outcome run =
                run_attn({"multihead", "--weights", "model", "--layer", std::to_string(layer),
                          "--token-ids", ids_of(c), "--dtype", "float64"});
            CAPTURE(run.err);
            if (run.code == 0) {
                ++computed;
                if (!expected.contains(array)) continue;
                CHECK_LE(difference_of(json::parse(run.out)["attention_weights"], expected[array]),
                         1e-8);
                continue;
            }
            const bool says_how_to_go_on = run.err.find("attn model") != std::string::npos ||
                                           run.err.find("--rope-scaling") != std::string::npos;
            CHECK(says_how_to_go_on);
            CHECK(run.out.empty());
        }
    }
    CHECK_GE(computed, 90);
}

TEST_CASE("models: nanoGPT and Meta's Llama without a config.json are the same models") {
    const std::vector<std::string> arrays{"last_hidden_state", "logits", "attention_weights"};
    const auto ask = [&](const json& c, std::vector<std::string> command) {
        command.insert(command.end(), {"--token-ids", ids_of(c), "--dtype", "float64", "--emit",
                                       "last_hidden_state,logits,attention_weights"});
        return run_attn(command);
    };
    const auto check_same = [&](const Outcome& found, const Outcome& expected) {
        REQUIRE_MESSAGE(found.code == 0, found.err);
        REQUIRE_MESSAGE(expected.code == 0, expected.err);
        for (const std::string& array : arrays)
            CHECK_LE(difference_of(json::parse(found.out)[array], json::parse(expected.out)[array]),
                     1e-12);
    };
    std::filesystem::create_directories(scratch_folder() + "/layout");
    for (json c : family_cases()) {
        const json& config = c["config"];
        std::vector<Tensor> tensors = tensors_of(c);
        if (c["name"] == "gpt2") {
            c["config"]["activation_function"] = "gelu";
            write_model(c, "model");
            for (Tensor& tensor : tensors) {
                if (tensor.shape.size() == 2 && tensor.name.find(".h.") != std::string::npos)
                    transpose(tensor);
                tensor.name = "_orig_mod." + tensor.name;
            }
            write_tensors(tensors, "layout/model.safetensors");
            const std::string heads = std::to_string(
                config.value(config.contains("n_head") ? "n_head" : "num_attention_heads", 0));
            const std::vector<std::string> command{"model", "layout",         "--family",
                                                   "gpt2",  "--model-config", "none"};
            std::vector<std::string> whole = command;
            whole.insert(whole.end(), {"--heads", heads});
            check_same(ask(c, whole), ask(c, {"model", "model"}));
            const Outcome missing = ask(c, command);
            CHECK_EQ(missing.code, 2);
            CHECK_NE(missing.err.find("--heads: missing"), std::string::npos);
        }
        if (c["name"] != "llama") continue;
        write_model(c, "model");
        const auto heads = config["num_attention_heads"].get<std::size_t>();
        for (Tensor& tensor : tensors) {
            const bool turns = tensor.name.find("q_proj") != std::string::npos ||
                               tensor.name.find("k_proj") != std::string::npos;
            const std::size_t d =
                config.value("head_dim", config["hidden_size"].get<std::size_t>() / heads);
            if (turns)  // pairs next to each other
                reorder_rows(
                    tensor, [d](std::size_t i) { return i / d * d + i % 2 * (d / 2) + i % d / 2; });
            tensor.name = renamed(tensor.name, {{"model.", ""},
                                                {"self_attn.q_proj", "attention.wq"},
                                                {"self_attn.k_proj", "attention.wk"},
                                                {"self_attn.v_proj", "attention.wv"},
                                                {"self_attn.o_proj", "attention.wo"},
                                                {"mlp.gate_proj", "feed_forward.w1"},
                                                {"mlp.down_proj", "feed_forward.w2"},
                                                {"mlp.up_proj", "feed_forward.w3"},
                                                {"input_layernorm", "attention_norm"},
                                                {"post_attention_layernorm", "ffn_norm"},
                                                {"embed_tokens", "tok_embeddings"},
                                                {"lm_head", "output"}});
        }
        write_tensors(tensors, "layout/model.safetensors");
        const json base = config.contains("rope_parameters")
                              ? config["rope_parameters"]["rope_theta"]
                              : config.value("rope_theta", json(10000));
        const Outcome expected = ask(c, {"model", "model"});
        check_same(ask(c, {"model", "layout", "--family", "meta", "--model-config", "none",
                           "--heads", std::to_string(heads), "--rope-base", base.dump(),
                           "--norm-eps", config["rms_norm_eps"].dump()}),
                   expected);
        const Outcome missing =
            ask(c, {"model", "layout", "--family", "meta", "--model-config", "none"});
        CHECK_EQ(missing.code, 2);
        CHECK_NE(missing.err.find("--heads: missing, as are --rope-base and --norm-eps"),
                 std::string::npos);
        json params{{"n_heads", heads}, {"rope_theta", base}, {"norm_eps", config["rms_norm_eps"]}};
        write_text("layout/params.json", params.dump());
        check_same(ask(c, {"model", "layout"}), expected);
        params["qk_norm"] = true;
        write_text("layout/params.json", params.dump());
        const Outcome unknown = ask(c, {"model", "layout"});
        CHECK_EQ(unknown.code, 3);
        CHECK_NE(unknown.err.find("qk_norm is true"), std::string::npos);
        std::filesystem::remove(scratch_folder() + "/layout/params.json");
    }
}

TEST_CASE("models: float32 agrees with float64 to float32's error") {
    for (const json& c : family_cases()) {
        const std::string name = c["name"];
        if (name != "gpt2" && name != "llama" && name != "bert" && name != "qwen3") continue;
        CAPTURE(name);
        write_model(c, "model");
        for (const char* kernel : {"auto", "reference", "generic"}) {
            const Outcome run = run_attn({"model", "model", "--token-ids", ids_of(c), "--kernel",
                                          kernel, "--emit", "last_hidden_state"});
            REQUIRE_MESSAGE(run.code == 0, run.err);
            CHECK_LE(difference_of(json::parse(run.out)["last_hidden_state"],
                                   c["expected"]["last_hidden_state"]),
                     1e-5);
        }
    }
}

TEST_CASE("models: the layers and arrays that are asked for, in every format") {
    const std::string path = data_path("models/gpt2");
    const Outcome all = run_attn({"model", path, "--token-ids", "3,1,4", "--emit", "all"});
    REQUIRE_MESSAGE(all.code == 0, all.err);
    const json whole = json::parse(all.out);
    CHECK_EQ(whole["layer_numbers"], json({0, 1}));
    CHECK_EQ(whole["hidden_states"].size(), 3);
    CHECK_EQ(whole["attention_weights"].size(), 2);
    const Outcome last =
        run_attn({"model", path, "--token-ids", "3,1,4", "--layers", "-1", "--head", "1"});
    REQUIRE_MESSAGE(last.code == 0, last.err);
    const json one = json::parse(last.out);
    CHECK_EQ(one["layer_numbers"], json({1}));
    CHECK_EQ(one["attention_weights"][0][0], whole["attention_weights"][1][1]);
    CHECK_EQ(one["hidden_states"][1], whole["hidden_states"][2]);
    CHECK_EQ(one["last_hidden_state"], whole["last_hidden_state"]);
    REQUIRE_EQ(run_attn({"model", path, "--token-ids", "3,1,4", "-o", "out.npz"}).code, 0);
    const Outcome listed = run_attn({"inspect", "out.npz", "--format", "json"});
    for (const char* name : {"hidden_states.2", "attention_weights.0", "last_hidden_state"})
        CHECK_NE(listed.out.find('"' + std::string(name) + '"'), std::string::npos);
}

TEST_CASE("models: hidden states of a layer go on from there, as do the layers before --layer") {
    for (const char* model : {"gpt2", "mistral"}) {
        const std::string path = data_path(std::string("models/") + model);
        const Outcome whole = run_attn({"model", path, "--token-ids", "3,1,4", "--dtype", "float64",
                                        "--emit", "hidden_states,last_hidden_state"});
        REQUIRE_MESSAGE(whole.code == 0, whole.err);
        const json found = json::parse(whole.out);
        const std::size_t last = found["layer_numbers"].size() - 1;
        write_text("states.json", found["hidden_states"][last].dump());
        const Outcome rest =
            run_attn({"model", path, "--hidden-states", "states.json", "--layers",
                      std::to_string(last), "--dtype", "float64", "--emit", "last_hidden_state"});
        REQUIRE_MESSAGE(rest.code == 0, rest.err);
        CHECK_LE(
            difference_of(json::parse(rest.out)["last_hidden_state"], found["last_hidden_state"]),
            1e-14);
        const Outcome layer =
            run_attn({"multihead", "--weights", path, "--layer", std::to_string(last),
                      "--token-ids", "3,1,4", "--dtype", "float64", "--emit", "inputs"});
        REQUIRE_MESSAGE(layer.code == 0, layer.err);
        CHECK_LE(difference_of(json::parse(layer.out)["inputs"], found["hidden_states"][last]),
                 1e-14);
    }
}

TEST_CASE("models: generated tokens are those of the whole text computed again") {
    const std::string path = data_path("models/gpt2");
    const Outcome run =
        run_attn({"model", path, "--token-ids", "3,1,4", "--generate", "3", "--dtype", "float64"});
    REQUIRE_MESSAGE(run.code == 0, run.err);
    const json generated = json::parse(run.out)["generated"];
    std::string ids = "3,1,4";
    for (const json& id : generated) {
        const Outcome next = run_attn(
            {"model", path, "--token-ids", ids, "--emit", "next_tokens", "--dtype", "float64"});
        REQUIRE_MESSAGE(next.code == 0, next.err);
        CHECK_EQ(json::parse(next.out)["next_tokens"][0], id);
        ids += "," + id.dump();
    }
}

TEST_CASE("models: any number of threads gives the same bytes") {
    const std::string path = data_path("models/qwen2");
    const auto bytes = [&](const char* threads) {
        return run_attn({"model", path, "--token-ids", "3,1,4", "--threads", threads}).out;
    };
    CHECK_EQ(bytes("1"), bytes("3"));
}
