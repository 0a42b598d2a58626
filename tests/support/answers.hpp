// What tests of the program need: runs of it, its answers, and files. An answer is JSON, or the one
// line that refuses the words of a command.
#pragma once

#include "tests/support/run_attn.hpp"

namespace attn::test {

/// Without a note.
inline nlohmann::json answer(const Words& words, const std::string& input = "", int code = 0) {
    const Outcome outcome = run_attn(words, input);
    CAPTURE(words);
    CAPTURE(outcome.out);
    CHECK(outcome.err == "");
    REQUIRE(outcome.code == code);
    return nlohmann::json::parse(outcome.out);
}

/// What a run that must go well writes, with or without notes.
inline std::string output_of(const Words& words, const std::string& input = "") {
    const Outcome outcome = run_attn(words, input);
    REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
    return outcome.out;
}

inline nlohmann::json result_of(const Words& words, const std::string& input = "") {
    return nlohmann::json::parse(output_of(words, input));
}

inline void check_error(const Words& words, const std::string& input, int code,
                        const std::string& part) {
    const Outcome outcome = run_attn(words, input);
    CAPTURE(words);
    CAPTURE(input);
    CAPTURE(outcome.err);
    CHECK(outcome.code == code);
    CHECK(outcome.out == "");
    CHECK(outcome.err.starts_with("attn: error: "));
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
    CHECK(contains(outcome.err, part));
}

/// One on each line; throws if a line is not complete JSON.
inline std::vector<nlohmann::json> answers_in(const std::string& text) {
    std::vector<nlohmann::json> answers;
    for (const std::string& line : lines_of(text)) answers.push_back(nlohmann::json::parse(line));
    return answers;
}

}  // namespace attn::test
