#include "io/transformer/attention_layer.hpp"

#include <algorithm>
#include <tuple>
#include <unordered_set>

#include "io/model/families.hpp"
#include "io/text/text.hpp"

namespace attn::io {
namespace {

using Shape = std::vector<std::size_t>;

/// The axes (d_in, d_out) of a weight that has heads in this axis.
Shape matrix_of(const Shape& shape, HeadAxis axis, bool is_out) {
    if (is_out) return {shape[0] * shape[1], shape[2]};
    if (axis == HeadAxis::first) return {shape[1], shape[0] * shape[2]};
    return {shape[0], shape[1] * shape[2]};
}

/// The key heads of a joined tensor: it has heads + 2 kv_heads parts as wide as one of the heads
/// that the output projection takes. As many as heads if these shapes do not fit, which is refused
/// later.
std::size_t key_heads_of(const ArrayFile& file, const ModelLayer& layer, std::size_t heads) {
    const LayerNames& names = *layer.names;
    const StoredArray* const joined = file.find(layer.full(names.query.weight));
    const StoredArray* const out = file.find(layer.full_out(names.out.weight));
    if (layer.joined == JoinedHeads::separate || joined == nullptr || out == nullptr ||
        heads == 0 || joined->shape.size() != 2 || out->shape.size() != 2)
        return heads;
    const std::size_t outputs = joined->shape[layer.in_out ? 1 : 0],
                      all_heads = out->shape[layer.in_out ? 0 : 1], d = all_heads / heads;
    if (d == 0 || all_heads % heads != 0 || outputs <= all_heads) return heads;
    const std::size_t kv_heads = (outputs - all_heads) / (2 * d);
    const bool fits =
        kv_heads > 0 && outputs == all_heads + 2 * kv_heads * d && heads % kv_heads == 0;
    return fits ? kv_heads : heads;
}

NormSpec norm_named(const TensorSet& tensors, const std::string& name,
                    const NormSettings& settings) {
    const ArrayFile& file = tensors.file();
    NormSpec norm;
    norm.is_rms = settings.form != NormForm::layer;
    norm.eps = settings.eps;
    norm.weight_offset = settings.form == NormForm::rms_plus_one ? 1 : 0;
    const auto [weight, bias] = names_of_norm(file, name);
    // An RMS norm has no bias; one with a bias is a different norm.
    std::vector<std::string> known{weight};
    if (!norm.is_rms) known.push_back(bias);
    check_nothing_else(file, name + ".", known, "norm");
    norm.weight = tensors.get(weight);
    if (norm.weight->shape().size() != 1) refuse_shape(*file.find(weight), "a vector");
    if (norm.is_rms || (settings.may_lack_bias && !tensors.has(bias))) return norm;
    norm.bias = tensors.get(bias, norm.weight->shape());
    return norm;
}

class PartReader {
public:
    PartReader(const std::shared_ptr<const ArrayFile>& file, const ModelLayer& layer,
               std::size_t heads)
        : tensors_(file), layer_(layer), names_(*layer.names), heads_(heads),
          kv_heads_(key_heads_of(*file, layer, heads)) {}

    /// The independent heads: modules of their own, or the first axis of attn's own arrays.
    std::size_t groups() const {
        const StoredArray& query = tensor(layer_.full(names_.query.weight));
        return query.shape.size() == 3 && names_.query.stacks ? query.shape[0] : layer_.groups();
    }

    AttentionPart read(std::size_t group) const {
        AttentionPart part;
        part.heads = heads_;
        part.kv_heads = kv_heads_;
        part.joined = layer_.joined;
        check_head_axes();
        part.query = map_of(names_.query, group, 0);
        if (part.joined == JoinedHeads::separate) {
            part.key = map_of(names_.key, group, 1);
            part.value = map_of(names_.value, group, 2);
            if (names_.key.weight == names_.value.weight) {  // keys, then values
                if (part.key.d_out % 2 != 0)
                    refuse_shape(tensor(layer_.full(names_.key.weight)),
                                 "an even number of outputs, of keys and values");
                part.key.d_out = part.value.d_out = part.value.first_bias = part.key.d_out / 2;
                part.value.first = part.value.d_out * part.value.d_in;
            }
        } else {
            check_pieces(part.query);
        }
        check_biases(group);
        if (tensors_.has(layer_.full_out(names_.out.weight)))
            part.out = map(layer_.full_out(names_.out.weight), layer_.full_out(names_.out.bias), 0,
                           names_.out.stacks, 1, true);
        return part;
    }

