// compare, plot and explain of results of attn model, for families with GQA, linear layers and
// layers of different widths, against the lists of the JSON form.
#include <cstdio>

#include "tests/support/answers.hpp"
#include "tests/support/model_cases.hpp"

namespace model_result_test {
namespace {

using namespace attn::test;
using nlohmann::json;

constexpr const char* families[] = {"gpt2",       "bert",  "qwen2",       "gemma3",  "lfm2",
                                    "qwen3_next", "bloom", "olmo_hybrid", "gpt_oss", "deberta"};
constexpr const char* formats[] = {"json", "npz", "safetensors"};

/// Writes a model of the family and its result as r.json, r.npz and r.safetensors.
json write_files(const json& model, const Words& words) {
    write_model(model, "model");
    for (const std::string format : formats) output_of(words + Words{"-o", "r." + format});
    return json::parse(read_text(scratch_folder() + "/r.json"));
}

json write_results(const std::string& family, const Words& more = {}) {
    const json model = model_case(family);
    return write_files(model, Words{"model", "model", "--token-ids", ids_of(model)} + more);
}

bool is_of_layers(const json& array) {
    const auto rank = [](const json* value) {
        std::size_t brackets = 0;
        for (; value->is_array() && !value->empty(); value = &value->front()) ++brackets;
        return brackets;
    };
    return array.is_array() && std::any_of(array.begin(), array.end(),
                                           [&](const json& entry) { return rank(&entry) > 1; });
}

TEST_CASE("model results: explain, plot, compare and inspect take the result of every family") {
    Sample is_taken;
    std::size_t explained = 0;
    for (const json& model : all_model_cases()) {
        if (is_refused(model) || !is_taken.takes()) continue;
        CAPTURE(model["name"].get<std::string>());
        const json result = write_files(
            model, words_of(model) + Words{"--emit",
                                           "attention_weights,biased_scores,mask,queries,keys,"
                                           "values,head_outputs,hidden_states,recurrent_state,"
                                           "last_hidden_state"});
        for (const Words& words : {Words{"compare", "r.json", "r.npz"},
                                   {"compare", "r.safetensors", "r.json"},
                                   {"inspect", "r.npz"},
                                   {"plot", "r.npz", "-o", "p.svg"}}) {
            const Outcome run = run_attn(words);
            CHECK_MESSAGE(run.code == 0, run.out, run.err);
        }
        for (const auto& [array, layers] : result.items()) {
            if (!array.ends_with("attention_weights")) continue;
            // The decoder of T5Gemma 2 has one softmax over both.
            const bool is_joined =
                model["config"]["model_type"] == "t5gemma2" && !array.starts_with("encoder");
            for (std::size_t layer = layers.size() - 1; layer < layers.size(); --layer) {
                if (layers[layer].is_null() || is_joined) continue;
                const std::string named = ":" + array + "." + std::to_string(layer);
                const std::string format = ++explained % 2 == 0 ? "json" : "npz";
                const Outcome run =
                    run_attn({"explain", "r." + format + named, "--head", "1", "--token", "0"});
                CHECK_MESSAGE(run.code == 0, run.err);
                CHECK(run.out.starts_with("Query 0 "));
                break;  // the last layer that has weights
            }
        }
    }
    if (one_in == 1) CHECK_GE(explained, 160);
}

TEST_CASE("model results: chosen heads are those of the whole result, in the given order") {
    Sample is_taken;
    std::size_t arrays = 0;
    for (const json& model : all_model_cases()) {
        if (is_refused(model) || !is_taken.takes()) continue;
        CAPTURE(model["name"].get<std::string>());
        write_model(model, "model");
        const Words words =
            words_of(model) + Words{"--emit",
                                    "attention_weights,cross_attention_weights,biased_scores,mask,"
                                    "queries,keys,values,unrotated_queries,unrotated_keys,"
                                    "logsumexp,head_outputs"};
        const json all = result_of(words);
        const json chosen = result_of(words + Words{"--head", "1,0,1"});
        for (const auto& item : all.items()) {
            const std::string& array = item.key();
            const json& layers = item.value();
            if (!is_of_layers(layers)) continue;
            CAPTURE(array);
            // All but keys and values have an entry of every query head.
            const bool is_of_keys = array.ends_with("keys") || array.ends_with("values");
            const std::string weights =
                is_of_keys ? array.substr(0, array.find('_') + 1) + "attention_weights" : array;
            const json& of_queries =
                all[all.contains(weights) ? weights : std::string("attention_weights")];
            for (std::size_t layer = 0; layer < layers.size(); ++layer) {
                if (layers[layer].is_null()) continue;
                const std::size_t heads = of_queries[layer].size(), own = layers[layer].size();
                json expected = json::array();
                for (const std::size_t head : {1U, 0U, 1U})
                    expected.push_back(layers[layer][head * own / heads]);
                CHECK_EQ(chosen[array][layer], expected);
            }
            ++arrays;
        }
    }
    if (one_in == 1) CHECK_GE(arrays, 1000);
}

TEST_CASE("model results: compare names the array and the layer that differ") {
    for (const std::string family : {"gpt2", "qwen3_next"}) {
        const json result = write_results(family);
        for (const auto& [name, array] : result.items())
            for (std::size_t i = 0; is_of_layers(array) && i < array.size(); ++i) {
                json changed = result;
                json* number = &changed[name][i];
                if (number->is_null()) {
                    *number = json({{{1}}});
                } else {
                    while (number->is_array()) number = &number->back();
                    *number = number->get<double>() + 1;
                }
                write_text("changed.json", changed.dump());
                const std::string own = name + "." + std::to_string(i);
                for (const std::string format : formats) {
                    const json compared = json::parse(
                        run_attn({"compare", "changed.json", "r." + format, "-f", "json"}).out);
                    for (const json& row : compared["arrays"])
                        CHECK_EQ(row["equal"].get<bool>(), row["name"] != own);
                }
                const Outcome one = run_attn({"compare", "changed.json:" + own, "r.json:" + own});
                CHECK_EQ(one.code, array[i].is_null() ? 3 : 1);
            }
    }
}

TEST_CASE("model results: the page has all layers and heads") {
    for (const std::string family : families) {
        CAPTURE(family);
        const json result = write_results(family, {"--emit", "attention_weights,keys"});
        const json masks = result_of({"model", "model", "--token-ids", ids_of(model_case(family)),
                                      "--emit", "mask"})["mask"];
        for (const std::string name : {"attention_weights", "keys"}) {
            const json& array = result[name];
            std::string first;
            for (const std::string format : formats) {
                output_of({"plot", "r." + format, "--array", name, "-o", "page.html"});
                const std::string page = read_text(scratch_folder() + "/page.html");
                if (first.empty()) first = page;
                CHECK(page == first);
                const json map = json::parse(script_of(page, "map-0"));
                REQUIRE_EQ(map["axes"][0]["size"], array.size());
                const std::size_t heads = map["axes"][1]["size"], width = map["columns"]["size"],
                                  rows = map["rows"]["size"];
                for (std::size_t panel = 0; panel < map["panels"].size(); ++panel) {
                    const json& layer = array[panel / heads];
                    const std::string label = map["axes"][0]["labels"][panel / heads];
                    CHECK(label.ends_with("(none)") == layer.is_null());
                    const json& values = map["panels"][panel]["values"];
                    const std::size_t head = panel % heads;
                    for (std::size_t i = 0; i < rows * width; ++i) {
                        const bool is_there =
                            head < layer.size() && i % width < layer[head][0].size();
                        const json& mask = map["panels"][panel]["mask"];
                        const bool is_masked =
                            !mask.is_null() && map["masks"][mask.get<std::size_t>()][i] == 1;
                        if (name == "attention_weights" && is_there)
                            CHECK_EQ(is_masked,
                                     masks[panel / heads][head][i / width][i % width] == 0);
                        if (!is_masked)
                            CHECK_EQ(values[i],
                                     is_there ? layer[head][i / width][i % width] : json());
                    }
                }
            }
        }
    }
    const json weights = write_results("qwen3_next")["attention_weights"];
    for (std::size_t layer = 0; layer < weights.size(); ++layer)
        if (const std::string number = std::to_string(layer); weights[layer].is_null())
            check_error({"plot", "r.npz", "--layer", number}, "", 2,
                        "no attention_weights in layer " + number);
}

TEST_CASE("model results: explain shows the weights of each layer and head") {
    for (const std::string family : families) {
        CAPTURE(family);
        const json result = write_results(family, {"--emit", "all"});
        const json& weights = result["attention_weights"];
        for (std::size_t layer = 0; layer < weights.size(); ++layer) {
            if (weights[layer].is_null()) continue;
            const std::string number = std::to_string(layer);
            for (const std::string format : formats) {
                const std::string page = output_of(
                    {"explain", "r." + format, "--layer", number, "--head", "1", "--token", "2"});
                CHECK(page.starts_with("Query 2 of layer " + number + " of model\n"));
                for (const json& weight : weights[layer][1][2]) {
                    std::array<char, 32> text{};
                    std::snprintf(text.data(), text.size(), "%.4f", weight.get<double>());
                    CHECK((weight == 0 || contains(page, text.data())));
                }
            }
            json changed = result;
            json& one = changed["attention_weights"][layer][1][2][0];
            one = one.get<double>() + 0.1;
            write_text("changed.json", changed.dump());
            CHECK_EQ(run_attn({"explain", "changed.json", "--layer", number, "--token", "2"}).code,
                     3);
        }
    }
}

}  // namespace
}  // namespace model_result_test
