#include "cli/request/array_hints.hpp"

#include <algorithm>
#include <cctype>
#include <vector>

#include "core/base/did_you_mean.hpp"
#include "core/base/error.hpp"
#include "core/operator/arrays.hpp"

namespace attn::cli {
namespace {

/// Names of arrays in PyTorch, transformers, ONNX and the papers, in lower case.
struct ForeignNames {
    ArrayId array;
    std::string_view names;  ///< with a blank before and after each
};

constexpr ForeignNames foreign_names[] = {
    {"token_ids", " ids input_ids tokens "},
    {"inputs", " input x embeddings embedding embedded hidden_states "},
    {"normed_inputs", " norm normed layer_norm ln "},
    {"W_query", " wq w_q q_proj q_weight query_weight "},
    {"W_key", " wk w_k k_proj k_weight key_weight "},
    {"W_value", " wv w_v v_proj v_weight value_weight "},
    {"W_out", " wo w_o o_proj out_proj out_weight "},
    {"queries", " q query "},
    {"keys", " k key "},
    {"values", " v value "},
    {"scores", " qk attn_scores attention_scores omega logits "},
    {"mask", " causal_mask attn_mask attention_mask "},
    {"dropout_mask", " dropout "},
    {"attention_weights",
     " weights attn_weights attention attentions attn probs prob probabilities attn_probs "
     "attention_probs softmax p alpha alphas "},
    {"logsumexp", " lse log_sum_exp "},
    {"present_key", " k_cache key_cache past_key "},
    {"present_value", " v_cache value_cache past_value "},
    {"states", " hidden_state hidden s "},
    {"present_state",
     " state recurrent_state last_recurrent_state ssm_state past_state final_state "},
    {"head_outputs", " heads head per_head "},
    {"context_vectors",
     " output outputs out context context_vec context_vector attn_output result results y z "
     "last_hidden_state "},
};

/// Words separated by blanks; short ones are similar to everything.
std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words;
    for (std::size_t from = 0, blank; from < text.size(); from = blank + 1) {
        blank = std::min(text.find(' ', from), text.size());
        if (blank - from > 4) words.emplace_back(text.substr(from, blank - from));
    }
    return words;
}

/// "unknown array "probs"; here it is attention_weights": the array that other programs and papers
/// call so, else the nearest name, else all names.
std::string unknown_array(std::string_view name) {
    if (name.empty()) return "an empty name; expected names separated by commas, or all";
    std::string small(name.substr(0, 40));
    const std::string start = "unknown array \"" + small + "\"; ";
    std::transform(small.begin(), small.end(), small.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    for (const ForeignNames& row : foreign_names)
        if (row.names.find(" " + small + " ") != std::string_view::npos)
            return start + "attn calls it " + std::string(row.array.row().name);
    const std::vector<std::string> names = names_of_arrays();
    const std::string near = did_you_mean(name, names);
    if (!near.empty()) return start + "did you mean " + near + "?";
    for (const ForeignNames& row : foreign_names)
        if (!did_you_mean(name, words_of(row.names)).empty())
            return start + "did you mean " + std::string(row.array.row().name) + "?";
    std::string list;
    for (const std::string& known : names) list += known + ", ";
    return start + "expected " + list + "or all";
}

}  // namespace

void check_array_names(const std::vector<std::string>& emit) {
    for (const std::string& name : emit)
        if (name != "all" && !find_array(name))
            throw SettingError(ErrorKind::usage, "emit", unknown_array(name));
}

}  // namespace attn::cli
