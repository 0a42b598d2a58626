// Matrices as pictures: the contents, independent of the format.
#pragma once

#include "io/plot/colors.hpp"
#include "io/write/report.hpp"

namespace attn::io {

/// One matrix of a picture: (rows, columns) of a heat map, row-major.
struct HeatPanel {
    std::string title;                 ///< "batch 0, head 3"; empty if there is one panel
    std::vector<double> values;        ///< NaN where a number is missing
    std::vector<std::uint8_t> masked;  ///< 1 where the query may not attend; empty: nowhere
    std::vector<double> row_peak;      ///< largest magnitude of each row, without masked cells
};

/// "layer", "batch" or "head", and how many.
struct PanelAxis {
    std::string name;
    std::size_t size;
    std::vector<std::string> labels = {};  ///< one each, or empty: "head 0", "head 1", ...

    std::string label(std::size_t index) const {
        return labels.empty() ? name + " " + std::to_string(index) : labels[index];
    }
};

/// A cell that dropout set to 0, in words; the weight of a far key may be 0 without it.
inline constexpr const char* dropped_words = "0 after dropout";

/// The matrices of one array: heads side by side, batch entries below each other.
struct HeatMap {
    std::string array;                  ///< "attention_weights"
    std::string heading;                ///< "What each word attends to: causal, 3 heads"
    std::string title;                  ///< mode, array, shape, seed: one line
    std::string note;                   ///< a note that cells are pooled, or empty
    std::string row_axis, column_axis;  ///< "query", "key", "token", "dimension"
    std::vector<std::string> row_labels, column_labels;  ///< one per cell; indices without tokens
    bool tokens_on_rows = false, tokens_on_columns = false;  ///< the labels are not indices
    std::size_t rows = 0, columns = 0;                       ///< of each panel, in cells
    std::size_t row_step = 1, column_step = 1;               ///< elements per cell, each way
    std::size_t all_rows = 0, all_columns = 0;  ///< of the array; the last cells may have fewer
    std::size_t first_row = 0;                  ///< the token of row 0
    std::vector<PanelAxis> panel_axes;          ///< before the rows; the panels' order is theirs
    std::vector<HeatPanel> panels;
    bool is_float32 = false;  ///< the numbers, and so their decimals

    bool is_diverging = false;  ///< colours diverge from 0; otherwise they go from 0 up
    ColorScale asked = ColorScale::automatic;
    ColorScale automatic = ColorScale::robust;  ///< or another: the resolved automatic scale
    bool has_masked = false, has_dropped = false, has_no_number = false;  ///< cells
    double peak = 0;                   ///< largest magnitude of all drawn cells
    double largest = 0, smallest = 0;  ///< of them and 0
    double robust = 1;                 ///< a value above 0 that few of them exceed

    /// The scale of the picture; never automatic.
    ColorScale scale() const { return resolved(asked); }
    ColorScale resolved(ColorScale of) const {
        return of.kind == ColorScale::automatic ? automatic : of;
    }

    /// The headings of a table of panels, if there are two axes or more: "layer 3" of each group of
    /// panels side by side, "head 0" of each column.
    bool is_table() const { return panel_axes.size() > 1; }
    std::string row_heading(std::size_t group) const;
    std::string column_heading(std::size_t panel) const {
        return panel_axes.back().label(panel % panel_axes.back().size);
    }

    /// The number of panels side by side: the heads, or the entries of a batch without heads.
    std::size_t panel_columns() const { return panel_axes.empty() ? 1 : panel_axes.back().size; }

    double value(std::size_t panel, std::size_t row, std::size_t column) const {
        return panels[panel].values[row * columns + column];
    }
    bool is_masked(std::size_t panel, std::size_t row, std::size_t column) const {
        const std::vector<std::uint8_t>& masked = panels[panel].masked;
        return !masked.empty() && masked[row * columns + column] != 0;
    }

