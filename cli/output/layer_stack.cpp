#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "cli/output/pictures.hpp"
#include "core/base/memory.hpp"
#include "core/base/tensor.hpp"
#include "io/write/row_text.hpp"

namespace attn::cli {

namespace {

std::string base_name(const NamedArray& array) {
    const auto parts = io::split_layer_name(array.name);
    return parts && parts->layer == array.layer ? parts->array : array.name;
}

/// The arrays of one name, without absent ones.
using Members = std::vector<const NamedArray*>;

std::vector<std::size_t> common_shape(const Members& members) {
    std::vector<std::size_t> shape = io::shape_of(*members.front());
    for (const NamedArray* member : members) {
        const std::vector<std::size_t> own = io::shape_of(*member);
        for (std::size_t axis = 0; axis < shape.size(); ++axis)
            shape[axis] = std::max(shape[axis], own[axis]);
    }
    return shape;
}

/// Copies an array into the corner of a larger one of the same rank.
template <class T>
void put(const AnyArray& from, const std::vector<std::size_t>& shape, T* to) {
    std::visit(
        [&](const auto& values) {
            const std::vector<std::size_t> own(values.shape().begin(), values.shape().end());
            const std::size_t width = own.back();
            for (std::size_t row = 0; row * width < values.size(); ++row) {
                std::size_t at = 0, rest = row, stride = shape.back();
                for (std::size_t axis = own.size() - 1; axis-- > 0; stride *= shape[axis]) {
                    at += rest % own[axis] * stride;
                    rest /= own[axis];
                }
                std::transform(values.data() + row * width, values.data() + (row + 1) * width,
                               to + at, [](auto x) { return static_cast<T>(x); });
            }
        },
        from);
}

std::string label_of(std::size_t layer, const NamedArray* member, bool is_output,
                     bool differs_in_heads) {
    if (is_output) return "output";
    std::string label = "layer " + std::to_string(layer);
    if (member == nullptr) return label + " (none)";
    const std::size_t heads = io::length_of_axis(*member, "heads");
    if (!differs_in_heads || heads == 0) return label;
    return label + " (" + std::to_string(heads) + (heads == 1 ? " head)" : " heads)");
}

class Stacker {
public:
    Stacker(io::Report& report, const std::vector<std::size_t>& layers)
        : report_(report), layers_(layers) {
        for (const NamedArray& array : report.arrays)
            if (array.layer && !array.is_absent) {
                std::size_t& deepest = deepest_of(base_name(array));
                if (std::ranges::binary_search(layers, *array.layer))
                    deepest = std::max(deepest, *array.layer);
            }
    }

    void run() {
        std::vector<NamedArray> stacked;
        std::set<std::string> done;
        for (NamedArray& array : report_.arrays) {
            if (!array.layer) {
                stacked.push_back(std::move(array));
                continue;
            }
            const std::string name = base_name(array);
            if (done.insert(name).second) add(name, stacked);
        }
        report_.arrays = std::move(stacked);
    }

private:
    std::size_t& deepest_of(const std::string& name) {
        const std::string_view own = io::without_stack(name);
        return deepest_[name.substr(0, name.size() - own.size())];
    }

    /// The layers of one name, and the number after the last for the output of its last layer.
    std::vector<std::size_t> numbers_of(const std::string& name, const Members& members) {
        std::set<std::size_t> numbers;
        const bool has_stack = io::without_stack(name).size() != name.size();
        for (const std::size_t layer : layers_)
            if (!has_stack || layer <= deepest_of(name)) numbers.insert(layer);
        for (const NamedArray* member : members) numbers.insert(*member->layer);
        return {numbers.begin(), numbers.end()};
    }

    void add(const std::string& name, std::vector<NamedArray>& stacked) {
        Members members;
        for (const NamedArray& array : report_.arrays) {
            if (!array.layer || array.is_absent || base_name(array) != name) continue;
            if (members.empty() || array.axes.size() == members.front()->axes.size()) {
                members.push_back(&array);
                continue;
            }
            stacked.push_back(array);  // those of another rank stay alone
            stacked.back().name = io::layer_name(name, *array.layer);
        }
        if (members.empty() || members.front()->axes.empty()) return;
        const bool is_float = std::ranges::all_of(members, [](const auto* member) {
            return std::holds_alternative<Array<float>>(member->values);
        });
        NamedArray all = is_float ? joined<float>(name, members) : joined<double>(name, members);
        stacked.push_back(std::move(all));
    }

