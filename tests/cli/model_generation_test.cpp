// Generated tokens against the library, with their texts and labels; names of arrays.
#include "tests/support/answers.hpp"
#include "tests/support/model_cases.hpp"

namespace model_generation_test {
namespace {

using namespace attn::test;
using nlohmann::json;

TEST_CASE("models: greedy tokens with the cache, and the logits after them") {
    std::size_t generating = 0;
    for (const json& c : generation_cases()) {
        if (!c.contains("generated")) continue;
        const std::string name = c["name"];
        CAPTURE(name);
        write_model(c, "model");
        const json found =
            result_of(words_of(c) + Words{"--generate", "5", "--emit", "logits,next_tokens"});
        CHECK_EQ(found["generated"], c["generated"]);
        CHECK_LE(difference_of(found["logits"], c["expected"]["logits"]), 1e-8);
        const std::vector<double> logits = flat(c["expected"]["logits"]);
        const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
        CHECK_EQ(found["next_tokens"][0].get<std::ptrdiff_t>(), best);
        ++generating;
    }
    CHECK_GE(generating, 20);
}

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
        const std::string page =
            output_of({"explain", "r.npz:" + part + "_attention_weights.0", "--token", "1"});
        CHECK(page.starts_with("Query 1 \"" + tokens[1].get<std::string>() + "\""));
        CHECK(contains(page, " " + keys[0].get<std::string>() + " "));
    }
}

/// Without a tokenizer, ids label the tokens of tables and pictures, those of stored results too.
void check_ids_as_labels(const json& c, const Words& words) {
    const bool has_decoder = c.contains("decoder_ids");
    const std::string array = has_decoder ? "decoder_hidden_states" : "hidden_states";
    const Words asked = words + Words{"--emit", array, "--layers", "0"};
    Words expected, found;
    for (const json& ids : {c[has_decoder ? "decoder_ids" : "token_ids"], c["generated"]})
        for (const json& id : ids) expected.push_back(id.dump());
    const std::string table = run_attn(asked + Words{"--format", "table"}).out;
    CHECK(table.starts_with("generated (count "));
    bool is_inside = false;
    for (const std::string& line : lines_of(table)) {
        if (is_inside && line.empty()) break;
        if (is_inside && line.front() != ' ') found.push_back(words_in(line).front());
        is_inside = is_inside || line.starts_with(array);
    }
    CHECK_EQ(found, expected);
    const std::string picture =
        run_attn(asked + Words{"--heatmap", "--plot-array", array, "--format", "none"}).out;
    CHECK_FALSE(rows_of(picture, expected).empty());
    for (const std::string file : {"r.json", "r.npz"}) {
        CAPTURE(file);
        REQUIRE_EQ(run_attn(asked + Words{"-o", file}).code, 0);
        CHECK_EQ(run_attn({"plot", file, "--array", array}).out, picture);
    }
}

TEST_CASE("models: generated tokens have a text and labels") {
    // In turn a word, a piece that goes on, and a word with an accent; some are special tokens.
    json vocab = json::object(), special = json::array();
    Words pieces, texts;
    for (int id = 0; id < 300; ++id) {
        const bool begins = id % 2 == 0, is_special = id % 16 == 5;
        const std::string letters = (id % 4 == 0 ? "w" : "\u00e9") + std::to_string(id);
        pieces.push_back((begins ? "\u2581" : "") + letters);
        texts.push_back(is_special ? "" : (begins ? " " : "") + letters);
        vocab[pieces.back()] = id;
        if (is_special)
            special.push_back({{"id", id}, {"content", pieces.back()}, {"special", true}});
    }
    const json tokenizer{
        {"added_tokens", special},
        {"decoder", {{"type", "Metaspace"}, {"replacement", "\u2581"}}},
        {"model", {{"type", "WordLevel"}, {"vocab", vocab}, {"unk_token", pieces[0]}}}};
    std::size_t models = 0;
    for (const json& c : generation_cases()) {
        if (!c.contains("generated")) continue;
        CAPTURE(c["name"].get<std::string>());
        write_model(c, "model");
        std::filesystem::remove(scratch_folder() + "/model/tokenizer.json");
        const Words words = words_of(c) + Words{"--generate", "5"};
        check_ids_as_labels(c, words);
        write_text("model/tokenizer.json", tokenizer.dump());
        const json found = result_of(words);
        std::string text;
        for (const std::size_t id : c["generated"]) text += texts[id];
        CHECK_EQ(found["generated_text"], text);
        const bool has_decoder = c.contains("decoder_ids");
        const Words next =
            lines_of(run_attn(words + Words{"--emit", "next_tokens", "--format", "table"}).out);
        for (const json& ids :
             {c["generated"], result_of(words + Words{"--emit", "next_tokens"})["next_tokens"]}) {
            Words named;
            for (const std::size_t id : ids)
                named.push_back(pieces[id].substr(id % 2 == 0 ? sizeof "\u2581" - 1 : 0));
            CHECK(std::ranges::any_of(
                next, [&](const std::string& line) { return words_in(line) == named; }));
        }
        Words expected;
        for (const json& ids : {c[has_decoder ? "decoder_ids" : "token_ids"], c["generated"]})
            for (const std::size_t id : ids) expected.push_back(pieces[id]);
        CHECK_EQ(found[has_decoder ? "decoder_tokens" : "tokens"], expected);
        if (has_decoder) {
            REQUIRE_EQ(run_attn(words + Words{"-o", "r.npz"}).code, 0);
            check_labels_of_stacks(found);
        } else {
            const Words table{"--emit", "hidden_states", "--layers", "0", "--format", "table"};
            CHECK(run_attn(words + table).out.starts_with("generated_text\n\"" + text + "\"\n\n"));
        }
        ++models;
    }
    CHECK_GE(models, 15);
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

TEST_CASE("models: T5's output is scaled as transformers does, whichever keys say so") {
    for (json c : generation_cases()) {
        if (c["name"] != "t5" && c["name"] != "umt5") continue;
        const double factor = std::sqrt(c["config"]["d_model"].get<double>());
        for (const bool has_head : {false, true}) {
            c["tensors"].erase("lm_head.weight");
            if (has_head) c["tensors"]["lm_head.weight"] = c["tensors"]["shared.weight"];
            double unscaled = 0;
            for (const json& scale : {json(false), json(true), json()})
                for (const json& tie : {json(), json(true), json(false)}) {
                    json given = c;
                    given["config"].erase("tie_word_embeddings");
                    given["config"]["scale_decoder_outputs"] = scale;
                    if (!tie.is_null()) given["config"]["tie_word_embeddings"] = tie;
                    CAPTURE(given["config"].dump());
                    write_model(given, "model");
                    const json logits =
                        result_of(words_of(given) + Words{"--emit", "logits"})["logits"];
                    const double first = flat(logits)[0];
                    if (unscaled == 0) unscaled = first;
                    const bool scales = scale.is_null() ? tie != false : scale == true;
                    CHECK(first * (scales ? factor : 1) ==
                          doctest::Approx(unscaled).epsilon(1e-12));
                }
        }
    }
}

}  // namespace
}  // namespace model_generation_test
