#include <algorithm>

#include "core/model/cost.hpp"
#include "core/model/model.hpp"

namespace attn {
namespace {

bool has_layer(const std::vector<std::size_t>& layers, std::size_t layer) {
    return std::binary_search(layers.begin(), layers.end(), layer);
}

/// Layers up to `end` on tokens after size.past earlier ones. `request` is null while tokens are
/// generated: then nothing is recorded.
PartCost cost_of_layers(const ModelSpec& model, PartSize size, std::size_t first, std::size_t end,
                        const ModelRequest* request) {
    static const ArrayRequest nothing;
    const double e = size.element();
    PartCost cost;
    double states = times(size.tokens, size.width);
    if (model.keeps_embedding) cost.shared = states * e;
    const auto record_states = [&](std::size_t layer) {
        if (request == nullptr || !request->arrays.has("hidden_states") ||
            !(has_layer(request->layers, layer) ||
              (layer == model.layers && layer != 0 && has_layer(request->layers, layer - 1))))
            return;
        cost.numbers += states;
        cost.recorded += states * e;
    };
    for (std::size_t layer = first; layer < end; ++layer) {
        const TransformerBlock block = model.block(layer);
        const std::size_t streams = block.whole == nullptr ? 1 : block.whole->streams();
        states = times(size.tokens, size.width) * static_cast<double>(streams);
        record_states(layer);
        size.layer = layer;
        const bool is_recorded = request != nullptr && has_layer(request->layers, layer);
        size.wanted = is_recorded ? &request->arrays : &nothing;
        PartCost own = cost_of(block, size);
        own.bytes += states * e;
        add_step(cost, own);
        if (request != nullptr && request->take) cost.recorded -= own.recorded;
    }
    record_states(end);
    cost.bytes = std::max(cost.bytes, cost.recorded + 2 * states * e) + cost.cached;
    return cost;
}

/// The head on the last token, with the order of its logits.
PartCost cost_of_head(const ModelSpec& model, const PartSize& size) {
    const LinearMap head = model.head ? model.head() : LinearMap();
    PartCost cost = cost_of(head, 1, size);
    cost.bytes += static_cast<double>(head.d_out) * (size.element() + sizeof(std::size_t));
    cost.numbers = static_cast<double>(head.d_out);
    return cost;
}

std::size_t width_of(const ModelSpec& model, const ModelInput& input) {
    if (input.hidden_states) return input.hidden_states->shape(1);
    const EmbeddingSpec& spec = model.embedding;
    return spec.projection ? spec.projection.d_out : spec.ids->shape()[1];
}

}  // namespace

ModelCost measure_model(const ModelSpec& model, const ModelInput& input,
                        const ModelRequest& request, PartSize size) {
    const std::size_t prompt =
        input.hidden_states ? input.hidden_states->shape(0) : input.ids.size();
    size.width = width_of(model, input);
    const double e = size.element();
    const PartCost head = cost_of_head(model, size);
    ModelCost cost;
    if (request.generate != 0) {
        PartSize step = size;
        step.is_cached = true;
        step.tokens = prompt;
        const PartCost first = cost_of_layers(model, step, 0, model.layers, nullptr);
        cost.flops += first.flops + head.flops;
        cost.memory = first.bytes + head.bytes;
        const auto others = static_cast<double>(request.generate - 1);
        step.tokens = 1;
        step.past = prompt;
        const PartCost second = cost_of_layers(model, step, 0, model.layers, nullptr);
        step.past = prompt + std::max<std::size_t>(2, request.generate) - 2;
        const PartCost last = cost_of_layers(model, step, 0, model.layers, nullptr);
        // The scores of one token grow by the same number with each earlier one.
        cost.flops += others * (head.flops + (second.flops + last.flops) / 2);
        cost.memory = std::max(cost.memory, last.bytes + head.bytes);
    }
    size.tokens = prompt + request.generate;
    const PartCost all =
        cost_of_layers(model, size, input.first_layer, request.run_layers, &request);
    const double states = times(size.tokens, size.width) * e;
    cost.flops += all.flops + cost_of(model.embedding.projection, size.tokens, size).flops;
    cost.numbers = all.numbers;
    double kept = all.recorded, finishing = 0;
    if (request.run_layers == model.layers) {
        cost.flops += cost_of(model.final_projection, size.tokens, size).flops;
        const double last =
            model.final_projection ? times(size.tokens, model.final_projection.d_out) : states / e;
        kept += last * e;
        if (request.arrays.has("last_hidden_state")) {
            kept += last * e;
            cost.numbers += last;
        }
        const std::size_t of_next = request.arrays.has("next_tokens")                ? 2
                                    : request.arrays.has("next_token_probabilities") ? 1
                                                                                     : 0;
        if (head.numbers != 0 && (request.arrays.has("logits") || of_next != 0)) {
            cost.flops += head.flops;
            finishing = head.bytes;
            constexpr double best_tokens = 10;
            cost.numbers += static_cast<double>(of_next) * std::min(best_tokens, head.numbers);
            if (request.arrays.has("logits")) {
                cost.numbers += head.numbers;
                kept += head.numbers * e;
            }
        }
    }
    const double given = input.hidden_states ? 2 * input.hidden_states->bytes() : 0;
    cost.kept = kept;
    cost.memory = given + std::max({cost.memory, all.bytes, kept + states + finishing});
    return cost;
}

}  // namespace attn
