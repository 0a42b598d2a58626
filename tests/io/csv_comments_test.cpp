// Lines of CSV that begin with '#': comments, rows whose label begins so, or errors of
// spreadsheets.
#include "tests/support/csv_tables.hpp"
#include "tests/support/sample.hpp"

namespace csv_comments_test {

using namespace attn;
using namespace attn::test::csv;

namespace {

const Words error_values{"#N/A",    "#n/a",  "#NA",    "#N/A N/A", "#DIV/0!",
                         "#VALUE!", "#REF!", "#NAME?", "#NUM!",    "#NULL!"};

}  // namespace

TEST_CASE("csv reading: lines that begin with '#' are comments above the first row, else rows") {
    const Words hashes{"##ing", "#1", "#", "# the", "#N/A", "#x"};
    for (const std::string& hash : hashes)
        for (const std::size_t place : {0u, 1u, 2u, 3u})
            for (const bool labelled : {false, true})
                for (const bool has_header : {false, true})
                    for (const bool quote : {false, true})
                        for (const bool is_row : {false, true}) {
                            Words lines;
                            if (has_header) lines.push_back(labelled ? "token,x,y" : "w,x,y");
                            for (const std::string number : {"0.1", "0.2", "0.3"})
                                lines.push_back((labelled ? "the" : "9") + ("," + number) + ",0.5");
                            const std::string field_text = field(hash, ',', quote);
                            const std::string line =
                                is_row ? field_text + ",0.7,0.8" : field_text + " a note";
                            if (quote && !is_row) continue;
                            lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(place), line);
                            std::string text;
                            for (const std::string& each : lines) text += each + "\n";
                            CAPTURE(text);
                            const Reading found = read(text),
                                          skipped = read(text, {.comments = true});
                            CAPTURE(found.error);
                            const std::size_t rows = labelled ? found.meaning.labels.size()
                                                              : found.meaning.values.size() / 3;
                            // Above the first line a note is a comment; any other is refused.
                            if (!is_row) {
                                CHECK(found.error.empty() == (place == 0));
                                if (place == 0) CHECK(rows == 3);
                                if (place != 0) check_ways(found.error, text, {});
                            } else if (labelled && (quote || place > 0) &&
                                       !(has_header && place == 0)) {
                                const std::size_t at = place - (has_header ? 1 : 0);
                                REQUIRE(found.meaning.labels.size() == 4);
                                CHECK(found.meaning.labels[at] == hash);
                            } else if (!found.error.empty()) {
                                if (found.error.find("--csv") != std::string::npos &&
                                    found.error.find(" fields; ") == std::string::npos)
                                    check_ways(found.error, text, {});
                            } else {
                                // Alone above numbers, with a blank: a row that is commented out;
                                // or a label in quotes among numbers in quotes.
                                CHECK_FALSE(labelled);
                                CHECK(place == 0);
                                CHECK((hash == "# the" || hash == "#"));
                                CHECK(rows == 3);
                            }
                            if (!quote) {
                                CHECK(skipped.error.empty());
                                CHECK((labelled ? skipped.meaning.labels.size()
                                                : skipped.meaning.values.size() / 3) == 3);
                            }
                            if (is_row && place >= (has_header ? 1u : 0u)) {
                                const CsvStyle flags{has_header ? Guess::yes : Guess::no,
                                                     Guess::yes};
                                REQUIRE(read(text, flags).meaning.labels.size() == 4);
                                CHECK(read(text, flags)
                                          .meaning.labels[place - (has_header ? 1 : 0)] == hash);
                            }
                        }
}

TEST_CASE("csv reading: a first line that begins with a spreadsheet's error value is refused") {
    test::Sample sample;
    std::size_t refused = 0;
    const Words tails{"",      ",2", ",2,3",  ",2,3,4", ",",    ",,", ",#REF!",
                      ",NA,5", ";2", "\t2,5", " 2",     ", ,-", "|7"};
    const Words below{"1\n2\n",    "1,2\n3,4\n", "the,1\ncat,2\n", "1;2\n",
                      "1\t2\n",    "1 2 3\n",    "x,y\n1,2\n",     "token,y\nthe,2\n",
                      ",a\n0,2\n", "",           "\n1,2\n"};
    const Words above{"", "\n", "# made by x\n", "sep=,\n", "#\n\n"};
    for (const std::string& value : error_values)
        for (const std::string& tail : tails)
            for (const std::string& rows : below)
                for (const std::string& before : above)
                    for (const std::string blank : {"", "  ", "\t"}) {
                        if (!sample.takes()) continue;
                        std::string text = before + blank;
                        text += value + tail + "\n" + rows;
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
                        for (const Guess has_labels : {Guess::yes, Guess::no})
                            for (const Guess header : {Guess::yes, Guess::no}) {
                                const Reading by_flags =
                                    read(text, {.header = header, .labels = has_labels});
                                // A label that is said to be one, or nothing.
                                CHECK((!by_flags.error.empty() ||
                                       (has_labels == Guess::yes &&
                                        by_flags.meaning.labels.front().starts_with(value))));
                            }
                    }
    if (test::one_in == 1) CHECK(refused > 10000);
}

TEST_CASE("csv reading: error values that begin a text are comments") {
    const Words comments{"#N/A means not measured", "#NA values are left out, 2 of 3",
                         "#REF!s were mended", "#DIV/0! is a zero, see below"};
    for (const std::string& comment : comments) {
        const std::string text = comment + "\n0.5,0.25,1,2\n";
        CAPTURE(text);
        CHECK(read(text).meaning == Meaning{{}, {}, {0.5, 0.25, 1, 2}});
    }
}

TEST_CASE("csv reading: a tab before '#' may be an empty field") {
    for (const std::string line : {"\t#a\t#b", "\t#a", "\t#1\t2", "\t# note", "\t#N/A\t3"})
        for (const std::string rows : {"the\t1\t2\ncat\t3\t4\n", "1\t2\n3\t4\n"}) {
            std::string text = line + "\n";
            text += rows;
            CAPTURE(text);
            const std::string error = read(text).error;
            REQUIRE_FALSE(error.empty());
            check_ways(error, text, {});
        }
}

}  // namespace csv_comments_test
