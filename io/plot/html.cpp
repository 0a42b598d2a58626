// Data of the HTML page.
//
// The page reads these script elements. They are separate, so that each is parsed when it is first
// needed:
//
//   contents   the data of the whole page, as JSON: its arrays, scales and colours
//   map-I      one array, as JSON: axes, labels, scales, `masks`, and for each matrix its title and
//              `mask`, the index of its mask of masked cells (null: none), and
//                values   in pages of few cells: a list, null for no number; masks are
//                         lists of 0 and 1
//                mantissa_bits   else those of the matrix's text; masks are packed_flags
//              `digits` is the number of significant digits if rounded, else null
//   map-I-J    matrix J of array I as number_planes
//
// The script follows the text of the matrix that the page opens with and precedes all others, which
// take a browser a second to read: the first map is shown before them.
#include "io/plot/picture.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include "io/text/json_text.hpp"
#include "io/text/number_text.hpp"
#include "io/text/text.hpp"
#include "io/text/utf8.hpp"

namespace attn::io {

/// io/plot/page as one string, made by embed_page.cmake.
extern const std::string_view page_template;

namespace {

/// A string or number as JSON for a script element: ASCII, without anything that ends the element
/// or opens another.
std::string script_text(const nlohmann::json& value) {
    const std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
    return replaced(text, {{'<', "\\u003c"}, {'>', "\\u003e"}, {'&', "\\u0026"}});
}

/// Written directly as JSON, since nlohmann's objects and lists allocate memory when they are
/// freed. `text_of` makes the text of one item.
template <class Items, class TextOf>
std::string list_of(const Items& items, TextOf text_of) {
    std::string list = "[";
    for (const auto& item : items) {
        if (list.size() > 1) list += ',';
        list += text_of(item);
    }
    return list + "]";
}

std::string list_of(const std::vector<std::string>& texts) {
    return list_of(texts, [](const std::string& text) { return script_text(printable(text)); });
}

/// The `mask` members of a map's panels, and the masks. Heads mostly share one.
struct Masks {
    std::vector<const std::vector<std::uint8_t>*> different;
    std::vector<std::string> of_panels;
};

Masks masks_of(const HeatMap& map) {
    Masks masks;
    masks.of_panels.reserve(map.panels.size());
    for (const HeatPanel& panel : map.panels) {
        std::size_t index = masks.different.size();
        // Only the last few are compared: batch entries differ, heads of one do not.
        for (std::size_t i = index; i-- > 0 && i + 4 > masks.different.size();)
            if (*masks.different[i] == panel.masked) index = i;
        masks.of_panels.push_back(panel.masked.empty() ? "null" : std::to_string(index));
        if (!panel.masked.empty() && index == masks.different.size())
            masks.different.push_back(&panel.masked);
    }
    return masks;
}

/// Of names and their values as JSON.
std::string object_of(const std::vector<std::pair<std::string, std::string>>& members) {
    std::string object = "{";
    for (const auto& [name, value] : members) append_member(object, name, JsonText{value});
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

/// Those with names, and a given value.
std::vector<ColorScale> offered_scales(const HeatMap& map) {
    std::vector<ColorScale> scales;
    for (const auto& row : color_scale_names) scales.push_back(row.first);
    if (map.asked.kind == ColorScale::given) scales.push_back(map.asked);
    return scales;
}

/// Each scale by its name: the value of full colour, 0 for the row's largest; the ticks of its bar,
/// each with a position and a label; and its description.
std::string scales_of(const HeatMap& map) {
    std::vector<std::pair<std::string, std::string>> scales;
    scales.reserve(color_scale_names.size() + 1);
    for (const ColorScale& scale : offered_scales(map)) {
        const std::string ticks = list_of(map.ticks_of(scale), [](const ScaleTick& tick) {
            return "[" + script_text(tick.position) + "," + script_text(tick.text) + "]";
        });
        scales.emplace_back(text_of(scale),
                            object_of({{"full", script_text(map.full_color(scale))},
                                       {"ticks", ticks},
                                       {"words", script_text(map.words_of(scale))}}));
    }
    return object_of(scales);
}

/// The storage of a map's numbers in a page.
struct Store {
    bool is_listed;
    unsigned mantissa_bits;  ///< if they are packed
    unsigned digits;         ///< significant digits if they are rounded, otherwise 0
    std::string note;
};

/// Decimal digits of this many mantissa bits.
unsigned digits_of(unsigned mantissa_bits) {
    return static_cast<unsigned>((mantissa_bits + 1) * std::log10(2.0));
}

/// The weights, or the first array if there are none.
std::size_t first_shown(const std::vector<HeatMap>& maps) {
    for (std::size_t i = 0; i < maps.size(); ++i)
        if (maps[i].array == "attention_weights") return i;
    return 0;
}

std::vector<Store> stores_of(const std::vector<HeatMap>& maps) {
    std::size_t cells = 0;
    for (const HeatMap& map : maps) cells += map.panels.size() * map.rows * map.columns;
    if (cells <= max_listed_cells) return {maps.size(), Store{true, 0, 0, ""}};
    std::vector<PlaneCost> costs;
    costs.reserve(maps.size());
    for (const HeatMap& map : maps) costs.push_back(plane_cost(map));
    const std::size_t first = first_shown(maps);
    std::swap(costs[0], costs[first]);
    std::vector<unsigned> bits = fitting_mantissas(costs, max_packed_bytes);
    std::swap(costs[0], costs[first]);
    std::swap(bits[0], bits[first]);
    const double megabytes = plane_bytes(costs, bits) / 1e6;
    std::vector<Store> stores;
    stores.reserve(maps.size());
    for (std::size_t i = 0; i < maps.size(); ++i) {
        Store store{false, bits[i], 0, ""};
        if (bits[i] < costs[i].mantissa_bits && costs[i].numbers > 0) {
            store.digits = digits_of(bits[i]);
            store.note = "numbers are rounded to about " + std::to_string(store.digits) +
                         " digits, which keeps the page small; a page of fewer arrays or heads " +
                         "has all digits, as the result has";
            if (megabytes > 1e-6 * max_packed_bytes)
                store.note +=
                    "; it is large all the same: " + std::to_string(static_cast<int>(megabytes)) +
                    " MB";
        }
        stores.push_back(std::move(store));
    }
    return stores;
}

/// Returns the panels' number planes, if they are packed.
std::vector<std::string> write_map(Output& out, const HeatMap& map, const Store& store) {
    const Masks masks = masks_of(map);
    const std::string mask_texts = list_of(masks.different, [&](const auto* mask) {
        return store.is_listed ? list_of(*mask, [](auto flag) { return flag != 0 ? '1' : '0'; })
                               : '"' + packed_flags(*mask) + '"';
    });
    const std::string note =
        map.note + (map.note.empty() || store.note.empty() ? "" : "; ") + store.note;
    const std::string axes = list_of(map.panel_axes, [](const PanelAxis& axis) {
        return object_of({{"labels", list_of(axis.labels)},
                          {"name", script_text(axis.name)},
                          {"size", script_text(axis.size)}});
    });
    std::string text = object_of(
        {{"axes", axes},
         {"columns",
          side_of(map.column_axis, map.column_labels, map.tokens_on_columns, 0, map.column_step)},
         {"digits", store.digits == 0 ? "null" : std::to_string(store.digits)},
         {"diverging", script_text(map.is_diverging)},
         {"dropped", script_text(map.has_dropped)},
         {"float32", script_text(map.is_float32)},
         {"heading", script_text(printable(map.heading))},
         {"masks", mask_texts},
         {"note", script_text(note)},
         {"rows",
          side_of(map.row_axis, map.row_labels, map.tokens_on_rows, map.first_row, map.row_step)},
         {"scales", scales_of(map)},
         {"title", script_text(printable(map.title))}});
    text.back() = ',';
    out << text << "\"panels\":[";
    std::vector<std::string> planes;
    for (std::size_t i = 0; i < map.panels.size(); ++i) {
        const HeatPanel& panel = map.panels[i];
        out << (i == 0 ? "{\"title\":" : ",\n{\"title\":") << script_text(printable(panel.title))
            << ",\"mask\":" << masks.of_panels[i];
        if (store.is_listed) {
            out << ",\"values\":" << list_of(panel.values, [&](double value) {
                return std::isfinite(value) ? map.number_text(value) : "null";
            }) << "}";
            continue;
        }
        out << ",\"mantissa_bits\":" << std::to_string(store.mantissa_bits) << "}";
        planes.push_back(number_planes(panel, map.is_float32, store.mantissa_bits));
    }
    out << "]}";
    return planes;
}

std::string contents_of(const std::vector<HeatMap>& maps) {
    const auto name = [](const HeatMap& map) { return script_text(printable(map.array)); };
    const auto scale = [](const ColorScale& of) { return script_text(text_of(of)); };
    const auto hex = [](const Color& color) { return script_text(hex_text(color)); };
    return object_of({{"arrays", list_of(maps, name)},
                      {"first", std::to_string(first_shown(maps))},
                      {"log_range", script_text(log_range)},
                      {"dropped", hex(dropped_ground)},
                      {"dropped_words", script_text(std::string(dropped_words))},
                      {"no_number", hex(no_number)},
                      {"red_blue", list_of(cell_colors(true), hex)},
                      {"scale", scale(maps.front().asked)},
                      {"scales", list_of(offered_scales(maps.front()), scale)},
                      {"viridis", list_of(cell_colors(false), hex)}});
}

using Texts = std::vector<std::vector<std::string>>;

void write_element(Output& out, std::string_view type, const std::string& id) {
    out << "<script type=\"" << type << "\" id=\"" << id << "\">";
}

/// Writes everything except the text of packed matrices, which it returns.
Texts write_maps(Output& out, const std::vector<HeatMap>& maps) {
    const std::vector<Store> stores = stores_of(maps);
    Texts texts;
    texts.reserve(maps.size());
    for (std::size_t i = 0; i < maps.size(); ++i) {
        write_element(out, "application/json", "map-" + std::to_string(i));
        texts.push_back(write_map(out, maps[i], stores[i]));
        out << "</script>\n";
    }
    return texts;
}

/// The text of one array; each is freed.
void write_texts(Output& out, Texts& texts, std::size_t array, std::size_t first, std::size_t end) {
    for (std::size_t panel = first; panel < std::min(end, texts[array].size()); ++panel) {
        write_element(out, "text/plain",
                      "map-" + std::to_string(array) + "-" + std::to_string(panel));
        out << std::exchange(texts[array][panel], {}) << "</script>\n";
    }
}

}  // namespace

void write_html(Output& out, const std::vector<HeatMap>& maps) {
    constexpr std::string_view title = "{{title}}", first_data = "{{first_data}}\n",
                               other_data = "{{other_data}}\n";
    const std::size_t first = first_shown(maps), all = std::string::npos;
    const std::size_t begin = page_template.find(first_data), end = page_template.rfind(other_data);
    std::size_t at = 0;
    for (std::size_t next; (next = page_template.find(title, at)) < begin; at = next + title.size())
        out << page_template.substr(at, next - at) << markup_text(printable(maps[first].heading));
    out << page_template.substr(at, begin - at);
    at = begin + first_data.size();
    write_element(out, "application/json", "contents");
    out << contents_of(maps) << "</script>\n";
    Texts texts = write_maps(out, maps);
    write_texts(out, texts, first, 0, 1);
    out << page_template.substr(at, end - at);
    write_texts(out, texts, first, 1, all);
    for (std::size_t i = 0; i < maps.size(); ++i)
        if (i != first) write_texts(out, texts, i, 0, all);
    out << page_template.substr(end + other_data.size());
}

}  // namespace attn::io
