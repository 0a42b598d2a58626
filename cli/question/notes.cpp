#include "cli/question/question.hpp"

#include <unistd.h>

#include <cstdio>
#include <vector>

#include "cli/question/operands.hpp"
#include "core/base/tensor.hpp"
#include "io/file/source.hpp"

namespace attn::cli {
namespace {

using Sizes = std::vector<std::size_t>;

std::string count_of(std::size_t count, const char* what, const char* plural) {
    return std::to_string(count) + " " + (count == 1 ? what : plural);
}

/// Packed heads, (batch, tokens, heads * width), or (heads, tokens, width).
std::string note_of_packed_heads(const Request& request, const Plan& plan) {
    const bool may_be_heads = plan.packed && plan.shown.batched && plan.heads > 1 &&
                              plan.batch == plan.heads && plan.kv_heads == plan.heads;
    if (!may_be_heads) return {};
    const std::string heads = std::to_string(plan.heads);
    return location_of(request, "heads") + ": query " +
           shape_text(Sizes{plan.batch, plan.q_len, plan.heads * plan.d_k}) + " is read as " +
           heads + " batch entries of " + heads + " heads with " + std::to_string(plan.d_k) +
           " columns each; without \"heads\" its first axis counts heads";
}

/// (batch, heads, tokens, width), or (batch, tokens, heads, width) as in FlashAttention: either is
/// possible if the other meaning also has heads that are a multiple of those of keys.
std::string note_of_heads_axis(const Request& request, const Plan& plan) {
    const Shape &q = plan.operands.query, &k = plan.operands.key;
    if (plan.projects || q.size() != 4 || plan.past_len != 0 || q[1] == 1) return {};
    const bool is_linear = row_of(plan.config.mode).mechanism == Mechanism::linear;
    const bool may_be_tokens = q[2] % k[2] == 0 && (!is_linear || q[1] == k[1]),
               is_confirmed = request.settings.heads && q[1] != q[2];
    if (!may_be_tokens || is_confirmed) return {};
    return location_of(request, "query") + ": " + shape_text(q) +
           " is read as (batch, heads, tokens, width), " + count_of(q[1], "head", "heads") +
           " of " + count_of(q[2], "token", "tokens") + "; " +
           (q[1] != q[2] ? "--heads " + std::to_string(q[1]) + " confirms it; " : "") +
           "for (batch, tokens, heads, width) reshape it to " +
           shape_text(Sizes{q[0], q[1], q[2] * q[3]}) +
           ", key and value likewise, and use --heads " + std::to_string(q[2]) +
           (k[2] != q[2] ? " --kv-heads " + std::to_string(k[2]) : std::string());
}

/// (batch, tokens, width), or (tokens, batch, width) as nn.MultiheadAttention without batch_first.
std::string note_of_tokens_axis(const Request& request, const Plan& plan) {
    const bool is_mha =
        plan.config.init == Init::mha ||
        (request.family != nullptr && request.family->name == "mha" && plan.operands.weights);
    if (draws_inputs(request) || !plan.projects || !is_mha || !plan.shown.batched ||
        plan.batch == 1)
        return {};
    return location_of(request, "inputs") + ": " + shape_text(plan.operands.inputs) +
           " is read as (batch, tokens, width), " + count_of(plan.q_len, "token", "tokens") +
           " in each of " + std::to_string(plan.batch) +
           " entries; nn.MultiheadAttention without batch_first has (tokens, batch, width), whose "
           "first two axes must be exchanged";
}

/// A mask of each head, or of each batch entry; of each query, or of each batch entry.
std::string note_of_mask(const Request& request, const Plan& plan) {
    const Shape& mask = plan.operands.mask;
    if (plan.batch == 1 || mask.size() < 2 || mask[0] != plan.batch) return {};
    const std::string read =
        location_of(request, "mask") + ": " + shape_text(mask) + " is read as ";
    if (mask.size() == 3 && plan.heads == plan.batch)
        return read +
               "(heads, q, kv), the same for every batch entry; one mask for each batch "
               "entry has shape " +
               shape_text(Sizes{mask[0], 1, mask[1], mask[2]});
    if (mask.size() == 2 && plan.q_len == plan.batch && mask[1] == plan.kv_len)
        return read +
               "(q, kv), the same for every batch entry; one row for each batch entry is "
               "--key-padding-mask";
    return {};
}

}  // namespace

std::string note_of_next_layer(const std::string& path) {
    const std::string file = path.empty() ? "-" : path;
    return "the context_vectors of " + file + " are the input, as for a next layer; " + file +
           ":inputs takes its inputs again, " + file + ":context_vectors these without a note";
}

std::vector<std::string> notes_of_shapes(const Request& request, const Plan& plan) {
    std::vector<std::string> notes;
    for (std::string note : {note_of_packed_heads(request, plan), note_of_heads_axis(request, plan),
                             note_of_tokens_axis(request, plan), note_of_mask(request, plan)})
        if (!note.empty()) notes.push_back(std::move(note));
    return notes;
}

bool is_for_terminal(const std::string& note) {
    return !note.empty() && ::isatty(STDERR_FILENO) != 0;
}

void show_notes(const std::vector<std::string>& notes) {
    for (const std::string& note : notes)
        std::fprintf(stderr, "attn: note: %s\n", io::one_line(note).c_str());
}

}  // namespace attn::cli
