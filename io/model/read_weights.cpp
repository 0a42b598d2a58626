// A layer's parameters from a file of a model and back; see read_weights.hpp.
#include "io/model/read_weights.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.hpp"
#include "io/file/source.hpp"

namespace attn::io {
namespace {

/// `count` outputs from `from` on in the stored tensor become outputs from `to` on.
struct Run {
    std::size_t from, count, to;
};

/// Which outputs of a tensor are queries (part 0), keys (1) or values (2). Total outputs `all`.
std::vector<Run> runs_of(Packing packing, std::size_t part, std::size_t all, std::size_t heads) {
    if (packing == Packing::separate) return {{0, all, 0}};
    if (packing == Packing::joined) return {{part * (all / 3), all / 3, 0}};
    std::vector<Run> runs;
    const std::size_t width = all / 3 / heads;
    for (std::size_t head = 0; head < heads; ++head)
        runs.push_back({(3 * head + part) * width, width, head * width});
    return runs;
}

class LayerReader {
public:
    LayerReader(const ArrayFile& file, const ModelLayer& layer, std::size_t heads)
        : file_(file), layer_(layer), rule_(*layer.rule), heads_(heads) {}

    template <class T>
    LayerWeights<T> read() const {
        LayerWeights<T> weights{read_part<T>(0), read_part<T>(1), read_part<T>(2), std::nullopt};
        if (file_.find(layer_.full_out(rule_.out.weight)) != nullptr)
            weights.out = read_projection<T>(rule_.out, Packing::separate, 0, false, true);
        return weights;
    }

private:
    [[noreturn]] static void fail(const StoredArray& array, const std::string& expected) {
        throw Error(ErrorKind::input, array.place(),
                    "shape " + shape_text(array.shape) + "; expected " + expected);
    }

    template <class T>
    Projection<T> read_part(std::size_t part) const {
        const bool separate = rule_.packing == Packing::separate;
        const ProjectionNames& names = !separate || part == 0 ? rule_.query
                                       : part == 1            ? rule_.key
                                                              : rule_.value;
        return read_projection<T>(names, rule_.packing, part, rule_.joins_bias);
    }

    /// The outputs of a weight are its rows, or its columns where it is stored (d_in, d_out).
    template <class T>
    Projection<T> read_projection(const ProjectionNames& names, Packing packing, std::size_t part,
                                  bool joins_bias, bool is_out = false) const {
        const std::size_t groups = is_out ? 1 : std::max<std::size_t>(layer_.heads, 1);
        const auto find = [&](std::string_view name, std::size_t group) {
            return file_.find(is_out ? layer_.full_out(name) : layer_.full(name, group));
        };
        Projection<T> p;
        p.in_out = layer_.in_out;
        for (std::size_t group = 0; group < groups; ++group) {
            const StoredArray& weight = *find(names.weight, group);
            // As attn writes those of independent heads: (heads, rows, columns).
            if (weight.shape.size() == 3 && names.weight.starts_with("W_"))
                return read_stacked<T>(weight, names);
            if (weight.shape.size() != 2) fail(weight, "a matrix");
            const std::size_t rows = weight.shape[0], columns = weight.shape[1];
            const std::size_t all = p.in_out ? columns : rows;
            check_parts(weight, packing, all);
            const std::vector<Run> runs = runs_of(packing, part, all, heads_);
            const std::size_t outputs = runs.size() * runs.front().count;
            const std::size_t inputs = p.in_out ? rows : columns;
            const std::array<std::size_t, 3> shape{groups, p.in_out ? inputs : outputs,
                                                   p.in_out ? outputs : inputs};
            if (group == 0) p.weight = Tensor3<T>::from_shape(shape);
            if (p.weight.shape() != shape) fail(weight, "the shape of head 0's");
            T* to = p.weight.data() + group * outputs * inputs;
            for (const Run& run : runs)
                p.in_out ? read_columns(weight, run, outputs, to) : read_rows(weight, run, to);
            check_finite(weight, to, outputs * inputs);
            if (const StoredArray* bias = find(names.bias, group))
                read_bias(*bias, joins_bias ? Packing::joined : packing, part, group, outputs, p);
        }
        if (p.bias.size() == 0) p.bias = Tensor2<T>::from_shape({0, p.d_out()});
        return p;
    }

    void check_parts(const StoredArray& weight, Packing packing, std::size_t all) const {
        if (weight.elements() == 0) fail(weight, "at least one element");
        if (weight.type == ElementType::boolean) fail(weight, "another dtype than BOOL");
        if (packing == Packing::separate) return;
        const std::size_t parts = packing == Packing::joined ? 3 : 3 * heads_;
        if (all % parts != 0)
            fail(weight, "a multiple of " + std::to_string(parts) +
                             (packing == Packing::joined ? " outputs: queries, keys and values"
                                                         : " outputs: three for each head"));
    }

