// Whole models: a small one of each family against the library that published its kind. Keys of
// config.json: each gives what transformers computes from it, changes nothing, or is refused.
#include "io/transformer/family_row.hpp"
#include "tests/support/answers.hpp"
#include "tests/support/model_cases.hpp"

namespace model_families_test {
namespace {

using namespace attn::test;
using nlohmann::json;

TEST_CASE("models: a model of each family agrees with the library's float64") {
    std::size_t of_words = 0, of_images = 0;
    for (const json& c : all_model_cases()) {
        if (c.contains("generated")) continue;  // model_generation_test.cpp
        CAPTURE(c["name"].get<std::string>());
        write_model(c, "model");
        const bool is_of_words = !c.contains("inputs");
        ++(is_of_words ? of_words : of_images);
        const Words words =
            words_of(c) + Words{"--emit", is_of_words ? "last_hidden_state,attention_weights"
                                                      : "last_hidden_state"};
        if (is_refused(c)) {
            check_error(words, "", 2, "is a state-space layer");
            continue;
        }
        const json found = result_of(words);
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
        if (is_of_words) continue;
        std::size_t numbers = 0;  // of the encoder as well
        for (const char* array : {"last_hidden_state", "encoder_last_hidden_state"})
            if (found.contains(array)) numbers += flat(found[array]).size();
        CHECK_EQ(result_of(words + Words{"--dry-run"})["output_numbers"], numbers);
    }
    CHECK_GE(of_words, 100);
    CHECK_GE(of_images, 6);
}

/// Keys whose sizes tensors have in all families. Others have an effect of their own in some, or
/// none: fewer layers, more heads of half the width, positions without a table.
constexpr const char* size_keys[] = {"vocab_size", "hidden_size",       "n_embd",
                                     "d_model",    "intermediate_size", "moe_intermediate_size",
                                     "ffn_dim",    "embedding_size"};

/// A config of experts alone has no layer of this width.
bool has_layer_of(const json& config, const std::string& key) {
    if (key == "intermediate_size" && config["model_type"] == "granitemoehybrid") return false;
    if (key != "intermediate_size" || !config.contains("moe_intermediate_size")) return true;
    const json dense = config.value("first_k_dense_replace", json());
    return dense.is_number() && dense > 0;
}

TEST_CASE("models: sizes that contradict the tensors are errors that name the key") {
    std::size_t changed = 0;
    for (const json& c : model_cases()) {
        const std::string ids = ids_of(c);
        CAPTURE(c["name"].get<std::string>());
        write_model(c, "model");
        for (const std::string key : size_keys) {
            if (!c["config"].contains(key) || !c["config"][key].is_number()) continue;
            if (!has_layer_of(c["config"], key) || is_refused(c)) continue;
            const auto size = c["config"][key].get<std::size_t>();
            for (const std::size_t other : {2 * size, size / 2}) {
                json config = c["config"];
                config[key] = other;
                CAPTURE(key);
                CAPTURE(other);
                write_text("model/config.json", config.dump());
                const Outcome run = run_attn({"model", "model", "--token-ids", ids});
                CHECK_EQ(run.code, 3);
                CHECK(run.out.empty());
                const bool is_named = contains(run.err, key) ||
                                      contains(run.err, "model.safetensors:") ||
                                      contains(run.err, "by the model's settings");
                CHECK_MESSAGE(is_named, run.err);
                ++changed;
            }
        }
    }
    CHECK_GE(changed, 500);
}

TEST_CASE("models: a norm of each head and a norm over all heads are not interchangeable") {
    std::size_t changed = 0;
    for (json c : model_cases()) {
        CAPTURE(c["name"].get<std::string>());
        if (is_refused(c) || !c["config"].contains("num_attention_heads")) continue;
        const auto heads = c["config"]["num_attention_heads"].get<std::size_t>();
        for (const std::string norm : {"q_norm.weight", "q_layernorm.weight"}) {
            json tensors = c["tensors"];
            bool is_changed = false;
            for (auto& [tensor, row] : tensors.items()) {
                if (!tensor.ends_with("self_attn." + norm) || row[0].size() != 1) continue;
                const auto length = row[0][0].get<std::size_t>();
                const bool is_whole = length == c["config"].value("hidden_size", std::size_t{0});
                row[0][0] = is_whole ? length / heads : length * heads;
                is_changed = true;
            }
            if (!is_changed) continue;
            json other = c;
            other["tensors"] = tensors;
            write_model(other, "model");
            check_error({"model", "model", "--token-ids", ids_of(c)}, "", 3, norm);
            ++changed;
        }
    }
    CHECK_GE(changed, 15);
}

TEST_CASE("models: positions and masks change the result, or are errors") {
    std::size_t refused = 0;
    for (const json& c : model_cases()) {
        if (is_refused(c)) continue;
        CAPTURE(c["name"].get<std::string>());
        write_model(c, "model");
        const std::size_t tokens = c["token_ids"].size();
        std::string positions = "0", mask = "1";
        for (std::size_t i = 1; i < tokens; ++i) {
            positions += "," + std::to_string(2 * i + (i > 2 ? 1 : 0));
            mask += i == 2 ? ",0" : ",1";
        }
        const json expected = result_of(words_of(c));
        for (const Words& given :
             {Words{"--position-ids", positions}, Words{"--attention-mask", mask}}) {
            const Outcome run = run_attn(words_of(c) + given);
            if (run.code == 0) {
                CHECK_NE(json::parse(run.out)["last_hidden_state"], expected["last_hidden_state"]);
                continue;
            }
            CHECK_EQ(run.code, 2);
            CHECK(contains(run.err, "--position-ids"));
            ++refused;
        }
    }
    CHECK_LE(refused, 10);
    CHECK_GE(refused, 3);
}

TEST_CASE("models: packed sequences are those of separate runs, or are refused") {
    std::size_t packed = 0;
    for (const json& c : model_cases()) {
        if (is_refused(c) || c.contains("inputs") || !c["token_ids"].is_array()) continue;
        CAPTURE(c["name"].get<std::string>());
        write_model(c, "model");
        const json& ids = c["token_ids"];
        const auto rows_of = [](const json& list, std::size_t first, std::size_t count) {
            const auto begin = list.begin() + static_cast<std::ptrdiff_t>(first);
            return json(std::vector<json>(begin, begin + static_cast<std::ptrdiff_t>(count)));
        };
        const std::size_t tokens = ids.size(), first = tokens / 2;
        const Words words{"model", "model", "--dtype", "float64", "--emit", "last_hidden_state"};
        std::string segments = "7";
        for (std::size_t t = 1; t < tokens; ++t) segments += t < first ? ",7" : ",0";
        const Outcome run =
            run_attn(words + Words{"--token-ids", ids_of(c), "--segment-ids", segments});
        if (run.code != 0) {
            CHECK_EQ(run.code, 2);
            CHECK_MESSAGE(contains(run.err, "--segment-ids"), run.err);
            continue;
        }
        const json rows = json::parse(run.out)["last_hidden_state"];
        for (const auto& [from, count] :
             {std::pair<std::size_t, std::size_t>(0, first), {first, tokens - first}}) {
            const json part = rows_of(ids, from, count);
            const json separate =
                result_of(words + Words{"--token-ids", list_of(part)})["last_hidden_state"];
            // Chunks are of all tokens, as in the library.
            const bool has_chunks = c["name"] == "llama4" && from != 0;
            CHECK_EQ(difference_of(rows_of(rows, from, count), separate) <= 1e-8, !has_chunks);
        }
        ++packed;
    }
    CHECK_GE(packed, 100);
}

TEST_CASE("models: hidden states of a layer go on from there, as do the layers before --layer") {
    for (const char* model : {"gpt2", "mistral"}) {
        const std::string path = data_path(std::string("models/") + model);
        const Words ids{"--token-ids", "3,1,4", "--dtype", "float64"};
        const json found = result_of(Words{"model", path} + ids);
        const std::size_t last = found["layer_numbers"].size() - 1;
        write_text("states.json", found["hidden_states"][last].dump());
        const json rest = result_of({"model", path, "--hidden-states", "states.json", "--layers",
                                     "-1", "--dtype", "float64"});
        CHECK_EQ(rest["layer_numbers"], json({last}));
        for (const char* array : {"attention_weights", "hidden_states"})
            CHECK_LE(difference_of(rest[array].back(), found[array].back()), 1e-14);
        const json layer = result_of(Words{"multihead", "--weights", path, "--layer",
                                           std::to_string(last), "--emit", "inputs"} +
                                     ids);
        CHECK_LE(difference_of(layer["inputs"], found["hidden_states"][last]), 1e-14);
    }
}

TEST_CASE("models: the row of every type can be read, and is that type's") {
    const std::vector<std::string_view> types = attn::io::family_types();
    CHECK(types.size() > 170);
    for (const std::string_view type : types) CHECK(attn::io::find_family_row(type)->type == type);
    CHECK(attn::io::find_family_row("llama layer-norm") == nullptr);  // only a base for others
}

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
}  // namespace model_families_test
