// The view of one head that the parts of its explanation share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "cli/explain/explanation.hpp"

namespace attn::cli {

class HeadView {
public:
    HeadView(Explanation& e, std::size_t head);

protected:
    Row row(const std::string& name) const { return e_.arrays.row(name, head_); }
    double number(const std::string& name) const { return row(name).front(); }

    /// "scores[head 1][2]" and "scores[head 1][2][3]", for this head and query.
    std::string place(ArrayId array) const { return e_.place(array, head_); }
    std::string element(ArrayId array, std::size_t index) const {
        return place(array) + "[" + std::to_string(index) + "]";
    }

    void heading(const std::string& words) { page_.heading(g_.heads > 1 ? 3 : 2, words); }

    /// The array of the scores that enter the softmax: that of the last step, or the one after the
    /// mask.
    std::string last_scores() const;

    /// Their displayed name, which differs if nothing was added to them and some keys are only
    /// masked.
    std::string name_of_last_scores() const;

    bool attends_to(std::size_t key) const { return mask_[key] != 0; }
    bool attends_to_all() const { return std::count(mask_.begin(), mask_.end(), 0.0) == 0; }
    bool attends_to_nothing() const {
        return std::count(mask_.begin(), mask_.end(), 0.0) == std::ssize(mask_);
    }

    /// Whether masked keys enter the softmax as -Infinity.
    bool masks_before_softmax() const {
        return !attends_to_all() && s_.mask_method == MaskMethod::neg_inf;
    }

    /// The key whose score is written out: the query's own, or the one with the largest weight.
    std::size_t key_in_full() const;

    /// The keys of the tables as terms of a sum over all keys, or over the visible ones.
    ShownTerms shown_terms(bool only_visible) const;

    /// The number of a key in the row of this name: a dot if the key is masked, in weights, and in
    /// what the mask has changed before them.
    std::string cell(const std::string& name, const Row& values, std::size_t key) const;

    /// Rows of one number per key, under the keys' names.
    void show_by_key(const std::vector<std::pair<std::string, Row>>& rows);
    /// The same with one line per key, and bars of the last row.
    void show_with_bars(const std::vector<std::pair<std::string, Row>>& rows);
    /// One vector per key, preceded by a number.
    void show_vectors(const std::string& number_name, const Row& numbers,
                      const std::string& vector_name, const std::vector<Row>& vectors,
                      const std::string& shape);

    Explanation& e_;
    const TraceArrays& arrays_;
    const NumberFormat& format_;
    Page& page_;
    const Settings& s_;
    const Plan& g_;
    std::size_t head_;
    Row mask_;                        // 1 where the query attends to a key
    std::vector<std::size_t> shown_;  // keys in tables

private:
    /// "key", "token" and one cell per shown key in each row; no row of tokens if they have no
    /// labels.
    io::Cells names_of_keys() const;
};

void write_scores(Explanation& e,
                  std::size_t head);  ///< the query vector, its scores, their modifiers
void write_mask(Explanation& e, std::size_t head);  ///< which keys are masked, and by which rules
void write_step(Explanation& e, std::size_t head);  ///< of linear attention, in place of these
void write_weights(Explanation& e, std::size_t head);  ///< softmax, dropout, sum of the values

}  // namespace attn::cli
