// Tables for people.
#include "io/text/text.hpp"
#include "io/write/output_formats.hpp"
#include "tests/support/support.hpp"

namespace table_writer_test {
namespace {

using namespace attn;
using namespace attn::io;
using attn::test::lines_of;
using attn::test::words_in;

std::string table(const Report& report, const NumberStyle& style = {}) {
    return test::written([&](Output& out) { write_table(out, report, style); });
}

NumberStyle limited(const TableLimits& limits) {
    NumberStyle style;
    style.limits = limits;
    return style;
}

/// One matrix whose numbers have widths of their own, under labels of the given kind.
Report matrix_report(std::size_t rows, std::size_t columns, const std::string& label) {
    Report report;
    const auto add = [&](std::vector<std::string>& labels, std::size_t count) {
        for (std::size_t i = 0; i < count && !label.empty(); ++i)
            labels.push_back(label.substr(0, 3 * (1 + i % 6)));
    };
    add(report.query_labels, rows);
    add(report.key_labels, columns);
    Array<double> values = Array<double>::from_shape({rows, columns});
    double next = 1;
    for (double& value : values) {
        value = next;
        next = next > 1e9 ? -0.25 : next * -7.5;
    }
    report.arrays.push_back({"scores", values, {"q_len", "kv_len"}});
    return report;
}

/// A parsed table: the text before the matrix, and the words of each of its lines.
struct Parts {
    std::string note;  // on one line
    std::vector<std::string> lines;
    std::vector<std::vector<std::string>> words;
};

Parts parts_of(const std::string& text) {
    Parts parts;
    parts.lines = lines_of(text);
    const auto take_words = [&] {
        std::string taken;
        while (!taken.ends_with(") ")) {
            taken += parts.lines.front() + " ";
            parts.lines.erase(parts.lines.begin());
        }
        return taken;
    };
    take_words();  // the title
    if (parts.lines.front().starts_with('(')) parts.note = take_words();
    for (const std::string& line : parts.lines) parts.words.push_back(words_in(line));
    return parts;
}

/// The places in a list of `count` that a line of words shows, dots between front and back; empty
/// where that is not what it shows.
std::vector<std::size_t> places_of(const std::vector<std::string>& words, std::size_t count) {
    const auto dots = std::find(words.begin(), words.end(), "...");
    std::vector<std::size_t> places;
    for (auto word = words.begin(); word != dots; ++word) places.push_back(places.size());
    if (dots != words.end())
        for (auto back = words.end() - (dots + 1); back > 0; --back)
            places.push_back(count - static_cast<std::size_t>(back));
    return places;
}

/// What is wrong with a table that shows a part of `whole`, or nothing.
std::string fault_of(const Parts& whole, const Parts& part, std::size_t width) {
    const std::size_t rows = whole.words.size() - 1, columns = whole.words[0].size();
    const std::vector<std::size_t> shown_columns = places_of(part.words[0], columns);
    std::vector<std::string> firsts;
    for (std::size_t i = 1; i < part.words.size(); ++i) firsts.push_back(part.words[i][0]);
    const std::vector<std::size_t> shown_rows = places_of(firsts, rows);
    if (shown_columns.empty() || shown_rows.empty()) return "nothing is shown";
    const bool has_dots = part.words[0].size() != shown_columns.size();
    if (shown_columns.size() > 1 && shown_columns.back() != columns - 1) return "no last column";
    for (const std::string& line : part.lines) {
        const bool is_least = shown_columns.size() == 1 && !has_dots;
        if (display_width(line) > width && !is_least) return "too wide: " + line;
        if (display_width(line) != display_width(part.lines[0])) return "not aligned: " + line;
    }
    for (std::size_t r = 0, line = 1; r < shown_rows.size(); ++r, ++line) {
        if (part.words[line][0] == "...") ++line;
        const auto& all = whole.words[1 + shown_rows[r]];
        // A label of more than a third of the width ends in an ellipsis.
        const std::string& label = part.words[line][0];
        const bool is_cut_label = label.ends_with("…");
        if (is_cut_label && (display_width(all[0]) <= std::max<std::size_t>(4, width / 3) ||
                             !all[0].starts_with(label.substr(0, label.size() - 3))))
            return "another label: " + label;
        std::vector<std::string> expected{is_cut_label ? label : all[0]};
        for (std::size_t c = 0; c < shown_columns.size(); ++c) {
            const bool jumps = c != 0 && shown_columns[c] != shown_columns[c - 1] + 1;
            if (jumps) expected.push_back("...");
            expected.push_back(all[1 + shown_columns[c]]);
        }
        if (has_dots && shown_columns.size() == 1) expected.push_back("...");
        if (part.words[line] != expected) return "other numbers: " + part.lines[line];
    }
    const auto said = [&](std::size_t shown, std::size_t all, const std::string& name) {
        return shown == all || part.note.find(std::to_string(shown) + " of " + std::to_string(all) +
                                              " " + name) != std::string::npos;
    };
    const bool is_cut = shown_columns.size() < columns || shown_rows.size() < rows;
    if (!said(shown_columns.size(), columns, "columns") || !said(shown_rows.size(), rows, "rows") ||
        is_cut == part.note.empty())
        return "not said: " + part.note;
    return is_cut && width >= display_width(whole.lines[0]) && shown_rows.size() == rows
               ? "cut for nothing"
               : "";
}

TEST_CASE("table: of any width no line is wider, and what is shown is what the whole table has") {
    for (const std::size_t rows : {1u, 2u, 3u, 7u})
        for (const std::size_t columns : {1u, 2u, 3u, 5u, 8u, 40u})
            for (const char* label :
                 {"", "abcdefghijklmnopqr", "\u9053\u9054\u9053\u9053\u9053\u9053"}) {
                const Report report = matrix_report(rows, columns, label);
                const Parts whole = parts_of(table(report));
                CHECK(whole.note.empty());
                std::size_t most_words = 0;
                for (std::size_t width = 1; width <= 200; width += test::one_in)
                    for (const std::size_t most : {2u, 5u, 0u}) {
                        const Parts part =
                            parts_of(table(report, limited({width, most, 0, "all: there"})));
                        CAPTURE(rows);
                        CAPTURE(columns);
                        CAPTURE(width);
                        CAPTURE(most);
                        REQUIRE(fault_of(whole, part, width) == "");
                        if (most != 0) continue;
                        REQUIRE(part.words[0].size() >= most_words);
                        most_words = part.words[0].size() - (part.words[0].back() == "..." ? 1 : 0);
                    }
                CHECK(parts_of(table(report, limited({10000, 0, 0, ""}))).lines == whole.lines);
            }
}

TEST_CASE("table: a label longer than the screen leaves space for its numbers") {
    for (const std::string& label : {std::string(500, 'a'), std::string(600, '\xcc')}) {
        Report report = matrix_report(3, 3, "");
        report.query_labels = report.key_labels = {label, "b", label + "c"};
        for (std::size_t width = 30; width <= 200; ++width)
            for (const std::string& line :
                 parts_of(table(report, limited({width, 0, 0, "all: there"}))).lines)
                CHECK(display_width(line) <= width);
    }
}

TEST_CASE(
    "table: matrices are titled by batch entry and head, and many leave out the middle ones") {
    Report report;
    auto zeros = Array<float>::from_shape({3, 4, 1, 1});
    std::fill(zeros.begin(), zeros.end(), 0.0F);
    report.arrays.push_back({"w", zeros, {"batch", "heads", "q_len", "kv_len"}});
    const std::string text = table(report, limited({80, 0, 3, "all: there"}));
    CHECK(text.find("(3 of 12 matrices shown; all: there)\n") != std::string::npos);
    CHECK(text.find("batch 0, head 1\n        0\n0  0.0000\n...\nbatch 2, head 3\n") !=
          std::string::npos);
}

}  // namespace
}  // namespace table_writer_test
