// How far a batch or a search has come, as one line fits a terminal.
#include <doctest/doctest.h>

#include "cli/batch/records.hpp"
#include "cli/check/check.hpp"

namespace progress_test {

using attn::cli::progress_text;

TEST_CASE("progress: a bar, the part, the count, the rate and the time left") {
    CHECK(progress_text(52000, 0.5, 0.52, 100) ==
          "[====================>                   ]  52 %  52,000 records  104,000/s  0:00:00 "
          "left");
    CHECK(progress_text(1234567, 100, 0.01, 100) ==
          "[>                                       ]   1 %  1,234,567 records  12,346/s  2:45:00 "
          "left");
}

TEST_CASE("progress: without a known end no bar is drawn") {
    CHECK(progress_text(0, 0, std::nullopt, 80) == "0 records  0/s");
    CHECK(progress_text(3000, 2, std::nullopt, 80) == "3,000 records  1,500/s");
}

TEST_CASE("progress: a narrow terminal has no bar, and no line is wider than it") {
    CHECK(progress_text(10, 1, 0.5, 45) == " 50 %  10 records  10/s  0:00:01 left");
    for (std::size_t columns = 0; columns < 120; ++columns)
        for (double part : {0.0, 1e-9, 0.5, 1.0})
            CHECK(progress_text(123456, 7, part, columns).size() <= columns);
}

TEST_CASE("progress: a search names the number of changes in a candidate") {
    using attn::cli::search_progress_text;
    CHECK(search_progress_text(1, 5, 80) == "single changes: 5 of 80");
    CHECK(search_progress_text(2, 100, 3160) == "pairs of changes: 100 of 3160");
    CHECK(search_progress_text(3, 0, 1) == "triples of changes: 0 of 1");
}

}  // namespace progress_test
