// What people see of a question: notes, and errors without a file's contents.

#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "cli/question/operands.hpp"
#include "core/base/tensor.hpp"
#include "io/file/source.hpp"
#include "io/text/number_text.hpp"
#include "io/text/text.hpp"

namespace attn::cli {
namespace {

using Sizes = std::vector<std::size_t>;

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
    const Shape &q = plan.operands["query"], &k = plan.operands["key"];
    if (draws_inputs(request) || plan.projects || q.size() != 4 || plan.past_len != 0 ||
        q[1] == 1 || plan.config.qkv_format || plan.shown.order != QkvFormat::bhsd)
        return {};
    const bool is_linear = row_of(plan.config.mode).mechanism == Mechanism::linear;
    const bool may_be_tokens = q[2] % k[2] == 0 && (!is_linear || q[1] == k[1]),
               is_confirmed = request.settings.heads && q[1] != q[2];
    if (!may_be_tokens || is_confirmed) return {};
    return location_of(request, "query") + ": " + shape_text(q) +
           " is read as (batch, heads, tokens, width), " + io::count_text(q[1], "head") + " of " +
           io::count_text(q[2], "token") + "; " +
           (q[1] != q[2] ? "--heads " + std::to_string(q[1]) + " confirms it; " : "") +
           "(batch, tokens, heads, width) is --qkv-format bshd";
}

/// Whether the layer is one of nn.MultiheadAttention, by its parameters.
bool is_mha(const Request& request, const Plan& plan) {
    return plan.config.init == Init::mha ||
           (request.family != nullptr && request.family->name == "mha" && plan.operands.weights);
}

/// nn.MultiheadAttention and others have no mask of their own, and the mode is causal by default.
/// Other classes have the same names and shapes, with all queries first.
std::string note_of_qkv_layout(const Request& request, const Plan& plan) {
    const io::Family* const family = request.family;
    if (family == nullptr || !family->of_class || request.qkv_layout || plan.heads == 1 ||
        family->layers.front().joined != JoinedHeads::groups)
        return {};
    return location_of(request, "weights") +
           ": the queries, keys and values are read head by head, as in " +
           std::string(family->name) + "; --qkv-layout parts reads all queries first, heads as now";
}

std::string note_of_causal(const Request& request, const Plan& plan) {
    const bool takes_mask =
        request.family != nullptr ? request.family->takes_mask : !request.weight_names.empty();
    if (plan.config.mode != Mode::multihead || !plan.config.causal || request.has("causal") ||
        !(is_mha(request, plan) || (takes_mask && plan.operands.weights)))
        return {};
    return location_of(request, plan.config.init == Init::mha ? "init" : "weights") +
           ": is causal, the default of multihead; " +
           (is_mha(request, plan) ? "nn.MultiheadAttention" : "the class of these weights") +
           " has no mask unless it is given one: --no-causal computes that, --causal confirms the "
           "mask";
}

/// Earlier versions favoured keys after the query.
std::string note_of_alibi(const Request& request, const Plan& plan) {
    if (!plan.config.alibi || *plan.config.causal || request.has("alibi_distance")) return {};
    return location_of(request, "alibi") +
           ": is slope times -|key - query|, for keys after the query too; --alibi-distance "
           "absolute confirms it, signed favours later keys by key - query";
}

/// The first tokens, which StreamingLLM keeps with a window, are called sinks too.
std::string note_of_sink(const Request& request, const Plan& plan) {
    const Settings& s = plan.config;
    const bool may_be_count = s.sink.size() == 1 && s.sink[0] >= 1 &&
                              s.sink[0] == std::floor(s.sink[0]) && !s.window.empty() &&
                              !s.keep_first;
    if (!may_be_count) return {};
    const std::string number = io::number_text(s.sink[0]);
    return location_of(request, "sink") + ": a logit of " + number +
           " in the softmax's denominator; --keep-first " + number +
           " keeps the first tokens with a window, StreamingLLM's attention sinks";
}

/// (batch, tokens, width), or (tokens, batch, width) as nn.MultiheadAttention without batch_first.
std::string note_of_tokens_axis(const Request& request, const Plan& plan) {
    if (draws_inputs(request) || request.has("batch_first") || !plan.projects ||
        !is_mha(request, plan) || !plan.shown.batched || plan.batch == 1)
        return {};
    return location_of(request, "inputs") + ": " + shape_text(plan.operands["inputs"]) +
           " is read as (batch, tokens, width), " + io::count_text(plan.q_len, "token") +
           " in each of " + std::to_string(plan.batch) +
           " entries; nn.MultiheadAttention without batch_first has (tokens, batch, width), which "
           "--no-batch-first reads";
}

/// A mask of each head, or of each batch entry; of each query, or of each batch entry.
std::string note_of_mask(const Request& request, const Plan& plan) {
    const Shape& mask = plan.operands["mask"];
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

/// Words that reveal nothing specific about a file's contents. An allowlist cannot be circumvented
/// by a crafted file or by a new message.
constexpr std::array<std::string_view, 27> plain_words{
    "value", "values", "is",       "empty",    "rank",   "shape",    "not",
    "UTF-8", "UTF-16", "UTF-16LE", "UTF-16BE", "UTF-32", "UTF-32LE", "UTF-32BE",
    "holds", "a",      "no",       "zero",     "byte",   "bytes",    "number",
    "array", "text",   "lists",    "numbers",  "longer", "than"};

bool is_plain(std::string_view text) {
    for (std::string_view word : io::split_text(text, ' ')) {
        while (word.starts_with('(')) word.remove_prefix(1);
        while (word.ends_with(')') || word.ends_with(',')) word.remove_suffix(1);
        const bool is_known = std::ranges::find(plain_words, word) != plain_words.end();
        if (!is_known && !word.empty() && !io::are_digits(word)) return false;
    }
    return true;
}

/// The file's name, line and column, without a member, key or value.
std::string location_alone(std::string location) {
    location = location.substr(0, location.find(": "));
    for (std::size_t colon; (colon = location.rfind(':')) != std::string::npos;) {
        if (io::are_digits(location.substr(colon + 1))) break;
        location.resize(colon);
    }
    return location;
}

std::string message_alone(const std::string& message) {
    const std::size_t at = std::min(message.rfind("; expected "), message.size());
    const std::string found = message.substr(0, at), expected = message.substr(at);
    const bool is_shown = !expected.empty() && expected.find('"') == std::string::npos;
    return (is_plain(found) ? found : "something else, which a batch does not show") +
           (is_shown ? expected : "; expected a file that fits (attn inspect shows it)");
}

}  // namespace

std::string note_of_next_layer(const std::string& path) {
    const std::string file = path.empty() ? "-" : path;
    return "the context_vectors of " + file + " are the input, as for a next layer; " + file +
           ":inputs takes its inputs again, " + file + ":context_vectors these without a note";
}

std::string note_of_truncation(const std::string& location, std::size_t kept,
                               std::size_t left_out) {
    if (left_out == 0) return {};
    return location + ": " + std::to_string(left_out) + " of " + std::to_string(kept + left_out) +
           " tokens are left out, at the end of the text";
}

void note_truncation(const Request& request, std::size_t kept, std::vector<std::string>& notes) {
    if (request.num_truncated_tokens != 0)
        notes.push_back(note_of_truncation(location_of(request, "truncate"), kept,
                                           request.num_truncated_tokens));
}

std::vector<std::string> notes_of_shapes(const Request& request, const Plan& plan) {
    std::vector<std::string> notes;
    for (std::string note : {note_of_packed_heads(request, plan), note_of_heads_axis(request, plan),
                             note_of_tokens_axis(request, plan), note_of_causal(request, plan),
                             note_of_qkv_layout(request, plan), note_of_mask(request, plan),
                             note_of_alibi(request, plan), note_of_sink(request, plan)})
        if (!note.empty()) notes.push_back(std::move(note));
    return notes;
}

void add_note(std::string note, bool is_guess, std::vector<std::string>& notes) {
    const bool is_shown = is_guess || ::isatty(STDERR_FILENO) != 0;
    if (is_shown && !note.empty()) notes.push_back(std::move(note));
}

void show_notes(const std::vector<std::string>& notes) {
    for (const std::string& note : notes)
        std::fprintf(stderr, "attn: note: %s\n", io::one_line(note).c_str());
}

void throw_redacted(const Error& error) {
    if (error.kind() == ErrorKind::input)
        throw Error(error.kind(), location_alone(error.location()), message_alone(error.what()));
    if (error.kind() == ErrorKind::shape || error.kind() == ErrorKind::io)
        throw Error(error.kind(), location_alone(error.location()), error.what());
    throw;
}

}  // namespace attn::cli
