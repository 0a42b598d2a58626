// Heat maps as a page for browsers; see html.hpp.
#include "io/plot/html.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "io/plot/base64.hpp"
#include "io/plot/colors.hpp"

namespace attn::io {

/// io/plot/page in one text; embed_page.cmake makes it.
extern const std::string_view page_template;

namespace {

std::string html_text(std::string_view text) {
    std::string safe;
    for (char c : text) {
        if (c == '&')
            safe += "&amp;";
        else if (c == '<')
            safe += "&lt;";
        else if (c == '>')
            safe += "&gt;";
        else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
            safe += ' ';
        else
            safe += c;
    }
    return safe;
}

/// JSON that a script element can hold: ASCII, and nothing in it ends the element or opens another.
std::string script_text(const nlohmann::json& value) {
    const std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
    std::string safe;
    safe.reserve(text.size());
    for (char c : text) {
        if (c == '<')
            safe += "\\u003c";
        else if (c == '>')
            safe += "\\u003e";
        else if (c == '&')
            safe += "\\u0026";
        else
            safe += c;
    }
    return safe;
}

/// Little-endian: float32 as std::uint32_t, float64 as std::uint64_t.
template <class Float, class Bits>
std::string bytes_of(const std::vector<double>& values) {
    constexpr std::size_t size = sizeof(Bits);
    std::string bytes(size * values.size(), 0);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const auto bits = std::bit_cast<Bits>(static_cast<Float>(values[i / size]));
        bytes[i] = static_cast<char>(bits >> (8 * (i % size)) & 0xff);
    }
    return bytes;
}

std::string bits_of(const std::vector<std::uint8_t>& flags) {
    std::string bytes((flags.size() + 7) / 8, 0);
    for (std::size_t i = 0; i < flags.size(); ++i)
        if (flags[i] != 0) bytes[i / 8] = static_cast<char>(bytes[i / 8] | 1 << (i % 8));
    return bytes;
}

std::string list_of(const HeatMap& map, const std::vector<double>& values) {
    std::string text = "[";
    for (double value : values) {
        if (text.size() > 1) text += ',';
        text += std::isfinite(value) ? map.number_text(value) : "null";
    }
    return text + "]";
}

std::string list_of(const std::vector<std::uint8_t>& flags) {
    std::string text = "[";
    for (std::uint8_t flag : flags) {
        if (text.size() > 1) text += ',';
        text += flag != 0 ? '1' : '0';
    }
    return text + "]";
}

void write_panel(Output& out, const HeatMap& map, const HeatPanel& panel, bool is_listed) {
    out << "{\"title\":" << script_text(panel.title) << ",\"blocked\":";
    if (panel.blocked.empty())
        out << "null";
    else if (is_listed)
        out << list_of(panel.blocked);
    else
        out << "\"" << base64(bits_of(panel.blocked)) << "\"";
    out << ",\"values\":";
    if (is_listed)
        out << list_of(map, panel.values);
    else
        out << "\""
            << base64(map.is_float32 ? bytes_of<float, std::uint32_t>(panel.values)
                                     : bytes_of<double, std::uint64_t>(panel.values))
            << "\"";
    out << "}";
}

void write_map(Output& out, const HeatMap& map) {
    const auto side = [](const std::string& axis, const std::vector<std::string>& labels,
                         bool of_tokens, std::size_t first, std::size_t step) {
        return nlohmann::json{{"axis", axis},   {"labels", labels}, {"tokens", of_tokens},
                              {"first", first}, {"step", step},     {"size", labels.size()}};
    };
    nlohmann::json axes = nlohmann::json::array();
    for (const PanelAxis& axis : map.panel_axes)
        axes.push_back({{"name", axis.name}, {"size", axis.size}});
    nlohmann::json ends = nlohmann::json::object();
    for (const auto& [scale, name] : color_scale_names) {
        const ScaleEnds of_scale = map.ends_of(scale);
        ends[std::string(name)] = {of_scale.low, of_scale.high};
    }
    const nlohmann::json head = {{"title", map.title},
                                 {"note", map.note},
                                 {"rows", side(map.row_axis, map.row_labels, map.tokens_on_rows,
                                               map.first_row, map.row_step)},
                                 {"columns", side(map.column_axis, map.column_labels,
                                                  map.tokens_on_columns, 0, map.column_step)},
                                 {"axes", axes},
                                 {"ends", ends},
                                 {"diverging", map.is_diverging},
                                 {"float32", map.is_float32},
                                 {"peak", map.peak}};
    std::string text = script_text(head);
    text.back() = ',';
    out << text << "\"panels\":[";
    const bool is_listed = map.panels.size() * map.rows * map.columns <= most_listed_cells;
    for (const HeatPanel& panel : map.panels) {
        if (&panel != &map.panels.front()) out << ",\n";
        write_panel(out, map, panel, is_listed);
    }
    out << "]}";
}

nlohmann::json color_list(bool is_diverging) {
    nlohmann::json list = nlohmann::json::array();
    for (const Color& color : cell_colors(is_diverging)) list.push_back(hex_text(color));
    return list;
}

nlohmann::json contents_of(const std::vector<HeatMap>& maps) {
    nlohmann::json scales = nlohmann::json::array(), arrays = nlohmann::json::array();
    for (const auto& [scale, name] : color_scale_names) scales.push_back(name);
    for (const HeatMap& map : maps) arrays.push_back(map.array);
    return {{"arrays", arrays},
            {"scales", scales},
            {"scale", name_of(color_scale_names, maps.front().scale)},
            {"log_range", log_range},
            {"no_number", hex_text(no_number)},
            {"viridis", color_list(false)},
            {"red_blue", color_list(true)}};
}

void write_data(Output& out, const std::vector<HeatMap>& maps) {
    constexpr std::string_view open = "<script type=\"application/json\" id=\"";
    out << open << "contents\">" << script_text(contents_of(maps)) << "</script>\n";
    // One element a map, so that a page of many is parsed as they are chosen.
    for (std::size_t i = 0; i < maps.size(); ++i) {
        out << open << "map-" << std::to_string(i) << "\">";
        write_map(out, maps[i]);
        out << "</script>\n";
    }
}

}  // namespace

void write_html(Output& out, const std::vector<HeatMap>& maps) {
    constexpr std::string_view title = "{{title}}", data = "{{data}}\n";
    const std::size_t end = page_template.find(data);
    std::size_t at = 0;
    for (std::size_t next; (next = page_template.find(title, at)) < end; at = next + title.size())
        out << page_template.substr(at, next - at) << html_text(maps.front().title);
    out << page_template.substr(at, end - at);
    write_data(out, maps);
    out << page_template.substr(end + data.size());
}

}  // namespace attn::io
