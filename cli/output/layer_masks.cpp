#include "cli/output/pictures.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "io/read/layer_arrays.hpp"
#include "io/write/row_text.hpp"

namespace attn::cli {
namespace {

const LayerMask* mask_of(const std::vector<LayerMask>& attentions, std::string_view part,
                         std::size_t layer) {
    const auto found = std::find_if(attentions.begin(), attentions.end(), [&](const LayerMask& a) {
        return a.part == part && a.layer == layer;
    });
    return found == attentions.end() ? nullptr : &*found;
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
        std::for_each(layers.begin(), layers.end(), add);
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
            const std::size_t place = std::min(entry / batch, entries.masks.size() - 1);
            const LayerMask* const of = entries.masks[place];
            if (of == nullptr) return false;
            return io::in_heads(head, of->heads, [&](std::size_t h) {
                const std::size_t own = h < chosen.size() ? chosen[h] : h;
                return !of->mask->allows(entry % batch, own, query,
                                         entries.first_keys[place] + key);
            });
        };
    };
}

}  // namespace attn::cli
