#include "io/transformer/attention_layer.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/memory.hpp"
#include "io/model/families.hpp"
#include "io/transformer/shared_rows.hpp"

namespace attn::io {
namespace {

using nlohmann::json;

/// Members rope, rope_base, rope_dims and rope_scaling of a request that give heads of this width
/// these angles; false if none do.
bool write_rotation(const Rotation& rotation, std::size_t width, json& settings) {
    const RopeSettings& rope = rotation.rope;
    if (rotation.first != 0 || !rotation.is_of_rope()) return false;
    settings["rope"] = std::string(name_of(rope_names, rope.pairs));
    settings["rope_base"] = rope.base;
    if (rope.dims != width) settings["rope_dims"] = rope.dims;
    if (rope.scaling == nullptr) return true;
    json scaling = json::parse(rope.scaling->text);
    scaling.erase("rope_theta");
    if (!rope.scaling->is("proportional")) scaling.erase("partial_rotary_factor");
    settings["rope_scaling"] = std::move(scaling);
    return true;
}

/// Whether each head has a weight of its own.
bool is_by_head(const AttentionPart& part, const std::optional<NormSpec>& norm) {
    return norm && !part.norms_whole && norm->weight != nullptr && norm->weight->size() != part.d_k;
}

/// The first part that a layer does not have, in words; empty: there is none.
std::string_view unknown_part(const TransformerBlock& block) {
    if (!std::holds_alternative<std::monostate>(block.whole) || block.convolution ||
        !std::holds_alternative<AttentionPart>(block.mixer))
        return "no softmax attention of its own";
    const auto& part = std::get<AttentionPart>(block.mixer);
    const std::pair<bool, std::string_view> parts[] = {
        {part.latent.has_value(), "latent attention"},
        {part.indexer || part.choice_from, "a choice of keys"},
        {part.shared_from.has_value(), "keys and values of an earlier layer"},
        {part.value_is_key, "keys as values"},
        {part.gate.from != ContextGate::From::none, "a gate on its context vectors"},
        {part.clip != 0, "clipped projections"},
        {part.value_norm.has_value(), "a norm of values"},
        {part.norms_after_rotation && (part.query_norm || part.key_norm),
         "norms of queries and keys after the rotation"},
        {is_by_head(part, part.query_norm) || is_by_head(part, part.key_norm),
         "a norm of queries or keys for each head"},
        {part.query_factor.has_value(), "a factor on queries that depends on their position"},
        {part.chunk.has_value(), "attention within chunks"},
        {part.out_norm.has_value(), "a norm of its context vectors"},
        {part.value_scale != 1, "a factor on values"},
        {part.key_bias.has_value(), "a bias on keys"},
        {part.difference.has_value(), "differential attention"},
        {part.rotates_values, "rotated values"},
        {part.content_bias.has_value() || part.bias_gate.has_value(),
         "a position bias that depends on queries and keys"},
        {part.joins_encoder, "keys of the encoder"},
        {!part.out, "no output projection"}};
    for (const auto& [is_there, words] : parts)
        if (is_there) return words;
    return {};
}

/// The outputs of these ranges, the weight row by row of the file.
template <class T>
void read_outputs(const LinearMap& map, const std::vector<OutputRange>& ranges, std::size_t outputs,
                  T* weight, T* bias) {
    std::vector<T> all;
    if (map.d_head != 0) {
        for (std::size_t run = 0; run < map.d_in * map.d_out / map.d_head; ++run)
            map.weight->read(run * map.d_head, map.d_head,
                             weight + run % map.d_in * outputs + run / map.d_in * map.d_head);
    } else if (map.in_out && outputs != map.d_out) {
        all.resize(map.d_in * map.d_out);
        map.weight->read(map.first, all.size(), all.data());
    } else if (map.in_out) {
        map.weight->read(map.first, map.d_in * map.d_out, weight);
    }
    for (const OutputRange& range : ranges) {
        if (bias != nullptr && map.bias != nullptr)
            map.bias->read(map.first_bias + range.from, range.count, bias + range.to);
        if (!map.in_out)
            map.weight->read(map.first + range.from * map.d_in, range.count * map.d_in,
                             weight + range.to * map.d_in);
        for (std::size_t row = 0; !all.empty() && row < map.d_in; ++row)
            std::copy_n(all.data() + row * map.d_out + range.from, range.count,
                        weight + row * outputs + range.to);
    }
}

template <class T>
void check_finite(const Parameter& parameter, const T* values, std::size_t count) {
    const auto is_finite = [](T value) { return std::isfinite(value); };
    if (!std::all_of(values, values + count, is_finite))
        throw Error(ErrorKind::input, parameter->location(),
                    "holds a NaN, an infinity or a number beyond the dtype's range; expected "
                    "finite numbers");
}

/// One projection of each group. `which`: of joined ones.
template <class T>
Projection<T> read_projection(std::span<const AttentionPart> groups, LinearMap AttentionPart::*of,
                              std::optional<Part> which) {
    Projection<T> p;
    for (std::size_t group = 0; group < groups.size(); ++group) {
        const AttentionPart& part = groups[group];
        const LinearMap& map = part.*of;
        std::vector<OutputRange> ranges{{0, map.d_out, 0}};
        if (which)
            ranges = split_of(part.joined, *which, map.d_out, part.heads, part.kv_heads,
                              part.joined_blocks);
        std::size_t outputs = 0;
        for (const OutputRange& range : ranges) outputs += range.count;
        const std::size_t size = outputs * map.d_in;
        if (group == 0) p = allocated<T>({groups.size(), map.d_in, outputs, false, map.in_out});
        if (p.d_in() != map.d_in || p.d_out() != outputs)
            throw Error(ErrorKind::input, map.weight->location(), "shape ",
                        shape_text(map.weight->shape()), "; expected the shape of head 0's");
        if (map.bias != nullptr && !p.has_bias()) {  // heads before this one may have none
            p.bias = Tensor2<T>::from_shape({groups.size(), outputs});
            p.bias.fill(T{0});
        }
        T* const weight = p.weight.data() + group * size;
        T* const bias = p.has_bias() ? p.bias.data() + group * outputs : nullptr;
        read_outputs(map, ranges, outputs, weight, bias);
        check_finite(map.weight, weight, size);
        if (map.bias != nullptr) check_finite(map.bias, bias, outputs);
    }
    return p;
}

/// The output projection takes the concatenated heads. The number of heads per key head follows
/// from the widths of queries and keys, for any number of heads.
template <class T>
void check_joined(const LayerWeights<T>& w, const LinearMap& out) {
    const std::size_t query = w.query.d_out(), key = w.key.d_out(), value = w.value.d_out();
    const bool is_wrapper = w.value.groups() > 1;
    if (!is_wrapper && value * query % key != 0) return;  // refused with the number of heads
    const std::size_t joined = is_wrapper ? w.value.groups() * value : value * query / key;
    if (w.out->d_in() != joined)
        throw Error(ErrorKind::input, out.weight->location(), "shape ",
                    shape_text(out.weight->shape()), "; expected ", joined,
                    out.in_out ? " rows" : " columns", " as the joined heads have");
}

json settings_of(const AttentionPart& part) {
    json settings{{"heads", part.heads}, {"kv_heads", part.kv_heads}};
    if (!part.causal) settings["causal"] = false;
    if (part.scale != 1 / std::sqrt(static_cast<double>(part.d_k))) settings["scale"] = part.scale;
    if (part.softcap != 0) settings["softcap"] = part.softcap;
    if (part.window_left || part.window_right)
        settings["window"] = {part.window_left.value_or(-1), part.window_right.value_or(-1)};
    if (!part.sink.empty()) settings["sink"] = part.sink;
    if (std::holds_alternative<Alibi>(part.bias)) settings["alibi"] = true;
    return settings;
}

/// The block, whole if the file has all of it.
TransformerBlock read_block(const OpenModel& model, std::size_t layer) {
    try {
        const ModelSpec spec = model.specify(1);
        if (const OpenModel* const decoder = model.decoder())
            model.check(spec, layer + 1, decoder->specify(1), 1);
        else
            model.check(spec, layer + 1);
        return spec.block(layer);
    } catch (const IncompleteModel&) {
        TransformerBlock block = model.attention_block(layer, 1);
        model.check_attention(layer);
        return block;
    }
}

}  // namespace

InputNorm input_norm(const NormSpec& norm, std::size_t width) {
    InputNorm made{norm.is_rms, elements_of(norm.weight), elements_of(norm.bias), norm.eps};
    if (norm.weight == nullptr) made.weight.assign(width, 1);
    for (double& factor : made.weight) factor = (factor + norm.weight_offset) * norm.weight_factor;
    return made;
}

void use_heads(AttentionLayer& layer, std::size_t heads) {
    AttentionPart& part = layer.part;
    const std::size_t queries = part.heads * part.d_k, keys = part.kv_heads * part.d_k,
                      d = heads == 0 ? 0 : queries / heads;
    if (d == 0 || queries % heads != 0 || keys % d != 0)
        throw SettingError(ErrorKind::usage, "heads", "does not divide queries of width ", queries,
                           " and keys of width ", keys, "; expected a number that does, such as ",
                           part.heads);
    for (const char* key : {"heads", "kv_heads", "scale"}) layer.settings.erase(key);
    part.heads = heads;
    part.kv_heads = keys / d;
    part.d_k = part.d_v = d;
}

AttentionLayer attention_layer(const OpenModel& model, std::size_t layer) {
    if (const std::size_t layers = model.layers(); layer >= layers)
        throw SettingError(ErrorKind::usage, "layer", "the model has ", layers,
                           " layers; expected 0 to ", layers - 1);
    const TransformerBlock block = read_block(model, layer);
    const auto refuse = [&](const std::string& words) {
        throw Error(ErrorKind::unsupported, model.files().config_location, "layer ", layer,
                    " of a ", model.type(), " has ", words,
                    ", which attn multihead does not compute; expected attn model, which does");
    };
    if (const std::string_view words = unknown_part(block); !words.empty())
        refuse(std::string(words));
    AttentionLayer made;
    made.part = std::get<AttentionPart>(block.mixer);
    const AttentionPart& part = made.part;
    const auto* const alibi = std::get_if<Alibi>(&part.bias);
    if (part.bias.index() != 0 && (alibi == nullptr || alibi->in_bfloat16))
        refuse("a bias on its scores that is not ALiBi's");
    made.settings = settings_of(part);
    if (part.rotation && !write_rotation(*part.rotation, part.d_k, made.settings))
        refuse("rotary angles other than those of --rope-base and --rope-scaling");
    made.norm = block.attention_norm;
    made.norm_name = model.full_name(model.row().attention_norm, layer);
    const auto add = [&](const std::string& name, const Parameter& parameter) {
        if (parameter != nullptr) made.shapes.emplace_back(name, parameter->shape());
    };
    for (const auto& [name, map] : {std::pair("query", &part.query),
                                    {"key", &part.key},
                                    {"value", &part.value},
                                    {"out", &part.out}}) {
        add(std::string(name) + ".weight", map->weight);
        add(std::string(name) + ".bias", map->bias);
    }
    if (part.query_norm) add("query_norm.weight", part.query_norm->weight);
    if (part.key_norm) add("key_norm.weight", part.key_norm->weight);
    return made;
}

namespace {

template <class T>
AnyLayerWeights read_attention_as(std::span<const AttentionPart> groups,
                                  const std::string& location) {
    const AttentionPart& first = groups.front();
    double numbers = 0;
    for (const AttentionPart& part : groups)
        for (const LinearMap* map : {&part.query, &part.key, &part.value})
            numbers += static_cast<double>(map->d_in) * static_cast<double>(map->d_out);
    numbers += static_cast<double>(first.out.d_in) * static_cast<double>(first.out.d_out);
    require_memory(sizeof(T) * numbers, location, "reading the weights of this layer");
    const bool is_joined = first.joined != JoinedHeads::separate;
    const auto read = [&](LinearMap AttentionPart::*map, Part part) {
        return read_projection<T>(groups, is_joined ? &AttentionPart::query : map,
                                  is_joined ? std::optional(part) : std::nullopt);
    };
    LayerWeights<T> weights{read(&AttentionPart::query, Part::query),
                            read(&AttentionPart::key, Part::key),
                            read(&AttentionPart::value, Part::value), std::nullopt};
    if (first.out) {
        weights.out = read_projection<T>(groups.first(1), &AttentionPart::out, std::nullopt);
        check_joined(weights, first.out);
    }
    if (first.query_norm) weights.query_norm = input_norm(*first.query_norm, first.d_k);
    if (first.key_norm) weights.key_norm = input_norm(*first.key_norm, first.d_k);
    const bool has_bias =
        weights.query.has_bias() || weights.key.has_bias() || weights.value.has_bias();
    for (Projection<T>* p : {&weights.query, &weights.key, &weights.value})
        if (has_bias && !p->has_bias()) {
            p->bias = Tensor2<T>::from_shape({p->groups(), p->d_out()});
            p->bias.fill(T{0});
        }
    return std::make_shared<const LayerWeights<T>>(std::move(weights));
}

}  // namespace

AnyLayerWeights read_attention(std::span<const AttentionPart> groups, NumberType dtype,
                               const std::string& location) {
    return for_dtype(dtype, [&]<class T>(T) { return read_attention_as<T>(groups, location); });
}

}  // namespace attn::io
