// The contents of a file as text.
#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <utility>

#include "cli/inspect/inspect.hpp"
#include "core/base/tensor.hpp"
#include "io/file/source.hpp"
#include "io/text/json_text.hpp"
#include "io/text/number_text.hpp"
#include "io/text/text.hpp"

namespace attn::cli {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t longest_value = 120;

/// A value as a line of a terminal may show it.
std::string shown_value(const ordered_json& value) {
    const std::string text = value.is_string() ? value.get<std::string>() : io::json_text(value);
    return io::one_line(io::shortened(text, longest_value));
}

/// The end of a name is more informative than its start.
std::string fitted_name(const std::string& name, std::size_t columns) {
    std::string text = io::one_line(name);
    constexpr std::size_t longest_character = 4;
    const std::size_t reach = longest_character * columns;
    if (text.size() <= reach && io::display_width(text) <= columns) return text;
    const auto begins = [&](std::size_t at) {
        return at == text.size() || (static_cast<unsigned char>(text[at]) & 0xc0u) != 0x80u;
    };
    std::size_t from = text.size() - std::min(text.size(), reach);
    while (!begins(from) || io::display_width(std::string_view(text).substr(from)) + 3 > columns)
        ++from;
    return "..." + text.substr(from);
}

/// "248 bytes", "1.23 GiB (1320702444 bytes)".
std::string size_text(std::uint64_t bytes) {
    static constexpr std::array<const char*, 5> units{"KiB", "MiB", "GiB", "TiB", "PiB"};
    std::string exact = io::count_text(bytes, "byte");
    double size = static_cast<double>(bytes);
    std::size_t unit = 0;
    if (size < 1024) return exact;
    for (size /= 1024; size >= 1024 && unit + 1 < units.size(); ++unit) size /= 1024;
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.3g %s (", size, units[unit]);
    return text.data() + exact + ")";
}

class InspectionPage {
public:
    InspectionPage(const ordered_json& found, std::size_t columns)
        : found_(found), columns_(columns) {}

    std::string text() {
        text_ = io::one_line(text_at("file")) + ": " + text_at("kind") + ", " + text_at("format") +
                "\n";
        for (const char* key : {"lines", "members"})
            if (found_.contains(key)) add_members(found_[key]);
        if (found_.contains("model")) add_model();
        for (const char* key : {"header", "tokens", "context_tokens", "decoder_tokens"})
            if (found_.contains(key)) add_list(key, found_[key]);
        add_arrays();
        if (found_.contains("problem"))
            text_ += "\nAs it is, attn refuses it: " + io::one_line(text_at("problem")) + "\n";
        if (found_.contains("command"))
            text_ += "\ntry: " + io::one_line(text_at("command")) + "\n";
        return std::move(text_);
    }

private:
    std::string text_at(const char* key) const { return found_[key]; }

    /// "name  word, word,": at most as wide as available, further lines below the first word.
    void add_words(const std::string& name, const std::vector<std::string>& words) {
        constexpr std::size_t indent = 14;
        std::string line = name;
        line.resize(std::max(indent, io::display_width(name) + 1), ' ');
        bool is_first = true;
        for (const std::string& word : words) {
            const std::string next = word + (&word == &words.back() ? "" : ",");
            const std::size_t width = io::display_width(line) + 1 + io::display_width(next);
            if (!is_first && width > columns_) {
                text_ += line + "\n";
                line.assign(indent, ' ');
                is_first = true;
            }
            line += (is_first ? "" : " ") + next;
            is_first = false;
        }
        text_ += line + "\n";
    }

    /// A long list is shortened: its file has the rest.
    void add_list(const std::string& name, const std::vector<std::string>& list) {
        constexpr std::size_t most = 24;
        std::vector<std::string> words;
        for (std::size_t i = 0; i < std::min(most, list.size()); ++i)
            words.push_back(io::one_line(io::shortened(list[i])));
        if (list.size() > most) words.push_back(std::to_string(list.size() - most) + " more");
        add_words(name, words);
    }

    void add_members(const ordered_json& members) {
        for (const auto& [key, value] : members.items()) {
            std::vector<std::string> words;
            if (value.is_object())
                for (const auto& [name, inner] : value.items())
                    words.push_back(io::one_line(io::shortened(name)) + " " + shown_value(inner));
            else
                words.push_back(shown_value(value));
            add_words(io::one_line(io::shortened(key)), words);
        }
    }

    void add_model() {
        ordered_json rest = found_["model"];
        add_words("layers", {layers_text(rest["layers"])});
        for (const char* elsewhere : {"layers", "tensors"}) rest.erase(elsewhere);
        add_members(rest);
    }

    /// "0 to 11", or "0, 2".
    static std::string layers_text(const ordered_json& layers) {
        if (layers.empty()) return "one, without a number";
        const std::size_t first = layers.front(), last = layers.back();
        if (layers.size() > 1 && last - first + 1 == layers.size())
            return std::to_string(first) + " to " + std::to_string(last);
        const auto text = [](const ordered_json& layer) { return layer.dump(); };
        return io::shortened(io::comma_list(layers, text), longest_value);
    }

    /// For a model, the tensors of the layer; the JSON document lists all of them.
    void add_arrays() {
        std::set<std::string> wanted;
        const bool is_model = found_.contains("model");
        if (is_model) wanted = found_["model"].at("tensors").get<std::set<std::string>>();
        const ordered_json& arrays = found_["arrays"];
        io::Cells cells{{"array", "shape", "dtype", "elements", "bytes"}};
        std::uint64_t bytes = 0, bytes_shown = 0;
        for (const ordered_json& array : arrays) {
            const std::string name = array["name"], type = array["dtype"];
            const std::uint64_t size = array["bytes"];
            bytes += size;
            if (is_model && !wanted.contains(name)) continue;
            bytes_shown += size;
            const ordered_json& elements = array["elements"];
            cells.push_back({name, shape_text(array["shape"].get<std::vector<std::size_t>>()),
                             io::one_line(io::shortened(type)),
                             elements.is_null() ? "-" : elements.dump(), std::to_string(size)});
        }
        if (arrays.empty()) return;
        fit_names(cells);
        text_ += "\n" + io::align_columns(cells);
        const std::size_t others = arrays.size() + 1 - cells.size();
        std::string sum = io::count_text(cells.size() - 1, "array") + ", " + size_text(bytes_shown);
        if (others != 0)
            sum += "; and " + io::count_text(others, "other") + ", " +
                   size_text(bytes - bytes_shown) + ", which --format json lists";
        text_ += io::wrapped(sum, columns_) + "\n";
    }

    void fit_names(io::Cells& cells) const {
        std::size_t used = 0;
        for (std::size_t column = 1; column < cells[0].size(); ++column) {
            std::size_t width = 0;
            for (const auto& row : cells) width = std::max(width, io::display_width(row[column]));
            used += width + 2;
        }
        constexpr std::size_t least = 12;
        const std::size_t name_width = std::max(least, columns_ - std::min(columns_, used));
        for (auto& row : cells) row[0] = fitted_name(row[0], name_width);
    }

    const ordered_json& found_;
    const std::size_t columns_;
    std::string text_;
};

}  // namespace

std::string inspection_page(const ordered_json& found, std::size_t columns) {
    return InspectionPage(found, columns).text();
}

}  // namespace attn::cli
