// Files of models with something more in them: each tensor and each key of a config changes the
// result rightly, is known to change nothing, or is refused by its name.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "tests/support/run_attn.hpp"
#include "tests/support/small_models.hpp"
#include "tests/support/support.hpp"

namespace model_rules_test {

using namespace attn::test;
using namespace attn::test::small_models;
using nlohmann::json;

namespace {

const std::string inputs = "[[0.1,0.2,-0.3,0.4],[0.5,-0.6,0.7,0.8],[0.9,0.1,0.2,-0.3]]";

void check_refused(const Outcome& outcome, const std::string& name) {
    CAPTURE(outcome.err);
    CHECK(outcome.code == 3);
    CHECK(outcome.out.empty());
    CHECK(outcome.err.find(name) != std::string::npos);
}

const Words extras{"q_norm.weight",
                   "k_norm.weight",
                   "q_norm.bias",
                   "sinks",
                   "cos",
                   "sin",
                   "bias_k",
                   "bias_v",
                   "bias",
                   "masked_bias",
                   "mask",
                   "rotary_emb.inv_freq",
                   "rotary_emb.cos_cached",
                   "relative_attention_bias.weight",
                   "self.distance_embedding.weight",
                   "alibi_slopes",
                   "gate",
                   "q_proj.lora_A.weight",
                   "q_proj.weight_scale",
                   "W_query.weight_scale",
                   "in_proj_weight_scale",
                   "qweight",
                   "W_querry",
                   "b_out_scale",
                   "heads.3.W_query.weight",
                   "x"};

}  // namespace

TEST_CASE("models: what is in the attention's module and not used is refused by its whole name") {
    scratch_folder();
    for (const Model& model : models()) {
        CAPTURE(model.name);
        const json weights = weights_of(model);
        const Outcome base = run_model(model, weights, inputs);
        REQUIRE(base.code == 0);
        Words names;  // some of them where the same tensors have a prefix
        const std::size_t step = model.module == "blocks.0.att." ? 5 : 1;
        for (std::size_t i = 0; i < extras.size(); i += step) names.push_back(extras[i]);
        names.insert(names.end(), model.harmless.begin(), model.harmless.end());
        const bool is_wrapper = model.name.starts_with("wrapper");
        if (is_wrapper) names.insert(names.end(), {"heads.1.q_norm.weight", "heads.0.cos"});
        for (const std::string& name : names) {
            CAPTURE(name);
            // A result of attn has steps besides its parameters, "mask" among them.
            const bool is_harmless = std::find(model.harmless.begin(), model.harmless.end(),
                                               name) != model.harmless.end();
            json more = weights;
            more[model.module + name] = is_harmless ? form_of(name) : numbers({2, 2}, 3);
            const Outcome outcome = run_model(model, more, inputs);
            if (!is_harmless) {
                check_refused(outcome, "\"" + model.module + name + "\"");
                continue;
            }
            CHECK(outcome.code == 0);
            CHECK(json::parse(outcome.out)["context_vectors"] ==
                  json::parse(base.out)["context_vectors"]);
            const bool may_be_a_step =
                model.module.empty() && model.name.find('.') == std::string::npos && name == "mask";
            if (may_be_a_step) continue;
            more[model.module + name] = numbers({1, 5}, 3);  // no mask, number or frequencies
            check_refused(run_model(model, more, inputs),
                          "rotary_emb.inv_freq" == name ? "inv_freq" : model.module + name);
        }
        for (const json& no_array : {json(0.5), json(true), json("x"), json{{"weight", {1}}}}) {
            json more = weights;
            more[model.module + "sink"] = no_array;
            check_refused(run_model(model, more, inputs), "\"" + model.module + "sink\"");
        }
        json many = weights;
        for (const char* name : {"a", "b", "c", "d", "e"})
            many[model.module + name + "_other"] = numbers({2, 2}, 3);
        check_refused(run_model(model, many, inputs), "5 tensors which would be ignored, e.g. ");
        json without = weights;
        without[model.module + "q_norm"] = nullptr;
        CHECK((run_model(model, without, inputs).out == base.out));
    }
}

TEST_CASE("models: a mask in the file is ignored only if it is the causal one") {
    scratch_folder();
    const Words lower{"[[1]]", "[[1,0],[1,1]]", "[[2,0],[-1,0.5]]",
                      "[[[[1,0,0],[1,1,0],[1,1,1]]]]"};
    const Words upper{"[[0]]", "[[0,1],[0,0]]", "[[0,-1e9],[0,0]]",
                      "[[[[0,1,1],[0,0,1],[0,0,0]]]]"};
    const Words neither{"[[1,1],[1,1]]",
                        "[[1,0],[0,1]]",
                        "[[0,1,1],[1,0,1],[1,1,0]]",
                        "[[0.1,0.2],[0.3,0.4]]",
                        "[[0,1,1,1],[0,0,1,1],[0,0,0,1],[1,0,0,0]]",
                        "[[[1,0],[1,1]],[[0,1],[0,0]]]"};
    for (const Model& model : models())
        for (const std::string& name : model.harmless) {
            if (!name.ends_with("mask") && name != "bias") continue;
            CAPTURE(model.name);
            CAPTURE(name);
            json weights = weights_of(model);
            const std::string right = run_model(model, weights, inputs).out;
            const bool is_lower = name.ends_with("bias");
            for (const std::string& mask : is_lower ? lower : upper) {
                CAPTURE(mask);
                weights[model.module + name] = json::parse(mask);
                CHECK(run_model(model, weights, inputs).out == right);
            }
            for (const auto* masks : {&neither, is_lower ? &upper : &lower})
                for (const std::string& mask : *masks) {
                    CAPTURE(mask);
                    weights[model.module + name] = json::parse(mask);
                    check_refused(run_model(model, weights, inputs), model.module + name);
                }
        }
}

TEST_CASE("models: weights in a request and in a record of a batch are held to the same rule") {
    scratch_folder();
    for (const Model& model : models()) {
        CAPTURE(model.name);
        json request{{"inputs", json::parse(inputs)},
                     {"weights", weights_of(model)},
                     {"emit", {"context_vectors"}},
                     {"mode", "multihead"}};
        request.update(model.settings);
        const json right = request;
        request["weights"][model.module + "k_norm.weight"] = {1, 1};
        check_refused(run_attn({"multihead", "-"}, request.dump()), "k_norm.weight");
        const Outcome batch =
            run_attn({"batch"}, right.dump() + "\n" + request.dump() + "\n" + right.dump() + "\n");
        CHECK(batch.code == 1);
        const std::size_t first = batch.out.find('\n'), second = batch.out.find('\n', first + 1);
        CHECK(json::parse(batch.out.substr(0, first)).contains("context_vectors"));
        CHECK(batch.out.substr(first, second - first).find("k_norm.weight") != std::string::npos);
    }
}

TEST_CASE("models: the norm and the embedding that are asked for use all of their tensors") {
    scratch_folder();
    for (const Model& model : models()) {
        CAPTURE(model.name);
        const json weights = weights_of(model);
        for (const auto& [module, input, flags] :
             {std::tuple(model.norm, inputs, Words{"--pre-norm"}),
              {model.embedding, std::string(), Words{"--token-ids", "1,3,0"}}}) {
            if (module.empty()) continue;
            Model with = model;
            const bool has_ids = input.empty();
            if (has_ids) with.settings["embedding_scale"] = 1;
            if (has_ids && model.tensors.contains("wpe.weight"))
                with.settings["position_offset"] = 0;
            if (has_ids && model.name == "bert") with.settings["position_offset"] = 0;
            with.settings["norm"] = model.name == "llama" ? "rms" : "layer";
            with.settings["norm_eps"] = 1e-5;
            const Outcome base = run_model(with, weights, input, flags);
            REQUIRE(base.code == 0);
            for (const std::string name : {"bias", "weight_scale", "gamma", "beta", "scale",
                                           "lora_A.weight", "norm.weight", "position_ids"}) {
                if (weights.contains(module + name)) continue;
                const std::string full = module + name;  // a binding cannot be captured
                CAPTURE(full);
                json more = weights;
                more[module + name] = numbers(row, 9);
                const Outcome outcome = run_model(with, more, input, flags);
                if (name == "position_ids" && model.name == "bert")
                    CHECK(outcome.out == base.out);
                else
                    check_refused(outcome, module);
                // Nothing is wrong with what is not asked for.
                CHECK(run_model(model, more, inputs).code == 0);
            }
        }
    }
}

TEST_CASE("models: frequencies in the file must be those of the rotary embedding") {
    scratch_folder();
    for (const Model& model : models()) {
        if (std::find(model.harmless.begin(), model.harmless.end(), "rotary_emb.inv_freq") ==
            model.harmless.end())
            continue;
        for (const double base : {10.0, 1e4, 1e6}) {
            json weights = weights_of(model);
            Model wide = model;
            // The config of the class gives the base; flags override frequencies.
            const bool of_llama = model.name == "llama";
            json config =
                json::parse(read_text(data_path("models/" + model.name + "/config.json")));
            config.update({{"num_attention_heads", 1}, {"hidden_size", 4}});
            for (const char* key : {"num_key_value_heads", "head_dim", "rope_scaling"})
                config.erase(key);
            config[of_llama ? "rope_theta" : "rotary_emb_base"] = 10000;
            if (!of_llama) config["rotary_pct"] = 1.0;
            write_text("rotary.json", config.dump());
            wide.settings = {{"model_config", "rotary.json"}};
            const auto with = [&](const json& stored, const Words& flags) {
                weights[model.module + "rotary_emb.inv_freq"] = stored;
                return run_model(wide, weights, inputs, flags);
            };
            const json right{1, 1 / std::sqrt(base)};
            CHECK((with(right, {}).code == 0) == (base == 1e4));
            CHECK(with(right, {"--rope-base", "5"}).code == 0);
            if (base == 1e4) continue;
            check_refused(with(right, {}), "rotary_emb.inv_freq");
            // A flag for the part that turns wins over their number.
            const json more{1, 1 / std::sqrt(base), 1};
            if (of_llama) check_refused(with(more, {}), "rotary_emb.inv_freq");
            if (of_llama) CHECK(with(more, {"--rope-dims", "2"}).code == 0);
        }
    }
}

TEST_CASE("models: a wrapper's output projection multiplies the joined heads, and is kept") {
    scratch_folder();
    for (const Model& model : models()) {
        if (!model.name.starts_with("wrapper with output")) continue;
        CAPTURE(model.name);
        const bool bare = model.name.find(".weight") == std::string::npos;
        const std::string weight = model.module + (bare ? "W_out" : "out_proj.weight"),
                          bias = model.module + (bare ? "b_out" : "out_proj.bias");
        for (const bool with_bias : {false, true}) {
            json weights = weights_of(model);
            if (with_bias) {
                weights[bias] = {0.5, -1, 2};
                // A head without a bias has one of zeros.
                weights[model.module + "heads.1." + (bare ? "b_query" : "W_query.bias")] =
                    numbers(row, 6);
                weights[model.module + "heads.1." + (bare ? "b_key" : "W_key.bias")] =
                    numbers(row, 6);
                weights[model.module + "heads.1." + (bare ? "b_value" : "W_value.bias")] =
                    numbers(row, 6);
            }
            json joined_weights = weights;
            joined_weights.erase(weight);
            joined_weights.erase(bias);
            const json joined =
                json::parse(run_model(model, joined_weights, inputs, {"--dtype", "float64"}).out);
            const json result =
                json::parse(run_model(model, weights, inputs, {"--dtype", "float64"}).out);
            for (std::size_t token = 0; token < 3; ++token)
                for (std::size_t o = 0; o < 3; ++o) {
                    double sum = with_bias ? weights[bias][o].get<double>() : 0;
                    for (std::size_t i = 0; i < 2 * width; ++i)
                        sum += joined["context_vectors"][token][i].get<double>() *
                               weights[weight][bare ? i : o][bare ? o : i].get<double>();
                    CHECK(result["context_vectors"][token][o].get<double>() ==
                          doctest::Approx(sum).epsilon(1e-12));
                }
            const json& config = result["config"];
            CHECK(config["style"] == "wrapper");
            CHECK(config["out_proj"] == true);
            CHECK(config["d_out"] == 3);
            json request = config;
            request["inputs"] = json::parse(inputs);
            request["weights"] = weights;
            CHECK(
                json::parse(run_attn({"multihead", "-"}, request.dump()).out)["context_vectors"] ==
                result["context_vectors"]);
            for (const std::string suffix : {"safetensors", "npz", "json"}) {
                const Words same{"--dtype",         "float64",       "--save-weights",
                                 "saved." + suffix, "--save-family", "notebook"};
                CHECK(run_model(model, weights, inputs, same).code == 0);
                CHECK(run_attn({"multihead", "-", "--weights", "w.json", "--emit", "all", "--dtype",
                                "float64", "-o", "golden." + suffix},
                               inputs)
                          .code == 0);
                for (const std::string file : {"saved.", "golden."})
                    CHECK(json::parse(run_attn({"multihead", "-", "--dtype", "float64", "--weights",
                                                file + suffix},
                                               inputs)
                                          .out)["context_vectors"] == result["context_vectors"]);
            }
        }
    }
}

}  // namespace model_rules_test
