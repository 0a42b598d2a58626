#include "io/model/read_weights.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_set>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/memory.hpp"
#include "io/model/embeddings.hpp"
#include "io/model/other_tensors.hpp"
#include "io/model/weight_split.hpp"

namespace attn::io {
namespace {

/// The key heads of a joined tensor: it has heads + 2 kv_heads parts as wide as one of the heads
/// that the output projection takes. As many as heads if these shapes do not fit, which is refused
/// later.
std::size_t key_heads_of(const ArrayFile& file, const ModelLayer& layer, std::size_t heads) {
    const LayerNames& names = *layer.names;
    const StoredArray* const joined = file.find(layer.full(names.query.weight));
    const StoredArray* const out = file.find(layer.full_out(names.out.weight));
    if (names.packing == Packing::separate || joined == nullptr || out == nullptr || heads == 0 ||
        joined->shape.size() != 2 || out->shape.size() != 2)
        return heads;
    const std::size_t outputs = joined->shape[layer.in_out ? 1 : 0],
                      all_heads = out->shape[layer.in_out ? 0 : 1], d = all_heads / heads;
    if (d == 0 || all_heads % heads != 0 || outputs <= all_heads) return heads;
    const std::size_t kv_heads = (outputs - all_heads) / (2 * d);
    const bool fits =
        kv_heads > 0 && outputs == all_heads + 2 * kv_heads * d && heads % kv_heads == 0;
    return fits ? kv_heads : heads;
}

class LayerReader {
public:
    LayerReader(const ArrayFile& file, const ModelLayer& layer, std::size_t heads)
        : file_(file), layer_(layer), names_(*layer.names), heads_(heads),
          kv_heads_(key_heads_of(file, layer, heads)) {}

    template <class T>
    LayerWeights<T> read() const {
        LayerWeights<T> weights{read_part<T>(Part::query), read_part<T>(Part::key),
                                read_part<T>(Part::value), std::nullopt};
        if (file_.find(layer_.full_out(names_.out.weight)) != nullptr)
            weights.out =
                read_projection<T>(names_.out, Packing::separate, Part::query, false, true);
        if (weights.out) check_joined(weights);
        return weights;
    }

private:
    [[noreturn]] static void refuse_shape(const StoredArray& array, const std::string& expected) {
        throw Error(ErrorKind::input, array.place(),
                    "shape " + shape_text(array.shape) + "; expected " + expected);
    }

    /// The output projection takes the concatenated heads. The number of heads per key head follows
    /// from the widths of queries and keys, for any number of heads.
    template <class T>
    void check_joined(const LayerWeights<T>& w) const {
        const std::size_t query = w.query.d_out(), key = w.key.d_out(), value = w.value.d_out();
        const bool is_wrapper = w.value.groups() > 1;
        if (!is_wrapper && value * query % key != 0) return;  // refused with the number of heads
        const std::size_t joined = is_wrapper ? w.value.groups() * value : value * query / key;
        if (w.out->d_in() != joined)
            refuse_shape(*file_.find(layer_.full_out(names_.out.weight)),
                         std::to_string(joined) + (w.out->in_out ? " rows" : " columns") +
                             " as the joined heads have");
    }

    template <class T>
    Projection<T> read_part(Part part) const {
        const bool is_packed = names_.packing != Packing::separate;
        const ProjectionNames& names = is_packed || part == Part::query ? names_.query
                                       : part == Part::key              ? names_.key
                                                                        : names_.value;
        return read_projection<T>(names, names_.packing, part, names_.joins_bias);
    }

