#include "core/model/cost.hpp"

#include <algorithm>

#include "core/layer/cost.hpp"
#include "core/model/attention_settings.hpp"
#include "core/model/model.hpp"
#include "core/model/multiply.hpp"

namespace attn {
namespace {

/// What a product allocates besides its result. The reference decodes the whole weight.
double decoded(const LinearMap& map, std::size_t rows, const PartSize& size) {
    if (!map) return 0;
    if (size.kernel == "reference") return times(map.d_in, map.d_out) * size.element();
    return memory_of_multiply(map, rows, size.threads, size.dtype);
}

/// Keys and values of one attention, in elements per token.
double keys_and_values(const AttentionPart& part) {
    return times(part.kv_heads, part.d_k) +
           times(part.kv_heads, part.d_v) * (part.difference ? 2 : 1);
}

/// The operator alone, with its operands.
Plan plan_of(const AttentionPart& part, const PartSize& size, bool is_cross, std::size_t kv_len) {
    const std::size_t before = part.joins_encoder ? size.encoder_tokens : 0;
    OperandShapes shapes;
    shapes.query = {part.heads, size.tokens, part.d_k};
    shapes.key = {part.kv_heads, kv_len, part.d_k};
    shapes.value = {part.kv_heads, kv_len, part.d_v * (part.difference ? 2 : 1)};
    const bool has_bias = part.bias || part.key_bias || part.content_bias != nullptr;
    const bool has_mask =
        part.chunk || size.is_masked || part.choice != nullptr || (before != 0 && part.window_left);
    if (has_bias) shapes.mask = {part.heads, size.tokens, kv_len};
    if (!has_bias && has_mask) shapes.mask = {size.tokens, kv_len};
    shapes.mask_is_boolean = !has_bias && has_mask;
    Settings settings = attention_settings(part, size.kernel, *size.wanted,
                                           {is_cross, is_cross, before, size.layer}, size.dtype);
    if (shapes.mask_is_boolean) settings.mask_true = MaskTrue::keep;
    return make_plan(std::move(settings), shapes);
}

/// The arrays that a layer records besides the operator's.
double other_arrays(const AttentionPart& part, const PartSize& size) {
    double numbers = 0;
    if (size.wanted->has("context_vectors")) numbers += times(size.tokens, size.width);
    const auto shown = [&](std::size_t heads) {
        return (size.wanted->heads.empty() ? heads : size.wanted->heads.size()) * part.d_k;
    };
    if (size.wanted->has("unrotated_queries")) numbers += times(size.tokens, shown(part.heads));
    if (size.wanted->has("unrotated_keys") && !part.shared_from)
        numbers += times(size.tokens, shown(part.kv_heads));
    return numbers;
}

}  // namespace

void add_step(PartCost& cost, const PartCost& step) {
    cost.bytes = std::max(cost.bytes, cost.recorded + cost.shared + step.bytes);
    cost.flops += step.flops;
    cost.recorded += step.recorded;
    cost.shared += step.shared;
    cost.cached += step.cached;
    cost.numbers += step.numbers;
}

PartCost cost_of(const LinearMap& map, std::size_t rows, const PartSize& size) {
    PartCost cost;
    if (!map) return cost;
    cost.flops = 2 * times(rows, map.d_in) * static_cast<double>(map.d_out);
    cost.bytes = times(rows, map.d_out) * size.element() + decoded(map, rows, size);
    return cost;
}

PartCost cost_of(const FeedForward& part, std::size_t rows, const PartSize& size) {
    const double e = size.element(), up = times(rows, part.up.d_out) * e,
                 gate = part.gate ? times(rows, part.gate.d_out) * e : 0,
                 inner = part.joined == FeedForward::Joined::no ? 0 : up / 2;
    const PartCost first = cost_of(part.up, rows, size), second = cost_of(part.gate, rows, size),
                   last = cost_of(part.down, rows, size);
    PartCost cost;
    cost.flops = first.flops + second.flops + last.flops;
    cost.bytes =
        std::max({first.bytes, up + second.bytes, up + gate + inner, up + inner + last.bytes});
    return cost;
}

PartCost cost_of(const Experts& part, const PartSize& size) {
    const std::size_t tokens = size.tokens;
    const double e = size.element(), states = times(tokens, size.width) * e;
    constexpr double of_choice = 2 * (sizeof(std::size_t) + sizeof(double));  // vectors that grow
    const double routing = times(tokens, part.count) * e + times(tokens, part.chosen) * of_choice;
    const PartCost router = cost_of(part.router, tokens, size);
    const PartCost one = part.count == 0 ? PartCost() : cost_of(part.expert(0), tokens, size);
    PartCost cost;
    cost.flops = router.flops + one.flops * static_cast<double>(part.chosen);
    // The router's input, the sum, and the rows of an expert with their output.
    cost.bytes = std::max(states + router.bytes, 3 * states + routing + one.bytes);
    if (part.shared) {
        const PartCost shared = cost_of(*part.shared, tokens, size);
        cost.flops += shared.flops + cost_of(part.shared_gate, tokens, size).flops;
        cost.bytes = std::max(cost.bytes, 2 * states + routing + shared.bytes);
    }
    return cost;
}

PartCost cost_of(const AttentionPart& part, const PartSize& size, bool is_cross) {
    const double e = size.element();
    const std::size_t tokens = size.tokens, source = is_cross ? size.encoder_tokens : tokens,
                      before = part.joins_encoder ? size.encoder_tokens : 0,
                      kv_len = before + (is_cross ? source : size.past + tokens);
    const bool projects_keys = !part.shared_from && !(is_cross && size.past != 0);
    const std::size_t sources = projects_keys ? source + before : 0;
    const double fresh = keys_and_values(part) * static_cast<double>(sources) * e,
                 all = keys_and_values(part) * static_cast<double>(kv_len) * e,
                 query = times(tokens, part.heads * part.d_k) * e;
    const bool is_joined = part.joined != JoinedHeads::separate ||
                           part.gate.from == ContextGate::From::query_projection;
    PartCost cost;
    double held = fresh;  // projections that live until the end
    for (const LinearMap* const map : {&part.query, &part.gate.map, &part.out})
        cost.flops += cost_of(*map, tokens, size).flops;
    for (const LinearMap* const map : {&part.key, &part.value})
        if (!(part.value_is_key && map == &part.value))
            cost.flops += cost_of(*map, sources, size).flops;
    if (part.gate.from != ContextGate::From::none) held += times(tokens, part.heads * part.d_v) * e;
    double projecting =
        held + query + (is_joined ? times(tokens, part.query.d_out) * e : 0) +
        std::max(decoded(part.query, tokens, size), decoded(part.key, sources, size));
    if (part.latent) {
        const LatentPart& latent = *part.latent;
        const PartCost down = cost_of(latent.key_down, tokens, size),
                       up = cost_of(latent.key_up, tokens, size),
                       own = cost_of(latent.query_down, tokens, size);
        cost.flops += down.flops + up.flops + own.flops;
        held += times(tokens, latent.query_down.d_out) * e;
        projecting += down.bytes + times(tokens, latent.key_down.d_out) * e + up.bytes;
    }
    const Plan plan = plan_of(part, size, is_cross, kv_len);
    const Cost own = measure(plan, size.threads);
    const double masks = plan.operands.mask.empty() ? 0 : times(tokens, kv_len) * sizeof(double);
    if (part.choice != nullptr) cost.flops += part.choice->flops(tokens, kv_len);
    if (part.content_bias != nullptr)
        cost.flops += part.content_bias->flops(part.heads, tokens, kv_len, part.d_k);
    if (part.key_bias) cost.flops += cost_of(part.key_bias->map, kv_len, size).flops;
    const double context = times(tokens, part.heads * part.d_v) * (part.difference ? 2 : 1) * e;
    cost.flops += own.flops;
    const double other = is_cross ? 0 : other_arrays(part, size);
    cost.numbers = static_cast<double>(own.numbers) - context / e + other;
    cost.recorded = cost.numbers * e;
    if (part.is_shared) cost.shared = all;
    if (size.is_cached && !part.shared_from) cost.cached = all;
    const double copies = cost.shared + cost.cached + other * e;
    cost.bytes = std::max(
        {projecting, held + 2 * query + all, held + copies + masks + own.memory,
         held + copies + cost.recorded + 2 * context + cost_of(part.out, tokens, size).bytes});
    cost.bytes -= cost.cached;  // counted by the model
    return cost;
}

PartCost cost_of(const TransformerBlock& block, const PartSize& size) {
    if (block.whole != nullptr) return block.whole->cost(size);
    const double states = times(size.tokens, size.width) * size.element();
    PartCost cost;
    const auto add = [&](PartCost step, double held) {
        step.bytes += held;
        add_step(cost, step);
    };
    // Next to the residual: the normed input of each part.
    if (const auto* attention = std::get_if<AttentionPart>(&block.mixer))
        add(cost_of(*attention, size), states);
    else
        add(std::get<std::shared_ptr<const OtherMixer>>(block.mixer)->cost(size), states);
    // And the output of the part before, and for the feed-forward layer a copy of the residual.
    if (block.cross) add(cost_of(*block.cross, size, true), 2 * states);
    const double held = 3 * states;
    if (const auto* ffn = std::get_if<FeedForward>(&block.ffn))
        add(cost_of(*ffn, size.tokens, size), held);
    if (const auto* experts = std::get_if<Experts>(&block.ffn)) add(cost_of(*experts, size), held);
    for (const auto* ffn : {&block.dense, &block.adapter})
        if (*ffn) add(cost_of(**ffn, size.tokens, size), held);
    if (block.after != nullptr) add(block.after->cost(size), states);
    return cost;
}

}  // namespace attn
