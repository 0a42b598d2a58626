// attn plot of what other programs wrote: what an array is taken for, words, heads, titles.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "tests/support/answers.hpp"
#include "tests/support/contains.hpp"
#include "tests/support/run_attn.hpp"
#include "tests/support/sample.hpp"
#include "tests/support/support.hpp"
#include "tests/support/words.hpp"

namespace plain_array_test {

using namespace attn::test;
using nlohmann::json;

namespace {

/// Rows with the sum `sum`; with `causal` the upper triangle is 0.
json matrix(std::size_t rows, std::size_t columns, double sum, bool causal, double seed) {
    json all = json::array();
    for (std::size_t i = 0; i < rows; ++i) {
        std::vector<double> row(columns, 0);
        double total = 0;
        for (std::size_t j = 0; j < (causal ? i + 1 : columns); ++j)
            total += row[j] =
                1 +
                std::fmod(seed + 7.0 * static_cast<double>(i + 1) + static_cast<double>(j * j), 5);
        for (double& x : row) x *= sum / total;
        all.push_back(row);
    }
    return all;
}

/// (2, 3, ..., rows, columns) of this rank.
json array_of(std::size_t rank, std::size_t rows, std::size_t columns, double sum, bool causal,
              double seed = 0) {
    if (rank == 2) return matrix(rows, columns, sum, causal, seed);
    json all = json::array();
    for (std::size_t i = 0; i < (rank == 3 ? 3u : 2u); ++i)
        all.push_back(
            array_of(rank - 1, rows, columns, sum, causal, 10 * seed + static_cast<double>(i + 1)));
    return all;
}

/// Whether a line has these words, in their order.
bool has_line(const std::string& text, const Words& words) {
    const Words lines = lines_of(text);
    return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
        std::size_t at = 0;
        for (const std::string& word : words)
            if (at != std::string::npos) at = line.find(" " + word, at);
        return at != std::string::npos;
    });
}

std::string digits_in(std::string line) {
    std::erase_if(line, [](char c) { return c < '0' || c > '9'; });
    return line;
}

}  // namespace

TEST_CASE("plot: axes of plain arrays are rows and columns, or as given, in every rank") {
    scratch_folder();
    Sample sample;
    for (std::size_t rank = 2; rank <= 5; ++rank)
        for (double sum : {1.0, 0.996, 0.9, -1.0, 2.0})
            for (bool causal : {true, false})
                for (std::size_t columns : {4u, 5u}) {
                    if (!sample.takes()) continue;
                    CAPTURE(rank);
                    CAPTURE(sum);
                    CAPTURE(causal);
                    CAPTURE(columns);
                    const json array = array_of(rank, 4, columns, sum, causal);
                    write_text("a.json", array.dump());
                    write_text("b.json", json{{"attn", array}}.dump());
                    for (const char* file : {"a.json", "b.json"}) {
                        const Outcome outcome = run_attn({"plot", file});
                        REQUIRE(outcome.code == 0);
                        CHECK(!contains(outcome.out, "What each query attends to"));
                    }
                    const Outcome outcome = run_attn({"plot", "a.json"});
                    // Zeros of another program are numbers, not masked cells.
                    CHECK(!contains(outcome.out, "blank: masked"));
                    CHECK(contains(outcome.err, ", row 4, column " + std::to_string(columns)) ==
                          (rank > 2));
                    CHECK(contains(outcome.err, "row 4, column " + std::to_string(columns)));
                    if (rank == 3) CHECK(contains(outcome.out, "head 2"));
                    const Outcome named = run_attn({"plot", "a.json", "--axes",
                                                    rank == 5 ? "layer,batch,head,query,key"
                                                              : std::string("batch,head,query,key")
                                                                    .substr(rank == 4   ? 0
                                                                            : rank == 3 ? 6
                                                                                        : 11)});
                    CHECK(named.code == 0);
                    const bool is_weights = sum > 0.99 && sum <= 1;
                    CHECK(contains(named.out, "What each query attends to") == is_weights);
                }
}

