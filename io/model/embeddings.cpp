#include "io/model/embeddings.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/error.hpp"
#include "io/model/other_tensors.hpp"

namespace attn::io {
namespace {

const StoredArray& require_tensor(const ArrayFile& file, const std::string& name,
                                  const std::string& purpose) {
    const StoredArray* found = file.find(name);
    if (found != nullptr) return *found;
    throw Error(ErrorKind::input, file.name,
                "has no tensor \"" + name + "\", which " + purpose + " needs; it has " +
                    list_of(file.arrays));
}

/// The weight and bias of a norm. Files converted from TensorFlow call them gamma and beta, the
/// notebooks' book scale and shift.
std::pair<std::string, std::string> names_of_norm(const ArrayFile& file, const std::string& name) {
    for (const auto& [weight, bias] : {std::pair(".gamma", ".beta"), {".scale", ".shift"}})
        if (file.find(name + weight) != nullptr) return {name + weight, name + bias};
    return {name + ".weight", name + ".bias"};
}

InputNorm read_norm_named(const ArrayFile& file, const std::string& name,
                          const NormSettings& settings) {
    const bool is_rms = settings.form != NormForm::layer;
    const auto [weight, bias] = names_of_norm(file, name);
    // An RMS norm has no bias; one with a bias is a different norm.
    std::vector<std::string> known{weight};
    if (!is_rms) known.push_back(bias);
    check_nothing_else(file, name + ".", known, "norm");
    InputNorm norm{is_rms, read_vector(require_tensor(file, weight, "the norm")), {}, settings.eps};
    if (settings.form == NormForm::rms_plus_one)
        for (double& factor : norm.weight) factor += 1;
    if (is_rms || (settings.may_lack_bias && file.find(bias) == nullptr)) return norm;
    norm.bias = read_vector(require_tensor(file, bias, "the norm"));
    if (norm.bias.size() != norm.weight.size())
        throw Error(ErrorKind::input, file.name,
                    "\"" + bias + "\" has " + std::to_string(norm.bias.size()) +
                        " numbers; expected " + std::to_string(norm.weight.size()) +
                        " as the weight has");
    return norm;
}

template <class T>
class Embedder {
public:
    Embedder(const ArrayFile& file, const ModelLayer& layer, const EmbeddingSettings& settings)
        : file_(file), layer_(layer), names_(layer.family->embedding), settings_(settings) {}

    Array<double> embed(const std::vector<std::uint64_t>& ids) const {
        check_embeddings();
        const StoredArray& words = *table(names_.ids);
        const StoredArray* positions = table(names_.positions);
        const StoredArray* segments = table(names_.segments);
        const std::size_t columns = words.shape.empty() ? 0 : words.shape.back();
        std::vector<T> row(columns);
        Array<double> x = Array<double>::from_shape({ids.size(), columns});
        InputNorm norm;
        if (!names_.norm.empty())
            norm = read_norm_named(file_, layer_.beside(names_.norm), settings_.norm);
        for (std::size_t token = 0; token < ids.size(); ++token) {
            std::fill(row.begin(), row.end(), T{0});
            add_row(words, ids[token], "token id", row);
            if (settings_.scale)
                for (T& number : row) number *= static_cast<T>(*settings_.scale);
            // In transformers' order: BERT adds its segments before its positions.
            if (segments != nullptr) add_row(*segments, 0, "segment", row);
            if (positions != nullptr)
                add_row(*positions, settings_.first_position + token, "position", row);
            if (norm.weight.size() == columns) normalise<T>(norm, row);
            std::copy(row.begin(), row.end(), x.data() + token * columns);
        }
        return x;
    }

private:
    /// The table of this name; null if the family has none.
    const StoredArray* table(std::string_view name) const {
        return name.empty() ? nullptr : &require_tensor(file_, layer_.beside(name), "token_ids");
    }

