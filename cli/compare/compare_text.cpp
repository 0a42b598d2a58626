#include <unistd.h>

#include <cstdlib>

#include <nlohmann/json.hpp>

#include "cli/compare/compare.hpp"
#include "cli/request/request.hpp"
#include "core/base/tensor.hpp"
#include "io/file/screen.hpp"
#include "io/file/source.hpp"
#include "io/text/json_text.hpp"
#include "io/text/number_text.hpp"
#include "io/text/text.hpp"
#include "io/text/utf8.hpp"

namespace attn::cli {
namespace {

/// "[0, head 3, 2, 1]": a chosen head by its number.
std::string place_text(const ComparedPair& pair) {
    const std::vector<std::size_t>& index = pair.difference->worst;
    std::string text = "[";
    for (std::size_t i = 0; i < index.size(); ++i) {
        const bool is_chosen = i == pair.heads_axis && index[i] < pair.heads.size();
        text += (i == 0 ? "" : ", ") + (is_chosen ? "head " + std::to_string(pair.heads[index[i]])
                                                  : std::to_string(index[i]));
    }
    return text + "]";
}

std::string shape_of(const ComparedSide& side) {
    return side.is_there ? shape_text(side.shape) : side.absent;
}

std::string shapes_of(const ComparedPair& pair) {
    const std::string a = shape_of(pair.a), b = shape_of(pair.b);
    return a == b ? a : a + " and " + b;
}

/// The type of all pairs, or nothing.
std::optional<Precision> one_type(const std::vector<ComparedPair>& pairs) {
    for (const ComparedPair& pair : pairs)
        if (pair.type != pairs.front().type) return std::nullopt;
    return pairs.empty() ? std::nullopt : std::optional(pairs.front().type);
}

/// One per name; empty if the shapes differ.
std::vector<std::string> numbers_of(const ComparedPair& pair, bool has_one_type) {
    if (!pair.difference) return std::vector<std::string>(7);
    const Difference& d = *pair.difference;
    const std::string type =
        has_one_type ? "" : " " + std::string(name_of(precision_names, pair.type));
    return {io::general_text(d.max_abs),
            io::general_text(d.mean_abs),
            io::general_text(d.max_rel),
            std::to_string(d.max_ulp) + type,
            place_text(pair),
            std::to_string(d.nonfinite_mismatches),
            std::to_string(d.outside)};
}

/// The lines of a table, each with its numbers in a line below it.
std::string narrow_text(const io::Cells& table) {
    io::Cells rows, numbers;
    for (const std::vector<std::string>& line : table) {
        rows.push_back({line[0], line[1], line.back()});
        numbers.push_back({""});
        numbers.back().insert(numbers.back().end(), line.begin() + 2, line.end() - 1);
    }
    const std::string first = io::align_columns(rows), second = io::align_columns(numbers);
    const auto above = io::lines_of(first), below = io::lines_of(second);
    std::string text;
    for (std::size_t i = 0; i < above.size(); ++i) {
        (text += above[i]) += "\n";
        if (below[i].find_first_not_of(' ') != std::string::npos) (text += below[i]) += "\n";
    }
    return text;
}

nlohmann::ordered_json shape_json(const ComparedSide& side) {
    if (!side.is_there) return nullptr;
    return side.shape;
}

/// Whether a line fits the terminal, or COLUMNS. In a pipe without COLUMNS, every line does.
bool fits(const std::string& line) {
    if (::isatty(STDOUT_FILENO) == 0 && std::getenv("COLUMNS") == nullptr) return true;
    return io::display_width(line) <= io::screen_columns(STDOUT_FILENO);
}

}  // namespace

std::string table_of(const std::vector<ComparedPair>& pairs, const std::string& summary) {
    if (pairs.empty()) return summary;
    const std::optional<Precision> type = one_type(pairs);
    const std::string unit = type ? std::string(name_of(precision_names, *type)) + " ulp" : "ulp";
    io::Cells table{{"array", "shape", "max abs", "mean abs", "max rel", unit, "worst at",
                     "nonfinite", "outside", "verdict"}};
    for (const ComparedPair& pair : pairs) {
        const std::string record = pair.record.empty() ? "" : pair.record + ": ";
        const std::vector<std::string> numbers = numbers_of(pair, type.has_value());
        std::vector<std::string>& line = table.emplace_back();
        line = {io::printable(record + pair.name), shapes_of(pair)};
        line.insert(line.end(), numbers.begin(), numbers.end());
        line.push_back(pair.equal() ? "equal" : "differs");
    }
    const std::string wide = io::align_columns(table);
    const std::string line = wide.substr(0, wide.find('\n'));  // all are as wide
    return (fits(line) ? wide : narrow_text(table)) + summary;
}

std::string json_of(const std::vector<ComparedPair>& pairs, const Tolerance& tolerance,
                    bool equal) {
    Precision type = one_type(pairs).value_or(Precision::float32);
    for (const ComparedPair& pair : pairs)
        if (row_of(pair.type).unit > row_of(type).unit) type = pair.type;
    nlohmann::ordered_json document{{"schema", schemas::comparison},
                                    {"equal", equal},
                                    {"atol", tolerance.atol},
                                    {"rtol", tolerance.rtol},
                                    {"ulp", tolerance.ulp.value_or(0)},
                                    {"equal_nan", tolerance.equal_nan},
                                    {"dtype", name_of(precision_names, type)},
                                    {"arrays", nlohmann::ordered_json::array()}};
    for (const ComparedPair& pair : pairs) {
        nlohmann::ordered_json entry = nlohmann::ordered_json::object();
        if (!pair.record.empty()) entry["record"] = pair.record;
        entry["name"] = pair.name;
        entry["equal"] = pair.equal();
        entry["shape_a"] = shape_json(pair.a);
        entry["shape_b"] = shape_json(pair.b);
        if (pair.difference) {
            const Difference& d = *pair.difference;
            entry["dtype"] = name_of(precision_names, pair.type);
            entry["max_abs"] = d.max_abs;
            entry["mean_abs"] = d.mean_abs;
            entry["max_rel"] = d.max_rel;  // null if it is infinite
            entry["max_ulp"] = d.max_ulp;
            entry["worst"] = d.worst;
            entry["nonfinite_mismatches"] = d.nonfinite_mismatches;
            entry["outside"] = d.outside;
        }
        document["arrays"].push_back(entry);
    }
    return io::json_text(document) + "\n";
}

}  // namespace attn::cli
