// Files of models with something more in them: each tensor and each key of a config changes the
// result rightly, is known to change nothing, or is refused by its name.
#include "tests/support/answers.hpp"
#include "tests/support/small_models.hpp"

namespace model_rules_test {
namespace {

using namespace attn::test;
using namespace attn::test::small_models;
using nlohmann::json;

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

TEST_CASE("models: what is in the attention's module and not used is refused by its whole name") {
    for (const Model& model : models()) {
        CAPTURE(model.name);
        const json weights = weights_of(model);
        const Outcome base = run_model(model, weights, inputs);
        REQUIRE(base.code == 0);
        const auto with = [&](const std::string& name, const json& array) {
            json more = weights;
            more[model.module + name] = array;
            return run_model(model, more, inputs);
        };
        Words names = extras;
        // Where the same tensors have a prefix the names are those without it.
        if (model.module == "blocks.0.att.") names.resize(5);
        if (model.name.starts_with("wrapper"))
            names = names + Words{"heads.1.q_norm.weight", "heads.0.cos"};
        for (const std::string& name : names) {
            CAPTURE(name);
            if (std::count(model.harmless.begin(), model.harmless.end(), name) == 0)
                check_refused(with(name, numbers({2, 2}, 3)), "\"" + model.module + name + "\"");
        }
        for (const std::string& name : model.harmless) {
            CAPTURE(name);
            CHECK(with(name, form_of(name)).out == base.out);
            // A result of attn has steps besides its parameters, "mask" among them.
            if (model.module.empty() && model.name.find('.') == std::string::npos && name == "mask")
                continue;
            // No mask, number or frequencies.
            check_refused(with(name, numbers({1, 5}, 3)),
                          name == "rotary_emb.inv_freq" ? "inv_freq" : model.module + name);
        }
        for (const json& no_array : {json(0.5), json(true), json("x"), json{{"weight", {1}}}})
            check_refused(with("sink", no_array), "\"" + model.module + "sink\"");
        json many = weights;
        for (const char* name : {"a", "b", "c", "d", "e"})
            many[model.module + name + "_other"] = numbers({2, 2}, 3);
        check_refused(run_model(model, many, inputs), "5 tensors which would be ignored, e.g. ");
        CHECK((with("q_norm", nullptr).out == base.out));
    }
}

TEST_CASE("models: a mask in the file is ignored only if it is the causal one") {
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

TEST_CASE("models: the norm and the embedding that are asked for use all of their tensors") {
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
            config.update(
                {{"num_attention_heads", 1}, {"hidden_size", 4}, {"attention_bias", false}});
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

TEST_CASE("models: a bias that the other projections of a layer have is an error that names it") {
    std::size_t named = 0;
    for (const Model& model : models()) {
        CAPTURE(model.name);
        json all = weights_of(model);
        Words biases;
        for (const auto& [name, shape] : model.tensors) {
            std::string bias = name;
            if (!name.starts_with(model.module) || name.ends_with("bias")) continue;
            if (name.ends_with("_proj_weight"))
                bias = model.module + "in_proj_bias";
            else if (name.ends_with(".weight"))
                bias.replace(name.size() - 6, 6, "bias");
            else
                bias.replace(name.rfind("W_"), 2, "b_");
            const bool is_joined = bias.ends_with("in_proj_bias"),
                       in_out = model.name == "gpt2" || bias.find("b_") != bias.npos;
            all[bias] = numbers({is_joined ? 12 : in_out ? shape.back() : shape.front()}, 9);
            biases.push_back(bias);
        }
        const Outcome plain = run_model(model, all, inputs);
        REQUIRE_MESSAGE(plain.code == 0, plain.err);
        const bool biases_all = model.name == "gpt2" || model.name == "bert" ||
                                model.name == "neox" || model.name.starts_with("mha");
        for (const std::string& bias : biases) {
            CAPTURE(bias);
            const bool is_out = bias.find("out") != bias.npos || bias.ends_with("o_proj.bias") ||
                                bias.ends_with("dense.bias") || bias.ends_with("c_proj.bias");
            if (is_out && !biases_all) continue;  // some layers have a bias there alone
            json fewer = all;
            fewer.erase(bias);
            const Outcome run = run_model(model, fewer, inputs);
            CAPTURE(run.err);
            CHECK(run.code == 3);
            CHECK(contains(run.err, "no tensor \"" + bias + "\"; expected it, as "));
            ++named;
        }
        for (const std::string& bias : biases) all.erase(bias);
        CHECK(run_model(model, all, inputs).code == 0);
    }
    CHECK(named >= 30);
}

TEST_CASE("models: a wrapper's output projection multiplies the joined heads, and is kept") {
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
                for (const std::string head : {"heads.0.", "heads.1."})
                    for (const std::string part : {"query", "key", "value"})
                        weights[model.module + head +
                                (bare ? "b_" + part : "W_" + part + ".bias")] = numbers(row, 6);
            }
            json joined_weights = weights;
            joined_weights.erase(weight);
            joined_weights.erase(bias);
            const Words float64{"--dtype", "float64"};
            const json joined = json::parse(run_model(model, joined_weights, inputs, float64).out);
            const json result = json::parse(run_model(model, weights, inputs,
                                                      float64 + Words{"--save-weights", "saved.npz",
                                                                      "--save-family", "notebook"})
                                                .out);
            for (std::size_t token = 0; token < 3; ++token)
                for (std::size_t o = 0; o < 3; ++o) {
                    double sum = with_bias ? weights[bias][o].get<double>() : 0;
                    for (std::size_t i = 0; i < 2 * width; ++i)
                        sum += joined["context_vectors"][token][i].get<double>() *
                               weights[weight][bare ? i : o][bare ? o : i].get<double>();
                    CHECK(result["context_vectors"][token][o].get<double>() ==
                          doctest::Approx(sum).epsilon(1e-12));
                }
            output_of(
                words_in("multihead - --weights w.json --emit all -o golden.safetensors") + float64,
                inputs);
            for (const char* file : {"saved.npz", "golden.safetensors"})
                CHECK(result_of(Words{"multihead", "-", "--weights", file} + float64,
                                inputs)["context_vectors"] == result["context_vectors"]);
        }
    }
}

}  // namespace
}  // namespace model_rules_test
