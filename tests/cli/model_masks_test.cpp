// Tables and pictures of models mark the cells that the array `mask` excludes.
#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/contains.hpp"
#include "tests/support/drawn_model.hpp"
#include "tests/support/model_cases.hpp"
#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"
#include "tests/support/words.hpp"

namespace model_masks_test {

using namespace attn::test;
using nlohmann::json;

namespace {

/// One entry per cell of a table of real numbers, in its order: whether it is masked.
std::vector<bool> masked_in_table(const std::string& table) {
    std::vector<bool> masked;
    std::istringstream words(table);
    for (std::string word; words >> word;) {
        const bool is_number = word[0] >= '0' && word[0] <= '9' && contains(word, ".");
        if (word == "." || is_number) masked.push_back(word == ".");
    }
    return masked;
}

/// The same by the zeros of nested lists.
void add_zeros(const json& list, std::vector<bool>& masked) {
    if (list.is_array())
        for (const json& entry : list) add_zeros(entry, masked);
    else if (list.is_number())
        masked.push_back(list == 0);
}

}  // namespace

TEST_CASE("model masks: tables mark what the mask excludes, with padding and chosen heads too") {
    std::size_t compared = 0, with_marks = 0;
    scratch_folder();
    for (const json& c : model_cases()) {
        if (is_refused(c)) continue;
        CAPTURE(c["name"].get<std::string>());
        write_model(c, "model");
        const Words asked{"model", "model", "--token-ids", ids_of(c)};
        std::string padding = "0";
        for (std::size_t i = 1; i < c["token_ids"].size(); ++i) padding += ",1";
        for (const Words& more :
             {Words{}, Words{"--attention-mask", padding}, Words{"--head", "1"}}) {
            CAPTURE(more);
            const Outcome mask = run_attn(asked + more + Words{"--emit", "mask"});
            const Outcome weights =
                run_attn(asked + more + Words{"--emit", "attention_weights", "--format", "table"});
            if (mask.code != 0 || weights.code != 0) continue;
            const json found = json::parse(mask.out);
            std::vector<bool> masked;
            if (found.contains("mask")) add_zeros(found["mask"], masked);
            const std::vector<bool> marked = masked_in_table(weights.out);
            if (masked.size() != marked.size())
                continue;  // layers without a mask, or without weights
            CHECK_EQ(marked, masked);
            ++compared;
            if (std::find(marked.begin(), marked.end(), true) != marked.end()) ++with_marks;
        }
    }
    CHECK_GE(compared, 200);
    CHECK_GE(with_marks, 180);
}

TEST_CASE("model masks: a saved result is drawn as when it was computed") {
    scratch_folder();
    for (const std::string& name : Words{"bert", "gpt2", "llama", "mistral", "qwen2", "neox"})
        for (const std::string& result : Words{"r.json", "r.npz", "r.safetensors"})
            for (const Words& more :
                 {Words{}, Words{"--attention-mask", "0,1,1"}, Words{"--head", "1"}}) {
                CAPTURE(name);
                CAPTURE(result);
                CAPTURE(more);
                const Outcome outcome = run_attn(
                    Words{"model", data_path("models/" + name), "--token-ids", "3,1,4", "--emit",
                          "attention_weights,scores", "--plot", "asked.html", "-o", result} +
                    more);
                REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
                REQUIRE_EQ(run_attn({"plot", result, "-o", "read.html"}).code, 0);
                CHECK((read_text("asked.html") == read_text("read.html")));
            }
}

}  // namespace model_masks_test
