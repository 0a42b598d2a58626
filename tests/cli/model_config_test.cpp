// Keys of models' config.json: each gives what transformers computes from it, changes nothing, or
// is refused by its name; see data/README.md.
#include "tests/support/answers.hpp"
#include "tests/support/model_cases.hpp"

namespace model_config_test {
namespace {

using namespace attn::test;
using nlohmann::json;

/// The model's file without frequencies in the attention, which would have to be the config's.
std::string weights_of(const std::string& model) {
    std::string bytes = read_text(data_path("models/" + model + "/model.safetensors"));
    const std::string name = "attention.rotary_emb", other = "elsewhere.rotary_emb";
    for (std::size_t at = 0; (at = bytes.find(name, at)) != std::string::npos;)
        bytes.replace(at, name.size(), other);
    write_text(model + ".safetensors", bytes);
    return model + ".safetensors";
}

Outcome run_config(const std::string& model, const json& config, const std::string& ids) {
    write_text("changed.json", config.dump());
    return run_attn({"multihead", "--weights", weights_of(model), "--model-config", "changed.json",
                     "--token-ids", ids, "--dtype", "float64", "--emit", "attention_weights"});
}

json config_of(const std::string& model) {
    return json::parse(read_text(data_path("models/" + model + "/config.json")));
}

const Words types{"gpt2", "llama", "mistral", "qwen2", "bert", "neox"};

TEST_CASE("config.json: every key that transformers writes, in versions 4 and 5, is accepted") {
    const json keys = load_data("models/config_keys.json");
    for (const std::string& model : types) {
        const json config = config_of(model);
        const std::string base = run_config(model, config, "1,8,3").out;
        CHECK(base != "");
        for (const auto& [version, more] : keys[model].items()) {
            const std::string place = model + ", " + version;  // a binding cannot be captured
            CAPTURE(place);
            json changed = config;
            changed.update(more);
            const Outcome all = run_config(model, changed, "1,8,3");
            CHECK(all.err == "");
            CHECK((all.out == base));
        }
    }
}

TEST_CASE("config.json: a key that may concern attention and is not known is refused, when on") {
    const Words words = words_in(
        "attn attention rope rotary head heads sliding window softcap qk_norm mrope alibi sink "
        "scale "
        "scaling position causal clip_qkv kv");
    for (const char* model : {"gpt2", "llama", "bert", "neox"}) {
        const json config = config_of(model);
        const std::string base = run_config(model, config, "1,8").out;
        const auto changed = [&](const std::string& key, const json& value) {
            json other = config;
            other[key] = value;
            return run_config(model, other, "1,8");
        };
        std::size_t form = 0;
        for (const std::string& word : words) {
            const std::string forms[] = {"use_" + word + "_x", word + "Xyz", "new_" + word};
            const std::string& key = forms[++form % 3];
            const json values[] = {true, 2.5, "x", json{1}, json{{"a", 1}}};
            const Outcome outcome = changed(key, values[form % 5]);
            CAPTURE(key);
            CHECK(outcome.code == 3);
            CHECK(outcome.out == "");
            CHECK(outcome.err.find(": " + key + " is ") != std::string::npos);
        }
        for (const char* key : {"use_alibi", "qk_norm", "attn_sinks", "softcap_x", "kv_sharing"})
            for (const json& value : {json(), json(false), json(0), json::array(), json::object()})
                CHECK((changed(key, value).out == base));
        for (const char* key : {"use_causal_x", "apply_rope", "qk_scale", "input_norm"})
            CHECK(changed(key, false).code == 3);
        for (const char* key : {"license", "my_vocabulary", "loss_type", "property", "europe"})
            CHECK((changed(key, {{"x", 1}}).out == base));
    }
}

/// Whether an error names a key of the path, rotary settings of another name, or a tensor that
/// contradicts the value.
bool names_change(const std::string& error, const json& path) {
    if (error.find("model.safetensors") != std::string::npos) return true;
    const bool is_rotary = path.dump().find("rope_") != std::string::npos;
    if (is_rotary && error.find("rope_") != std::string::npos) return true;
    return std::any_of(path.begin(), path.end(), [&](const json& key) {
        return error.find(key.get<std::string>()) != std::string::npos;
    });
}

TEST_CASE(
    "config.json: changed keys of each family give what transformers computes, or are refused") {
    std::map<std::string, json> models;
    for (json& c : model_cases()) {
        const std::string name = c["name"];
        models[name] = std::move(c);
    }
    std::size_t computed = 0, refused = 0;
    std::set<std::string> exceptions;
    Sample is_taken(4);
    std::istringstream lines(read_text(data_path("models/config_changes.ndjson")));
    for (std::string line; std::getline(lines, line);) {
        const json family = json::parse(line);
        const std::string name = family["name"], ids = ids_of(models.at(name));
        CAPTURE(name);
        write_model(models.at(name), "model");
        for (const json& change : family["changes"]) {
            // An exception has attn's elements after the library's, and the reason.
            const bool is_exception = change.size() == 6;
            if (!is_exception && !is_taken.takes()) continue;
            json config = change[0] == 0 ? models.at(name)["config"] : family["older"][0];
            json* part = &config;
            for (std::size_t i = 0; i + 1 < change[1].size(); ++i)
                part = &(*part)[change[1][i].get<std::string>()];
            part->erase(change[1].back().get<std::string>());
            if (!change[2].empty()) (*part)[change[1].back().get<std::string>()] = change[2][0];
            CAPTURE(change.dump());
            write_text("model/config.json", config.dump());
            const Outcome run = run_attn({"model", "model", "--token-ids", ids, "--dtype",
                                          "float64", "--emit", "last_hidden_state"});
            CAPTURE(run.err);
            if (change[3].is_number()) {
                CHECK(run.code == change[3]);
                CHECK(run.out == "");
                CHECK(names_change(run.err, change[1]));
                ++refused;
                continue;
            }
            REQUIRE(run.code == 0);
            const json rows = json::parse(run.out)["last_hidden_state"];
            std::vector<double> found;
            for (const json& row : rows)
                for (const json& x : row) found.push_back(x);
            const std::size_t at[] = {found.size() - 1, found.size() - 2, found.size() / 2};
            for (std::size_t i = 0; i < 3; ++i)
                CHECK(std::abs(found[at[i]] - change[is_exception ? 4 : 3][i].get<double>()) <
                      1e-6 * std::max(1.0, std::abs(found[at[i]])));
            if (is_exception) {
                CHECK(change[3] != change[4]);
                exceptions.insert(name + " " + change[1].back().get<std::string>());
                continue;
            }
            ++computed;
        }
    }
    CHECK(computed * is_taken.step > 400);
    CHECK(refused * is_taken.step > 400);
    // Where attn differs from the library on purpose: these and no others.
    const std::set<std::string> named{"falcon-40b alibi", "falcon-7b alibi", "mpt max_seq_len"};
    CHECK(exceptions == named);
}

}  // namespace
}  // namespace model_config_test