    /// The norm checks its own tensors. Positions and segments are checked here.
    void check_embeddings() const {
        const std::string module = layer_.beside(names_.module);
        std::vector<std::string> known{module + "position_ids", module + "token_type_ids"};
        for (std::string_view name : {names_.ids, names_.positions, names_.segments})
            if (!name.empty()) known.push_back(layer_.beside(name));
        if (!names_.norm.empty()) {
            const std::string norm = layer_.beside(names_.norm) + ".";
            for (const StoredArray& array : file_.arrays)
                if (array.name.starts_with(norm)) known.push_back(array.name);
        }
        if (!names_.module.empty()) return check_nothing_else(file_, module, known, "embedding");
        for (std::string_view name : {names_.ids, names_.positions, names_.segments}) {
            if (name.empty()) continue;
            const std::string_view own_module = name.substr(0, name.rfind('.') + 1);
            check_nothing_else(file_, layer_.beside(own_module), known, "embedding");
        }
    }

    static void add_row(const StoredArray& table, std::uint64_t row, const char* what,
                        std::span<T> to) {
        if (table.shape.size() != 2 || table.shape[1] != to.size() || table.fortran_order)
            throw Error(ErrorKind::input, table.place(),
                        "shape " + shape_text(table.shape) + "; expected rows of " +
                            std::to_string(to.size()));
        if (row >= table.shape[0])
            throw SettingError(ErrorKind::input, "token_ids",
                               std::string(what) + " " + std::to_string(row) + ", but " +
                                   table.place() + " has " + std::to_string(table.shape[0]) +
                                   " rows; expected one below that");
        read_elements<T>(table, row * to.size(), to.size(),
                         [&](std::size_t before, std::span<const T> piece) {
                             for (std::size_t i = 0; i < piece.size(); ++i)
                                 to[before + i] += piece[i];
                         });
    }

    const ArrayFile& file_;
    const ModelLayer& layer_;
    const EmbeddingNames& names_;
    const EmbeddingSettings& settings_;
};

}  // namespace

Array<double> embed_token_ids(const ArrayFile& file, const ModelLayer& layer,
                              const std::vector<std::uint64_t>& ids,
                              const EmbeddingSettings& settings, Dtype dtype) {
    if (layer.family->embedding.ids.empty())
        throw SettingError(ErrorKind::usage, "token_ids",
                           "family " + std::string(layer.family->name) +
                               " has no embedding; expected INPUT instead");
    return for_dtype(dtype,
                     [&]<class T>(T) { return Embedder<T>(file, layer, settings).embed(ids); });
}

std::optional<std::size_t> embedding_width(const ArrayFile& file, const ModelLayer& layer) {
    const std::string_view name = layer.family->embedding.ids;
    const StoredArray* const table = name.empty() ? nullptr : file.find(layer.beside(name));
    if (table == nullptr || table->shape.size() != 2) return {};
    return table->shape[1];
}

bool has_pre_norm(const ArrayFile& file, const ModelLayer& layer) {
    if (layer.family->norm.empty()) return false;
    return file.find(names_of_norm(file, layer.beside(layer.family->norm)).first) != nullptr;
}

InputNorm read_pre_norm(const ArrayFile& file, const ModelLayer& layer,
                        const NormSettings& settings) {
    const Family& family = *layer.family;
    if (family.norm.empty())
        throw SettingError(ErrorKind::usage, "pre_norm",
                           "family " + std::string(family.name) +
                               " has no norm before its attention; expected --no-pre-norm");
    return read_norm_named(file, layer.beside(family.norm), settings);
}

HeadNormNames head_norm_names(const ArrayFile& file, const ModelLayer& layer) {
    const LayerNames& names = *layer.names;
    if (names.query_norm.empty()) return {};
    HeadNormNames found{layer.full(names.query_norm), layer.full(names.key_norm)};
    for (const std::string& norm : {found.query, found.key}) {
        const StoredArray* const weight = file.find(names_of_norm(file, norm).first);
        if (weight == nullptr || weight->shape.size() != 1) return {};
    }
    return found;
}

InputNorm read_head_norm(const ArrayFile& file, const std::string& name, std::size_t width,
                         std::size_t heads, const NormSettings& settings) {
    InputNorm norm = read_norm_named(file, name, settings);
    const std::size_t size = norm.weight.size();
    if (size != width && (heads == 0 || size * heads != width))
        throw Error(ErrorKind::input, file.name,
                    "\"" + names_of_norm(file, name).first + "\" has " + std::to_string(size) +
                        " numbers; expected " + std::to_string(width) + " for all heads, or " +
                        std::to_string(width) + " / " + std::to_string(heads) + " for each");
    return norm;
}

}  // namespace attn::io