    template <class T>
    NamedArray joined(const std::string& name, const Members& members) {
        const std::vector<std::size_t> numbers = numbers_of(name, members);
        const std::vector<std::size_t> shape = common_shape(members);
        std::size_t size = 1;
        double bytes = sizeof(T) * static_cast<double>(numbers.size());
        for (const std::size_t length : shape) {
            size *= length;
            bytes *= static_cast<double>(length);
        }
        require_memory(bytes, name, "the array of " + std::to_string(numbers.size()) + " layers");
        std::vector<std::size_t> all_shape = shape;
        all_shape.insert(all_shape.begin(), numbers.size());
        Array<T> values = Array<T>::from_shape(all_shape);
        std::fill(values.begin(), values.end(), std::numeric_limits<T>::quiet_NaN());
        std::vector<std::string> labels;
        const bool differ = std::ranges::any_of(members, [&](const auto* member) {
            return io::length_of_axis(*member, "heads") !=
                   io::length_of_axis(*members.front(), "heads");
        });
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            const auto found = std::ranges::find_if(
                members, [&](const auto* m) { return m->layer == numbers[i]; });
            const NamedArray* member = found == members.end() ? nullptr : *found;
            if (member != nullptr) put(member->values, shape, values.data() + i * size);
            const bool is_output = !std::ranges::binary_search(layers_, numbers[i]);
            labels.push_back(label_of(numbers[i], member, is_output, differ));
        }
        NamedArray all{name, std::move(values), members.front()->axes};
        all.axes.insert(all.axes.begin(), "layer");
        all.layer_labels = std::move(labels);
        return all;
    }

    io::Report& report_;
    const std::vector<std::size_t>& layers_;
    std::map<std::string, std::size_t> deepest_;  // by the name of the stack
};

}  // namespace

void stack_layers(io::Report& report, const std::vector<std::size_t>& layers) {
    Stacker(report, layers).run();
}

namespace {

const LayerMask* mask_of(const std::vector<LayerMask>& attentions, std::string_view part,
                         std::size_t layer) {
    for (const LayerMask& mask : attentions)
        if (mask.part == part && mask.layer == layer) return &mask;
    return nullptr;
}

/// The masks of an array's entries, null where nothing is masked, and its first key in theirs.
struct EntryMasks {
    std::vector<const LayerMask*> masks;
    std::vector<std::size_t> first_keys;
};

EntryMasks masks_of(const NamedArray& array, const std::vector<LayerMask>& attentions,
                    const std::vector<std::size_t>& layers) {
    const std::string_view name = array.name;
    const std::string_view part = name.substr(0, name.size() - io::without_stack(name).size());
    const std::size_t keys = io::shape_of(array).back();
    const bool is_stacked = !array.axes.empty() && array.axes.front() == "layer";
    EntryMasks entries;
    const auto add = [&](std::size_t layer) {
        const LayerMask* mask = mask_of(attentions, part, layer);
        std::size_t first = 0;
        // Some decoders attend to the encoder's tokens and then to their own in one softmax, whose
        // weights are two arrays.
        if (mask == nullptr && part == "cross_")
            mask = mask_of(attentions, "decoder_", layer);
        else if (mask != nullptr && keys < mask->kv_len)
            first = mask->kv_len - keys;
        entries.masks.push_back(mask);
        entries.first_keys.push_back(first);
    };
    if (array.layer)
        add(*array.layer);
    else if (is_stacked || layers.size() == 1)
        std::ranges::for_each(layers, add);
    return entries;
}

}  // namespace

io::MaskedOf masked_in_layers(std::vector<LayerMask> attentions, std::vector<std::size_t> layers,
                              std::vector<std::size_t> chosen) {
    const auto held = std::make_shared<const std::vector<LayerMask>>(std::move(attentions));
    const std::size_t batch = held->empty() ? 1 : held->front().batch;
    return [held, batch, layers = std::move(layers),
            chosen = std::move(chosen)](const NamedArray& array) -> io::IsMasked {
        return [held, batch, chosen, entries = masks_of(array, *held, layers)](
                   std::size_t entry, std::size_t head, std::size_t query, std::size_t key) {
            if (entries.masks.empty()) return false;
            const std::size_t index = std::min(entry / batch, entries.masks.size() - 1);
            const LayerMask* const of = entries.masks[index];
            if (of == nullptr) return false;
            return io::in_heads(head, of->heads, [&](std::size_t h) {
                const std::size_t own = h < chosen.size() ? chosen[h] : h;
                return !of->mask->allows(entry % batch, own, query,
                                         entries.first_keys[index] + key);
            });
        };
    };
}

}  // namespace attn::cli