TEST_CASE("plot: given words label rows and columns, or an error gives the reason") {
    scratch_folder();
    const Words words{"aa", "bb", "cc", "dd"};
    const std::string list = "aa,bb,cc,dd", keys = "u,v,w,x,y";
    for (std::size_t rank = 2; rank <= 4; ++rank)
        for (double sum : {1.0, -3.0})
            for (std::size_t columns : {4u, 5u}) {
                CAPTURE(rank);
                CAPTURE(sum);
                CAPTURE(columns);
                write_text("a.json", array_of(rank, 4, columns, sum, false).dump());
                const Outcome rows = run_attn({"plot", "a.json", "--tokens", list});
                CHECK(rows.code == 0);
                CHECK(!rows_of(rows.out, words).empty());
                CHECK(has_line(rows.out, words) == (columns == 4));
                const Outcome both =
                    run_attn({"plot", "a.json", "--tokens", list, "--context-tokens", keys});
                CHECK(both.code == (columns == 5 ? 0 : 3));
                CHECK(has_line(both.out, {"u", "v", "w", "x", "y"}) == (columns == 5));
                for (const char* wrong : {"a,b", "a,b,c,d,e,f", "a"}) {
                    const Outcome outcome = run_attn({"plot", "a.json", "--tokens", wrong});
                    CHECK(outcome.code == 3);
                    CHECK(outcome.out == "");
                    CHECK(outcome.err.starts_with("attn: error: --tokens: "));
                }
            }
    CHECK(run_attn({"plot", "a.json", "--tokens", ""}).code == 2);
    CHECK(run_attn({"plot", "a.json", "--tokens", "[\"a\",1]"}).code == 2);
}

TEST_CASE("plot: --head draws these heads as they are drawn among all, and --title heads them") {
    scratch_folder();
    const Words labels{"Your", "journey", "starts", "with", "one", "step"};
    const std::string input = data_path("journey.csv");
    for (const Words& more :
         std::vector<Words>{{"--heads", "4", "--d-out", "4"},
                            {"--heads", "4", "--d-out", "4", "--kv-heads", "2", "--emit", "all"},
                            {"--heads", "4", "--d-out", "4", "--no-causal", "--emit", "all"}}) {
        REQUIRE(run_attn(Words{"multihead", input, "-o", "r.npz"} + more).code == 0);
        Words alone;
        for (const char* head : {"0", "1", "2", "3"}) {
            const Outcome one =
                run_attn({"plot", "r.npz", "--head", head, "--color-scale", "fixed"});
            CHECK(contains(one.out, std::string("multihead, head ") + head + "\n"));
            const Words lines = rows_of(one.out, labels);
            REQUIRE(lines.size() == labels.size());
            alone = alone + lines;
        }
        const Outcome some = run_attn(
            {"plot", "r.npz", "--head", "3,1", "--color-scale", "fixed", "--title", "Two"});
        CHECK(some.out.starts_with("Two\nhead 3"));
        const Words both = rows_of(some.out, labels);
        REQUIRE(both.size() == labels.size());
        for (std::size_t i = 0; i < labels.size(); ++i) {
            CHECK(digits_in(both[i]) == digits_in(alone[18 + i]) + digits_in(alone[6 + i]));
        }
        for (const char* suffix : {".svg", ".png", ".html"})
            CHECK(run_attn({"plot", "r.npz", "--head", "2", "--array", "all", "-o",
                            std::string("p") + suffix})
                      .code == 0);
        CHECK(!contains(read_text("p.html"), "\"head 3\""));
        const bool is_grouped = std::count(more.begin(), more.end(), "--kv-heads") != 0;
        const Outcome noted =
            run_attn({"plot", "r.npz", "--head", "2", "--array", "all", "-o", "p.svg"});
        CHECK(noted.err.starts_with("attn: note: --head: keys, values") == is_grouped);
    }
    CHECK(run_attn({"plot", "r.npz", "--head", "4"}).err ==
          "attn: error: --head 4: attention_weights has 4 heads; expected 0 to 3\n");
    CHECK(run_attn({"plot", "r.npz", "--array", "W_query", "--head", "0"}).code == 2);
    CHECK(run_attn({"plot", input, "--head", "0"})
              .err.ends_with("--head 0: array has no heads; expected an array that has some\n"));
    for (const char* wrong : {"", "x", "-1", "1.5", "1,,2", "99999999999999999999"}) {
        check_error({"plot", "r.npz", "--head", wrong}, "", 2,
                    "expected integers from 0, one per head");
    }
    CHECK(run_attn({"plot", "r.npz", "--title", ""}).code == 2);
}

}  // namespace plain_array_test
