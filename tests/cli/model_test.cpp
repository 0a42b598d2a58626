// Layers of published models against an independent float64 computation, see data/README.md; the
// table of families is correct, is in the manual and has a case of each.
#include "io/model/families.hpp"
#include "tests/support/answers.hpp"
#include "tests/support/drawn_model.hpp"

namespace model_test {
namespace {

using namespace attn::test;
using attn::io::Family;
using nlohmann::json;

/// A case with what it shares with another filled in.
json completed(const json& one, const json& all) {
    if (!one.contains("same_as")) return one;
    for (const json& other : all)
        if (other["id"] == one["same_as"]) {
            json merged = other;
            merged.update(one);
            return merged;
        }
    return one;
}

/// The command that computes a case. One head of the notebooks is mode self or causal.
Words command_for(const json& c, bool causal) {
    const std::string family = c["family"], path = c["path"];
    const bool one_head = family == "notebook" && c["heads"] == 1;
    const bool has_config = family != "mha" && family != "notebook";
    Words command{c.contains("context") ? "cross"
                  : one_head            ? (causal ? "causal" : "self")
                                        : "multihead"};
    const auto add = [&](const Words& words) { command = command + words; };
    add({"--weights", data_path("models/" + path), "--emit", "all"});
    if (!has_config && !one_head && c.value("style", "") != "wrapper")
        add({"--heads", std::to_string(c["heads"].get<int>())});
    if (command[0] == "multihead" && !has_config) add({causal ? "--causal" : "--no-causal"});
    if (command[0] == "cross" && causal) add({"--causal", "--causal-align", "top-left"});
    if (c.contains("layer")) add({"--layer", std::to_string(c["layer"].get<int>())});
    if (c.contains("token_ids")) add({"--token-ids", list_of(c["token_ids"])});
    // BERT's norm belongs to its embedding; the others default to theirs with token ids.
    if (!c.contains("token_ids") && c["norm"] == true) add({"--pre-norm"});
    if (c.contains("context")) {
        write_text("context.json", c["context"].dump());
        add({"--context", "context.json"});
    }
    return command;
}

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
    return text;
}

/// The row of this family in the manual's table.
std::string manual_row(const Family& family) {
    const std::string text = manual_text();
    const std::size_t from = text.find("\n| `" + std::string(family.name) + "` |");
    return from == std::string::npos ? "" : text.substr(from, text.find('\n', from + 1) - from);
}

TEST_CASE("models: every family, by the names in its file, gives the independent answer") {
    const json all = load_data("models/expected.json")["cases"];
    CHECK(all.size() >= 20);
    for (const json& one : all) {
        const json c = completed(one, all);
        CAPTURE(c["id"].get<std::string>());
        for (const bool causal : {false, true}) {
            const bool both = c["causal"] == "both";
            if (!both && c["causal"] != causal) continue;
            // float32 rounds each step; numbers here are of the order of 1.
            for (const auto& [dtype, tolerance] :
                 {std::pair("float64", 1e-12), {"float32", 1e-5}}) {
                const json result = result_of(command_for(c, causal) + Words{"--dtype", dtype},
                                              c.contains("hidden") ? c["hidden"].dump() : "");
                for (const char* name :
                     {"queries", "keys", "values", "attention_weights", "context_vectors"}) {
                    const std::string key = std::string(name) + (both && causal ? "_causal" : "");
                    if (c.contains(key)) CHECK_LE(difference_of(result[name], c[key]), tolerance);
                }
            }
        }
    }
}

TEST_CASE("models: config echoes the family, the layer and the shapes, and is a request") {
    const json result = result_of({"multihead", "--weights", data_path("models/gpt2"), "--layer",
                                   "1", "--example", "sentence", "--embed-dim", "12"});
    const json& config = result["config"];
    CHECK(config["family"] == "gpt2");
    CHECK(config["layer"] == 1);
    CHECK(config["heads"] == 3);
    CHECK(config["weights_layout"] == "in-out");
    CHECK(config["weights_shapes"]["h.1.attn.c_attn.weight"] == json({12, 36}));
    CHECK_FALSE(config.contains("init"));
    write_text("config.json", config.dump());
    CHECK(result_of({"multihead", "config.json"})["context_vectors"] == result["context_vectors"]);
    json other = config;
    other["weights_shapes"]["h.1.attn.c_attn.weight"] = {12, 48};
    CHECK(run_attn({"multihead"}, other.dump()).code == 3);
}

TEST_CASE("models: a flag overrules its own setting of the model's config and no other") {
    const std::string input = "[[1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8]]";
    const auto config = [&](const std::string& model, const Words& flags) {
        const Words words{"multihead", "-", "--weights", data_path("models/" + model)};
        return result_of(words + flags, input)["config"];
    };
    CHECK(config("mistral", {"--rope", "half"})["rope_base"] == 1e6);
    CHECK(config("neox", {"--rope", "half"})["rope_dims"] == 4);
    CHECK(config("neox", {"--rope-dims", "2"})["rope_base"] == 1e4);
    CHECK(config("mistral", {})["window"] == json({2, -1}));
    CHECK_FALSE(config("qwen2", {}).contains("window"));
    // Embeddings: a factor for those of tokens, a first row for those of positions.
    const auto inputs = [](const Words& flags) {
        const Words words{"multihead",   "--weights", data_path("models/gpt2"),
                          "--token-ids", "3,1",       "--dtype",
                          "float64",     "--emit",    "inputs"};
        return flat(result_of(words + flags)["inputs"]);
    };
    const std::vector<double> once = inputs({}), twice = inputs({"--embedding-scale", "2"}),
                              thrice = inputs({"--embedding-scale", "3"});
    for (std::size_t i = 0; i < once.size(); ++i)
        CHECK(thrice[i] - twice[i] == doctest::Approx(twice[i] - once[i]));
    CHECK(twice != once);
    const json from_two = result_of({"model", data_path("models/gpt2"), "--token-ids", "3,1",
                                     "--position-ids", "2,3", "--dtype", "float64"});
    CHECK(inputs({"--position-offset", "2"}) == flat(from_two["hidden_states"][0]));
}

TEST_CASE("models: the epsilon of a norm is the config's, or a flag's") {
    const std::string hidden = data_path("models/hidden.csv"), gpt2 = data_path("models/gpt2");
    const Words plain = Words{"multihead", hidden, "--weights", gpt2} +
                        words_in("--layer 1 --emit all --dtype float64 --pre-norm");
    const json narrow_result = result_of(plain),
               wide_result = result_of(plain + Words{"--norm-eps", "3"});
    CHECK(narrow_result["config"]["norm_eps"] == 1e-5);
    CHECK(wide_result["config"]["norm_eps"] == 3.0);
    CHECK(wide_result["inputs"] == narrow_result["inputs"]);
    CHECK(wide_result["normed_inputs"] != narrow_result["normed_inputs"]);
}

TEST_CASE("families: each is a choice of --family, and is in the manual") {
    const std::string help = run_attn({"multihead", "--help"}).out;
    for (const Family& family : attn::io::all_families()) {
        CAPTURE(family.name);
        CHECK(contains(help, family.name));
        CHECK(attn::io::find_family(family.name) == &family);
        const std::string row = manual_row(family);
        CHECK(row != "");
        CHECK(contains(row, family.layers.front().query.weight));
        for (const std::string_view type : family.types) CHECK(contains(lower(row), type));
    }
    CHECK(attn::io::find_family("other") == nullptr);
}

TEST_CASE("families: each has a case against an independent computation") {
    const json cases = load_data("models/expected.json")["cases"];
    for (const Family& family : attn::io::all_families()) {
        // Those without a config are in layouts_test.cpp, those of classes in class_names_test.cpp.
        if (family.of_class || (family.types.empty() && !family.is_plain)) continue;
        CAPTURE(family.name);
        CHECK(std::any_of(cases.begin(), cases.end(),
                          [&](const json& one) { return one["family"] == family.name; }));
    }
}

}  // namespace
}  // namespace model_test