    template <class T>
    static void read_rows(const StoredArray& weight, const Run& run, T* to) {
        const std::size_t columns = weight.shape[1];
        read_in_order<T>(weight, run.from * columns, run.count * columns,
                         [&](std::size_t before, std::span<const T> piece) {
                             std::copy(piece.begin(), piece.end(), to + run.to * columns + before);
                         });
    }

    template <class T>
    static void read_columns(const StoredArray& weight, const Run& run, std::size_t outputs,
                             T* to) {
        const std::size_t columns = weight.shape[1];
        read_in_order<T>(
            weight, 0, weight.elements(), [&](std::size_t before, std::span<const T> piece) {
                for (std::size_t at = before, end = before + piece.size(); at < end;) {
                    const std::size_t row = at / columns, column = at % columns;
                    const std::size_t stop = std::min(end, (row + 1) * columns);
                    const std::size_t first = std::max(column, run.from);
                    const std::size_t last = std::min(column + (stop - at), run.from + run.count);
                    if (first < last)
                        std::copy_n(piece.begin() +
                                        static_cast<std::ptrdiff_t>(at - before + first - column),
                                    last - first, to + row * outputs + run.to + (first - run.from));
                    at = stop;
                }
            });
    }

    /// Row-major elements. Fortran order is rare in files of models and is turned round in memory.
    template <class T>
    static void read_in_order(const StoredArray& array, std::size_t first, std::size_t count,
                              const std::function<void(std::size_t, std::span<const T>)>& take) {
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
    void read_bias(const StoredArray& bias, Packing packing, std::size_t part, std::size_t group,
                   std::size_t outputs, Projection<T>& p) const {
        const std::size_t all = bias.shape.size() == 1 ? bias.shape[0] : 0;
        const std::size_t wanted = packing == Packing::separate ? outputs : 3 * outputs;
        if (all != wanted) fail(bias, "(" + std::to_string(wanted) + ") as the weight's outputs");
        if (p.bias.size() == 0) {  // heads before this one may have none
            p.bias = Tensor2<T>::from_shape({p.groups(), outputs});
            p.bias.fill(T{0});
        }
        T* to = p.bias.data() + group * outputs;
        for (const Run& run : runs_of(packing, part, all, heads_))
            read_elements<T>(bias, run.from, run.count,
                             [&](std::size_t before, std::span<const T> piece) {
                                 std::copy(piece.begin(), piece.end(), to + run.to + before);
                             });
        check_finite(bias, to, outputs);
    }

    /// attn's own arrays of the wrapper style: weights (heads, rows, columns), biases (heads,
    /// d_out).
    template <class T>
    Projection<T> read_stacked(const StoredArray& weight, const ProjectionNames& names) const {
        ArrayRules rules;
        rules.dtype = std::is_same_v<T, float> ? Dtype::float32 : Dtype::float64;
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
                fail(*bias, shape_text({p.weight.shape(0), outputs}));
            p.bias = Tensor2<T>(read);
        }
        return p;
    }

    const ArrayFile& file_;
    const ModelLayer& layer_;
    const FamilyRule& rule_;
    std::size_t heads_;
};

template <class T>
class LayerNamer {
public:
    LayerNamer(const LayerWeights<T>& weights, Family family, std::size_t number, std::size_t heads)
        : weights_(weights), heads_(heads), family_(family) {
        layer_.number = number;
        for (const FamilyRule& rule : family_rules())
            if (rule.family == family && fits(rule)) layer_.rule = &rule;
        if (layer_.rule == nullptr) fail("has no independent heads; expected notebook");
        layer_.prefix = layer_.rule->published;
        layer_.in_out = layer_.rule->in_out;
    }

    std::vector<NamedArray> names() {
        const FamilyRule& rule = *layer_.rule;
        if (rule.needs_out && !weights_.out)
            fail("always has an output projection; expected notebook");
        for (std::size_t group = 0; group < weights_.query.groups(); ++group) {
            if (rule.packing == Packing::separate) {
                add(rule.query, {&weights_.query}, group, !rule.joins_bias);
                add(rule.key, {&weights_.key}, group, !rule.joins_bias);
                add(rule.value, {&weights_.value}, group, !rule.joins_bias);
                if (rule.joins_bias) add_bias(rule.query.bias, all(), group);
            } else {
                check_equal_widths();
                add(rule.query, all(), group, true);
            }
        }
        if (weights_.out) add(rule.out, {&*weights_.out}, {}, true);
        return std::move(named_);
    }

private:
    using Parts = std::vector<const Projection<T>*>;

    Parts all() const { return {&weights_.query, &weights_.key, &weights_.value}; }

    [[noreturn]] void fail(const std::string& message) const {
        throw SettingError(ErrorKind::usage, "family",
                           std::string(name_of(family_names, family_)) + " " + message);
    }

    /// Of the forms of one family, the one that these parameters have by themselves.
    bool fits(const FamilyRule& rule) const {
        if (rule.is_wrapper != (weights_.query.groups() > 1)) return false;
        if (rule.family == Family::notebook) return rule.in_out == weights_.query.in_out;
        if (rule.family == Family::mha) return (rule.packing == Packing::joined) == has_one_width();
        return true;
    }

