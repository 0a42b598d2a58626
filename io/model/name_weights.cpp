#include "io/model/find_layer.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/model/attention_part.hpp"
#include "io/text/text.hpp"

namespace attn::io {
namespace {

template <class T>
class LayerNamer {
public:
    LayerNamer(const LayerWeights<T>& weights, const LayerName& name, std::size_t heads)
        : weights_(weights), heads_(heads), setting_(name.setting) {
        layer_.family = &name.family;
        layer_.number = name.number;
        for (const LayerNames& names : name.family.layers)
            if (names.is_wrapper == (weights_.query.groups() > 1) &&
                (layer_.names == nullptr || fit(names) > fit(*layer_.names)))
                layer_.names = &names;
        if (layer_.names == nullptr)
            fail("has no independent heads",
                 [](const LayerNames& names) { return names.is_wrapper; });
        layer_.prefix = name.family.published;
        layer_.in_out = layer_.names->in_out;
    }

    std::vector<NamedArray> names() {
        const LayerNames& names = *layer_.names;
        if (names.needs_out && !weights_.out)
            fail("always has an output projection",
                 [](const LayerNames& other) { return !other.needs_out; });
        for (std::size_t group = 0; group < weights_.query.groups(); ++group) {
            if (names.joined == JoinedHeads::separate) {
                add(names.query, {&weights_.query}, group, !names.joins_bias);
                add(names.key, {&weights_.key}, group, !names.joins_bias);
                add(names.value, {&weights_.value}, group, !names.joins_bias);
                if (!names.joins_bias) continue;
                check_widths(!weights_.query.has_bias() || has_one_output_width());
                add_bias(names.query.bias, all(), group);
            } else {
                check_widths(has_one_width());
                add(names.query, all(), group, true);
            }
        }
        if (weights_.out) add(names.out, {&*weights_.out}, {}, true);
        return std::move(named_);
    }

private:
    using Parts = std::vector<const Projection<T>*>;

    Parts all() const { return {&weights_.query, &weights_.key, &weights_.value}; }

    /// The error of the family, and the families with a form for which `is_right` is true.
    [[noreturn]] void fail(const std::string& message,
                           bool (*is_right)(const LayerNames& names)) const {
        std::vector<std::string_view> right;
        for (const Family& family : all_families())
            if (!family.of_class && std::ranges::any_of(family.layers, is_right))
                right.push_back(family.name);
        throw SettingError(ErrorKind::usage, std::string(setting_), layer_.family->name, " ",
                           message, "; expected ", listed(right));
    }

    /// Of the family's forms, selects those that can hold the parameters' widths, and then the one
    /// with their layout.
    int fit(const LayerNames& names) const {
        const bool holds_widths = names.joined == JoinedHeads::separate || has_one_width();
        return (holds_widths ? 2 : 0) + (names.in_out == weights_.query.in_out ? 1 : 0);
    }

    bool has_one_output_width() const {
        return weights_.key.d_out() == weights_.query.d_out() &&
               weights_.value.d_out() == weights_.query.d_out();
    }

    bool has_one_width() const {
        return has_one_output_width() && weights_.key.d_in() == weights_.query.d_in();
    }

    void check_widths(bool are_right) const {
        if (are_right) return;
        fail("joins queries, keys and values of one width", [](const LayerNames& names) {
            return names.joined == JoinedHeads::separate && !names.joins_bias;
        });
    }

    /// Without a group it is the output projection's.
    void keep(std::string_view name, std::optional<std::size_t> group, Array<T> values) {
        named_.push_back(
            {group ? layer_.full(name, *group) : layer_.full_out(name), std::move(values), {}});
    }

    /// Calls `put` with each part, its outputs and their indices in the tensor of all parts.
    template <class Put>
    void for_each_output(const Parts& parts, Put put) const {
        JoinedHeads joined = layer_.names->joined;
        if (parts.size() == 1)
            joined = JoinedHeads::separate;
        else if (joined == JoinedHeads::separate)
            joined = JoinedHeads::parts;
        const std::size_t all = parts.size() * parts[0]->d_out();
        for (std::size_t i = 0; i < parts.size(); ++i)
            for (const OutputRange& range : split_of(joined, all_parts[i], all, heads_, heads_))
                for (std::size_t o = 0; o < range.count; ++o)
                    put(*parts[i], range.to + o, range.from + o);
    }

    /// The tensor of one projection, or of three in one.
    void add(const ProjectionNames& names, const Parts& parts, std::optional<std::size_t> group,
             bool with_bias) {
        const bool in_out = layer_.in_out;
        const std::size_t columns = parts[0]->d_in(), outputs = parts.size() * parts[0]->d_out();
        Array<T> weight = Array<T>::from_shape(in_out ? std::vector<std::size_t>{columns, outputs}
                                                      : std::vector<std::size_t>{outputs, columns});
        for_each_output(parts, [&](const Projection<T>& p, std::size_t from, std::size_t to) {
            for (std::size_t i = 0; i < columns; ++i)
                weight.data()[in_out ? i * outputs + to : to * columns + i] =
                    p.in_out ? p.weight(group.value_or(0), i, from)
                             : p.weight(group.value_or(0), from, i);
        });
        keep(names.weight, group, std::move(weight));
        if (with_bias) add_bias(names.bias, parts, group);
    }

    void add_bias(std::string_view name, const Parts& parts, std::optional<std::size_t> group) {
        if (!parts[0]->has_bias()) return;
        Array<T> bias = Array<T>::from_shape({parts.size() * parts[0]->d_out()});
        for_each_output(parts, [&](const Projection<T>& p, std::size_t from, std::size_t to) {
            bias.data()[to] = p.bias(group.value_or(0), from);
        });
        keep(name, group, std::move(bias));
    }

    const LayerWeights<T>& weights_;
    std::size_t heads_;
    std::string_view setting_;
    ModelLayer layer_;
    std::vector<NamedArray> named_;
};

}  // namespace

template <class T>
std::vector<NamedArray> name_layer_weights(const LayerWeights<T>& weights, const LayerName& name,
                                           std::size_t heads) {
    return LayerNamer<T>(weights, name, heads).names();
}

template std::vector<NamedArray> name_layer_weights(const LayerWeights<float>&, const LayerName&,
                                                    std::size_t);
template std::vector<NamedArray> name_layer_weights(const LayerWeights<double>&, const LayerName&,
                                                    std::size_t);

}  // namespace attn::io
