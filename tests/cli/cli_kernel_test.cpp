// Kernels and threads through the real binary: choice, agreement, the same bytes, errors.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "core/kernels/dispatch.hpp"
#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"

namespace cli_kernel_test {

using namespace attn::test;
using nlohmann::json;

namespace {

/// A matrix (tokens, width) as JSON, the same at each call.
std::string matrix(std::size_t tokens, std::size_t width) {
    json rows = json::array();
    unsigned x = 1;
    for (std::size_t t = 0; t < tokens; ++t) {
        json row = json::array();
        for (std::size_t i = 0; i < width; ++i) {
            x = x * 1664525u + 1013904223u;
            row.push_back(static_cast<double>(x >> 16) / 32768.0 - 1.0);
        }
        rows.push_back(std::move(row));
    }
    return rows.dump();
}

std::string good(const std::vector<std::string>& arguments, const std::string& input = "") {
    const Outcome outcome = run_attn(arguments, input);
    CHECK(outcome.err == "");
    REQUIRE(outcome.code == 0);
    return outcome.out;
}

}  // namespace

TEST_CASE("kernel: auto takes the reference where the work is small, and where steps are emitted") {
    const std::string small = matrix(6, 4), large = matrix(300, 32);
    const auto arrays = [](const std::string& text) {
        json result = json::parse(text);
        result.erase("config");
        return result.dump();
    };
    CHECK(arrays(good({"causal"}, small)) ==
          arrays(good({"causal", "--kernel", "reference"}, small)));
    CHECK(arrays(good({"causal"}, large)) !=
          arrays(good({"causal", "--kernel", "reference"}, large)));
    const std::vector<std::string> steps{"causal", "--init", "none", "--emit",
                                         "mask,context_vectors"};
    std::vector<std::string> by_reference = steps;
    by_reference.insert(by_reference.end(), {"--kernel", "reference"});
    CHECK(arrays(good(steps, large)) == arrays(good(by_reference, large)));
}

TEST_CASE("kernel: a choice that cannot be kept is an error, not another kernel") {
    const std::string x = matrix(6, 4);
    const auto error = [&](const std::vector<std::string>& arguments) {
        const Outcome outcome = run_attn(arguments, x);
        CHECK(outcome.code == 2);
        CHECK(outcome.out == "");
        return outcome.err;
    };
    CHECK(error({"causal", "--kernel", "generic", "--emit", "all"}) ==
          "attn: error: --kernel generic: no fused kernel writes scaled_scores; expected auto or "
          "reference\n");
    CHECK(
        error({"causal", "--kernel", "generic", "--mask-method", "renormalize"}) ==
        "attn: error: --kernel generic: no fused kernel has mask_method renormalize; expected auto "
        "or reference\n");
    CHECK(error({"causal", "--kernel", "fast"}).starts_with("attn: error: --kernel fast: "));
#if defined(__x86_64__)
    CHECK(error({"causal", "--kernel", "neon"})
              .starts_with("attn: error: --kernel neon: this processor cannot run it; expected one "
                           "of auto, reference, generic"));
#endif
}

TEST_CASE("kernel: ATTN_KERNEL is --kernel where nothing else names one") {
    scratch_folder();
    write_text("x.json", matrix(40, 8));
    const auto config = [](const std::string& line) {
        const Outcome outcome = run_shell(line);
        REQUIRE(outcome.code == 0);
        return json::parse(outcome.out)["config"]["kernel"].get<std::string>();
    };
    CHECK(config("attn causal x.json") == "auto");
    CHECK(config("ATTN_KERNEL= attn causal x.json") == "auto");
    CHECK(config("ATTN_KERNEL=generic attn causal x.json") == "generic");
    CHECK(config("ATTN_KERNEL=generic attn causal x.json --kernel reference") == "reference");
    const Outcome wrong = run_shell("ATTN_KERNEL=quick attn causal x.json");
    CHECK(wrong.code == 2);
    CHECK(wrong.err.starts_with("attn: error: ATTN_KERNEL=quick: "));
}

}  // namespace cli_kernel_test
