// `attn batch` through the real binary: the order of answers for all kinds of records. Drivers,
// pipes and interruptions are in batch_ends_test.cpp; ids, places of errors, line ends and files of
// records in same_answers.txt.
#include "tests/support/answers.hpp"
#include "tests/support/requests.hpp"

namespace batch_test {
namespace {

using namespace attn::test;
using nlohmann::json;

/// The mixed requests in a folder with what they name, and their answers.
const std::string mixed = "work/mixed.ndjson";
Outcome answer_mixed(std::size_t lines, const Words& flags) {
    make_operands("work");
    write_text(mixed, mixed_requests(lines));
    return run_attn(Words{"batch", mixed} + flags);
}

TEST_CASE("batch: answers come in the order of the requests, and jobs change no byte") {
    const Outcome alone = answer_mixed(330, {"--jobs", "1"});
    CHECK(alone.code == 1);
    const std::vector<json> answers = answers_in(alone.out);
    std::size_t at = 0, failed = 0, number = 0;
    for (const std::string& line : lines_of(mixed_requests(330))) {
        ++number;
        if (line.find('{') == std::string::npos) continue;
        REQUIRE(at < answers.size());
        const json request = json::parse(line, nullptr, false);
        const bool names_itself = request.is_object() && request.contains("id");
        CHECK(answers[at].at("id") == (names_itself ? request["id"] : json(number)));
        if (answers[at++].contains("error")) ++failed;
    }
    CHECK(at == answers.size());
    CHECK(alone.err.starts_with("attn: " + std::to_string(failed) + " of " + std::to_string(at) +
                                " records failed; the first: "));
    CHECK(lines_of(alone.err).size() == 1);
    for (const std::string name : {"2", "7", ""}) {
        CAPTURE(name);
        const Outcome several = answer_mixed(330, name.empty() ? Words{} : Words{"--jobs", name});
        CHECK((several.out == alone.out));
        CHECK(several.err == alone.err);
        CHECK(several.code == 1);
    }
}

TEST_CASE("batch: --fail-fast and --max-failures end with that record, whatever the jobs") {
    const Outcome whole = answer_mixed(200, {"--jobs", "1"});
    Words lines = lines_of(whole.out);
    for (const std::size_t most : {std::size_t{1}, std::size_t{2}, std::size_t{9}}) {
        std::string expected;
        std::size_t failed = 0;
        for (const std::string& line : lines) {
            expected += line + "\n";
            if (json::parse(line).contains("error") && ++failed == most) break;
        }
        for (const std::string jobs : {"1", "4"}) {
            CAPTURE(most);
            CAPTURE(jobs);
            const Outcome ended =
                answer_mixed(200, {"--max-failures", std::to_string(most), "--jobs", jobs});
            CHECK((ended.out == expected));
            CHECK(ended.code == 1);
            CHECK(contains(ended.err, "and the batch ended there"));
            if (most == 1)
                CHECK((answer_mixed(200, {"--fail-fast", "--jobs", jobs}).out == expected));
        }
    }
    const Outcome plenty = answer_mixed(200, {"--max-failures", "1000", "--jobs", "4"});
    CHECK((plenty.out == whole.out));
    CHECK(plenty.err == whole.err);
}

}  // namespace
}  // namespace batch_test