    bool has_one_width() const {
        return weights_.key.d_out() == weights_.query.d_out() &&
               weights_.value.d_out() == weights_.query.d_out() &&
               weights_.key.d_in() == weights_.query.d_in();
    }

    void check_equal_widths() const {
        if (!has_one_width())
            fail("joins queries, keys and values of one width; expected llama, bert or notebook");
    }

    /// Without a group it is the output projection's.
    void keep(std::string_view name, std::optional<std::size_t> group, Array<T> values) {
        named_.push_back(
            {group ? layer_.full(name, *group) : layer_.full_out(name), std::move(values), {}});
    }

    /// The tensor of one projection, or of three in one.
    void add(const ProjectionNames& names, const Parts& parts, std::optional<std::size_t> group,
             bool with_bias) {
        const bool in_out = layer_.in_out;
        const std::size_t width = parts[0]->d_out(), columns = parts[0]->d_in();
        const std::size_t all_outputs = parts.size() * width;
        Array<T> weight =
            Array<T>::from_shape(in_out ? std::vector<std::size_t>{columns, all_outputs}
                                        : std::vector<std::size_t>{all_outputs, columns});
        for (std::size_t part = 0; part < parts.size(); ++part)
            for (std::size_t o = 0; o < width; ++o)
                for (std::size_t i = 0; i < columns; ++i) {
                    const Projection<T>& p = *parts[part];
                    const std::size_t to = place(part, o, parts.size(), width);
                    weight.data()[in_out ? i * all_outputs + to : to * columns + i] =
                        p.in_out ? p.weight(group.value_or(0), i, o)
                                 : p.weight(group.value_or(0), o, i);
                }
        keep(names.weight, group, std::move(weight));
        if (with_bias) add_bias(names.bias, parts, group);
    }

    void add_bias(std::string_view name, const Parts& parts, std::optional<std::size_t> group) {
        if (!parts[0]->has_bias()) return;
        const std::size_t width = parts[0]->d_out();
        Array<T> bias = Array<T>::from_shape({parts.size() * width});
        for (std::size_t part = 0; part < parts.size(); ++part)
            for (std::size_t o = 0; o < width; ++o)
                bias.data()[place(part, o, parts.size(), width)] =
                    parts[part]->bias(group.value_or(0), o);
        keep(name, group, std::move(bias));
    }

    /// Where output `o` of a part stands in the tensor of all parts.
    std::size_t place(std::size_t part, std::size_t o, std::size_t parts, std::size_t width) const {
        if (parts == 1 || layer_.rule->packing != Packing::by_head) return part * width + o;
        const std::size_t of_head = width / heads_;
        return (3 * (o / of_head) + part) * of_head + o % of_head;
    }

    const LayerWeights<T>& weights_;
    std::size_t heads_;
    Family family_;
    ModelLayer layer_;
    std::vector<NamedArray> named_;
};

}  // namespace

template <class T>
LayerWeights<T> read_layer_weights(const ArrayFile& file, const ModelLayer& layer,
                                   std::size_t heads) {
    check_causal_masks(file, layer);
    return LayerReader(file, layer, heads).read<T>();
}

std::vector<std::pair<std::string, std::vector<std::size_t>>> weight_shapes(
    const ArrayFile& file, const ModelLayer& layer) {
    std::vector<std::pair<std::string, std::vector<std::size_t>>> shapes;
    const FamilyRule& rule = *layer.rule;
    const auto add = [&](const std::string& full) {
        const StoredArray* array = file.find(full);
        const bool is_new = std::none_of(shapes.begin(), shapes.end(),
                                         [&](const auto& s) { return s.first == full; });
        if (array != nullptr && is_new) shapes.emplace_back(full, array->shape);
    };
    for (std::size_t head = 0; head < std::max<std::size_t>(layer.heads, 1); ++head)
        for (const ProjectionNames& names : {rule.query, rule.key, rule.value})
            for (std::string_view name : {names.weight, names.bias})
                if (!name.empty()) add(layer.full(name, head));
    for (std::string_view name : {rule.out.weight, rule.out.bias}) add(layer.full_out(name));
    return shapes;
}

template <class T>
std::vector<NamedArray> name_layer_weights(const LayerWeights<T>& weights, Family family,
                                           std::size_t number, std::size_t heads) {
    return LayerNamer<T>(weights, family, number, heads).names();
}

template LayerWeights<float> read_layer_weights(const ArrayFile&, const ModelLayer&, std::size_t);
template LayerWeights<double> read_layer_weights(const ArrayFile&, const ModelLayer&, std::size_t);
template std::vector<NamedArray> name_layer_weights(const LayerWeights<float>&, Family, std::size_t,
                                                    std::size_t);
template std::vector<NamedArray> name_layer_weights(const LayerWeights<double>&, Family,
                                                    std::size_t, std::size_t);

}  // namespace attn::io