    void read_norms(AttentionPart& part, const NormSettings& settings) const {
        const HeadNormNames norms = head_norm_names(tensors_.file(), layer_);
        if (!norms) return;
        const bool is_joined = part.joined != JoinedHeads::separate;
        const std::size_t d = part.query.d_out / (is_joined ? heads_ + 2 * kv_heads_ : heads_),
                          keys = is_joined ? d * kv_heads_ : part.key.d_out;
        part.query_norm = head_norm(norms.query, d * heads_, heads_, settings);
        part.key_norm = head_norm(norms.key, keys, d == 0 ? 0 : keys / d, settings);
        part.d_k = d;
    }

private:
    const StoredArray& tensor(const std::string& name) const {
        tensors_.get(name);
        return *tensors_.find_array(name);
    }

    /// `index` is that of the projection in a bias for all three.
    LinearMap map_of(const ProjectionNames& names, std::size_t group, std::size_t index) const {
        const bool is_stack = tensor(layer_.full(names.weight)).shape.size() == 3;
        const std::size_t module = is_stack ? 0 : group;
        LinearMap found = map(layer_.full(names.weight, module), layer_.full(names.bias, module),
                              is_stack ? group : 0, names.stacks, names_.joins_bias ? 3 : 1);
        if (names_.joins_bias) found.first_bias = index * found.d_out;
        return found;
    }

    /// The bias has `shares` as many elements as the weight has outputs.
    LinearMap map(const std::string& weight, const std::string& bias, std::size_t index,
                  bool stacks, std::size_t shares = 1, bool is_out = false) const {
        const StoredArray& array = tensor(weight);
        const bool is_stack = array.shape.size() == 3 && stacks,
                   has_heads = array.shape.size() == 3 && names_.head_axis != HeadAxis::none;
        const Shape own = is_stack || has_heads ? array.shape : shape_of_weight(array);
        if (own.size() != 2 && !is_stack && !has_heads) refuse_shape(array, "a matrix");
        if (array.elements() == 0) refuse_shape(array, "at least one element");
        if (array.type == NumberType::boolean) refuse_shape(array, "another dtype than BOOL");
        LinearMap map;
        map.weight = tensors_.get(weight);
        map.in_out = layer_.in_out;
        if (has_heads && !is_out && names_.head_axis == HeadAxis::first)
            map.d_head = array.shape.back();
        const Shape matrix = has_heads ? matrix_of(array.shape, names_.head_axis, is_out)
                                       : Shape{own.end()[-2], own.back()};
        const std::size_t rows = matrix[0], columns = matrix[1];
        map.d_in = map.in_out ? rows : columns;
        map.d_out = map.in_out ? columns : rows;
        map.first = index * rows * columns;
        if (tensors_.bias_of("", {}, bias) == nullptr) return map;
        const Shape expected = is_stack ? Shape{array.shape[0], map.d_out}
                               : has_heads && !is_out
                                   ? Shape{map.d_out / array.shape[2], array.shape[2]}
                                   : Shape{shares * map.d_out};
        if (tensor(bias).shape != expected)
            refuse_shape(tensor(bias), shape_text(expected) + " as the weight's outputs");
        map.bias = tensors_.get(bias);
        map.first_bias = index * map.d_out;
        return map;
    }

    /// Heads of queries and keys have one width, keys and values as many heads, and `out` takes
    /// those of queries with the width of values.
    void check_head_axes() const {
        if (names_.head_axis == HeadAxis::none) return;
        std::vector<Shape> shapes;
        for (const ProjectionNames* part : {&names_.query, &names_.key, &names_.value, &names_.out})
            shapes.push_back(tensor(layer_.full(part->weight)).shape);
        const auto rank = [](const Shape& shape) { return shape.size(); };
        if (std::ranges::count(shapes, 2, rank) == 4) return;
        const std::size_t axis = names_.head_axis == HeadAxis::first ? 0 : 1;
        const auto& [query, key, value, out] = std::tie(shapes[0], shapes[1], shapes[2], shapes[3]);
        if (std::ranges::count(shapes, 3, rank) != 4 || key[2] != query[2] ||
            value[axis] != key[axis] || out[0] != query[axis] || out[1] != value[2])
            throw Error(ErrorKind::input, tensors_.file().name, "shapes ",
                        comma_list(shapes, shape_text),
                        " of query, key, value and out; expected the same heads in all");
    }

