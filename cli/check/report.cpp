#include "cli/check/check.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/base/tensor.hpp"
#include "io/file/source.hpp"
#include "io/text/json_text.hpp"
#include "io/text/number_text.hpp"
#include "io/text/text.hpp"
#include "io/text/utf8.hpp"
#include "io/write/array_bytes.hpp"

namespace attn::cli {
namespace {

using nlohmann::ordered_json;

/// A number from 0.
std::string size_of_error(double value) {
    return std::isinf(value) ? "inf" : brief_number(value);
}

std::string_view array_name(const ArrayJudgement& array) {
    return array.id.row().name;
}

/// "right in float32".
std::string verdict_of_row(const ArrayJudgement& array, const GivenArray& given) {
    if (array.verdict != Verdict::right_within_type)
        return std::string(name_of(verdict_names, array.verdict));
    return "right in " +
           (given.words ? io::text_of(*given.words) : std::string(row_of(array.type).name));
}

/// What the first word that departs is, in the digits of $readmemh where the file has these.
struct DepartingWord {
    std::optional<std::uint64_t> address;
    std::string found, expected;
};

std::optional<DepartingWord> departing_word(const ArrayJudgement& array, const GivenArray& given) {
    if (!array.first || !given.words || (row_of(given.words->kind).uses & use::stores) == 0)
        return std::nullopt;
    const StoredType& type = *given.words;
    DepartingWord made;
    if (given.address) {
        std::uint64_t offset = 0;
        for (std::size_t axis = 0; axis < given.shape.size(); ++axis)
            offset = offset * given.shape[axis] + array.first->index[axis];
        made.address = *given.address + offset;
    }
    const auto text = [&](double number) {
        const std::int64_t word = std::isnan(number) ? 0 : stored(number, type).word;
        if (type.is_integer() && !given.address) return std::to_string(word);
        return io::hex_text(word, type.width());
    };
    made.found = text(array.first->theirs);
    made.expected = text(array.first->truth);
    return made;
}

/// " (address 1f: word 03f2, expected 03f1)".
std::string text_of_word(const ArrayJudgement& array, const GivenArray& given) {
    const auto word = departing_word(array, given);
    if (!word) return {};
    return concat(" (", word->address ? "address " + io::address_text(*word->address) + ": " : "",
                  "word ", word->found, ", expected ", word->expected, ")");
}

std::string table_of_arrays(const ProgramJudgement& program, std::size_t columns) {
    io::Cells cells{{"array", "verdict", "max error", "ulp", "x bound", "rms"}};
    for (std::size_t i = 0; i < program.arrays.size(); ++i) {
        const ArrayJudgement& array = program.arrays[i];
        std::vector<std::string> row{std::string(array_name(array)),
                                     verdict_of_row(array, program.given[i])};
        if (array.layout)
            for (const double x : {array.max_abs, array.ulp, array.bound, array.rms})
                row.push_back(size_of_error(x));
        row.resize(cells.front().size());
        cells.push_back(std::move(row));
    }
    std::string table = io::align_columns(cells);
    while (io::display_width(table.substr(0, table.find('\n'))) > columns &&
           cells.front().size() > 2) {
        for (auto& row : cells) row.pop_back();
        table = io::align_columns(cells);
    }
    return table;
}

/// What is unusual about an array, one line each.
std::string remarks_on(const ArrayJudgement& array, const GivenArray& given) {
    std::string text;
    const std::string name(array_name(array));
    if (given.name != name) text += name + ": named " + io::printable(given.name) + " there\n";
    if (!array.axes.empty() && !array.is_right_if_transposed)
        text += name + ": its axes are read as (" + io::comma_list(array.axes) + ")\n";
    if (array.type != given.type)
        text += concat(name, ": judged as ", row_of(array.type).name, ", stored as ",
                       row_of(given.type).name, "\n");
    if (given.printed) {
        const int decimals = given.printed->decimals, digits = given.printed->significant;
        const bool are_significant = digits < PrintedDigits::all;
        const auto count = are_significant ? digits : decimals;
        text += concat(name, ": printed with ", count,
                       are_significant ? " significant digit" : " decimal", count == 1 ? "" : "s",
                       "; the bound is half a unit of the last one larger\n");
    }
    if (array.verdict == Verdict::right_within_type && array.arithmetic &&
        row_of(array.type).unit > row_of(NumberType::float32).unit)
        text += concat(name, ": ", name_of(arithmetic_names, *array.arithmetic),
                       array.noise ? "; its errors are " + size_of_error(*array.noise) +
                                         " times the expected noise"
                                   : "; judged by the worst case alone",
                       "\n");
    if (given.words && array.differ != 0 && array.verdict != Verdict::wrong)
        text += concat(name, ": ", array.differ, " of ", *io::elements_of(given.shape),
                       array.differ == 1 ? " words differs" : " words differ",
                       " from the truth's, within what is right\n");
    if (array.wrong) text += name + ": " + wrong_text(array) + "\n";
    if (!array.finding.empty()) text += name + ": " + array.finding + "\n";
    return text;
}

std::string first_departure(const ProgramJudgement& program) {
    for (std::size_t i = 0; i < program.arrays.size(); ++i) {
        const ArrayJudgement& array = program.arrays[i];
        if (array.verdict != Verdict::wrong || !array.first) continue;
        constexpr int enough = 9;  // to see a difference of few units
        return concat("first departs at ", array_name(array), index_text(array.first->index), ": ",
                      brief_number(array.first->theirs, enough), ", expected ",
                      brief_number(array.first->truth, enough),
                      text_of_word(array, program.given[i]), "\n");
    }
    return {};
}

/// Whether two matches differ from the question in the same conventions.
bool changes_the_same(const Match& a, const Match& b) {
    return std::equal(
        a.changes.begin(), a.changes.end(), b.changes.begin(), b.changes.end(),
        [](const Change& x, const Change& y) { return x.convention == y.convention; });
}

/// "--rope interleaved and --window 127,0 (asked: half, 128,0)".
std::string changes_text(const Match& match) {
    std::string found, asked, before;
    for (const Change& change : match.changes) {
        // One flag may be of two conventions: both sides of a window.
        if (!change.flag.empty() && change.flag == before) continue;
        before = change.flag;
        const bool has_words =
            change.flag.empty() ||
            (change.convention->keeps_words && change.flag.find(change.found) == std::string::npos);
        found += (found.empty() ? "" : " and ") + change.flag +
                 (has_words && !change.flag.empty() ? ", " : "") +
                 (has_words ? std::string(change.convention->beginning) + change.found : "");
        asked += (asked.empty() ? "" : ", ") + change.asked;
    }
    return found + " (asked: " + asked + ")";
}

std::string match_text(const Match& match) {
    return changes_text(match) + ": " + size_of_error(match.ulp) + " ulp";
}

/// The best one, then one line for each set of conventions that others change; one that says so if
/// there is none.
std::string matches_text(const std::vector<Match>& matches, bool tried_draws) {
    if (matches.empty())
        return concat("no change of conventions ",
                      tried_draws ? "or of draws (seeds, initialisers, orders, biases) " : "",
                      "that is tried reproduces it\n");
    std::string text = "matches with " + match_text(matches.front()) + "\n";
    std::vector<bool> is_listed(matches.size());
    for (std::size_t i = 1; i < matches.size(); ++i) {
        if (is_listed[i]) continue;
        std::size_t others = 0;
        for (std::size_t k = i + 1; k < matches.size(); ++k) {
            if (is_listed[k] || !changes_the_same(matches[k], matches[i])) continue;
            is_listed[k] = true;
            ++others;
        }
        text += "indistinguishable: " + match_text(matches[i]) +
                (others == 0 ? "" : concat("; and ", others, " more such changes")) + "\n";
    }
    return text;
}

/// Whether every wrong array is right if transposed: the search does not explain that.
bool is_explained(const ProgramJudgement& program) {
    return std::all_of(program.arrays.begin(), program.arrays.end(), [](const auto& array) {
        return array.verdict != Verdict::wrong || array.is_right_if_transposed;
    });
}

std::string text_of_program(const ProgramJudgement& program, std::size_t columns) {
    std::string text = io::one_line(program.path) + ": " +
                       std::string(name_of(verdict_names, program.verdict)) + "\n" +
                       table_of_arrays(program, columns) + first_departure(program);
    for (std::size_t i = 0; i < program.arrays.size(); ++i)
        text += remarks_on(program.arrays[i], program.given[i]);
    const std::string others = io::comma_list(program.not_compared);
    if (!others.empty()) text += "not compared: " + io::one_line(others) + "\n";
    if (program.is_searched && program.verdict == Verdict::wrong &&
        !(program.matches.empty() && is_explained(program)))
        text += matches_text(program.matches, program.tried_draws);
    return text;
}

std::string ranking_of(const std::vector<ProgramJudgement>& ranked) {
    io::Cells cells{{"file", "x bound", "verdict"}};
    for (const ProgramJudgement& program : ranked) {
        double bound = 0;
        for (const ArrayJudgement& array : program.arrays) bound = std::max(bound, array.bound);
        cells.push_back({io::printable(program.path), size_of_error(bound),
                         std::string(name_of(verdict_names, program.verdict))});
    }
    return io::align_columns(cells);
}

/// A number, or null where it is not finite.
ordered_json finite_or_null(double value) {
    return std::isfinite(value) ? ordered_json(value) : ordered_json();
}

ordered_json words_json(const ArrayJudgement& array, const GivenArray& given) {
    const auto word = departing_word(array, given);
    return {{"type", io::text_of(*given.words)},
            {"differ", array.differ},
            {"address", word && word->address ? ordered_json(*word->address) : ordered_json()},
            {"found", word ? ordered_json(word->found) : ordered_json()},
            {"expected", word ? ordered_json(word->expected) : ordered_json()}};
}

ordered_json json_of_array(const ArrayJudgement& array, const GivenArray& given) {
    const auto measured = [&](double value) {
        return array.layout ? finite_or_null(value) : ordered_json();
    };
    const auto or_null = [](const auto& value) {
        return value.empty() ? ordered_json() : ordered_json(value);
    };
    return {
        {"name", array_name(array)},
        {"verdict", name_of(verdict_names, array.verdict)},
        {"max_abs", measured(array.max_abs)},
        {"rms", measured(array.rms)},
        {"ulp", measured(array.ulp)},
        {"bound", measured(array.bound)},
        {"arithmetic", array.arithmetic ? ordered_json(name_of(arithmetic_names, *array.arithmetic))
                                        : ordered_json()},
        {"noise", array.noise ? finite_or_null(*array.noise) : ordered_json()},
        {"first", array.first ? ordered_json(array.first->index) : ordered_json()},
        {"found", array.first ? element_json(array.first->theirs) : ordered_json()},
        {"expected", array.first ? element_json(array.first->truth) : ordered_json()},
        {"type", row_of(array.type).name},
        {"theirs", given.name},
        {"axes", or_null(array.axes)},
        {"decimals", given.printed ? ordered_json(given.printed->decimals) : ordered_json()},
        {"finding", or_null(array.finding)},
        {"wrong", array.wrong ? wrong_json(*array.wrong) : ordered_json()},
        {"words", given.words ? words_json(array, given) : ordered_json()}};
}

ordered_json match_json(const Match& match) {
    ordered_json changes = ordered_json::array();
    for (const Change& change : match.changes)
        changes.push_back(
            {{"convention", change.convention->name},
             {"asked", change.asked},
             {"found", change.found},
             {"flag", change.flag.empty() ? ordered_json() : ordered_json(change.flag)}});
    return {{"changes", std::move(changes)}, {"ulp", finite_or_null(match.ulp)}};
}

ordered_json json_of_program(const ProgramJudgement& program) {
    ordered_json entry{{"file", program.path},
                       {"verdict", name_of(verdict_names, program.verdict)},
                       {"arrays", ordered_json::array()},
                       {"not_compared", program.not_compared}};
    for (std::size_t i = 0; i < program.arrays.size(); ++i)
        entry["arrays"].push_back(json_of_array(program.arrays[i], program.given[i]));
    if (!program.is_searched) return entry;
    for (const char* list : {"matches", "indistinguishable"}) entry[list] = ordered_json::array();
    for (const Match& match : program.matches) {
        entry["matches"].push_back(match_json(match));
        if (&match != &program.matches.front())
            entry["indistinguishable"].push_back(match_json(match));
    }
    return entry;
}

}  // namespace

std::string brief_number(double value, int digits) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
    return io::general_text(value, digits);
}

