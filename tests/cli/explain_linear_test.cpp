// The explanation of a result of linear attention: the step that follows from the arrays of the
// file is that of the question's own explanation, and arrays that contradict each other are
// refused.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <random>
#include <string>

#include "tests/support/run_attn.hpp"
#include "tests/support/sample.hpp"
#include "tests/support/support.hpp"
#include "tests/support/walk_text.hpp"

namespace explain_linear_test {

using namespace attn::test;
using nlohmann::json;

namespace {

class Draws {
public:
    explicit Draws(std::uint32_t seed) : engine_(seed) {}
    template <class X>
    X among(std::initializer_list<X> all) {
        return all.begin()[engine_() % all.size()];
    }
    json rows(std::size_t rows, std::size_t columns, double low, double high) {
        json all = json::array();
        for (std::size_t i = 0; i < rows; ++i) {
            json row = json::array();
            for (std::size_t j = 0; j < columns; ++j)
                row.push_back(low + (high - low) * static_cast<double>(engine_() % 1024) / 1024);
            all.push_back(row);
        }
        return all;
    }

private:
    std::mt19937 engine_;
};

/// Formulas and tables, without the sums of values, which a result's page alone has.
Words numbers_of(const std::string& page) {
    Words lines;
    for (const std::string& line : lines_of(page))
        if (line.starts_with("    ") && line.find("head_outputs[") == std::string::npos)
            lines.push_back(line);
    return lines;
}

bool has(const std::string& page, const std::string& words) {
    return in_one_line(page).find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("explain result: a step of linear attention is that of the question's explanation") {
    scratch_folder();
    for (std::uint32_t seed = 0; seed < cases(60); ++seed) {
        Draws draws(seed);
        const std::size_t tokens = draws.among<std::size_t>({1, 2, 5});
        json request{{"mode", "linear"}, {"query", draws.rows(tokens, 3, -1, 1)}};
        request["key"] = draws.rows(tokens, 3, -1, 1);
        request["value"] = draws.rows(tokens, 2, -2, 2);
        request["qk_norm"] = true;
        const int decay = draws.among({0, 1, 2, 3});
        if (decay == 1) request["decay"] = -0.25;
        if (decay == 2) request["decay"] = draws.rows(tokens, 1, -1, 0);
        if (decay == 3) request["decay"] = draws.rows(tokens, 3, -1, 0);
        const int beta = draws.among({0, 1, 2});
        if (beta == 1) request["beta"] = 0.5;
        if (beta == 2) request["beta"] = draws.rows(tokens, 1, 0, 1);
        const bool has_past = draws.among({true, false, false});
        if (has_past) request["past_state"] = draws.rows(3, 2, -1, 1);
        write_text("question.json", request.dump());
        const std::string emit = draws.among<std::string>(
            {"all", "all", "attention_weights,queries,keys,values,context_vectors",
             "attention_weights,queries,keys,values,states,context_vectors",
             "attention_weights,states,queries"});
        const std::string file = draws.among<std::string>({"r.json", "r.npz"}),
                          token = std::to_string(draws.among({std::size_t{0}, tokens - 1}));
        CAPTURE(request.dump());
        CAPTURE(emit);
        CAPTURE(token);
        good({"linear", "question.json", "--emit", emit, "-o", file});
        const Words how{"--token", token, "--precision", "5"};
        const std::string page = good(Words{"explain", file} + how),
                          own = good(Words{"explain", "linear", "question.json"} + how);
        CHECK(has(page, "of --decay") == (decay > 1));
        CHECK((has(page, "--beta, so that") == (beta == 2 && !has_past)));
        CHECK(has(page, "--past-state, so that") == has_past);
        const bool has_gates = decay < 2 && beta < 2,
                   has_keys = emit.find("attention") != 0 || emit.find("keys") != emit.npos;
        const bool has_states = emit == "all" || emit.find("states") != emit.npos;
        const bool knows_before = (has_states && token != "0") ||
                                  (!has_past && (token == "0" || (has_gates && has_keys)));
        CHECK(has(page, "The state before") == knows_before);
        CHECK(has(page, "What is written") == (knows_before && has_gates && has_keys));
        if (knows_before && has_gates && has_keys) CHECK(numbers_of(page) == numbers_of(own));
        if (tokens > 1 && token == "0") CHECK(has(page, " . "));
    }
}

TEST_CASE("explain result: rounded numbers of linear attention, and heads that share a state") {
    scratch_folder();
    const Words question{"linear",  "--example",  "journey", "--d-out",  "8",
                         "--heads", "4",          "--decay", "-0.1,-1",  "--beta",
                         "0.5",     "--kv-heads", "2",       "--qk-norm"};
    for (const char* digits : {"1", "2", "4", "17"})
        for (const char* kernel : {"auto", "reference"}) {
            good(question +
                 Words{"--emit", "all", "--precision", digits, "--kernel", kernel, "-o", "r.json"});
            for (const char* token : {"0", "3", "5"})
                CHECK(has(good({"explain", "r.json", "--token", token}), "What is written"));
        }
}

TEST_CASE("explain result: arrays of linear attention that contradict each other are refused") {
    scratch_folder();
    good({"linear", "--example", "journey", "--d-out", "2", "--decay", "-0.5", "--beta", "0.5",
          "--qk-norm", "--emit", "all", "-o", "r.json"});
    const json all = json::parse(read_text("r.json"));
    const struct {
        const char *array, *message;
    } changes[] = {{"attention_weights", "attention_weights of query 3 and key 0 is 9; expected "},
                   {"states", "a number of states of query 3 is 9; expected "},
                   {"head_outputs", "a number of head_outputs of query 3 is 9; expected "}};
    for (const auto& [array, message] : changes) {
        json changed = all;
        json* number = &changed[array][3];
        while (number->is_array()) number = &(*number)[0];
        *number = 9;
        write_text("changed.json", changed.dump());
        const Outcome refused = run_attn({"explain", "changed.json", "--token", "3"});
        CHECK(refused.code == 3);
        CHECK(refused.err.starts_with(std::string("attn: error: changed.json: ") + message));
        CHECK(refused.err.ends_with(", as its settings and other arrays give it\n"));
        CHECK(run_attn({"explain", "changed.json", "--token", "1"}).code == 0);
    }
    json changed = all;
    changed["states"][2][0][0] = 9;
    write_text("changed.json", changed.dump());
    CHECK(run_attn({"explain", "changed.json", "--token", "3"})
              .err.find("a number of states of query 2 is 9; expected ") != std::string::npos);
}

}  // namespace explain_linear_test
