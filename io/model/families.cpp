#include "io/model/families.hpp"

#include <numeric>

#include "io/model/row_reader.hpp"
#include "io/read/json_document.hpp"

namespace attn::io {

extern const std::string_view layer_families_text;  // layer_families.json

template <>
constexpr std::string_view value_names<Rope> = "half interleaved";
template <>
constexpr std::string_view value_names<Rotates> = "none heads part_of_heads";
template <>
constexpr std::string_view value_names<HeadAxis> = "none first second";
template <>
constexpr std::string_view value_names<Form> = "any lower_mask upper_mask one_number frequencies";

namespace {

using nlohmann::json;

class LayerTable : public RowReader<LayerTable> {
public:
    using RowReader::read;

    void read(const json& value, Family& to) {
        read_members(value, "", FIELD(name), FIELD(published), FIELD(layers), FIELD(norm),
                     FIELD(embedding), FIELD(eps), FIELD(rms), FIELD(causal), FIELD(rotates),
                     FIELD(pairs), FIELD(is_plain), FIELD(is_plain_alone), FIELD(takes_mask),
                     FIELD(of_class), FIELD(biases_all), FIELD(types), FIELD(padded));
    }
    void read(const json& value, EmbeddingNames& to) {
        read_members(value, "", FIELD(module), FIELD(ids), FIELD(positions), FIELD(segments),
                     FIELD(norm));
    }
    void read(const json& value, std::vector<LayerNames>& to) {
        for (const json& form : value)
            for (const json& layer : form["layer"]) read_form(form, layer, to.emplace_back());
    }
    void read(const json& value, ProjectionNames& to) {
        const bool has_names = value.is_array();
        to.weight = has_names ? value[0].get<std::string>() : value.get<std::string>() + ".weight";
        to.bias = has_names ? value[1].get<std::string>() : value.get<std::string>() + ".bias";
    }
    void read(const json& value, std::vector<HarmlessTensor>& to) {
        for (const auto& [name, form] : value.items())
            read(form, to.emplace_back(HarmlessTensor{name}).form);
    }

private:
    void read_form(const json& form, const json& layer, LayerNames& to) {
        read_members(form, "layer stacks needs_bias", FIELD(joined), FIELD(in_out), FIELD(is_open),
                     FIELD(joins_bias), FIELD(needs_out), FIELD(query), FIELD(key), FIELD(value),
                     FIELD(out), FIELD(others), FIELD(shows_in_out), FIELD(query_norm),
                     FIELD(key_norm), FIELD(more_key), FIELD(more_value), FIELD(head_axis),
                     FIELD(some_biases), FIELD(lacks_bias), FIELD(asks_joined));
        to.query.needs_bias = to.out.needs_bias = form.value("needs_bias", false);
        read(layer, to.layer);
        to.is_wrapper = to.layer == "heads.#.";
        if (to.is_wrapper) to.query_norm = to.key_norm = {};
        const std::string stacks = form.value("stacks", "");
        to.query.stacks = stacks.find("query") != stacks.npos;
        to.key.stacks = stacks.find("key") != stacks.npos;
        to.value.stacks = stacks.find("value") != stacks.npos;
        to.out.stacks = stacks.find("out") != stacks.npos;
    }
};

}  // namespace

const std::vector<Family>& all_families() {
    static const json rows = parse_own(layer_families_text);  // has the texts of the names
    static const std::vector<Family> families = [] {
        std::vector<Family> all;
        for (const json& row : rows) LayerTable().read(row, all.emplace_back());
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
