// The numbers of one query, taken from its arrays, and how the page writes them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/layer/result.hpp"

namespace attn::cli {

using Row = std::vector<double>;

/// Vectors, sums and tables of keys are truncated to this many elements, except with --full.
inline constexpr std::size_t max_shown = 12;

/// An element in row-major order.
double element(const NamedArray& array, std::size_t index);

/// Arrays of one question with one query row, viewed from one batch entry.
class TraceArrays {
public:
    TraceArrays(const std::vector<NamedArray>& arrays, std::size_t query, std::size_t batch,
                std::size_t heads)
        : arrays_(arrays), token_(query), batch_(batch), heads_(heads) {}

    bool has(std::string_view name) const { return find(name) != nullptr; }
    /// Null if there is no such array.
    const NamedArray* find(std::string_view name) const { return array_named(name, arrays_); }

    /// "(heads 2, d_out 4)": every axis with its size.
    std::string shape(std::string_view name) const;

    /// The query's row along the last axis. Keys and values have one row per `index`, parameters
    /// one per index of their first axis. Arrays of one number per query return that number.
    Row row(std::string_view name, std::size_t head = 0, std::size_t index = 0) const;

    /// The row or column of a parameter that produces element `out` of its output.
    Row weights_of(std::string_view name, std::size_t head, std::size_t out) const;

private:
    const NamedArray& get(std::string_view name) const;

    const std::vector<NamedArray>& arrays_;
    std::size_t token_, batch_, heads_;
};

/// The terms of a sum that are written out, by index; the others are combined into one number.
struct ShownTerms {
    std::vector<std::size_t> places;
    std::size_t others = 0;
    const char* name = "other key";  ///< for one of the others
};

/// The format of numbers: decimals, truncated rows, and for long sums the terms of largest
/// magnitude.
class NumberFormat {
public:
    /// `most` is max_shown, or npos for no limit.
    NumberFormat(int decimals, std::size_t most) : decimals_(decimals), most_(most) {}

    int decimals() const { return decimals_; }
    std::size_t most() const { return most_; }

    std::string number(double value) const;
    /// In parentheses if negative: "(-0.4300)".
    std::string factor(double value) const;

    /// "[0.4300, 0.1500, 0.8900]"; a row longer than `most` is truncated and states its length.
    std::string row(const Row& values, std::size_t most) const;
    std::string row(const Row& values) const { return row(values, most_); }

    /// "0.43*0.12 + 0.15*0.33 = 0.1011": the products of two rows, and a bias that is added last.
    /// Of many products the largest are shown, or those in `shown`.
    std::string products(const Row& a, const Row& b, double result, std::optional<double> bias = {},
                         const std::optional<ShownTerms>& shown = {}) const;

    /// "1.0000 + 0.5000 = 1.5000", of the terms that are shown; `last` is added last.
    std::string total(const Row& values, const ShownTerms& shown, std::optional<double> last,
                      double result) const;

private:
    template <class Text>
    std::string sum(const Row& values, const ShownTerms& shown, std::optional<double> last,
                    double result, Text text_of) const;

    int decimals_;
    std::size_t most_;
};

/// Indices of the elements of largest magnitude, at most `most`, in ascending order; of equal ones
/// the first. NaN counts as the largest.
std::vector<std::size_t> largest_of(const Row& values, std::size_t most);

}  // namespace attn::cli