    /// The outputs of a weight are its rows, or its columns if it is stored as (d_in, d_out).
    template <class T>
    Projection<T> read_projection(const ProjectionNames& names, Packing packing, Part part,
                                  bool joins_bias, bool is_out = false) const {
        const std::size_t groups = is_out ? 1 : layer_.groups();
        const auto find = [&](std::string_view name, std::size_t group) {
            return file_.find(is_out ? layer_.full_out(name) : layer_.full(name, group));
        };
        Projection<T> p;
        p.in_out = layer_.in_out;
        for (std::size_t group = 0; group < groups; ++group) {
            const StoredArray& weight = *find(names.weight, group);
            // attn's layout of independent heads: (heads, rows, columns).
            if (weight.shape.size() == 3 && names.stacks) return read_stacked<T>(weight, names);
            if (weight.shape.size() != 2) refuse_shape(weight, "a matrix");
            const std::size_t rows = weight.shape[0], columns = weight.shape[1];
            const std::size_t all = p.in_out ? columns : rows;
            check_parts(weight, packing, all);
            const std::vector<OutputRange> ranges = split_of(packing, part, all, heads_, kv_heads_);
            const std::size_t outputs = ranges.size() * ranges.front().count;
            const std::size_t inputs = p.in_out ? rows : columns;
            const std::array<std::size_t, 3> shape{groups, p.in_out ? inputs : outputs,
                                                   p.in_out ? outputs : inputs};
            if (group == 0) p.weight = Tensor3<T>::from_shape(shape);
            if (p.weight.shape() != shape) refuse_shape(weight, "the shape of head 0's");
            T* to = p.weight.data() + group * outputs * inputs;
            for (const OutputRange& range : ranges)
                p.in_out ? read_columns(weight, range, outputs, to) : read_rows(weight, range, to);
            check_finite(weight, to, outputs * inputs);
            if (const StoredArray* bias = find(names.bias, group))
                read_bias(*bias, joins_bias ? Packing::joined : packing, part, group,
                          joins_bias ? 3 * outputs : all, p);
        }
        if (p.bias.size() == 0) p.bias = Tensor2<T>::from_shape({0, p.d_out()});
        return p;
    }

    void check_parts(const StoredArray& weight, Packing packing, std::size_t all) const {
        if (weight.elements() == 0) refuse_shape(weight, "at least one element");
        if (weight.type == ElementType::boolean) refuse_shape(weight, "another dtype than BOOL");
        const std::size_t pieces = pieces_of(packing, heads_, kv_heads_);
        if (all % pieces != 0)
            refuse_shape(weight,
                         "a multiple of " + std::to_string(pieces) +
                             (packing == Packing::joined ? " outputs: queries, keys and values"
                                                         : " outputs: three for each head"));
    }

    template <class T>
    static void read_rows(const StoredArray& weight, const OutputRange& range, T* to) {
        const std::size_t columns = weight.shape[1];
        read_in_order<T>(weight, range.from * columns, range.count * columns,
                         [&](std::size_t before, std::span<const T> piece) {
                             std::copy(piece.begin(), piece.end(),
                                       to + range.to * columns + before);
                         });
    }

    template <class T>
    static void read_columns(const StoredArray& weight, const OutputRange& range,
                             std::size_t outputs, T* to) {
        const std::size_t columns = weight.shape[1];
        read_in_order<T>(
            weight, 0, weight.elements(), [&](std::size_t before, std::span<const T> piece) {
                for (std::size_t at = before, end = before + piece.size(); at < end;) {
                    const std::size_t row = at / columns, column = at % columns;
                    const std::size_t stop = std::min(end, (row + 1) * columns);
                    const std::size_t first = std::max(column, range.from);
                    const std::size_t last =
                        std::min(column + (stop - at), range.from + range.count);
                    if (first < last)
                        std::copy_n(piece.begin() +
                                        static_cast<std::ptrdiff_t>(at - before + first - column),
                                    last - first,
                                    to + row * outputs + range.to + (first - range.from));
                    at = stop;
                }
            });
    }

    /// Row-major elements. Fortran order is rare in model files and is transposed in memory.
    template <class T>
    static void read_in_order(const StoredArray& array, std::size_t first, std::size_t count,
                              FunctionRef<void(std::size_t, std::span<const T>)> take) {
        if (!array.fortran_order || array.shape.size() < 2)
            return read_elements<T>(array, first, count, take);
        ArrayRules rules;
        rules.dtype = Dtype::float64;
        rules.nonfinite = true;
        const Array<T> all = read_array<T>(array, rules);
        take(0, std::span<const T>(all.data() + first, count));
    }

    template <class T>
    static void check_finite(const StoredArray& array, const T* values, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i)
            if (!std::isfinite(values[i]))
                throw Error(
                    ErrorKind::input, array.place(),
                    "holds a NaN, an infinity or a number beyond the dtype's range; expected "
                    "finite numbers");
    }