ordered_json element_json(double value) {
    return std::isfinite(value) ? ordered_json(value) : ordered_json(brief_number(value));
}

std::string search_progress_text(std::size_t changes, std::size_t done, std::size_t of) {
    const std::string kind = changes == 1   ? "single changes"
                             : changes == 2 ? "pairs of changes"
                             : changes == 3 ? "triples of changes"
                                            : concat(changes, " changes");
    return concat(kind, ": ", done, " of ", of);
}

std::string line_of_verdict(const ProgramJudgement& program) {
    const std::string departure = first_departure(program);
    return std::string(name_of(verdict_names, program.verdict)) +
           (departure.empty() ? "" : ": " + departure.substr(0, departure.size() - 1));
}

std::string check_text(const std::vector<ProgramJudgement>& ranked, std::size_t columns) {
    std::string text = ranked.size() > 1 ? ranking_of(ranked) : "";
    for (const ProgramJudgement& program : ranked)
        text += (text.empty() ? "" : "\n") + text_of_program(program, columns);
    return text;
}

std::string check_json(const std::vector<ProgramJudgement>& ranked) {
    std::string line = "{";
    io::append_member(line, "schema", schemas::check);
    const std::string& id = ranked.front().id;
    if (!id.empty()) io::append_member(line, "id", io::JsonText{id});
    ordered_json document;
    if (ranked.size() == 1) {
        document = json_of_program(ranked.front());
    } else {
        document["verdict"] = name_of(verdict_names, ranked.back().verdict);
        document["candidates"] = ordered_json::array();
        for (const ProgramJudgement& program : ranked)
            document["candidates"].push_back(json_of_program(program));
    }
    return line + "," + io::json_text(document).substr(1) + "\n";
}

}  // namespace attn::cli
