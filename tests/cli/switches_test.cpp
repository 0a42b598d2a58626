// --x and --no-x of every boolean option, in every mode that takes it.
#include <doctest/doctest.h>

#include "cli/args/args.hpp"
#include "cli/request/request.hpp"
#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"
#include "tests/support/words.hpp"

namespace switches_test {

using namespace attn;
using namespace attn::cli;
using namespace attn::test;
namespace {

/// A question of this mode that several heads, biases and pictures make sense for.
Words question_of(const ModeRow& mode) {
    if (mode.source == Source::operands) return {"sdpa", "--example", "softmax"};
    Words words{std::string(mode.name), "--rand", "4,4"};
    if (mode.context) words.insert(words.end(), {"--context", "context.csv"});
    if (mode.heads_axis != HeadsAxis::never) words.insert(words.end(), {"--heads", "2"});
    return words;
}

bool are_equal(const Outcome& a, const Outcome& b) {
    return a.code == b.code && a.out == b.out && a.err == b.err;
}

}  // namespace

TEST_CASE("switches: the last of --x and --no-x wins, and one is the default") {
    scratch_folder();
    write_text("context.csv", "1,2,3,4\n5,6,7,8\n");
    std::size_t count = 0;
    for (const ModeRow& mode : mode_rows)
        for (const Option& option : options()) {
            const bool is_given =
                (option.use & as_flag) != 0 && (option.modes & in(mode.mode)) != 0;
            if (!is_given || !is_boolean(option)) continue;
            const std::string on = "--" + flag_name(option), off = "--no-" + flag_name(option);
            CAPTURE(std::string(mode.name));
            CAPTURE(on);
            const Words question = question_of(mode);
            const Outcome with = run_attn(question + Words{on}),
                          without = run_attn(question + Words{off}), plain = run_attn(question);
            REQUIRE_MESSAGE(plain.code == 0, plain.err);
            // Some need an input or a model that these questions do not have.
            if (with.code == 0 || without.code == 0)
                CHECK((are_equal(plain, with) || are_equal(plain, without)));
            CHECK(are_equal(run_attn(question + Words{on, off}), without));
            CHECK(are_equal(run_attn(question + Words{off, on}), with));
            ++count;
        }
    CHECK(count > 30);
}

}  // namespace switches_test
