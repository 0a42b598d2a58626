// What the colours of a heat map stand for.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/base/names.hpp"

namespace attn::io {

/// What full colour stands for. robust: what few cells exceed; row: the largest of each row; fixed:
/// 1, and the largest of arrays with two signs; global: the largest of all; log: the same, with
/// equal steps for equal ratios. automatic is robust or row, as the numbers are.
enum class ColorScale { automatic, robust, row, fixed, global, log };
inline constexpr Names<ColorScale, 6> color_scale_names{{{ColorScale::automatic, "auto"},
                                                         {ColorScale::robust, "robust"},
                                                         {ColorScale::row, "row"},
                                                         {ColorScale::fixed, "fixed"},
                                                         {ColorScale::global, "global"},
                                                         {ColorScale::log, "log"}}};

inline constexpr const char* color_scale_help =
    "what full colour stands for; robust: what two cells in a hundred exceed; row: the largest of "
    "the row; auto: robust, or row where many rows of a matrix would be dark; fixed: 1 (of scores "
    "the largest); global: the largest of all; log: the same, with equal steps for equal ratios "
    "(default auto)";

/// Ratios that a logarithmic scale shows: four powers of ten.
inline constexpr double log_range = 1e4;

/// A place on the bar of colours, from 0 to 1, or from -1 to 1 where colours go both ways.
struct ScaleTick {
    double position;
    std::string text;
};

/// Gathers the magnitudes of a map's cells, row by row, and says what full colour is to stand for.
class Magnitudes {
public:
    Magnitudes();

    /// The rows that follow are of another matrix.
    void begin_matrix();

    /// A row whose `cells` are the magnitudes of those that may be seen. Rows of one such cell
    /// count only where they have no other (`is_narrow`): a query that sees one key weighs it 1,
    /// whatever the numbers are.
    void add_row(const std::vector<double>& cells, bool is_narrow);

    /// The magnitude that two cells in a hundred exceed, rounded up to what ticks divide evenly. At
    /// least a tenth of the middle row's largest: numbers nearer to 0 are as good as none; and
    /// where no scale by rows can help (`is_diverging`), at most three times it: small matrices
    /// have no hundred cells. 1 where all are 0.
    double robust(bool is_diverging) const;

    /// Whether there is a matrix where nothing reaches a third of `full` in more than a third of
    /// the rows.
    bool leaves_rows_dark(double full) const;

    double peak() const { return peak_; }

private:
    std::vector<std::size_t> counts_;  // by the leading bits of the magnitude
    std::size_t cells_ = 0;
    std::vector<double> row_peaks_;    // but of rows of 0
    std::vector<std::size_t> begins_;  // of matrices, among them
    double peak_ = 0;
};

/// From 0 to `full`, which is above 0, or from -full to full: 3 to 6, with numbers as round as they
/// can be inside and at the ends.
std::vector<ScaleTick> even_ticks(double full, bool is_diverging);

/// At powers of ten from full / log_range to `full`.
std::vector<ScaleTick> log_ticks(double full, bool is_diverging);

/// "0.0123", "1e-7": three digits that count.
std::string rounded_text(double value);

}  // namespace attn::io
