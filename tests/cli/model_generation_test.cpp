// Generated tokens, and models with a decoder or of images and sound, against the library.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/answers.hpp"
#include "tests/support/drawn_model.hpp"
#include "tests/support/model_cases.hpp"
#include "tests/support/sample.hpp"
#include "tests/support/support.hpp"

namespace model_generation_test {

using namespace attn::test;
using nlohmann::json;

TEST_CASE("models: greedy tokens with the cache, and the logits after them") {
    std::size_t generating = 0;
    for (const json& c : generation_cases()) {
        if (!c.contains("generated")) continue;
        const std::string name = c["name"];
        CAPTURE(name);
        write_model(c, "model");
        Words words = words_of(c);
        for (const char* word : {"--generate", "5", "--emit", "logits,next_tokens"})
            words.emplace_back(word);
        const json found = result_of(words);
        CHECK_EQ(found["generated"], c["generated"]);
        CHECK_LE(difference_of(found["logits"], c["expected"]["logits"]), 1e-8);
        const std::vector<double> logits = flat(c["expected"]["logits"]);
        const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
        CHECK_EQ(found["next_tokens"][0].get<std::ptrdiff_t>(), best);
        ++generating;
    }
    CHECK_GE(generating, 20);
}

namespace {

/// The arrays of each stack in r.npz have its own labels: as an input, and in explanations.
void check_labels_of_stacks(const json& found) {
    for (const std::string stack : {"encoder", "decoder"}) {
        const json& tokens = found[stack == "encoder" ? "tokens" : "decoder_tokens"];
        CHECK_EQ(result_of({"self", "r.npz:" + stack + "_hidden_states.0", "--init", "none",
                            "--emit", "inputs", "--format", "json"})["tokens"],
                 tokens);
    }
    for (const std::string part : {"encoder", "decoder", "cross"}) {
        const json& tokens = found[part == "encoder" ? "tokens" : "decoder_tokens"];
        const json& keys = found[part == "decoder" ? "decoder_tokens" : "tokens"];
        const Outcome run =
            run_attn({"explain", "r.npz:" + part + "_attention_weights.0", "--token", "1"});
        REQUIRE_MESSAGE(run.code == 0, run.err);
        CHECK(run.out.starts_with("Query 1 \"" + tokens[1].get<std::string>() + "\""));
        CHECK(contains(run.out, " " + keys[0].get<std::string>() + " "));
    }
}

}  // namespace

TEST_CASE("models: generated tokens have a text and labels") {
    // Tokens of each id: a word, a piece that goes on, a byte of a character of several, a special
    // one.
    json vocab = json::object();
    for (int id = 0; id < 300; ++id)
        vocab[id % 4 == 0   ? "\u2581w" + std::to_string(id)
              : id % 4 == 1 ? "p" + std::to_string(id)
              : id % 4 == 2 ? "<x" + std::to_string(id) + ">"
                            : "\u2581\u00e9" + std::to_string(id)] = id;
    json special = json::array();
    for (int id = 6; id < 300; id += 16)
        special.push_back(
            {{"id", id}, {"content", "<x" + std::to_string(id) + ">"}, {"special", true}});
    const json tokenizer{{"added_tokens", special},
                         {"decoder", {{"type", "Metaspace"}, {"replacement", "\u2581"}}},
                         {"model", {{"type", "WordLevel"}, {"vocab", vocab}, {"unk_token", "p1"}}}};
    const auto text_of = [&](const json& ids) {
        std::string text;
        for (const json& id : ids)
            for (const auto& [piece, number] : vocab.items()) {
                if (number != id || (id.get<int>() % 16 == 6)) continue;
                const bool begins = piece.starts_with("\u2581");
                text += (begins ? " " : "") + piece.substr(begins ? 3 : 0);
            }
        return text;
    };
    std::size_t texts = 0;
    for (const json& c : generation_cases()) {
        if (!c.contains("generated")) continue;
        const std::string name = c["name"];
        CAPTURE(name);
        write_model(c, "model");
        write_text("model/tokenizer.json", tokenizer.dump());
        Words words =
            with(words_of(c), {"--generate", "5", "--emit", "attention_weights,hidden_states"});
        const Outcome run = run_attn(words);
        REQUIRE_MESSAGE(run.code == 0, run.err);
        const json found = json::parse(run.out);
        CHECK_EQ(found["generated_text"], text_of(c["generated"]));
        words.insert(words.end(), {"--format", "table", "--layers", "0"});
        CHECK(run_attn(words).out.starts_with("generated_text\n\"" + text_of(c["generated"]) +
                                              "\"\n\n"));
        const bool has_decoder = c.contains("decoder_ids");
        const json& prompt = c[has_decoder ? "decoder_ids" : "token_ids"];
        const json& tokens = found[has_decoder ? "decoder_tokens" : "tokens"];
        REQUIRE_EQ(tokens.size(), prompt.size() + c["generated"].size());
        for (std::size_t i = 0; i < tokens.size(); ++i)
            CHECK_EQ(vocab[tokens[i].get<std::string>()],
                     i < prompt.size() ? prompt[i] : c["generated"][i - prompt.size()]);
        write_text("result.json", run.out);
        if (has_decoder) {
            REQUIRE_EQ(run_attn(with(words_of(c), {"--generate", "5", "-o", "r.npz"})).code, 0);
            check_labels_of_stacks(found);
            ++texts;
            continue;
        }
        std::size_t layer = 0;  // the first that has attention weights
        while (found["attention_weights"][layer].is_null()) ++layer;
        const Outcome drawn = run_attn({"plot", "result.json", "--layer", std::to_string(layer)});
        CHECK_MESSAGE(drawn.code == 0, drawn.err);
        ++texts;
    }
    CHECK_GE(texts, 15);
}

TEST_CASE("models: every name that a result shows is one that --emit takes") {
    std::size_t names = 0;
    Sample is_taken;
    for (const json& c : generation_cases()) {
        if (!is_taken.takes()) continue;
        const std::string name = c["name"];
        CAPTURE(name);
        if (names > 250) break;
        write_model(c, "model");
        Words words = with(words_of(c), {"--emit", ""});
        const auto shown = [&](const std::string& emit) {
            words.back() = emit;
            const Outcome run = run_attn(words);
            json arrays = json::object();
            if (run.code != 0) return arrays;
            const json result = json::parse(run.out);
            for (const auto& [key, value] : result.items())
                if (value.is_array() && key != "tokens" && key != "layer_numbers")
                    arrays[key] = value;
            return arrays;
        };
        json all = shown("all");
        if (all.empty())  // without a head
            all =
                shown("hidden_states,attention_weights,last_hidden_state,queries,context_vectors");
        CHECK_FALSE(all.empty());
        for (const auto& item : all.items()) {
            const std::string array = item.key();
            const json& values = item.value();
            CAPTURE(array);
            json alone = shown(array);
            CHECK_EQ(alone[array], values);
            // Names of both stacks, and next_tokens with its probabilities, show more.
            if (array.starts_with("encoder_") || array.starts_with("decoder_"))
                CHECK_EQ(alone.size(), 1);
            ++names;
        }
    }
    if (one_in == 1) CHECK_GE(names, 100);
}

TEST_CASE("models: images and sound, and decoders that attend to them") {
    std::size_t models = 0;
    for (const json& c : generation_cases()) {
        if (!c.contains("inputs")) continue;
        const std::string name = c["name"];
        CAPTURE(name);
        write_model(c, "model");
        Words words = words_of(c);
        words.emplace_back("--emit");
        words.emplace_back("last_hidden_state");
        const Outcome run = run_attn(words);
        REQUIRE_MESSAGE(run.code == 0, run.err);
        const json found = json::parse(run.out);
        for (const auto& entry : c["expected"].items()) {
            const std::string& array = entry.key();
            CAPTURE(array);
            CHECK_LE(difference_of(found[array], entry.value()), 1e-8);
        }
        words.emplace_back("--dry-run");
        const Outcome cost = run_attn(words);
        REQUIRE_MESSAGE(cost.code == 0, cost.err);
        std::size_t numbers = 0;  // of the encoder as well
        for (const char* array : {"last_hidden_state", "encoder_last_hidden_state"})
            if (found.contains(array)) numbers += flat(found[array]).size();
        CHECK_EQ(json::parse(cost.out)["output_numbers"], numbers);
        CHECK_GT(json::parse(cost.out)["flops"], 0);
        ++models;
    }
    CHECK_GE(models, 6);
}

TEST_CASE("models: T5's output is scaled as transformers does, whichever keys say so") {
    scratch_folder();
    const json given[] = {json(), true, false};
    for (json c : generation_cases()) {
        if (c["name"] != "t5" && c["name"] != "umt5") continue;
        const double factor = std::sqrt(c["config"]["d_model"].get<double>());
        for (const bool has_head : {false, true}) {
            c["tensors"].erase("lm_head.weight");
            if (has_head) c["tensors"]["lm_head.weight"] = c["tensors"]["shared.weight"];
            std::vector<double> unscaled;
            for (const json& scale : {json(false), json(true), json()})
                for (const json& tie : given) {
                    for (const auto& [key, value] : {std::pair("scale_decoder_outputs", scale),
                                                     {"tie_word_embeddings", tie}}) {
                        c["config"].erase(key);
                        if (!value.is_null()) c["config"][key] = value;
                    }
                    CAPTURE(c["config"].dump());
                    write_model(c, "model");
                    Words words = words_of(c);
                    for (const char* word : {"--dtype", "float64", "--emit", "logits"})
                        words.emplace_back(word);
                    const std::vector<double> logits = flat(result_of(words)["logits"]);
                    if (unscaled.empty()) unscaled = logits;
                    const bool scales = scale.is_null() ? tie != false : scale == true;
                    const double wanted = unscaled[0] / (scales ? factor : 1);
                    CHECK(logits[0] == doctest::Approx(wanted).epsilon(1e-12));
                }
        }
    }
}

}  // namespace model_generation_test
