// Layers of models by `multihead`, and whole models without a config.json.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/drawn_model.hpp"
#include "tests/support/model_cases.hpp"
#include "tests/support/run_attn.hpp"
#include "tests/support/sample.hpp"
#include "tests/support/support.hpp"

namespace model_layouts_test {

using namespace attn::test;
using nlohmann::json;

namespace {

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
        tensors.push_back({name, shape, drawn(name, count_of(row[0]), row[1], row[2])});
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

}  // namespace

TEST_CASE("models: multihead computes a layer of a family, or names what it does not compute") {
    std::size_t computed = 0;
    Sample is_taken;
    for (const json& c : model_cases()) {
        const json& expected = c["expected"];
        if (is_refused(c) || !is_taken.takes()) continue;
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
    if (one_in == 1) CHECK_GE(computed, 90);
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
    for (json c : model_cases()) {
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

}  // namespace model_layouts_test
