// Kernels and threads through the real binary: choice, agreement, the same bytes, errors.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "core/kernels/dispatch.hpp"
#include "tests/support/answers.hpp"
#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"

namespace cli_kernel_test {

using namespace attn::test;
using nlohmann::json;

TEST_CASE("kernel: auto takes the reference where the work is small, and where steps are emitted") {
    const auto arrays = [](const std::string& size, const Words& more) {
        json result = answer(Words{"causal", "--randn", size} + more);
        result.erase("config");
        return result.dump();
    };
    const Words reference{"--kernel", "reference"};
    CHECK(arrays("6,4", {}) == arrays("6,4", reference));
    CHECK(arrays("300,32", {}) != arrays("300,32", reference));
    const Words steps{"--init", "none", "--emit", "mask,context_vectors"};
    CHECK(arrays("300,32", steps) == arrays("300,32", steps + reference));
}

TEST_CASE("kernel: a choice that cannot be kept is an error, not another kernel") {
    const auto error = [](const Words& flags) {
        const Outcome outcome = run_attn(Words{"causal", "--randn", "6,4"} + flags);
        CHECK(outcome.code == 2);
        CHECK(outcome.out == "");
        return outcome.err;
    };
    CHECK(error({"--kernel", "generic", "--emit", "all"}) ==
          "attn: error: --kernel generic: no fused kernel writes scaled_scores; expected auto or "
          "reference\n");
    CHECK(
        error({"--kernel", "generic", "--mask-method", "renormalize"}) ==
        "attn: error: --kernel generic: no fused kernel has mask_method renormalize; expected auto "
        "or reference\n");
    CHECK(error({"--kernel", "fast"}).starts_with("attn: error: --kernel fast: "));
#if defined(__x86_64__)
    CHECK(error({"--kernel", "neon"})
              .starts_with("attn: error: --kernel neon: this processor cannot run it; expected one "
                           "of auto, reference, generic"));
#endif
}

TEST_CASE("kernel: ATTN_KERNEL is --kernel where nothing else names one") {
    const auto config = [](const std::string& line) {
        const Outcome outcome = run_shell(line);
        REQUIRE(outcome.code == 0);
        return json::parse(outcome.out)["config"]["kernel"].get<std::string>();
    };
    CHECK(config("attn causal --randn 40,8") == "auto");
    CHECK(config("ATTN_KERNEL= attn causal --randn 40,8") == "auto");
    CHECK(config("ATTN_KERNEL=generic attn causal --randn 40,8") == "generic");
    CHECK(config("ATTN_KERNEL=generic attn causal --randn 40,8 --kernel reference") == "reference");
    const Outcome wrong = run_shell("ATTN_KERNEL=quick attn causal --randn 40,8");
    CHECK(wrong.code == 2);
    CHECK(wrong.err.starts_with("attn: error: ATTN_KERNEL=quick: "));
}

}  // namespace cli_kernel_test
