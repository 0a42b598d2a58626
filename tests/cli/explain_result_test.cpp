// The walk through a result that was computed before: its numbers are those of the file.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>

#include "tests/support/run_attn.hpp"
#include "tests/support/sample.hpp"
#include "tests/support/support.hpp"
#include "tests/support/walk_text.hpp"

using namespace attn::test;
using nlohmann::json;

namespace {

/// Formulas and tables, which hold the numbers. A result does not have those of the norm.
Words numbers_of(const std::string& page) {
    Words lines;
    for (const std::string& line : lines_of(page))
        if (line.starts_with("    ") && line.find(" / sqrt(") == std::string::npos)
            lines.push_back(line);
    return lines;
}

const std::vector<Words>& questions() {
    static const std::vector<Words> all{
        {"self", "--example", "journey"},
        {"self", "--example", "journey", "--init", "rand", "--qkv-bias", "--scale", "2"},
        {"causal", "--example", "journey", "--dropout", "0.5"},
        {"causal", "--example", "journey", "--mask-method", "renormalize", "--window", "1"},
        {"self", "--example", "journey", "--kv-lengths", "3", "--sink", "0.5"},
        {"multihead", "--example", "journey", "--d-out", "8", "--heads", "4", "--kv-heads", "2"},
        {"multihead", "--example", "pair", "--heads", "2", "--softcap", "2"},
        {"multihead", "--example", "journey", "--heads", "2", "--d-out", "2", "--style", "wrapper"},
        {"multihead", "--weights", data_path("models/gpt2"), "--token-ids", "3,1,4"},
        {"cross", data_path("journey.csv"), "--context", data_path("journey.csv"), "--d-out", "4",
         "--heads", "2"}};
    return all;
}

}  // namespace

TEST_CASE(
    "explain result: files that are not results, or are inconsistent, are refused in one line") {
    scratch_folder();
    const json whole = json::parse(good({"causal", "--example", "journey", "--emit", "all"}));
    const auto refused = [](const json& result, const char* words) {
        CAPTURE(words);
        const Outcome outcome = run_attn({"explain", "-"}, result.dump());
        CHECK(outcome.code == 3);
        CHECK(outcome.out == "");
        CHECK(outcome.err.find(words) != std::string::npos);
        CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
    };
    json other = whole;
    other["scores"][2][1] = 50;
    refused(other, "scaled_scores of query 2 and key 1 is 0.");
    refused(other, "; expected 28.867513");
    other = whole;
    other["context_vectors"][2][1] = 50;
    refused(other, "has context_vectors that are not the concatenated heads");
    other = whole;
    other.erase("attention_weights");
    refused(other, "has no attention_weights");
    other = whole;
    other["queries"] = {{1, 2}};
    refused(other, "queries has shape (1, 2); expected (6, 3)");
    other = whole;
    other["config"]["colour"] = 3;
    refused(other, "config has \"colour\", which mode causal does not have");
    other = whole;
    other["shapes"]["heads"] = 1e9;
    refused(other, "shapes.heads is 1000000000.0; expected 1, as its config and operands make it");
    other = whole;
    other["layout"]["past_len"] = 1;
    refused(other, "layout.past_len is 1; expected 0, as its config and operands make it");
    other = whole;
    other["layout"]["operands"]["inputs"] = {6, -3};
    refused(other, "layout.operands.inputs is [6,-3]; expected a shape of rank 2 to 3");
    other = whole;
    other["attention_weights"] = "none";
    refused(other, "attention_weights is not an array");
    other = whole;
    other["config"]["mode"] = "self";
    refused(other, "config.mode is \"self\", and mode is causal; expected the same");
    for (const char* key : {"output", "save_weights", "plot", "threads"}) {
        other = whole;
        other["config"][key] = "written.txt";
        refused(other, "which mode causal does not have");
        CHECK(!std::filesystem::exists("written.txt"));
    }
    other = whole;
    other.erase("layout");
    refused(other, "or its question: attn explain causal INPUT");
    other = whole;
    other.erase("config");
    refused(other, "is not a result of attn");
    refused(
        json::parse(good({"multihead", "--example", "journey", "--heads", "3", "--average-heads"})),
        "each head's own, as without --average-heads");
    write_text("r.json", whole.dump());
    CHECK(run_attn({"explain", "r.json", "--scale", "2"}).code == 2);
    CHECK(run_attn({"explain", "r.json", "--token", "6"}).code == 2);
    CHECK(run_attn({"explain", "nothing.json"}).code == 2);
}

