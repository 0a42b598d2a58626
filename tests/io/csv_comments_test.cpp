// Lines of CSV that begin with '#': comments, rows whose label begins so, or errors of
// spreadsheets.
#include "tests/support/csv_tables.hpp"

namespace csv_comments_test {

using namespace attn;
using namespace attn::test::csv;

TEST_CASE("csv reading: lines that begin with '#' are comments above the first row, else rows") {
    for (const std::string hash : {"##ing", "#1", "#", "# the", "#N/A", "#x"})
        for (unsigned ways = 0; ways < 64; ++ways) {
            const bool labelled = (ways & 1) != 0, has_header = (ways & 2) != 0,
                       quote = (ways & 4) != 0, is_row = (ways & 8) != 0;
            const std::size_t place = ways >> 4, at = place - (has_header ? 1 : 0);
            if (quote && !is_row) continue;
            const std::string first = field(hash, ',', quote), label = labelled ? "the" : "9";
            Words lines{label + ",0.1,0.5\n", label + ",0.2,0.5\n", label + ",0.3,0.5\n"};
            if (has_header) lines.insert(lines.begin(), labelled ? "token,x,y\n" : "w,x,y\n");
            lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(place),
                         first + (is_row ? ",0.7,0.8\n" : " a note\n"));
            std::string text;
            for (const std::string& line : lines) text += line;
            CAPTURE(text);
            const auto rows_of = [&](const Reading& reading) {
                return labelled ? reading.meaning.labels.size() : reading.meaning.values.size() / 3;
            };
            const Reading found = read(text), skipped = read(text, {.comments = true});
            CAPTURE(found.error);
            // Above the first line a note is a comment; any other is refused.
            if (!is_row) {
                CHECK(found.error.empty() == (place == 0));
                if (place == 0) CHECK(rows_of(found) == 3);
                if (place != 0) check_ways(found.error, text, {});
            } else if (labelled && (quote || place > 0) && !(has_header && place == 0)) {
                REQUIRE(found.meaning.labels.size() == 4);
                CHECK(found.meaning.labels[at] == hash);
            } else if (!found.error.empty()) {
                if (found.error.find("--csv") != std::string::npos &&
                    found.error.find(" fields; ") == std::string::npos)
                    check_ways(found.error, text, {});
            } else {
                // Alone above numbers, with a blank: a row that is commented out; or a label in
                // quotes among numbers in quotes.
                CHECK_FALSE(labelled);
                CHECK(place == 0);
                CHECK((hash == "# the" || hash == "#"));
                CHECK(rows_of(found) == 3);
            }
            if (!quote) {
                CHECK(skipped.error.empty());
                CHECK(rows_of(skipped) == 3);
            }
            if (is_row && place >= (has_header ? 1u : 0u)) {
                const Reading flagged =
                    read(text, {has_header ? Guess::yes : Guess::no, Guess::yes});
                REQUIRE(flagged.meaning.labels.size() == 4);
                CHECK(flagged.meaning.labels[at] == hash);
            }
        }
}

TEST_CASE("csv reading: a first line that begins with a spreadsheet's error value is refused") {
    test::Sample sample;
    std::size_t refused = 0;
    const Words error_values{"#N/A",    "#n/a",  "#NA",    "#N/A N/A", "#DIV/0!",
                             "#VALUE!", "#REF!", "#NAME?", "#NUM!",    "#NULL!"};
    const Words tails{"",      ",2", ",2,3",  ",2,3,4", ",",    ",,", ",#REF!",
                      ",NA,5", ";2", "\t2,5", " 2",     ", ,-", "|7"};
    const Words below{"1\n2\n",    "1,2\n3,4\n", "the,1\ncat,2\n", "1;2\n",
                      "1\t2\n",    "1 2 3\n",    "x,y\n1,2\n",     "token,y\nthe,2\n",
                      ",a\n0,2\n", "",           "\n1,2\n"};
    const Words above{"", "\n", "# made by x\n", "sep=,\n", "#\n\n"};
    for (const std::string& value : error_values)
        for (const std::string& tail : tails)
            for (const std::string& rows : below)
                for (std::size_t start = 0; start < 3 * above.size(); ++start) {
                    if (!sample.takes()) continue;
                    const std::string& before = above[start / 3];
                    const std::string blank = Words{"", "  ", "\t"}[start % 3];
                    const std::string text = before + blank + value + tail + "\n" + rows;
                    CAPTURE(text);
                    const std::string error = read(text).error;
                    REQUIRE_FALSE(error.empty());
                    if (error.find("comments") != std::string::npos) {
                        check_ways(error, text, {});
                        ++refused;
                    }
                    // Said to be a comment, it is one.
                    if (!rows.empty())
                        CHECK((read(text, {.comments = true}).meaning ==
                               read(before + rows, {.comments = true}).meaning));
                    // A label that is said to be one, or nothing.
                    for (const Guess header : {Guess::yes, Guess::no}) {
                        CHECK_FALSE(
                            read(text, {.header = header, .labels = Guess::no}).error.empty());
                        const Reading labelled =
                            read(text, {.header = header, .labels = Guess::yes});
                        CHECK((!labelled.error.empty() ||
                               labelled.meaning.labels.front().starts_with(value)));
                    }
                }
    if (test::one_in == 1) CHECK(refused > 10000);
}

}  // namespace csv_comments_test
