// The attention layers of a model by the names in a file: finding, checking and writing them.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "core/base/named_array.hpp"
#include "core/layer/weights.hpp"
#include "io/model/families.hpp"
#include "io/read/array_file.hpp"

namespace attn::io {

struct NameMatch {
    std::string prefix;
    std::optional<std::size_t> number;
};

/// The pattern with the number in place of '#'.
std::string with_number(std::string_view pattern, std::size_t number);

/// Whether `name` ends with `pattern` at the start of a component, and the value of '#'.
std::optional<NameMatch> match_name(std::string_view name, std::string_view pattern);

/// One attention layer found by the names in a file.
struct ModelLayer {
    const Family* family = nullptr;
    const LayerNames* names = nullptr;  ///< its form in the family
    std::string prefix;                 ///< before the names' `layer`
    std::optional<std::size_t> number;  ///< empty if the names have none
    std::size_t heads = 0;              ///< of a wrapper
    bool in_out = false;                ///< weights are (d_in, d_out), else (d_out, d_in)
    JoinedHeads joined{};               ///< of the names, or as specified

    /// No rotation, and the usual scale.
    bool is_plain() const { return family->is_plain || (family->is_plain_alone && prefix.empty()); }
    /// The full name of a tensor of the layer; of head `head` of a wrapper.
    std::string full(std::string_view name, std::size_t head = 0) const;
    /// The full name of a tensor of the output projection; a wrapper has one for all heads.
    std::string full_out(std::string_view name) const {
        return names->is_wrapper ? prefix + std::string(name) : full(name);
    }
    /// The same for names outside the layer, with '#' as its number.
    std::string full_outside(std::string_view name) const {
        return prefix + with_number(name, number.value_or(0));
    }
    /// The module that all tensors of the layer are in.
    std::string module() const { return names->is_wrapper ? prefix : full(""); }
    /// 1, or the number of the wrapper's heads.
    std::size_t groups() const { return heads == 0 ? 1 : heads; }
};

/// All layers in modules of this prefix that the names show, readable or not. Those of classes are
/// complete, and only where no other is.
std::vector<ModelLayer> layers_of(const ArrayFile& file, const std::string& prefix = {});

/// The shape of a weight, without the last axes of a 1x1 convolution's, (out, in, 1, 1).
std::vector<std::size_t> shape_of_weight(const StoredArray& array);

struct LayerQuery {
    const Family* family = nullptr;     ///< null: any
    std::optional<std::size_t> number;  ///< empty: layer 0, or the only one
    std::string prefix;                 ///< empty: any
    std::optional<bool> in_out;         ///< for names that do not determine it
    /// Of joined queries, keys and values, in place of the layout that the names mean.
    std::optional<JoinedHeads> joined = {};
};

/// Names of tensors, "theirs", and what they are in a layer: query, key, value, qkv or out, or the
/// bias of one of these, as "query.bias".
using WeightNames = std::vector<std::pair<std::string, std::string>>;

/// The family `base`, with one form of these names, in full or from any module on. Without a base
/// weights are (d_out, d_in) if their names end in "weight", else (d_in, d_out). Names of biases
/// follow from those of their weights. Errors: SettingError of kind usage, key "weight_names".
Family family_of_names(const Family* base, const WeightNames& names);

/// A flag with what such names may be, by the file's names and shapes below the prefix; empty where
/// no module has three matrices or a joined one.
std::string likely_weight_names(const ArrayFile& file, const std::string& prefix);
/// The tensor that the output projection of a layer in this module may be, although it is not in
/// the module but next to it; null: none.
const StoredArray* likely_out(const ArrayFile& file, const std::string& module);

/// Refuses another layout of weights than that of their names. Errors: SettingError.
void check_layout(const ArrayFile& file, std::optional<bool> wanted, bool in_out);

/// Errors: kind input at the file's name, listing the layers, if none or several match; if a
/// required tensor is missing.
ModelLayer find_layer(const ArrayFile& file, const LayerQuery& query);

// Tensors besides a layer's parameters: those that have no effect, and those that may.

/// The weight and bias of a norm. Files converted from TensorFlow call them gamma and beta, the
/// notebooks' book scale and shift.
std::pair<std::string, std::string> names_of_norm(const ArrayFile& file, const std::string& name);

/// The modules of the layer's norms of queries and keys, by their full names; empty unless it has
/// both.
struct HeadNormNames {
    std::string query, key;
    explicit operator bool() const { return !query.empty(); }
};
HeadNormNames head_norm_names(const ArrayFile& file, const ModelLayer& layer);

/// Whether the layer has a key and a value that all queries see, (1, 1, width) each.
bool has_more_keys(const ArrayFile& file, const ModelLayer& layer);

/// The full names of the tensors that the layer's projections may have, and those of more keys if
/// it has them.
std::vector<std::string> projection_tensors(const ArrayFile& file, const ModelLayer& layer);

/// Refuses an unknown tensor of the layer, which may change the computation. Errors: kind input at
/// the file's name.
void check_others(const ArrayFile& file, const ModelLayer& layer);

/// A mask among the layer's tensors may be ignored only if it is the causal one. Errors: kind
/// input, naming the tensor.
void check_causal_masks(const ArrayFile& file, const ModelLayer& layer);

/// Rotary frequencies in older files must equal the computed ones, within the rounding of their
/// type. Different values are allowed with `may_differ`, a different number of them with
/// `may_differ_in_number`. Errors: kind input.
void check_frequencies(const ArrayFile& file, const ModelLayer& layer,
                       const std::vector<double>& computed, bool may_differ,
                       bool may_differ_in_number);

/// Errors: kind input with the full name of a tensor in `module` that is not in `known` (full
/// names): it may change the computation of `part`.
void check_nothing_else(const ArrayFile& file, const std::string& module,
                        const std::vector<std::string>& known, const std::string& part);

// Arrays whose rows are rows of other arrays: in another order, some of them, or of several arrays
// by turns.

/// Where a row of elements is: rows are runs of as many elements as the result's last axis has.
struct RowSource {
    std::size_t array, row;
};

struct Rearrangement {
    std::vector<StoredArray> arrays;
    /// Row `row` of the result; empty: the same row of the first array. Called by several threads.
    std::function<RowSource(std::size_t row)> source = {};
    std::vector<std::size_t> columns = {};  ///< column i of the result is this one; empty: the same
    float (*value)(float) = nullptr;        ///< of the result, from the stored one; null: the same
};

/// The array `name` of this shape, of float32 numbers computed when they are read. It has the type
/// and, for the errors, the location of the first array.
StoredArray rearranged(std::string name, std::vector<std::size_t> shape, Rearrangement parts);

/// Part `index` of the first axis.
StoredArray part_of(std::string name, const StoredArray& array, std::size_t index);

/// The transpose of a matrix. Reading costs more than from the matrix.
StoredArray transposed(std::string name, const StoredArray& matrix);

/// Runs of `run` elements of two arrays of one shape, by turns, the first array's first.
StoredArray by_turns(std::string name, std::vector<std::size_t> shape, const StoredArray& first,
                     const StoredArray& second, std::size_t run);

/// Elements of an array as float32, whatever its type.
void read_floats(const StoredArray& array, std::size_t first, std::size_t count, float* to);

// A layer's parameters under the names of a family.

/// The layer and family to write the parameters as, and the setting that specifies it.
struct LayerName {
    const Family& family;
    std::size_t number = 0;
    std::string_view setting = "family";
};

/// The parameters under a family's published names, weights in its layout, which read_layer_weights
/// reads back to the same bits. Errors: SettingError of kind usage with the setting's key if the
/// family has no such layer.
template <class T>
std::vector<NamedArray> name_layer_weights(const LayerWeights<T>& weights, const LayerName& name,
                                           std::size_t heads);

}  // namespace attn::io
