#include "cli/question/question.hpp"

namespace attn::cli {

AxisLabels axis_labels(const ModeRow* mode, const std::vector<std::string>& tokens,
                       const std::vector<std::string>& context_tokens, const Lengths& lengths) {
    AxisLabels labels;
    if (tokens.size() == lengths.queries) labels.queries = tokens;
    const bool is_named = !context_tokens.empty();
    if (!is_named && mode != nullptr && mode->context && mode->source == Source::inputs)
        return labels;
    const std::vector<std::string>& source = is_named ? context_tokens : tokens;
    // Only their number shows whether `tokens` also name the keys.
    const bool must_be_all = !is_named && (mode == nullptr || mode->context);
    const bool fits = must_be_all ? source.size() == lengths.keys : source.size() <= lengths.keys;
    if (source.empty() || !fits) return labels;
    const std::size_t cached = lengths.keys - source.size();
    labels.keys.reserve(lengths.keys);
    for (std::size_t key = 0; key < cached; ++key)
        labels.keys.push_back("cached " + std::to_string(key));
    labels.keys.insert(labels.keys.end(), source.begin(), source.end());
    return labels;
}

AxisLabels axis_labels(const Request& request, const Plan& plan) {
    return axis_labels(&row_of(plan.mode), request.tokens, request.context_tokens,
                       {plan.q_len, plan.kv_len});
}

}  // namespace attn::cli
