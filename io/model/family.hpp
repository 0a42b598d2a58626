// How published models name the tensors of their attention layers, and which layer a file's names
// show. Sources: Hugging Face transformers' modules, torch.nn.MultiheadAttention, the notebooks.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan/settings.hpp"
#include "io/read/array_file.hpp"

namespace attn::io {

enum class Family { gpt2, llama, bert, neox, mha, notebook };
inline constexpr Names<Family, 6> family_names{{{Family::gpt2, "gpt2"},
                                                {Family::llama, "llama"},
                                                {Family::bert, "bert"},
                                                {Family::neox, "neox"},
                                                {Family::mha, "mha"},
                                                {Family::notebook, "notebook"}}};

/// How queries, keys and values lie in their tensors.
enum class Packing {
    separate,  ///< one tensor each
    joined,    ///< one tensor: outputs of q, then of k, then of v
    by_head    ///< one tensor: q, k, v of head 0, then of head 1
};

struct ProjectionNames {
    std::string_view weight = {}, bias = {};
};

/// What a tensor must look like to be the one that is meant by its name.
enum class Form {
    any,
    lower_mask,  ///< (..., n, n): not 0 where a query may attend, up to the diagonal
    upper_mask,  ///< (..., n, n): not 0 where it may not, beyond the diagonal
    one_number,  ///< what masked scores were replaced with
    frequencies  ///< of the rotary embedding; see check_frequencies
};

/// A tensor of a layer that does not change what its attention computes.
struct HarmlessTensor {
    std::string_view name;
    Form form = Form::any;
};

/// The names of one kind of layer. Names are relative to the layer's own, `layer`.
struct FamilyRule {
    Family family = Family::notebook;
    std::string_view layer = {};      ///< '#' is a number: the layer's, or of a head in a wrapper
    std::string_view published = {};  ///< what stands before it in published files
    Packing packing = Packing::separate;
    bool in_out = false;      ///< weights are (d_in, d_out), else (d_out, d_in)
    bool is_open = false;     ///< ... unless attn's metadata or the query says otherwise
    bool joins_bias = false;  ///< one bias for q, k and v, though the weights are separate
    bool is_wrapper = false;  ///< independent heads
    bool needs_out = true;    ///< always has an output projection
    ProjectionNames query = {}, key = {}, value = {}, out = {};
    std::vector<HarmlessTensor> others = {};
    std::string_view norm = {};  ///< of the layer's input, with its number as '#'; empty: none
    bool is_rms_norm = false;
    std::string_view embedding = {};                ///< the module of the embeddings; empty: none
    std::vector<std::string_view> embeddings = {};  ///< of token ids; of positions; of segment 0
    std::string_view embedding_norm = {};           ///< after them
};

const std::vector<FamilyRule>& family_rules();

/// One attention layer that a file's names show.
struct ModelLayer {
    const FamilyRule* rule = nullptr;
    std::string prefix;                 ///< before the rule's `layer`
    std::optional<std::size_t> number;  ///< empty where the names have none
    std::size_t heads = 0;              ///< of a wrapper
    bool in_out = false;                ///< weights are (d_in, d_out), else (d_out, d_in)

    /// The full name of a tensor of the layer; of head `head` of a wrapper.
    std::string full(std::string_view name, std::size_t head = 0) const;
    /// The full name of a tensor of the output projection, of which a wrapper has one for all
    /// heads.
    std::string full_out(std::string_view name) const;
    /// The same for names that are not below the layer, with '#' as its number.
    std::string beside(std::string_view name) const;
};

struct LayerQuery {
    std::optional<Family> family;
    std::optional<std::size_t> number;  ///< empty: layer 0, or the only one
    std::string prefix;                 ///< empty: any
    std::optional<bool> in_out;         ///< for names that leave it open
};

/// Errors: kind input at the file's name, listing what there is, where no layer or several fit;
/// where a tensor that the layer needs is missing, or one is there that is not understood.
ModelLayer find_layer(const ArrayFile& file, const LayerQuery& query);

/// A mask that the layer keeps beside its parameters may be passed over only if it is the causal
/// one. Errors: kind input, naming the tensor.
void check_causal_masks(const ArrayFile& file, const ModelLayer& layer);

/// Errors: kind input with the whole name of a tensor below `module` that is none of `known`, full
/// names: it may change what the `part` computes.
void check_nothing_else(const ArrayFile& file, const std::string& module,
                        const std::vector<std::string>& known, const std::string& part);

}  // namespace attn::io
