// What every part of the walk needs; see walk.hpp.
#include "cli/explain/walk.hpp"

#include <algorithm>
#include <cstdlib>

#include "cli/request/options.hpp"
#include "io/file/source.hpp"
#include "io/text/number_text.hpp"

namespace attn::cli {
namespace {

std::string printable(const std::string& label) {
    return io::one_line(io::shortened(label));
}

}  // namespace

std::string setting_text(double value) {
    std::string text;
    io::append_number(text, value, std::nullopt);
    return text;
}

std::string sized(const char* name, std::size_t size) {
    return std::string(name) + " " + std::to_string(size);
}

std::size_t Walk::own_key() const {
    return row_of(settings().mode).context ? 0 : plan.past_len + query();
}

std::string Walk::command() const {
    return "attn " + std::string(row_of(settings().mode).name);
}

std::string Walk::query_label() const {
    const std::string number = std::to_string(query());
    if (labels.queries.empty()) return number;
    return number + " \"" + printable(labels.queries[query()]) + "\"";
}

std::string Walk::key_name(std::size_t key) const {
    return labels.keys.empty() ? std::to_string(key) : printable(labels.keys[key]);
}

std::string Walk::key_label(std::size_t key) const {
    const std::string number = std::to_string(key), name = key_name(key);
    return name == number ? number : number + " \"" + name + "\"";
}

std::string Walk::source(const std::string& key) const {
    if (request.has(key)) {
        std::string place = io::one_line(place_of(request, key));
        // "<stdin>:35:3: scale 0.5": lines of a pipe mean nothing to a reader.
        if (!place.starts_with("<stdin>:")) return place;
        const std::size_t value = place.find(": ");
        return value == std::string::npos ? "the request"
                                          : "the request's " + place.substr(value + 2);
    }
    const bool of_weights = key == "kv_heads" || key == "qkv_bias" || key == "out_bias";
    if (of_weights && request.has("weights")) return "as the weights have it";
    return "the default of " + flag_of(*find_option(key));
}

std::string Walk::seed_source() const {
    return request.has("seed") ? source("seed") : "--seed 0, the default";
}

std::string Walk::operand_source(const std::string& key) const {
    const auto file = request.operand_files.find(key);
    if (file == request.operand_files.end()) return "\"" + key + "\" of the request";
    return flag_of(*find_option(key)) + " " + io::one_line(file->second);
}

std::string Walk::position_words() const {
    const std::string p = std::to_string(position());
    if (offset() == 0) return "p = " + p + ", the query's position";
    return "p = " + std::to_string(query()) + (offset() < 0 ? " - " : " + ") +
           std::to_string(std::abs(offset())) + " = " + p +
           ", the query's position among the keys (" +
           (request.has("causal_align") ? source("causal_align")
                                        : "--causal-align top-left, the default") +
           ")";
}

void Walk::show_by_key(const std::vector<std::pair<std::string, Row>>& rows) {
    page.fitted_table(most_shown, [&](std::size_t most) {
        const std::vector<std::size_t> shown = shown_of(plan.kv_len, own_key(), most);
        std::string corner = sized("kv_len", plan.kv_len);
        if (shown.size() < plan.kv_len) corner += ", " + std::to_string(shown.size()) + " shown";
        io::Cells cells{{"(" + corner + ")"}};
        for (const auto& [name, values] : rows) cells.push_back({name});
        for (std::size_t i = 0; i < shown.size(); ++i) {
            const bool is_cut = i != 0 && shown[i] != shown[i - 1] + 1;
            if (is_cut)
                for (auto& row : cells) row.emplace_back("...");
            cells[0].push_back(key_name(shown[i]));
            for (std::size_t r = 0; r < rows.size(); ++r) {
                const std::string& name = rows[r].first;
                const bool is_mask = name == "mask" || name.starts_with("allowed_by");
                const double value = rows[r].second[shown[i]];
                cells[r + 1].push_back(is_mask ? io::fixed_text(value, 0) : words.number(value));
            }
        }
        return cells;
    });
}

void Walk::show_vectors(const std::string& number_name, const Row& numbers,
                        const std::string& vector_name, const std::vector<Row>& vectors,
                        const std::string& shape) {
    const std::vector<std::size_t> shown = shown_of(plan.kv_len, own_key(), most_shown);
    page.fitted_table(most_shown, [&](std::size_t most) {
        io::Cells cells{{"key", "token", number_name, vector_name + " " + shape}};
        for (std::size_t i = 0; i < shown.size(); ++i) {
            const std::size_t key = shown[i];
            if (i != 0 && key != shown[i - 1] + 1) cells.push_back({"...", "...", "...", "..."});
            cells.push_back({std::to_string(key), key_name(key), words.number(numbers[key]),
                             words.row(vectors[key], most)});
        }
        const bool named = std::any_of(cells.begin() + 1, cells.end(),
                                       [](const auto& row) { return row[0] != row[1]; });
        if (!named)
            for (auto& row : cells) row.erase(row.begin() + 1);
        return cells;
    });
}

std::string Walk::vector_line(const std::string& name, const Row& values,
                              const std::string& dimension) const {
    return name + "[" + std::to_string(query()) + "] = " + words.row(values) + "   (" + dimension +
           " " + std::to_string(values.size()) + ")";
}

}  // namespace attn::cli
