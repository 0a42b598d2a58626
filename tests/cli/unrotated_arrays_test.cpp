// Queries and keys before the rotary embedding are those of the same question without it. What the
// embedding turns them into: tests/question_cases.py and evaluate_test.cpp.

#include "tests/support/answers.hpp"
#include "tests/support/support.hpp"

namespace unrotated_arrays_test {

namespace {

using namespace attn::test;
using nlohmann::json;

}  // namespace

TEST_CASE("unrotated arrays: queries and keys of the question without a rotary embedding") {
    scratch_folder();
    write_text("past.json", R"([[0.5,1,2,-1],[1,0,0.25,3]])");
    write_text("context.csv", "0.5,1,2\n2,0,1\n1,1,1\n-1,0.5,0\n");
    const std::string operands = R"({"query": [[1,0.5,2,3],[0,1,-1,2]],
        "key": [[1,2,0,1],[0,1,3,0.5],[2,1,1,1]], "value": [[1,2,3,4],[2,3,4,5],[3,4,5,6]]})";
    const Words cache{"--past-key", "past.json", "--past-value", "past.json"};
    for (const Words& question :
         std::vector<Words>{{"self", "--example", "journey-twice", "--d-out", "4", "--qkv-bias"},
                            Words{"causal", "--example", "journey", "--d-out", "4"} + cache,
                            {"multihead", "--example", "journey", "--d-out", "16", "--heads", "4",
                             "--kv-heads", "2"},
                            {"cross", "--example", "journey", "--context", "context.csv", "--d-out",
                             "8", "--heads", "2"},
                            {"sdpa"},
                            Words{"sdpa"} + cache})
        for (const Words& rotation :
             {Words{"--rope", "half"}, Words{"--rope", "interleaved", "--rope-base", "50"},
              Words{"--rope", "half", "--rope-dims", "2"}})
            for (const char* kernel : {"reference", "generic"})
                for (const Words& token : {Words{}, Words{"--token", "1"}}) {
                    CAPTURE(question);
                    CAPTURE(rotation);
                    const std::string input = question[0] == "sdpa" ? operands : "";
                    const Words asked = question + token + Words{"--kernel", kernel, "--emit"};
                    const json plain = answer(asked + Words{"queries,keys"}, input),
                               found = answer(asked +
                                                  Words{"unrotated_queries,unrotated_keys,"
                                                        "queries,keys"} +
                                                  rotation,
                                              input);
                    for (const std::string name : {"queries", "keys"}) {
                        CHECK(found["unrotated_" + name] == plain[name]);
                        CHECK(found[name] != plain[name]);
                    }
                }
}

TEST_CASE("unrotated arrays: the page of a result with them shows its rotation") {
    scratch_folder();
    REQUIRE(run_attn({"multihead", "--example", "journey", "--d-out", "8", "--heads", "2", "--rope",
                      "half", "--emit", "all", "-o", "r.json"})
                .code == 0);
    const Outcome page = run_attn({"explain", "r.json", "--token", "3"});
    CHECK(page.err == "");
    for (const char* part :
         {"Rotary embedding", "unrotated_queries[head 1][3][0] = ", "unrotated_keys[head 1][3] = "})
        CHECK(contains(page.out, part));
}

}  // namespace unrotated_arrays_test
