#include "cli/compare/compare.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/request/request_builder.hpp"
#include "core/base/error.hpp"
#include "core/base/tensor.hpp"
#include "io/file/output.hpp"
#include "io/file/screen.hpp"
#include "io/read/json_document.hpp"
#include "io/text/json_text.hpp"
#include "io/text/number_text.hpp"
#include "io/text/text.hpp"
#include "io/text/utf8.hpp"

namespace attn::cli {
namespace {

using io::InputFile;
using io::ResultFile;
using io::ResultView;

/// "[0, head 3, 2, 1]": a chosen head by its number.
std::string worst_index_text(const ComparedPair& pair) {
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
std::optional<NumberType> one_type(const std::vector<ComparedPair>& pairs) {
    for (const ComparedPair& pair : pairs)
        if (pair.type != pairs.front().type) return std::nullopt;
    return pairs.empty() ? std::nullopt : std::optional(pairs.front().type);
}

/// One per name; empty if the shapes differ.
std::vector<std::string> numbers_of(const ComparedPair& pair, bool has_one_type) {
    if (!pair.difference) return std::vector<std::string>(7);
    const Difference& d = *pair.difference;
    const std::string type = has_one_type ? "" : " " + std::string(row_of(pair.type).name);
    return {io::general_text(d.max_abs), io::general_text(d.mean_abs),
            io::general_text(d.max_rel), std::to_string(d.max_ulp) + type,
            worst_index_text(pair),      std::to_string(d.nonfinite_mismatches),
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

/// A table with a line per array. `summary`: the text below it, or empty.
std::string table_of(const std::vector<ComparedPair>& pairs, const std::string& summary) {
    if (pairs.empty()) return summary;
    const std::optional<NumberType> type = one_type(pairs);
    const std::string unit = type ? std::string(row_of(*type).name) + " ulp" : "ulp";
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
    NumberType type = one_type(pairs).value_or(NumberType::float32);
    for (const ComparedPair& pair : pairs)
        if (row_of(pair.type).unit > row_of(type).unit) type = pair.type;
    nlohmann::ordered_json document{
        {"schema", schemas::comparison},    {"equal", equal},
        {"atol", tolerance.atol},           {"rtol", tolerance.rtol},
        {"ulp", tolerance.ulp.value_or(0)}, {"equal_nan", tolerance.equal_nan},
        {"dtype", row_of(type).name},       {"arrays", nlohmann::ordered_json::array()}};
    for (const ComparedPair& pair : pairs) {
        nlohmann::ordered_json entry = nlohmann::ordered_json::object();
        if (!pair.record.empty()) entry["record"] = pair.record;
        entry["name"] = pair.name;
        entry["equal"] = pair.equal();
        entry["shape_a"] = shape_json(pair.a);
        entry["shape_b"] = shape_json(pair.b);
        if (pair.difference) {
            const Difference& d = *pair.difference;
            entry["dtype"] = row_of(pair.type).name;
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

bool has_failed(const InputFile& file) {
    return file.document != nullptr && file.document->find("error") != nullptr;
}

ResultView view_of(InputFile file) {
    return {std::move(file), ResultView::Scope::named};
}

/// The id of each record as JSON; empty if one is missing or appears twice.
std::vector<std::string> ids_of(const ResultFile& file) {
    std::vector<std::string> ids;
    for (std::size_t i = 0; i < file.size(); ++i) {
        const nlohmann::json id = io::head_member(file.at(i), "id");
        ids.push_back(id.is_null() ? "" : id.dump());
    }
    const std::set<std::string> unique(ids.begin(), ids.end());
    const bool are_unique = unique.size() == ids.size() && !unique.contains("");
    return are_unique ? ids : std::vector<std::string>();
}

/// The numbers of records, from 1.
std::vector<std::string> numbers_to(std::size_t count) {
    std::vector<std::string> numbers;
    for (std::size_t number = 1; number <= count; ++number)
        numbers.push_back(std::to_string(number));
    return numbers;
}

/// A string without its quotes.
std::string shown(const std::string& key) {
    return key.starts_with('"') ? io::parse_own(key).get<std::string>() : key;
}

ComparedPair unpaired(const std::string& record, const InputFile* a, const InputFile* b) {
    const auto side = [](const InputFile* file) {
        return ComparedSide{false, file == nullptr     ? "missing"
                                   : has_failed(*file) ? "failed"
                                                       : "a result"};
    };
    ComparedPair pair;
    pair.record = shown(record);
    pair.name = "record";
    pair.a = side(a);
    pair.b = side(b);
    return pair;
}

/// Compares the records of two batches, paired by id, or by position if one of the files lacks ids.
/// The table has only the arrays that differ, and a line of counts; JSON has all compared arrays.
bool compare_batches(const ResultFile& of_a, const ResultFile& of_b, const CompareRequest& request,
                     ThreadPool& workers, std::vector<std::string>& notes) {
    std::vector<std::string> keys_a = ids_of(of_a), keys_b = ids_of(of_b);
    const bool lack_ids = keys_a.size() != of_a.size() || keys_b.size() != of_b.size();
    if (lack_ids) {
        keys_a = numbers_to(of_a.size());
        keys_b = numbers_to(of_b.size());
    }
    std::map<std::string, std::size_t> in_b;
    for (std::size_t i = 0; i < of_b.size(); ++i) in_b[keys_b[i]] = i;
    IndexedResults results_a, results_b;
    std::vector<ComparedPair> shown_pairs;
    std::size_t equal = 0, failed = 0, unequal = 0;
    const auto take = [&](std::vector<ComparedPair> of_record) {
        ++(std::ranges::all_of(of_record, &ComparedPair::equal) ? equal : unequal);
        for (ComparedPair& pair : of_record)
            if (request.json || !pair.equal()) shown_pairs.push_back(std::move(pair));
    };
    for (std::size_t i = 0; i < of_a.size(); ++i) {
        const auto found = in_b.find(keys_a[i]);
        InputFile a = of_a.at(i);
        std::optional<InputFile> b;
        if (found != in_b.end()) b = of_b.at(found->second);
        const bool a_failed = has_failed(a), b_failed = b && has_failed(*b);
        if (a_failed && b_failed) {
            ++failed;
        } else if (!b || a_failed || b_failed) {
            take({unpaired(keys_a[i], &a, b ? &*b : nullptr)});
        } else {
            take(compare_results(view_of(results_a.result_of(std::move(a))),
                                 view_of(results_b.result_of(std::move(*b))), request,
                                 shown(keys_a[i]), workers, notes));
        }
        if (b) in_b.erase(found);
    }
    for (const auto& [key, index] : in_b) {
        const InputFile b = of_b.at(index);
        take({unpaired(key, nullptr, &b)});
    }
    if (equal == 0 && unequal == 0)
        throw Error(ErrorKind::input, request.a, "no record has an answer, as in ", request.b,
                    "; expected answers to compare");
    std::string summary = io::count_text(equal, "record") + " equal";
    if (unequal != 0) summary += ", " + io::count_text(unequal, "record") + " different";
    if (failed != 0) summary += ", " + io::count_text(failed, "record") + " failed in both files";
    if (lack_ids)
        std::fputs("attn: note: records are paired by position: an id is missing or not unique\n",
                   stderr);
    io::show(request.json ? json_of(shown_pairs, request.tolerance, unequal == 0)
                          : table_of(shown_pairs, summary + "\n"));
    return unequal == 0;
}

}  // namespace

bool compare(const CompareRequest& request, std::vector<std::string>& notes) {
    io::require_one_standard_input({request.a, request.b});
    ThreadPool workers;
    const ResultFile a(request.a), b(request.b);
    const auto is_batch = [](const ResultFile& file) {
        return file.size() != 1 || has_failed(file.at(0));
    };
    for (const auto& [one, several] : {std::pair(&a, &b), {&b, &a}})
        if (several->size() > 1 && one->size() == 1 && io::head_member(one->at(0), "id").is_null())
            io::refuse_several(several->name(), several->size());
    if (is_batch(a) || is_batch(b)) return compare_batches(a, b, request, workers, notes);
    const std::vector<ComparedPair> pairs =
        compare_results(view_of(IndexedResults().result_of(a.at(0))),
                        view_of(IndexedResults().result_of(b.at(0))), request, "", workers, notes);
    const bool equal = std::ranges::all_of(pairs, &ComparedPair::equal);
    io::show(request.json ? json_of(pairs, request.tolerance, equal) : table_of(pairs, ""));
    return equal;
}

}  // namespace attn::cli
