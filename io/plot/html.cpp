// Heat maps as a page for browsers; see html.hpp.
#include "io/plot/html.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "io/plot/base64.hpp"
#include "io/plot/colors.hpp"
#include "io/text/utf8.hpp"

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

/// A text or number as JSON that a script element can hold: ASCII, and nothing in it ends the
/// element or opens another.
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
    out << "{\"title\":" << script_text(printable(panel.title)) << ",\"blocked\":";
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

/// As JSON of its own, since nlohmann's objects and lists take memory when they are let go of.
std::string list_of(const std::vector<std::string>& texts) {
    std::string list = "[";
    for (const std::string& text : texts) {
        if (list.size() > 1) list += ',';
        list += script_text(printable(text));
    }
    return list + "]";
}

/// Of names and their values as JSON.
std::string object_of(const std::vector<std::pair<std::string_view, std::string>>& members) {
    std::string object = "{";
    for (const auto& [name, value] : members) {
        if (object.size() > 1) object += ',';
        (((object += '"') += name) += "\":") += value;
    }
    return object + "}";
}

std::string side_of(const std::string& axis, const std::vector<std::string>& labels, bool of_tokens,
                    std::size_t first, std::size_t step) {
    return object_of({{"axis", script_text(axis)},
                      {"first", script_text(first)},
                      {"labels", list_of(labels)},
                      {"size", script_text(labels.size())},
                      {"step", script_text(step)},
                      {"tokens", script_text(of_tokens)}});
}

/// Each scale by its name: what full colour stands for, 0 where that is the row's largest; the
/// ticks of its bar, a place and a text each; and its words.
std::string scales_of(const HeatMap& map) {
    std::vector<std::pair<std::string_view, std::string>> scales;
    scales.reserve(color_scale_names.size());
    for (const auto& [scale, name] : color_scale_names) {
        std::string ticks;
        for (const ScaleTick& tick : map.ticks_of(scale))
            ticks += (ticks.empty() ? "[" : ",[") + script_text(tick.position) + "," +
                     script_text(tick.text) + "]";
        scales.emplace_back(name, object_of({{"full", script_text(map.full_color(scale))},
                                             {"ticks", "[" + ticks + "]"},
                                             {"words", script_text(map.words_of(scale))}}));
    }
    return object_of(scales);
}

void write_map(Output& out, const HeatMap& map) {
    std::string axes;
    for (const PanelAxis& axis : map.panel_axes)
        axes += (axes.empty() ? "" : ",") +
                object_of({{"name", script_text(axis.name)}, {"size", script_text(axis.size)}});
    std::string text = object_of({{"axes", "[" + axes + "]"},
                                  {"columns", side_of(map.column_axis, map.column_labels,
                                                      map.tokens_on_columns, 0, map.column_step)},
                                  {"diverging", script_text(map.is_diverging)},
                                  {"float32", script_text(map.is_float32)},
                                  {"heading", script_text(printable(map.heading))},
                                  {"note", script_text(map.note)},
                                  {"rows", side_of(map.row_axis, map.row_labels, map.tokens_on_rows,
                                                   map.first_row, map.row_step)},
                                  {"scales", scales_of(map)},
                                  {"title", script_text(printable(map.title))}});
    text.back() = ',';
    out << text << "\"panels\":[";
    const bool is_listed = map.panels.size() * map.rows * map.columns <= most_listed_cells;
    for (const HeatPanel& panel : map.panels) {
        if (&panel != &map.panels.front()) out << ",\n";
        write_panel(out, map, panel, is_listed);
    }
    out << "]}";
}

std::string color_list(bool is_diverging) {
    std::vector<std::string> colors;
    colors.reserve(cell_colors(is_diverging).size());
    for (const Color& color : cell_colors(is_diverging)) colors.push_back(hex_text(color));
    return list_of(colors);
}

std::string contents_of(const std::vector<HeatMap>& maps) {
    std::vector<std::string> scales, arrays;
    scales.reserve(color_scale_names.size());
    arrays.reserve(maps.size());
    for (const auto& [scale, name] : color_scale_names) scales.emplace_back(name);
    for (const HeatMap& map : maps) arrays.push_back(map.array);
    return object_of(
        {{"arrays", list_of(arrays)},
         {"log_range", script_text(log_range)},
         {"no_number", script_text(hex_text(no_number))},
         {"red_blue", color_list(true)},
         {"scale", script_text(std::string(name_of(color_scale_names, maps.front().asked)))},
         {"scales", list_of(scales)},
         {"viridis", color_list(false)}});
}

void write_data(Output& out, const std::vector<HeatMap>& maps) {
    constexpr std::string_view open = "<script type=\"application/json\" id=\"";
    out << open << "contents\">" << contents_of(maps) << "</script>\n";
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
        out << page_template.substr(at, next - at) << html_text(printable(maps.front().heading));
    out << page_template.substr(at, end - at);
    write_data(out, maps);
    out << page_template.substr(end + data.size());
}

}  // namespace attn::io
