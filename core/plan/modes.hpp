// The modes, one row each, used by all modules.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "core/base/names.hpp"

namespace attn {

enum class Mode { self, causal, multihead, cross, sdpa, linear };

/// How outputs are made of queries, keys and values.
enum class Mechanism { softmax, linear };

/// What a mode starts from: inputs, which it projects, or queries, keys and values.
enum class Source { inputs, operands, either };

/// When a result has a heads axis.
enum class HeadsAxis {
    never,
    named,    ///< if the setting `heads` is given
    always,   ///< of one head unless `heads` is given
    of_query  ///< as in the query's shape, and so it is for every mode where one is given
};

struct ModeRow {
    Mode mode;
    std::string_view name;
    Source source;
    bool context;  ///< keys and values come from a different input than the queries
    HeadsAxis heads_axis;
    bool causal;  ///< unless set otherwise
    Mechanism mechanism = Mechanism::softmax;

    /// Whether queries, keys and values are projected from inputs. `given`: they are given.
    constexpr bool projects(bool given) const {
        return source == Source::inputs || (source == Source::either && !given);
    }
};

inline constexpr std::array<ModeRow, 6> mode_rows{
    {{Mode::self, "self", Source::inputs, false, HeadsAxis::never, false},
     {Mode::causal, "causal", Source::inputs, false, HeadsAxis::never, true},
     {Mode::multihead, "multihead", Source::inputs, false, HeadsAxis::always, true},
     {Mode::cross, "cross", Source::inputs, true, HeadsAxis::named, false},
     {Mode::sdpa, "sdpa", Source::operands, true, HeadsAxis::of_query, false},
     {Mode::linear, "linear", Source::either, false, HeadsAxis::named, true, Mechanism::linear}}};

constexpr const ModeRow& row_of(Mode mode) {
    return mode_rows[static_cast<std::size_t>(mode)];
}
static_assert(are_in_order(mode_rows, &ModeRow::mode));

/// The row of this name, or null.
constexpr const ModeRow* mode_named(std::string_view name) {
    for (const ModeRow& row : mode_rows)
        if (row.name == name) return &row;
    return nullptr;
}

}  // namespace attn