TEST_CASE("explain result: changed anywhere, it is explained or refused, never an internal error") {
    std::mt19937 draw(3);
    for (const Words& ask : questions()) {
        const json whole = json::parse(good(ask + Words{"--emit", "all"}));
        for (std::size_t i = 0; i < cases(25); ++i) {
            json changed = whole;
            for (const char* part : {"config", "shapes", "layout", ""}) {
                json& place = part[0] == '\0' ? changed : changed[part];
                auto member = place.begin();
                std::advance(member, draw() % place.size());
                const json values[] = {0,           -1,         1e300,         "x",
                                       nullptr,     true,       json::array(), {1, 2},
                                       4000000000u, {{"a", 1}}, 1.5,           7};
                if (draw() % 3 == 0) member.value() = values[draw() % std::size(values)];
                if (draw() % 7 == 0) place.erase(member);
            }
            const Outcome outcome = run_attn({"explain", "-"}, changed.dump());
            CAPTURE(joined(ask));
            CAPTURE(outcome.err);
            CHECK((outcome.code == 0 || outcome.code == 2 || outcome.code == 3));
            CHECK(outcome.out.empty() == (outcome.code != 0));
        }
    }
}

TEST_CASE("explain result: weights that no softmax gives are refused, also without scores") {
    scratch_folder();
    constexpr std::size_t query = 1;
    for (const Words& ask : questions())
        for (const char* digits : {"", "4"}) {
            CAPTURE(joined(ask));
            Words words = ask + Words{"--emit", "attention_weights"};
            if (*digits != 0) words = words + Words{"--precision", digits};
            const json result = json::parse(good(words));
            const bool scaled = result["config"]["dropout"] != 0,
                       has_sink = result["config"].contains("sink");
            const auto explain = [&](std::size_t key, double value) {
                json changed = result;
                json* row = &changed["attention_weights"];
                while (row->at(0).at(0).is_array()) row = &row->at(0);
                row = &row->at(query);
                const double before = row->at(key).get<double>();
                if (value == 2) value = before / 2;
                row->at(key) = value;
                write_text("r.json", changed.dump());
                const Outcome outcome =
                    run_attn({"explain", "r.json", "--token", std::to_string(query)});
                CAPTURE(outcome.err);
                CAPTURE(key);
                CAPTURE(value);
                const bool is_masked = scaled ? key > query : before == 0;
                double sum = 0;
                for (const json& weight : *row) sum += weight.get<double>();
                const bool is_wrong = value < 0 || value > 2.5 || (is_masked && value > 0) ||
                                      (!scaled && sum > 1.02) ||
                                      (!scaled && !has_sink && sum < 0.98);
                if (is_wrong) {
                    CHECK(outcome.code == 3);
                    CHECK(outcome.err.find("attention_weights of query 1") != std::string::npos);
                } else {
                    CHECK(outcome.code == 0);
                }
            };
            for (std::size_t key = 0; key < 3; ++key)
                for (double value : {-0.1, 3.0, 0.3, 2.0}) explain(key, value);
        }
}

TEST_CASE("explain result: dropout does not widen what weights before it may differ by") {
    scratch_folder();
    for (const char* p : {"0", "0.5", "0.9"}) {
        const json result =
            json::parse(good({"causal", "--example", "journey", "--dropout", p, "--emit", "all"}));
        for (const auto& changed_at :
             {std::pair(0, 0.02), {1, -0.02}, {2, 0.05}, {0, -0.4}, {1, 0.0}}) {
            const double change = changed_at.second;
            CAPTURE(p);
            CAPTURE(change);
            json changed = result;
            json& weight =
                changed["weights_before_dropout"][2][static_cast<std::size_t>(changed_at.first)];
            weight = weight.get<double>() + change;
            write_text("r.json", changed.dump());
            CHECK(run_attn({"explain", "r.json", "--token", "2"}).code == (change == 0 ? 0 : 3));
        }
    }
}
