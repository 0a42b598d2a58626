// One `sdpa` computation on the heads of a layer, and its description.
#include <limits>

#include "core/base/error.hpp"
#include "core/layer/layer.hpp"
#include "core/layer/mask_rows.hpp"
#include "core/model/run_block.hpp"

namespace attn {
namespace {

void check_heads(const ArrayRequest& wanted, std::size_t heads, std::size_t layer) {
    for (const std::uint64_t head : wanted.heads)
        if (head >= heads)
            throw SettingError(ErrorKind::usage, "head", "layer ", layer, " has ", heads,
                               " heads; expected 0 to ", heads - 1);
}

/// Whether `sdpa` has an array of a layer. Context vectors are recorded after the output
/// projection, heads' before it.
bool is_of_operator(const std::string& name) {
    if (name == "context_vectors" || name == "unrotated_queries" || name == "unrotated_keys")
        return false;
    const std::optional<ArrayId> id = find_array(name);
    return id && (id->row().needs & ~unsigned{needs::softmax}) == 0;
}

/// The settings of the computation, which records the arrays that are wanted.
Settings settings_of(const BlockRun& run, const AttentionPart& part, const HeadInputs& heads) {
    const ArrayRequest& wanted = run.wanted;
    Settings settings;
    settings.mode = Mode::sdpa;
    settings.dtype = heads.query.dtype();
    settings.kernel = run.compute.kernel;
    settings.scale = part.scale;
    settings.softcap = part.softcap;
    settings.sink = part.sink;
    if (part.causal && !heads.is_cross) {
        settings.causal = true;
        settings.causal_align = CausalAlign::bottom_right;
    }
    if ((part.window_left || part.window_right) && heads.before == 0)
        settings.window = {part.window_left.value_or(-1), part.window_right.value_or(-1)};
    settings.head = wanted.heads;
    check_heads(wanted, part.heads, run.block.layer);
    settings.emit = {"context_vectors"};
    if (heads.is_cross || heads.before != 0) {
        if (wanted.has("cross_attention_weights") ||
            (heads.before != 0 && wanted.has("attention_weights")))
            settings.emit.emplace_back("attention_weights");
        return settings;
    }
    for (const std::string& name : wanted.names)
        if (is_of_operator(name)) settings.emit.push_back(name);
    return settings;
}

/// `own_bias`: an additive mask that excludes keys by -Infinity; may be empty.
LayerAttention described(const BlockRun& run, const AttentionPart& part, const Plan& plan,
                         const HeadInputs& heads, const Array<double>& own_bias) {
    LayerAttention attention{.part = heads.is_cross ? "cross_" : run.prefix, .plan = plan};
    if (part.rotation && !heads.is_cross) {
        Rotation plain = *part.rotation;
        plain.rope.scaling = nullptr;
        attention.rope = plain.rope;
        if (!plain.is_of_rope()) attention.rope.base = 0;
    }
    Mask mask = settings_mask(plan);
    if (heads.allowed.size() != 0) mask.add(BroadcastRule(heads.allowed, true));
    if (own_bias.size() != 0) mask.add(BroadcastRule(Broadcast(own_bias, 0)));
    attention.mask = std::make_shared<const Mask>(std::move(mask));
    return attention;
}

/// The additive mask that also excludes what `allowed` excludes.
void combine(Array<double>& bias, const Array<double>& allowed) {
    const std::size_t cells = allowed.size();
    for_each_index(bias.size(), [&](std::size_t i) {
        if (allowed.data()[i % cells] == 0)
            bias.data()[i] = -std::numeric_limits<double>::infinity();
    });
}

}  // namespace

States attend_heads(BlockRun& run, const AttentionPart& part, HeadInputs heads) {
    const NumberType dtype = heads.query.dtype();
    Settings settings = settings_of(run, part, heads);
    const bool is_recorded = !run.wanted.names.empty() && !is_dry_run();
    const Array<double> own_bias = is_recorded && part.key_bias ? heads.bias : Array<double>();
    Operands operands;
    if (heads.allowed.size() != 0 && heads.bias.size() == 0) {
        operands["mask"] = heads.allowed;
        operands.is_boolean["mask"] = true;
        settings.mask_true = MaskTrue::keep;
    } else {
        if (heads.allowed.size() != 0) combine(heads.bias, heads.allowed);
        operands["mask"] = std::move(heads.bias);
    }
    operands["query"] = std::move(heads.query).reals();
    operands["key"] = std::move(heads.key).reals();
    operands["value"] = std::move(heads.value).reals();
    const Plan plan = make_plan(std::move(settings), shapes_of(operands));
    if (is_recorded) run.attentions.push_back(described(run, part, plan, heads, own_bias));
    if (run.compute.flops != nullptr) *run.compute.flops += flops_of(plan);
    Result result = attn::compute(plan, std::move(operands), run.compute.pool);
    States context;
    for (NamedArray& array : result.arrays) {
        const auto states_of = [&](AnyArray& values) {
            return for_dtype(dtype, [&]<class T>(T) {
                Array<T>& x = std::get<Array<T>>(values);
                const std::array shape{x.shape(0), x.shape(1), x.shape(2)};
                return States(std::move(x), shape, dtype);
            });
        };
        if (array.name == "context_vectors") {
            context = merged(states_of(array.values));
            continue;
        }
        if (heads.before != 0 && array.name == "attention_weights") {
            const States all = states_of(array.values);
            const auto part_of = [&](std::size_t first, std::size_t count) {
                return slice(all, 2, first, count).array({all.depth(), all.rows(), count});
            };
            run.arrays.push_back(
                {"cross_attention_weights", part_of(0, heads.before), array.axes, {}});
            run.arrays.back().type = array.type;
            array.values = part_of(heads.before, all.columns() - heads.before);
        }
        // Weights of cross attention have no prefix: only the decoder has them.
        array.name = heads.is_cross ? "cross_attention_weights" : run.prefix + array.name;
        run.arrays.push_back(std::move(array));
    }
    return context;
}

void record_heads(BlockRun& run, std::string_view name, const States& x, std::size_t heads,
                  std::string_view rows) {
    if (!run.wanted.has(name)) return;
    check_heads(run.wanted, heads, run.block.layer);
    std::vector<std::size_t> chosen;
    for (const std::uint64_t head : run.wanted.heads)
        chosen.push_back(static_cast<std::size_t>(head) * x.depth() / heads);
    run.record(name, chosen.empty() ? x : pick(x, 0, chosen), {"heads", rows, "d_k"});
}

}  // namespace attn
