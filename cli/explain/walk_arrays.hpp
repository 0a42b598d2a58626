// The numbers of one query, out of the arrays that were computed for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/layer/result.hpp"

namespace attn::cli {

using Row = std::vector<double>;

/// More numbers of a vector, terms of a sum or keys in tables are cut, but with --full.
inline constexpr std::size_t most_shown = 12;

/// Arrays of one question with one query row, seen from one batch entry.
class WalkArrays {
public:
    WalkArrays(const std::vector<NamedArray>& arrays, std::size_t query, std::size_t batch,
               std::size_t heads)
        : arrays_(arrays), token_(query), batch_(batch), heads_(heads) {}

    bool has(std::string_view name) const { return find(name) != nullptr; }
    /// Or null.
    const NamedArray* find(std::string_view name) const;

    /// "(heads 2, d_out 4)": every axis with its size.
    std::string shape(std::string_view name) const;
    std::vector<std::size_t> sizes(std::string_view name) const;

    /// All of an array, row by row of its last axis.
    std::vector<Row> rows(std::string_view name) const;

    /// The query's row along the last axis. Keys and values have a row for each `index`, parameters
    /// for each index of their first axis; arrays of a number a query give that number.
    Row row(std::string_view name, std::size_t head = 0, std::size_t index = 0) const;
    double number(std::string_view name, std::size_t head) const { return row(name, head).front(); }

    /// The column of a parameter that makes the number `out` of what comes out.
    Row weights_of(std::string_view name, std::size_t head, std::size_t out) const;

private:
    const NamedArray& get(std::string_view name) const;

    const std::vector<NamedArray>& arrays_;
    std::size_t token_, batch_, heads_;
};

/// Products that are added up, in the order and in the type that the program uses.
struct SumOfProducts {
    std::vector<std::pair<double, double>> factors;
    std::optional<double> bias{};  ///< added last
};

/// The terms of a sum that are written out, by their places; the others are one number.
struct ShownTerms {
    std::vector<std::size_t> places;
    std::size_t others = 0;
    const char* name = "other key";  ///< of one of the others
};

/// How numbers are written: digits after the point, long rows cut, and of long sums the terms of
/// largest magnitude.
class NumberWords {
public:
    /// `most` as most_shown, or no limit. Numbers of a file: sums are what its terms add up to
    /// about, since the file may be rounded and another kernel adds in another order. `digits` are
    /// those that it was written with.
    NumberWords(int decimals, Dtype dtype, std::size_t most, std::string file,
                std::optional<std::uint64_t> digits)
        : decimals_(decimals), dtype_(dtype), most_(most), file_(std::move(file)), digits_(digits) {
    }

    int decimals() const { return decimals_; }
    std::size_t most() const { return most_; }

    std::string number(double value) const;
    /// In brackets where it is negative: "(-0.4300)".
    std::string factor(double value) const;

    /// "[0.4300, 0.1500, 0.8900]"; one of more than `most` is cut and says how many there are.
    std::string row(const Row& values, std::size_t most) const;
    std::string row(const Row& values) const { return row(values, most_); }

    /// "0.43*0.12 + 0.15*0.33 = 0.1011", which is a number of `array`; of many products the largest
    /// are shown, or those that are said. Throws std::logic_error where that is not the sum:
    /// nothing but what was computed may be shown. Of a file's numbers: Error of kind input.
    std::string sum(const SumOfProducts& sum, double result, std::string_view array,
                    const std::optional<ShownTerms>& shown = {}) const;

    /// "1.0000 + 0.5000 = 1.5000", the sink's power added last. Throws as `sum`.
    std::string softmax_total(const Row& powers, const ShownTerms& shown,
                              std::optional<double> sink_power, double result) const;

    /// The same of weights that are left after a mask.
    std::string masked_total(const Row& weights, const ShownTerms& shown, double result) const;

private:
    void require_sum(const SumOfProducts& sum, double result, std::string_view array) const;
    std::string total(const Row& values, const ShownTerms& shown, std::optional<double> last,
                      double result) const;
    template <class Text>
    std::string terms(const Row& values, const ShownTerms& shown, Text text_of) const;

    int decimals_;
    Dtype dtype_;
    std::size_t most_;
    std::string file_;  // empty: they are computed
    std::optional<std::uint64_t> digits_;
};

/// Those of largest magnitude, at most `most`, in their order; of equal ones the first.
std::vector<std::size_t> largest_of(const Row& values, std::size_t most);

}  // namespace attn::cli
