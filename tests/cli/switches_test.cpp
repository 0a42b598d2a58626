// Every flag that is true or false: --no-X undoes X wherever X was said, and the last flag wins.
#include <doctest/doctest.h>

#include <string>

#include <nlohmann/json.hpp>

#include "cli/request/options.hpp"
#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"
#include "tests/support/words.hpp"

using namespace attn::cli;
using attn::Mode;
using attn::mode_rows;
using attn::test::data_path;
using attn::test::Outcome;
using attn::test::run_attn;
using attn::test::Words;
using attn::test::write_text;
using attn::test::operator+;
using nlohmann::json;

namespace {

/// Members of a request in which the option changes the answer.
json question_of(Mode mode, const Option& option) {
    const json matrix = json::parse("[[0.5,-1,2],[1,0.25,-0.5],[0.75,0.5,1]]");
    json members = json::object();
    if (std::string_view(option.key) == "pre_norm")
        return {{"weights", data_path("models/gpt2")}, {"token_ids", {1, 2, 3}}};
    if (mode == Mode::sdpa)
        members = {
            {"query", {matrix, matrix}}, {"key", {matrix, matrix}}, {"value", {matrix, matrix}}};
    else
        members["inputs"] = matrix;
    if (mode == Mode::cross) members["context"] = matrix;
    if (mode == Mode::multihead || mode == Mode::cross || mode == Mode::linear)
        members.update(json{{"heads", 2}, {"d_out", 4}});
    return members;
}

bool is_same(const Outcome& a, const Outcome& b) {
    return a.code == b.code && a.out == b.out && a.err == b.err;
}

/// Whether the option's two values answer this question differently.
void check_switch(const Words& command, const Option& option, const std::string& input) {
    const std::string yes = flag_of(option), no = "--no-" + flag_name(option);
    const auto run = [&](const Words& flags) { return run_attn(command + flags, input); };
    const Outcome usual = run({}), with = run({yes}), without = run({no});
    CAPTURE(with.err);
    CAPTURE(without.err);
    REQUIRE(with.code == 0);
    CHECK_FALSE(is_same(with, without));
    CHECK((is_same(usual, with) || is_same(usual, without)));
    CHECK(is_same(run({yes, no}), without));
    CHECK(is_same(run({no, yes}), with));
    CHECK(is_same(run({yes, no, yes}), with));
    CHECK(is_same(run({no, yes, no}), without));
    // A file of flags says less than the command line.
    for (const bool said : {true, false}) {
        write_text("flags.json", json{{option.key, said}}.dump());
        CHECK(is_same(run({"--config", "flags.json"}), said ? with : without));
        CHECK(is_same(run({"--config", "flags.json", no}), without));
        CHECK(is_same(run({yes, "--config", "flags.json"}), with));
    }
}

/// A request says less than the command line of a mode, and more than that of a batch.
void check_key(const Words& command, const Option& option, const json& question) {
    const std::string yes = flag_of(option), no = "--no-" + flag_name(option);
    for (const bool said : {true, false}) {
        json asked = question;
        asked[option.key] = said;
        const std::string request = asked.dump(), bare = question.dump();
        const Outcome with = run_attn(command + Words{yes}, bare),
                      without = run_attn(command + Words{no}, bare);
        CHECK(is_same(run_attn(command, request), said ? with : without));
        CHECK(is_same(run_attn(command + Words{no}, request), without));
        CHECK(is_same(run_attn(command + Words{yes}, request), with));
        CHECK(is_same(run_attn(command + Words{yes, no}, request), without));
        if ((option.use & in_batch) == 0) continue;
        const Words batch{"batch", "--mode", command.front()};
        const Outcome alone = run_attn(batch, request + "\n");
        REQUIRE(alone.code == 0);
        CHECK(is_same(run_attn(batch + Words{no}, request + "\n"), alone));
        CHECK(is_same(run_attn(batch + Words{yes}, request + "\n"), alone));
    }
}

}  // namespace

TEST_CASE(
    "switches: --no-X undoes X of a flag, a file of flags and a request; the last flag wins") {
    attn::test::scratch_folder();
    std::size_t switches = 0;
    for (const Option& option : options()) {
        if (!is_boolean(option) || (option.use & as_flag) == 0) continue;
        ++switches;
        std::size_t modes = 0;
        for (const auto& row : mode_rows) {
            // The small model has an output projection, which self and causal have not.
            const bool is_norm = std::string_view(option.key) == "pre_norm";
            if ((option.modes & in(row.mode)) == 0 || (is_norm && row.mode != Mode::multihead))
                continue;
            CAPTURE(std::string(option.key));
            CAPTURE(std::string(row.name));
            ++modes;
            const Words command{std::string(row.name), "-"};
            if ((option.use & as_key) != 0) {
                const json question = question_of(row.mode, option);
                check_switch(command, option, question.dump());
                check_key(command, option, question);
            } else if (std::string_view(option.key) == "csv_comments") {
                if (row.mode != Mode::self && row.mode != Mode::causal) continue;
                check_switch(command, option, "# 1,2\n0.5,1\n2,-1\n");
            } else {
                check_switch(command, option, question_of(row.mode, option).dump());
            }
        }
        CHECK(modes > 0);
    }
    CHECK(switches >= 10);
}