    template <class T>
    void read_bias(const StoredArray& bias, Packing packing, Part part, std::size_t group,
                   std::size_t all, Projection<T>& p) const {
        if (bias.shape != std::vector<std::size_t>{all})
            refuse_shape(bias, "(" + std::to_string(all) + ") as the weight's outputs");
        const std::size_t outputs = p.d_out();
        if (p.bias.size() == 0) {  // heads before this one may have none
            p.bias = Tensor2<T>::from_shape({p.groups(), outputs});
            p.bias.fill(T{0});
        }
        T* to = p.bias.data() + group * outputs;
        for (const OutputRange& range : split_of(packing, part, all, heads_, kv_heads_))
            read_elements<T>(bias, range.from, range.count,
                             [&](std::size_t before, std::span<const T> piece) {
                                 std::copy(piece.begin(), piece.end(), to + range.to + before);
                             });
        check_finite(bias, to, outputs);
    }

    /// attn's own arrays of the wrapper style: weights (heads, rows, columns), biases (heads,
    /// d_out).
    template <class T>
    Projection<T> read_stacked(const StoredArray& weight, const ProjectionNames& names) const {
        ArrayRules rules;
        rules.dtype = dtype_of<T>;
        rules.lowest_rank = rules.highest_rank = 3;
        Projection<T> p;
        p.in_out = layer_.in_out;
        p.weight = Tensor3<T>(read_array<T>(weight, rules));
        const std::size_t outputs = p.d_out();
        p.bias = Tensor2<T>::from_shape({0, outputs});
        if (const StoredArray* bias = file_.find(layer_.full(names.bias))) {
            rules.lowest_rank = rules.highest_rank = 2;
            const Array<T> read = read_array<T>(*bias, rules);
            if (bias->shape != std::vector<std::size_t>{p.weight.shape(0), outputs})
                refuse_shape(*bias, shape_text({p.weight.shape(0), outputs}));
            p.bias = Tensor2<T>(read);
        }
        return p;
    }

    const ArrayFile& file_;
    const ModelLayer& layer_;
    const LayerNames& names_;
    std::size_t heads_, kv_heads_;
};

}  // namespace

template <class T>
LayerWeights<T> read_layer_weights(const ArrayFile& file, const ModelLayer& layer,
                                   std::size_t heads) {
    check_causal_masks(file, layer);
    double numbers = 0;
    for (const auto& [name, shape] : weight_shapes(file, layer))
        numbers += static_cast<double>(file.find(name)->elements());
    require_memory(sizeof(T) * numbers, file.name, "reading the weights of this layer");
    return LayerReader(file, layer, heads).read<T>();
}

LayerWidths layer_widths(const ArrayFile& file, const ModelLayer& layer) {
    const LayerNames& names = *layer.names;
    const bool is_packed = names.packing != Packing::separate;
    const std::size_t outputs = layer.in_out ? 1 : 0, inputs = 1 - outputs;
    const auto size = [&](std::string_view name, std::size_t axis) {
        const StoredArray* found = file.find(layer.full(name));
        return found != nullptr && found->shape.size() == 2 ? found->shape[axis] : 0;
    };
    std::size_t queries = size(names.query.weight, outputs);
    if (is_packed)  // the output projection takes as many columns
        queries = std::max(queries / 3, size(names.out.weight, inputs));
    return {size(names.query.weight, inputs),
            size(is_packed ? names.query.weight : names.key.weight, inputs), queries};
}

std::vector<std::pair<std::string, std::vector<std::size_t>>> weight_shapes(
    const ArrayFile& file, const ModelLayer& layer) {
    std::vector<std::pair<std::string, std::vector<std::size_t>>> shapes;
    const LayerNames& names = *layer.names;
    std::unordered_set<std::string> added;
    const auto add = [&](const std::string& full) {
        const StoredArray* array = file.find(full);
        if (array != nullptr && added.insert(full).second) shapes.emplace_back(full, array->shape);
    };
    for (std::size_t head = 0; head < layer.groups(); ++head)
        for (const ProjectionNames& part : {names.query, names.key, names.value})
            for (std::string_view name : {part.weight, part.bias})
                if (!name.empty()) add(layer.full(name, head));
    for (std::string_view name : {names.out.weight, names.out.bias}) add(layer.full_out(name));
    if (has_more_keys(file, layer))
        for (std::string_view name : {names.more_key, names.more_value}) add(layer.full(name));
    const HeadNormNames norms = head_norm_names(file, layer);
    for (const std::string& norm : {norms.query, norms.key})
        for (const char* part : {".weight", ".gamma", ".scale"})
            if (!norm.empty()) add(norm + part);
    return shapes;
}

template LayerWeights<float> read_layer_weights(const ArrayFile&, const ModelLayer&, std::size_t);
template LayerWeights<double> read_layer_weights(const ArrayFile&, const ModelLayer&, std::size_t);

}  // namespace attn::io
