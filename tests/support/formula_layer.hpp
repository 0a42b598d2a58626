// One layer of attention by a plain formula, under the names of any layout: what the tensors do not
// show is drawn.
#pragma once

#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace attn::test::formula_layer {

using nlohmann::json;
using Row = std::vector<double>;
using Matrix = std::vector<Row>;

enum class Joins { no, parts, columns, groups };
enum class Source { hidden, normed, ids };

/// How a layer's tensors are named, and those of its norm and embedding where a family has them.
struct Layout {
    std::string module, out;
    std::vector<std::string> projections;  ///< one name if they are joined
    Joins joins = Joins::no;
    std::string norm_weight = {}, norm_bias = {};  ///< of norms of heads; empty: it has none
    bool has_groups = true;
    std::string family = {}, norm = {}, ids = {}, positions = {};
};

inline constexpr std::size_t d = 4, vocabulary = 9;
inline const std::vector<std::size_t> token_ids{3, 1, 4, 1};

struct Question {
    const Layout* layout = nullptr;
    std::string prefix;
    Source source = Source::hidden;
    std::size_t heads = 2, kv_heads = 2;
    bool has_bias = false, causal = false;
    std::string norm = {}, rope = {};  ///< "" or a form; "none" or the pairs
    double scale = 0.4, base = 500, eps = 1e-3, embedding_scale = 1;
    std::size_t dims = d, offset = 0;

    bool is_bert() const { return layout->family == "bert"; }
    bool has_embedding() const { return !layout->ids.empty(); }
    bool norms_heads() const { return !has_embedding() && !norm.empty(); }
    bool norms_input() const {
        return source == Source::ids || (source == Source::normed && !is_bert());
    }
};

class Layer {
public:
    Layer(const Question& question, std::mt19937& random) : q_(question), random_(random) {
        const std::size_t width = q_.heads * d, narrow = q_.kv_heads * d;
        x = drawn(token_ids.size(), width);
        for (const std::size_t outputs : {width, narrow, narrow, width}) {
            weights.push_back(drawn(outputs, width));
            biases.push_back(q_.has_bias ? drawn(1, outputs)[0] : Row(outputs, 0));
        }
        for (std::size_t i = 0; i < 2; ++i) {
            const std::size_t length = q_.has_embedding() ? width : d;
            norms_.push_back(drawn(1, length)[0]);
            shifts_.push_back(q_.norm == "layer" ? drawn(1, length)[0] : Row(length, 0));
        }
        ids_ = drawn(vocabulary, width);
        positions_ = drawn(vocabulary + 8, width);
        segments_ = drawn(2, width);
    }

    json tensors() const {
        const Layout& layout = *q_.layout;
        const std::string module = q_.prefix + layout.module;
        json all;
        const auto add = [&](const std::string& name, const Matrix& weight, const Row& bias) {
            const bool turns = layout.joins == Joins::columns;
            all[module + name + ".weight"] = turns ? transposed(weight) : weight;
            if (q_.has_bias) all[module + name + ".bias"] = bias;
        };
        add(layout.out, weights[3], biases[3]);
        if (layout.joins == Joins::no) {
            for (std::size_t i = 0; i < 3; ++i) add(layout.projections[i], weights[i], biases[i]);
        } else {
            Matrix weight;
            Row bias;
            const std::size_t groups = layout.joins == Joins::groups ? q_.kv_heads : 1;
            for (std::size_t group = 0; group < groups; ++group)
                for (std::size_t part = 0; part < 3; ++part) {
                    const std::size_t rows = weights[part].size() / groups;
                    for (std::size_t row = group * rows; row < (group + 1) * rows; ++row) {
                        weight.push_back(weights[part][row]);
                        bias.push_back(biases[part][row]);
                    }
                }
            add(layout.projections[0], weight, bias);
        }
        for (std::size_t i = 0; i < 2 && q_.norms_heads(); ++i) {
            const std::string norm = module + (i == 0 ? "q_norm." : "k_norm.");
            all[norm + layout.norm_weight] = norms_[i];
            if (q_.norm == "layer") all[norm + layout.norm_bias] = shifts_[i];
        }
        if (!q_.has_embedding()) return all;
        all[q_.prefix + layout.norm + ".weight"] = norms_[0];
        if (q_.norm == "layer") all[q_.prefix + layout.norm + ".bias"] = shifts_[0];
        all[q_.prefix + layout.ids + ".weight"] = ids_;
        if (!layout.positions.empty()) all[q_.prefix + layout.positions + ".weight"] = positions_;
        if (q_.is_bert()) all[q_.prefix + "embeddings.token_type_embeddings.weight"] = segments_;
        return all;
    }