    /// Positions of a row's cells on the colour scale: 0 to 1, or -1 to 1 if the map is diverging.
    struct RowScale {
        double full;  ///< the magnitude of full colour; 0 if the whole row is 0
        bool is_diverging, is_log;

        /// Of a finite number.
        double position(double value) const;
    };
    RowScale row_scale(std::size_t panel, std::size_t row) const;
    /// Of a cell that is not masked.
    bool is_dropped(double value) const { return has_dropped && value == 0; }
    double position(std::size_t panel, std::size_t row, std::size_t column) const {
        return row_scale(panel, row).position(value(panel, row, column));
    }

    /// The magnitude that a scale draws in full colour, above 0; 0: the largest of each row.
    double full_color(ColorScale of) const;

    /// The ticks of a scale's bar: 3 to 6 positions with numbers.
    std::vector<ScaleTick> ticks_of(ColorScale of) const;
    std::vector<ScaleTick> ticks() const { return ticks_of(asked); }

    /// The value of full colour: "full colour: 0.06 and more", "logarithmic scale up to 1".
    std::string words_of(ColorScale of) const;
    std::string scale_words() const { return words_of(asked); }

    /// The shortest decimal that reads back as the same number, or "no number".
    std::string number_text(double value) const;

private:
    /// The least and the largest magnitude of full colour in the scale by rows.
    std::string row_peaks_text() const;
};

/// Whether all rows hold numbers from 0 to 1 that sum to 1, as after a softmax; half precision may
/// be off by a hundredth. Rank 2 or more.
bool holds_weights(const NamedArray& array);

struct HeatMapLimits {
    std::size_t rows = 1024, columns = 1024;  ///< more are pooled to at most as many
};

/// The heat map of one array of rank 2 or more. Larger matrices are pooled in blocks of equal size.
/// A cell holds its unmasked element of largest magnitude; it is NaN if one of them is, and
/// masked if all of its elements are. Errors: kind usage for arrays of rank 1, and of rank above 4
/// or, with layers, above 5; kind unsupported for more than 4096 matrices.
HeatMap make_heat_map(const Report& report, const NamedArray& array, const IsMasked& is_masked,
                      ColorScale scale, const HeatMapLimits& limits);

// Base64, for data embedded in pictures and pages.

/// Source: RFC 4648, section 4.
std::string base64(std::string_view bytes);

// Numbers as compressed planes in text, for pages of many cells.

/// The fewest mantissa bits after rounding: two decimal digits.
inline constexpr unsigned min_mantissa_bits = 6;

/// The estimated size of a map's text: `high + numbers * mantissa_bits / 6` characters.
struct PlaneCost {
    double high = 0, numbers = 0;
    unsigned mantissa_bits = 0;  ///< for exact numbers: 23 or 52
};

PlaneCost plane_cost(const HeatMap& map);

/// Mantissa bits for each map, so that all take about `max_bytes` of text: all bits if that
/// suffices; otherwise as many for the first map as leave the others `min_mantissa_bits`, then as
/// many for the others as fit. Never fewer than that: then the text may be longer.
std::vector<unsigned> fitting_mantissas(const std::vector<PlaneCost>& costs, double max_bytes);

/// Bytes of text.
double plane_bytes(const std::vector<PlaneCost>& costs, const std::vector<unsigned>& bits);

/// The numbers of a matrix without its masked cells, row by row: two zlib streams in base64, a
/// blank between them. The first holds the sign and exponent of each number, which are the high
/// bits of the type: the low byte of each, then the high byte of each. The second holds
/// `mantissa_bits` of each mantissa, highest first, without gaps.
///
/// Numbers are rounded to the nearest, ties to even, never to infinity, if those bits are fewer
/// than the type's. All NaNs are the same.
std::string number_planes(const HeatPanel& panel, bool is_float32, unsigned mantissa_bits);

/// One bit per flag, the first one highest, as a zlib stream in base64.
std::string packed_flags(const std::vector<std::uint8_t>& flags);

}  // namespace attn::io
