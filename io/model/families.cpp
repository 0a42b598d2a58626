#include "io/model/families.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "core/base/names.hpp"
#include "core/model/attention_part.hpp"
#include "io/read/json_document.hpp"

namespace attn::io {

extern const std::string_view layer_families_text;  // layer_families.json

namespace {

using nlohmann::json;

/// The member of a row; empty without it.
std::string_view text_in(const json& row, const char* key) {
    return row.contains(key) ? row[key].get_ref<const std::string&>() : std::string_view();
}

/// The choice of this name; the first without one. Errors: an unknown name.
template <class Choice, std::size_t n>
Choice choice_of(std::string_view name, const std::string_view (&names)[n]) {
    if (name.empty()) return Choice{};
    const auto found = std::ranges::find(names, name);
    if (found == std::end(names))
        throw std::logic_error("layer_families.json has an unknown " + std::string(name));
    return static_cast<Choice>(found - names);
}

ProjectionNames projection_in(const json& row, const char* key) {
    if (!row.contains(key)) return {};
    const json& found = row[key];
    const bool stacks = text_in(row, "stacks").find(key) != std::string_view::npos;
    if (found.is_array()) return {found[0], found[1], stacks};
    const auto module = found.get<std::string>();
    return {module + ".weight", module + ".bias", stacks};
}

LayerNames layer_in(const json& row, std::string_view layer) {
    LayerNames names;
    names.layer = layer;
    names.joined = choice_of<JoinedHeads>(text_in(row, "joined"), {"separate", "parts", "groups"});
    names.in_out = row.value("in_out", false);
    names.is_open = row.value("is_open", false);
    names.joins_bias = row.value("joins_bias", false);
    names.is_wrapper = layer == "heads.#.";
    names.needs_out = row.value("needs_out", true);
    names.query = projection_in(row, "query");
    names.key = projection_in(row, "key");
    names.value = projection_in(row, "value");
    names.out = projection_in(row, "out");
    if (row.contains("others"))
        for (const auto& [name, form] : row["others"].items())
            names.others.push_back({name, choice_of<Form>(form.get_ref<const std::string&>(),
                                                          {"any", "lower_mask", "upper_mask",
                                                           "one_number", "frequencies"})});
    names.shows_in_out = row.value("shows_in_out", false);
    if (!names.is_wrapper) {
        names.query_norm = text_in(row, "query_norm");
        names.key_norm = text_in(row, "key_norm");
    }
    names.more_key = text_in(row, "more_key");
    names.more_value = text_in(row, "more_value");
    return names;
}

Family family_in(const json& row) {
    Family family;
    family.name = text_in(row, "name");
    family.published = text_in(row, "published");
    for (const json& form : row["layers"])
        for (const json& layer : form["layer"])
            family.layers.push_back(layer_in(form, layer.get_ref<const std::string&>()));
    family.norm = text_in(row, "norm");
    if (row.contains("embedding")) {
        const json& names = row["embedding"];
        family.embedding = {text_in(names, "module"), text_in(names, "ids"),
                            text_in(names, "positions"), text_in(names, "segments"),
                            text_in(names, "norm")};
    }
    family.eps = row.value("eps", 0.0);
    family.rms = row.value("rms", false);
    family.causal = row.value("causal", true);
    family.rotates =
        choice_of<Rotates>(text_in(row, "rotates"), {"none", "heads", "part_of_heads"});
    if (text_in(row, "pairs") == "interleaved") family.pairs = Rope::interleaved;
    family.is_plain = row.value("is_plain", false);
    family.biases_all = row.value("biases_all", false);
    if (row.contains("types"))
        for (const json& type : row["types"])
            family.types.push_back(type.get_ref<const std::string&>());
    family.padded = text_in(row, "padded");
    return family;
}

}  // namespace

const std::vector<Family>& all_families() {
    static const json rows = parse_own(layer_families_text);  // has the texts of the names
    static const std::vector<Family> families = [] {
        std::vector<Family> all;
        std::ranges::transform(rows, std::back_inserter(all), family_in);
        return all;
    }();
    return families;
}

const Family* find_family(std::string_view name) {
    return find_row(all_families(), &Family::name, name);
}

const Family* family_of_type(std::string_view model_type) {
    for (const Family& family : all_families())
        for (const std::string_view type : family.types)
            if (type == model_type) return &family;
    return nullptr;
}

std::vector<OutputRange> split_of(JoinedHeads joined, Part part, std::size_t outputs,
                                  std::size_t heads, std::size_t kv_heads, std::size_t blocks) {
    if (joined == JoinedHeads::separate) return {{0, outputs, 0}};
    const bool is_by_block = joined == JoinedHeads::blocks;
    if (is_by_block) heads = kv_heads = 1;
    // Joined parts are one group. The lengths of a group's queries, keys and values.
    const std::size_t groups = joined == JoinedHeads::parts ? 1 : is_by_block ? blocks : kv_heads;
    const std::size_t group = outputs / groups, total = heads + 2 * kv_heads;
    const std::size_t query = group * heads / total, key = group * kv_heads / total;
    const Part second = is_by_block ? Part::value : Part::key;
    const std::size_t before = part == Part::query ? 0 : part == second ? query : query + key;
    const std::size_t count = part == Part::query ? query : key;
    std::vector<OutputRange> ranges;
    for (std::size_t i = 0; i < groups; ++i)
        ranges.push_back({i * group + before, count, i * count});
    return ranges;
}

std::size_t pieces_of(JoinedHeads joined, std::size_t heads, std::size_t kv_heads) {
    if (joined == JoinedHeads::separate) return 1;
    const std::size_t all = heads + 2 * kv_heads;
    return joined == JoinedHeads::parts ? all / std::gcd(heads, kv_heads) : all;
}

}  // namespace attn::io
