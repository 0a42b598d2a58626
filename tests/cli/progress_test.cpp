// How far a batch or a search has come, as one line fits a terminal.
#include <doctest/doctest.h>

#include "cli/batch/records.hpp"
#include "cli/check/check.hpp"

namespace progress_test {

using attn::cli::progress_text;

TEST_CASE("progress: a bar, the part, the count, the rate and the time left, as they fit") {
    CHECK(progress_text(1234567, 100, 0.52, 100) ==
          "[====================>                   ]  52 %  1,234,567 records  12,346/s  0:01:32 "
          "left");
    CHECK(progress_text(3000, 2, std::nullopt, 80) == "3,000 records  1,500/s");
    CHECK(progress_text(10, 1, 0.5, 45) == " 50 %  10 records  10/s  0:00:01 left");
    for (std::size_t columns = 0; columns < 120; ++columns)
        for (double part : {0.0, 1e-9, 0.5, 1.0})
            CHECK(progress_text(123456, 7, part, columns).size() <= columns);
    CHECK(attn::cli::search_progress_text(2, 100, 3160) == "pairs of changes: 100 of 3160");
}

}  // namespace progress_test