    /// The attention weights and the context vectors, row after row.
    std::pair<Row, Row> answer() const {
        Matrix parts[3];
        for (std::size_t t = 0; t < token_ids.size(); ++t) {
            Row row = q_.source == Source::ids ? embedded(t) : x[t];
            if (q_.norms_input()) row = normed(row, 0);
            for (std::size_t part = 0; part < 3; ++part) parts[part].push_back(project(part, row));
        }
        const std::size_t tokens = token_ids.size();
        std::pair<Row, Row> found;
        Matrix joined(tokens, Row(q_.heads * d, 0));
        for (std::size_t head = 0; head < q_.heads; ++head) {
            const std::size_t key_head = head / (q_.heads / q_.kv_heads);
            for (std::size_t i = 0; i < tokens; ++i) {
                const Row query = head_of(parts[0][i], head, 0, i);
                Row weight;
                double sum = 0;
                for (std::size_t j = 0; j < tokens; ++j) {
                    const Row key = head_of(parts[1][j], key_head, 1, j);
                    double score = 0;
                    for (std::size_t n = 0; n < d; ++n) score += query[n] * key[n];
                    weight.push_back(q_.causal && j > i ? 0 : std::exp(q_.scale * score));
                    sum += weight.back();
                }
                for (std::size_t j = 0; j < tokens; ++j) {
                    found.first.push_back(weight[j] / sum);
                    for (std::size_t n = 0; n < d; ++n)
                        joined[i][head * d + n] += weight[j] / sum * parts[2][j][key_head * d + n];
                }
            }
        }
        for (const Row& row : joined)
            for (const double value : project(3, row)) found.second.push_back(value);
        return found;
    }

    Matrix x;
    std::vector<Matrix> weights;
    Matrix biases;

private:
    Matrix drawn(std::size_t rows, std::size_t columns) {
        std::uniform_real_distribution<double> uniform(-1, 1);
        Matrix matrix(rows, Row(columns));
        for (Row& row : matrix)
            for (double& value : row) value = uniform(random_);
        return matrix;
    }

    static Matrix transposed(const Matrix& m) {
        Matrix t(m[0].size(), Row(m.size()));
        for (std::size_t i = 0; i < m.size(); ++i)
            for (std::size_t j = 0; j < m[i].size(); ++j) t[j][i] = m[i][j];
        return t;
    }

    Row embedded(std::size_t t) const {
        Row row = ids_[token_ids[t]];
        for (std::size_t i = 0; i < row.size(); ++i) {
            row[i] *= q_.embedding_scale;
            if (q_.is_bert()) row[i] += segments_[0][i];
            if (!q_.layout->positions.empty()) row[i] += positions_[q_.offset + t][i];
        }
        return row;
    }

    Row project(std::size_t part, const Row& row) const {
        Row out = biases[part];
        for (std::size_t o = 0; o < out.size(); ++o)
            for (std::size_t i = 0; i < row.size(); ++i) out[o] += weights[part][o][i] * row[i];
        return out;
    }

    Row normed(Row row, std::size_t norm) const {
        double mean = 0, squares = 0;
        const auto count = static_cast<double>(row.size());
        for (const double value : row) mean += q_.norm == "layer" ? value / count : 0;
        for (const double value : row) squares += (value - mean) * (value - mean) / count;
        for (std::size_t i = 0; i < row.size(); ++i)
            row[i] = (row[i] - mean) / std::sqrt(squares + q_.eps) *
                         (norms_[norm][i] + (q_.norm == "rms-plus-one" ? 1 : 0)) +
                     shifts_[norm][i];
        return row;
    }

    /// One head's part of a query (norm 0) or a key (norm 1), normed and turned.
    Row head_of(const Row& row, std::size_t head, std::size_t norm, std::size_t position) const {
        const auto begin = row.begin() + static_cast<std::ptrdiff_t>(head * d);
        Row part(begin, begin + static_cast<std::ptrdiff_t>(d));
        if (q_.norms_heads()) part = normed(part, norm);
        if (q_.rope == "none") return part;
        Row out = part;
        for (std::size_t i = 0; i < q_.dims / 2; ++i) {
            const std::size_t a = q_.rope == "half" ? i : 2 * i,
                              b = q_.rope == "half" ? i + q_.dims / 2 : 2 * i + 1;
            const double angle =
                static_cast<double>(position) *
                std::pow(q_.base, -2 * static_cast<double>(i) / static_cast<double>(q_.dims));
            out[a] = part[a] * std::cos(angle) - part[b] * std::sin(angle);
            out[b] = part[b] * std::cos(angle) + part[a] * std::sin(angle);
        }
        return out;
    }

    Question q_;
    std::mt19937& random_;
    Matrix norms_, shifts_, ids_, positions_, segments_;
};

}  // namespace attn::test::formula_layer
