// Headers of C and words of $readmemh as inputs: what attn does not write is refused. That their
// numbers are those that were written: same_answers.txt.
#include "tests/support/answers.hpp"

namespace hardware_input_test {

using namespace attn::test;

TEST_CASE("hardware input: a truncated file, or one with a changed byte, is read or refused") {
    Sample sample;
    for (const std::string file : {"g.h", "g.memh"}) {
        const Words question = words_in(
            "causal --example journey --emit inputs,W_query,queries,attention_weights --store "
            "fixed:12,4 -o");
        REQUIRE_EQ(run_attn(question + Words{file}).code, 0);
        const std::string whole = read_text(file);
        for (std::size_t i = 0; i < whole.size(); i += 1 + whole.size() / 75) {
            if (!sample.takes()) continue;
            write_text(file, whole.substr(0, i));
            const Outcome cut = run_attn({"inspect", file});
            CHECK((cut.code == 0 || cut.code == 3));
            std::string changed = whole;
            changed[i] = changed[i] == '7' ? '[' : '7';
            write_text(file, changed);
            const Outcome other = run_attn({"inspect", file});
            CHECK((other.code == 0 || other.code == 3));
            if (other.code == 3) CHECK(contains(other.err, file));
        }
    }
}

TEST_CASE("hardware input: each brace and comma of a header counts, and each name") {
    output_of(
        words_in("multihead --example pair --heads 2 --d-out 4 --emit "
                 "attention_weights,context_vectors,logsumexp -o g.h"));
    const std::string text = read_text("g.h");
    REQUIRE_EQ(run_attn({"inspect", "g.h"}).code, 0);
    std::size_t changes = 0;
    Sample is_taken(5);
    for (std::size_t at = text.find("static"); at != std::string::npos;
         at = text.find("static", at + 1)) {
        const std::size_t name = text.find(" ", text.find(" ", text.find(" ", at) + 1) + 1) + 1;
        std::vector<std::size_t> places{name};
        for (std::size_t mark = text.find("{", at); mark < text.find(";", at);
             mark = text.find_first_of("{},", mark + 1))
            places.push_back(mark);
        for (const std::size_t place : places) {
            std::string less = text, more = text;
            less.erase(place, 1);
            more.insert(place, 1, text[place]);
            for (const std::string& changed : {less, more}) {
                ++changes;
                if (!is_taken.takes()) continue;
                write_text("changed.h", changed);
                CAPTURE(changed.substr(at));
                const Outcome refused = run_attn({"inspect", "changed.h"});
                CHECK_EQ(refused.code, 3);
                CHECK(contains(refused.err, "changed.h:"));
            }
        }
    }
    CHECK_GE(changes, 100);
}

}  // namespace hardware_input_test