    /// A layer's queries, keys and values have biases together. attn writes layers in which the
    /// output projection differs from them in this, in any family.
    void check_biases(std::size_t group) const {
        std::vector<std::string> names{layer_.full(names_.query.bias, group)};
        if (layer_.joined == JoinedHeads::separate && !names_.joins_bias && !names_.some_biases)
            for (const ProjectionNames* part : {&names_.key, &names_.value})
                names.push_back(layer_.full(part->bias, group));
        if (layer_.family->biases_all && tensors_.file().config().is_null())
            names.push_back(layer_.full_out(names_.out.bias));
        const auto is_there = [this](const std::string& name) { return tensors_.has(name); };
        const auto found = std::ranges::find_if(names, is_there),
                   lacking = std::ranges::find_if_not(names, is_there);
        if (found != names.end() && lacking != names.end())
            throw Error(
                ErrorKind::input, tensors_.file().name,
                "no tensor \"" + *lacking + "\"; expected it, as \"" + *found + "\" is there");
    }

    void check_pieces(const LinearMap& joined) const {
        const std::size_t pieces = pieces_of(layer_.joined, heads_, kv_heads_);
        if (joined.d_out % pieces != 0)
            refuse_shape(
                tensor(layer_.full(names_.query.weight)),
                "a multiple of " + std::to_string(pieces) +
                    (layer_.joined == JoinedHeads::parts ? " outputs: queries, keys and values"
                                                         : " outputs: three for each head"));
    }

    NormSpec head_norm(const std::string& name, std::size_t width, std::size_t heads,
                       const NormSettings& settings) const {
        NormSpec norm = norm_named(tensors_, name, settings);
        const std::size_t size = norm.weight->size();
        if (size != width && (heads == 0 || size * heads != width))
            throw Error(ErrorKind::input, norm.weight->location(), size, " elements; expected ",
                        width, " for all heads, or ", width, " / ", heads, " for each");
        return norm;
    }

