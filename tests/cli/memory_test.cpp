// The memory estimate of `attn batch --dry-run`, against what the system measured; limits that are
// there before the work begins.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/process.hpp"
#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"

namespace memory_test {

using namespace attn::test;
using nlohmann::json;

namespace {

#ifdef ATTN_SANITIZED
constexpr bool is_sanitized = true;
#else
constexpr bool is_sanitized = false;
#endif

constexpr double mib = 0x1p20;

/// The numbers 0.125, -0.375 and so on, all of one length as text.
double number_at(std::size_t index) {
    return static_cast<double>(index * 7 % 8) / 8 + 0.0625;
}

void write_matrix(const std::string& path, std::size_t rows, std::size_t columns) {
    std::string text;
    for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t column = 0; column < columns; ++column) {
            text += std::to_string(number_at(row * 3 + column));
            text += column + 1 == columns ? '\n' : ',';
        }
    write_text(path, text);
}

double peak_of(const std::vector<std::string>& arguments) {
    Process attn(arguments);
    const Ending ending = attn.wait();
    CAPTURE(ending.err);
    CHECK(ending.code == 0);
    return 1024.0 * static_cast<double>(ending.peak_kib);
}

/// Of the program itself. Measured as the others are it would be that of who starts it, whose
/// memory a process has until it is another program.
constexpr double idle = 6 * mib;

/// What the dry run says, by what is measured beside the program itself; 1 where that is too little
/// to be measured.
double said_by_measured(const json& request) {
    write_text("request.ndjson", request.dump() + "\n");
    const Outcome dry = run_attn({"batch", "--dry-run", "--jobs", "1", "request.ndjson"});
    const json cost = json::parse(dry.out);
    REQUIRE(cost.contains("memory_bytes"));
    const double said = cost["memory_bytes"].get<double>();
    if (said < 15 * mib) return 1;
    const double used =
        peak_of({"batch", "--jobs", "1", "request.ndjson", "-o", "answer.ndjson"}) - idle;
    return said / used;
}

}  // namespace

TEST_CASE("memory: the estimate of the dry run is within 1.5 times of the use") {
    if (is_sanitized) {
        MESSAGE("skipped: the sanitizer has memory of its own");
        return;
    }
    scratch_folder();
    write_matrix("many.csv", 24000, 64);
    write_matrix("square.csv", 1200, 24);
    write_matrix("wide.csv", 8, 1024);
    const json rows{{"inputs", "many.csv"}, {"token", 5}, {"d_out", 64}};
    const json scores{{"inputs", "square.csv"}, {"d_out", 16}};
    const json parameters{{"inputs", "wide.csv"}, {"d_out", 1024}};
    const std::vector<json> changes{
        {{"mode", "self"}},
        {{"mode", "causal"}, {"dtype", "float64"}},
        {{"mode", "multihead"}, {"heads", 4}, {"kv_heads", 1}, {"threads", 1}},
        {{"mode", "multihead"}, {"heads", 4}, {"style", "wrapper"}, {"d_out", 4}},
        {{"mode", "self"}, {"kernel", "reference"}, {"emit", {"context_vectors"}}},
        {{"mode", "self"}, {"kernel", "generic"}, {"emit", {"logsumexp"}}},
        {{"mode", "self"}, {"emit", {"queries", "keys", "values"}}}};
    for (const json& base : {rows, scores, parameters})
        for (const json& change : changes) {
            json request = base;
            request.update(change);
            // Only what takes enough to be measured.
            const bool is_small = base == scores && request.contains("emit") &&
                                  request.value("kernel", "") != "reference";
            if (is_small) continue;
            CAPTURE(request.dump());
            const double ratio = said_by_measured(request);
            CHECK(ratio > 1 / 1.5);
            CHECK(ratio < 1.5);
        }
}

TEST_CASE("memory: what exceeds a limit is refused before it begins, and the rest continues") {
    if (is_sanitized) {
        MESSAGE("skipped: the sanitizer needs more addresses than any limit");
        return;
    }
    scratch_folder();
    const std::string large = R"({"mode": "self", "inputs": [[1, 2]], "d_out": 40000000})",
                      small = R"({"mode": "self", "inputs": [[1, 2]], "d_out": 2})";
    write_text("requests.ndjson", small + "\n" + large + "\n" + small + "\n");
    for (const char* jobs : {"1", "2"}) {
        const Outcome outcome =
            run_shell(std::string("ulimit -v 1000000; attn batch requests.ndjson --jobs ") + jobs);
        CHECK(outcome.code == 1);
        CHECK(outcome.out.find("needs about") != std::string::npos);
        CHECK(outcome.out.find("ulimit -v allows 977 MiB") != std::string::npos);
        CHECK(outcome.out.find("\"id\":1,") < outcome.out.find("\"id\":2,"));
        CHECK(outcome.out.find("\"id\":3,") != std::string::npos);
    }
    const Outcome alone = run_shell(
        "ulimit -v 1000000; attn multihead --example journey --heads 100000000 --style wrapper "
        "--d-out 1");
    CHECK(alone.code == 3);
    CHECK(alone.out.empty());
    CHECK(alone.err.find("ulimit -v allows 977 MiB") != std::string::npos);
}

}  // namespace memory_test
