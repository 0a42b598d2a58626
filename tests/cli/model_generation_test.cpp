// Generated tokens, and models with a decoder or of images and sound, against the library.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/drawn_model.hpp"
#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"

namespace model_generation_test {

using namespace attn::test;
using nlohmann::json;

namespace {

std::vector<json> lines_of(const std::string& path) {
    std::istringstream lines(read_text(data_path(path)));
    std::vector<json> cases;
    for (std::string line; std::getline(lines, line);) cases.push_back(json::parse(line));
    return cases;
}

/// The cases, those of other files with their config and tensors.
std::vector<json> generation_cases() {
    std::map<std::string, json> families;
    for (const json& c : lines_of("models/families.ndjson")) families[c["name"]] = c;
    std::vector<json> cases = lines_of("models/generation.ndjson");
    for (json& c : cases) {
        if (c.contains("config")) continue;
        const json& family = families.at(c["name"]);
        c["config"] = family["config"];
        c["tensors"] = family["tensors"];
    }
    return cases;
}

/// "pixel_values" to "--pixel-values"
std::string flag_of(std::string key) {
    for (char& c : key)
        if (c == '_') c = '-';
    return "--" + key;
}

std::vector<std::string> words_of(const json& c) {
    std::vector<std::string> words{"model", "model", "--dtype", "float64"};
    for (const char* key : {"token_ids", "decoder_ids"})
        if (c.contains(key) && !c[key].empty()) {
            words.push_back(flag_of(key));
            words.push_back(list_of(c[key]));
        }
    const json inputs = c.value("inputs", json::object());
    for (const auto& [key, form] : inputs.items()) {
        write_text(key + ".npy",
                   npy_of(form[0], drawn("input." + key, count_of(form[0]), form[1], form[2])));
        words.push_back(flag_of(key));
        words.push_back(key + ".npy");
    }
    return words;
}

}  // namespace

TEST_CASE("models: greedy tokens with the cache, and the logits after them") {
    std::size_t generating = 0;
    for (const json& c : generation_cases()) {
        if (!c.contains("generated")) continue;
        const std::string name = c["name"];
        CAPTURE(name);
        write_model(c, "model");
        std::vector<std::string> words = words_of(c);
        for (const char* word : {"--generate", "5", "--emit", "logits,next_tokens"})
            words.emplace_back(word);
        const Outcome run = run_attn(words);
        REQUIRE_MESSAGE(run.code == 0, run.err);
        const json found = json::parse(run.out);
        CHECK_EQ(found["generated"], c["generated"]);
        CHECK_LE(difference_of(found["logits"], c["expected"]["logits"]), 1e-8);
        const std::vector<double> logits = flat(c["expected"]["logits"]);
        const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
        CHECK_EQ(found["next_tokens"][0].get<std::ptrdiff_t>(), best);
        ++generating;
    }
    CHECK_GE(generating, 20);
}

TEST_CASE("models: images and sound, and decoders that attend to them") {
    std::size_t models = 0;
    for (const json& c : generation_cases()) {
        if (!c.contains("inputs")) continue;
        const std::string name = c["name"];
        CAPTURE(name);
        write_model(c, "model");
        std::vector<std::string> words = words_of(c);
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
        ++models;
    }
    CHECK_GE(models, 6);
}

}  // namespace model_generation_test