    TensorSet tensors_;
    const ModelLayer& layer_;
    const LayerNames& names_;
    std::size_t heads_, kv_heads_;
};

/// The norm checks its own tensors. Positions and segments are checked here.
void check_embeddings(const ArrayFile& file, const ModelLayer& layer) {
    const EmbeddingNames& names = layer.family->embedding;
    const std::string module = layer.full_outside(names.module);
    std::vector<std::string> known{module + "position_ids", module + "token_type_ids"};
    for (std::string_view name : {names.ids, names.positions, names.segments})
        if (!name.empty()) known.push_back(layer.full_outside(name));
    if (!names.norm.empty()) {
        const std::string norm = layer.full_outside(names.norm) + ".";
        for (const StoredArray& array : file.arrays)
            if (array.name.starts_with(norm)) known.push_back(array.name);
    }
    if (!names.module.empty()) return check_nothing_else(file, module, known, "embedding");
    for (std::string_view name : {names.ids, names.positions, names.segments})
        if (!name.empty())
            check_nothing_else(file, layer.full_outside(name.substr(0, name.rfind('.') + 1)), known,
                               "embedding");
}

}  // namespace

std::vector<AttentionPart> named_parts(const std::shared_ptr<const ArrayFile>& file,
                                       const ModelLayer& layer, std::size_t heads,
                                       const NormSettings& norms) {
    check_causal_masks(*file, layer);
    const PartReader reader(file, layer, heads);
    std::vector<AttentionPart> parts;
    for (std::size_t group = 0; group < reader.groups(); ++group)
        parts.push_back(reader.read(group));
    reader.read_norms(parts.front(), norms);
    return parts;
}

EmbeddingSpec named_embedding(const std::shared_ptr<const ArrayFile>& file, const ModelLayer& layer,
                              const EmbeddingSettings& settings) {
    const EmbeddingNames& names = layer.family->embedding;
    if (names.ids.empty())
        throw SettingError(ErrorKind::usage, "token_ids", "family ", layer.family->name,
                           " has no embedding; expected INPUT instead");
    check_embeddings(*file, layer);
    const TensorSet tensors(file);
    EmbeddingSpec spec;
    for (const auto& [table, name] : {std::pair{&spec.ids, names.ids},
                                      {&spec.positions, names.positions},
                                      {&spec.segments, names.segments}}) {
        if (name.empty()) continue;
        *table = tensors.get(layer.full_outside(name));
        const Shape& shape = (*table)->shape();
        if (shape.size() != 2 || shape[1] != spec.ids->shape().back())
            refuse_shape(*tensors.find_array(layer.full_outside(name)), "rows of ",
                         spec.ids->shape().back());
    }
    if (!names.norm.empty())
        spec.norm = norm_named(tensors, layer.full_outside(names.norm), settings.norm);
    spec.scale = settings.scale.value_or(1);
    spec.first_position = settings.first_position;
    return spec;
}

const StoredArray* named_ids(const ArrayFile& file, const ModelLayer& layer) {
    const std::string_view ids = layer.family->embedding.ids;
    const StoredArray* const found = ids.empty() ? nullptr : file.find(layer.full_outside(ids));
    return found != nullptr && found->shape.size() == 2 ? found : nullptr;
}

bool has_pre_norm(const ArrayFile& file, const ModelLayer& layer) {
    if (layer.family->norm.empty()) return false;
    return file.find(names_of_norm(file, layer.full_outside(layer.family->norm)).first) != nullptr;
}

NormSpec named_pre_norm(const std::shared_ptr<const ArrayFile>& file, const ModelLayer& layer,
                        const NormSettings& settings) {
    const Family& family = *layer.family;
    if (family.norm.empty())
        throw SettingError(ErrorKind::usage, "pre_norm", "family ", family.name,
                           " has no norm before its attention; expected --no-pre-norm");
    return norm_named(TensorSet(file), layer.full_outside(family.norm), settings);
}

LayerWidths layer_widths(const ArrayFile& file, const ModelLayer& layer) {
    const LayerNames& names = *layer.names;
    const bool is_packed = layer.joined != JoinedHeads::separate;
    const std::size_t outputs = layer.in_out ? 1 : 0, inputs = 1 - outputs;
    const auto size = [&](const std::string& name, std::size_t axis) {
        const StoredArray* found = file.find(layer.full(name));
        if (found == nullptr) return std::size_t{0};
        if (found->shape.size() == 3 && names.head_axis != HeadAxis::none)
            return matrix_of(found->shape, names.head_axis, &name == &names.out.weight)[axis];
        const Shape shape = shape_of_weight(*found);
        return shape.size() == 2 ? shape[axis] : 0;
    };
    std::size_t queries = size(names.query.weight, outputs);
    if (is_packed)  // the output projection takes as many columns
        queries = std::max(queries / 3, size(names.out.weight, inputs));
    return {size(names.query.weight, inputs),
            size(is_packed ? names.query.weight : names.key.weight, inputs), queries};
}

std::size_t stored_heads(const ArrayFile& file, const ModelLayer& layer) {
    const StoredArray* const query = file.find(layer.full(layer.names->query.weight));
    if (layer.names->head_axis == HeadAxis::none || query == nullptr || query->shape.size() != 3)
        return 0;
    return query->shape[layer.names->head_axis == HeadAxis::first ? 0 : 1];
}

std::vector<std::pair<std::string, std::vector<std::size_t>>> weight_shapes(
    const ArrayFile& file, const ModelLayer& layer) {
    std::vector<std::pair<std::string, std::vector<std::size_t>>> shapes;
    std::unordered_set<std::string> added;
    const auto add = [&](const std::string& full) {
        const StoredArray* array = file.find(full);
        if (array != nullptr && added.insert(full).second) shapes.emplace_back(full, array->shape);
    };
    for (const std::string& name : projection_tensors(file, layer)) add(name);
    const HeadNormNames norms = head_norm_names(file, layer);
    for (const std::string& norm : {norms.query, norms.key})
        for (const char* part : {".weight", ".gamma", ".scale"})
            if (!norm.empty()) add(norm + part);
    return shapes;
}

}  // namespace attn::io
