// What a published model feeds its layers; see embeddings.hpp.
#include "io/model/embeddings.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/base/error.hpp"

namespace attn::io {
namespace {

const StoredArray& require(const ArrayFile& file, const std::string& name,
                           const std::string& purpose) {
    const StoredArray* found = file.find(name);
    if (found != nullptr) return *found;
    throw Error(ErrorKind::input, file.name,
                "has no tensor \"" + name + "\", which " + purpose + " needs; it has " +
                    list_of(file.arrays));
}

std::vector<double> read_vector(const StoredArray& array) {
    ArrayRules rules;
    rules.dtype = Dtype::float64;
    rules.lowest_rank = rules.highest_rank = 1;
    const Array<double> values = read_array<double>(array, rules);
    return {values.begin(), values.end()};
}

InputNorm read_norm(const ArrayFile& file, const std::string& name, bool is_rms, double eps) {
    // Files made from TensorFlow's call them gamma and beta.
    const bool old_names = file.find(name + ".gamma") != nullptr;
    const std::string weight = name + (old_names ? ".gamma" : ".weight");
    const std::string bias = name + (old_names ? ".beta" : ".bias");
    // A norm by the root mean square adds nothing; one that has a bias all the same is another
    // norm.
    std::vector<std::string> known{weight};
    if (!is_rms) known.push_back(bias);
    check_nothing_else(file, name + ".", known, "norm");
    InputNorm norm{is_rms, read_vector(require(file, weight, "the norm")), {}, eps};
    if (!is_rms) norm.bias = read_vector(require(file, bias, "the norm"));
    if (!is_rms && norm.bias.size() != norm.weight.size())
        throw Error(ErrorKind::input, file.name,
                    "\"" + bias + "\" has " + std::to_string(norm.bias.size()) +
                        " numbers; expected " + std::to_string(norm.weight.size()) +
                        " as the weight has");
    return norm;
}

template <class T>
class Embedder {
public:
    Embedder(const ArrayFile& file, const ModelLayer& layer) : file_(file), layer_(layer) {}

    Array<double> embed(const std::vector<std::uint64_t>& ids, std::size_t first_position,
                        double eps) const {
        const FamilyRule& rule = *layer_.rule;
        check_others();
        std::vector<const StoredArray*> tables;
        for (std::string_view name : rule.embeddings)
            tables.push_back(&require(file_, layer_.beside(name), "token_ids"));
        const std::size_t columns = tables[0]->shape.empty() ? 0 : tables[0]->shape.back();
        std::vector<T> row(columns);
        Array<double> x = Array<double>::from_shape({ids.size(), columns});
        InputNorm norm;
        if (!rule.embedding_norm.empty())
            norm = read_norm(file_, layer_.beside(rule.embedding_norm), false, eps);
        for (std::size_t token = 0; token < ids.size(); ++token) {
            std::fill(row.begin(), row.end(), T{0});
            add_row(*tables[0], ids[token], "token id", row);
            // In transformers' order: BERT adds its segments before its positions.
            if (tables.size() > 2) add_row(*tables[2], 0, "segment", row);
            if (tables.size() > 1) add_row(*tables[1], first_position + token, "position", row);
            if (norm.weight.size() == columns) normalise<T>(norm, row);
            std::copy(row.begin(), row.end(), x.data() + token * columns);
        }
        return x;
    }

private:
    /// The norm looks after its own tensors. Positions and segments are counted here.
    void check_others() const {
        const FamilyRule& rule = *layer_.rule;
        const std::string module = layer_.beside(rule.embedding);
        std::vector<std::string> known{module + "position_ids", module + "token_type_ids"};
        for (std::string_view name : rule.embeddings) known.push_back(layer_.beside(name));
        if (!rule.embedding_norm.empty()) {
            const std::string norm = layer_.beside(rule.embedding_norm) + ".";
            for (const StoredArray& array : file_.arrays)
                if (array.name.starts_with(norm)) known.push_back(array.name);
        }
        if (!rule.embedding.empty()) return check_nothing_else(file_, module, known, "embedding");
        for (std::string_view name : rule.embeddings) {
            const std::string_view table = name.substr(0, name.rfind('.') + 1);
            check_nothing_else(file_, layer_.beside(table), known, "embedding");
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
};

}  // namespace

Array<double> embed_token_ids(const ArrayFile& file, const ModelLayer& layer,
                              const std::vector<std::uint64_t>& ids, std::size_t first_position,
                              double eps, Dtype dtype) {
    if (layer.rule->embeddings.empty())
        throw SettingError(ErrorKind::usage, "token_ids",
                           "family " + std::string(name_of(family_names, layer.rule->family)) +
                               " has no embedding; expected INPUT instead");
    if (dtype == Dtype::float32)
        return Embedder<float>(file, layer).embed(ids, first_position, eps);
    return Embedder<double>(file, layer).embed(ids, first_position, eps);
}

InputNorm read_pre_norm(const ArrayFile& file, const ModelLayer& layer, double eps) {
    const FamilyRule& rule = *layer.rule;
    if (rule.norm.empty())
        throw SettingError(ErrorKind::usage, "pre_norm",
                           "family " + std::string(name_of(family_names, rule.family)) +
                               " has no norm before its attention; expected none");
    return read_norm(file, layer.beside(rule.norm), rule.is_rms_norm, eps);
}

void check_frequencies(const ArrayFile& file, const ModelLayer& layer,
                       const std::vector<double>& computed, bool may_differ,
                       bool may_differ_in_number) {
    for (const HarmlessTensor& other : layer.rule->others) {
        const StoredArray* array = file.find(layer.full(other.name));
        if (other.form != Form::frequencies || array == nullptr) continue;
        const std::vector<double> stored = read_vector(*array);
        if (stored.size() != computed.size()) {
            if (may_differ_in_number) continue;
            throw Error(ErrorKind::input, array->place(),
                        std::to_string(stored.size()) + " frequencies, but the settings rotate " +
                            std::to_string(2 * computed.size()) +
                            " dimensions of a head; expected --rope-dims " +
                            std::to_string(2 * stored.size()) + ", or --rope-dims " +
                            std::to_string(2 * computed.size()) + " to overrule the file");
        }
        if (may_differ) continue;
        // Half an ulp of bfloat16, the coarsest type, and of float16's subnormals; other settings
        // give other numbers by far.
        const double relative = 1.0 / 256, smallest = 1.0 / (1 << 24);
        bool is_near = true;
        for (std::size_t i = 0; is_near && i < stored.size(); ++i)
            is_near = std::abs(stored[i] - computed[i]) <= relative * computed[i] + smallest;
        if (!is_near)
            throw Error(ErrorKind::input, array->place(),
                        "other frequencies than those of the rotary embedding that is computed; "
                        "expected the same, or --rope-base or --rope-scaling to overrule them");
    }
}

}  // namespace attn::io
