// The colours of heat maps and their scales.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/names.hpp"
#include "core/operator/arrays.hpp"

namespace attn::io {

// The colours of heat maps.

struct Color {
    std::uint8_t red, green, blue;
    friend bool operator==(const Color&, const Color&) = default;
};

/// The colours of cells, of viridis or, if they diverge, red above 0 and blue below, in equal steps
/// from one end to the other: at most 240, so that the picture of a map needs a palette at most. An
/// odd number if they diverge: 0 has its own colour.
std::span<const Color> cell_colors(bool is_diverging);

/// The nearest of them to `position`.
Color color_at(double position, bool is_diverging);

/// A colour of a text of colours: six hexadecimal digits each, and a character that ends them.
Color color_of(std::string_view colors, std::size_t index);

/// Black or white, whichever has more contrast on `ground`.
Color ink_on(const Color& ground);

/// The colours of masked cells, of cells that dropout set to 0, and of cells without a number.
inline constexpr Color masked_ground{0xf0, 0xf0, 0xf0};
inline constexpr Color dropped_ground{0xa0, 0xa0, 0xa0};
inline constexpr Color no_number{0xff, 0x00, 0xff};

/// "#1f9e89".
std::string hex_text(const Color& color);

// The colour scales of heat maps.

/// The value of full colour. robust: a value that few cells exceed; row: the largest of each row;
/// fixed: 1, or the largest magnitude of arrays with two signs; global: the largest of all; log:
/// the same, on a logarithmic scale; given: `full`. automatic is fixed, or another value that
/// depends on the numbers, and global for statistics of queries, keys or heads.
struct ColorScale {
    enum Kind : std::uint8_t { automatic, robust, row, fixed, global, log, given };
    Kind kind = automatic;
    double full = 0;

    constexpr ColorScale(Kind of = automatic) : kind(of) {}
    static constexpr ColorScale up_to(double value) {
        ColorScale scale(given);
        scale.full = value;
        return scale;
    }
    friend bool operator==(const ColorScale&, const ColorScale&) = default;
};
inline constexpr Names<ColorScale, 6> color_scale_names{{{ColorScale::automatic, "auto"},
                                                         {ColorScale::robust, "robust"},
                                                         {ColorScale::row, "row"},
                                                         {ColorScale::fixed, "fixed"},
                                                         {ColorScale::global, "global"},
                                                         {ColorScale::log, "log"}}};

/// A name of the table, or a positive number; nothing for another text.
std::optional<ColorScale> color_scale_of(std::string_view text);

/// The text that color_scale_of reads.
std::string text_of(const ColorScale& scale);

inline constexpr const char* color_scale_argument = "auto|robust|row|fixed|global|log|MAX";
inline constexpr const char* color_scale_expected =
    "auto, robust, row, fixed, global, log or a number above 0";
inline constexpr const char* color_scale_help =
    "the value of full colour; auto: 1 where the weights reach it, else a smaller one; robust: the "
    "value that 2 % of the cells exceed; row: the largest of the row; fixed: 1 (of scores the "
    "largest); global: the largest of all; log: the same, on a logarithmic scale; or a number "
    "(default auto)";

/// Ratios that a logarithmic scale shows: four powers of ten.
inline constexpr double log_range = 1e4;

/// A position on the colour bar, from 0 to 1, or from -1 to 1 if colours diverge.
struct ScaleTick {
    double position;
    std::string text;
};

/// Collects the magnitudes of a map's cells, row by row, and determines the value of full colour.
class Magnitudes {
public:
    Magnitudes();

    /// Starts the rows of another matrix.
    void begin_matrix() { begins_.push_back(row_peaks_.size()); }

    /// Adds a row with the magnitudes of its visible `cells`. Rows with one visible cell count only
    /// if they are that narrow (`is_narrow`): a query with one visible key has the weight 1 in any
    /// case.
    void add_row(const std::vector<double>& cells, bool is_narrow);

    /// The magnitude that 2 % of the cells exceed, rounded up for even ticks. At least a tenth of
    /// the median of the rows' largest, since smaller numbers are negligible. With `is_diverging`,
    /// where a scale by rows is not available, at most three times that median, since small
    /// matrices have fewer than a hundred cells. 1 if all are 0.
    double robust(bool is_diverging) const;

    /// The value of full colour of numbers from 0 up, the same for all matrices: 1 where the
    /// numbers reach it and most rows of nearly every matrix remain visible; otherwise robust, or
    /// less for that.
    double shared() const;

    double peak() const { return peak_; }

private:
    std::vector<std::size_t> counts_;  // by the leading bits of the magnitude
    std::size_t cells_ = 0;
    std::vector<double> row_peaks_;    // except rows of zeros
    std::vector<std::size_t> begins_;  // first row of each matrix
    double peak_ = 0;
};

/// Whether some numbers are above full colour, and below its negative: these are drawn as the ends.
struct Beyond {
    bool above = false, below = false;
};

/// From 0 to `full`, which is above 0, or from -full to full: 3 to 6 ticks, with numbers as round
/// as possible inside and at the ends: "0.6 and more".
std::vector<ScaleTick> even_ticks(double full, bool is_diverging, const Beyond& beyond = {});

/// At powers of ten from full / log_range to `full`.
std::vector<ScaleTick> log_ticks(double full, bool is_diverging);

/// "0.0123", "1e-7": three significant digits.
std::string rounded_text(double value);

// The colours that pictures show each array in.

/// Not drawn, in colours from 0 up where no number is negative, in diverging colours, or in
/// diverging colours with cells of -Infinity as masked.
enum class ArrayColors { none, from_zero, diverging, diverging_masked };

constexpr ArrayColors colors_of(ArrayId array) {
    constexpr ArraySet from_zero{"mask",
                                 "masked_weights",
                                 "weights_before_dropout",
                                 "dropout_mask",
                                 "attention_weights",
                                 "attn_mask",
                                 "key_padding_mask"};
    constexpr ArraySet masked{"biased_scores", "masked_scores"};
    if (array.row().from == From::trace || array == "token_ids" || array == "loss")
        return ArrayColors::none;
    if (from_zero.has(array) || array.row().is_statistic()) return ArrayColors::from_zero;
    return masked.has(array) ? ArrayColors::diverging_masked : ArrayColors::diverging;
}

}  // namespace attn::io
