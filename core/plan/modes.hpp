// The modes, one row each, used by all modules.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace attn {

enum class Mode { self, causal, multihead, cross, sdpa };

/// When a result has a heads axis.
enum class HeadsAxis {
    never,
    named,    ///< if the setting `heads` is given
    always,   ///< of one head unless `heads` is given
    of_query  ///< as in the query's shape
};

struct ModeRow {
    Mode mode;
    std::string_view name;
    bool
        projects;  ///< queries, keys and values are projected from inputs; otherwise they are given
    bool context;  ///< keys and values come from a different input than the queries
    HeadsAxis heads_axis;
    bool causal;  ///< unless set otherwise
};

inline constexpr std::array<ModeRow, 5> mode_rows{
    {{Mode::self, "self", true, false, HeadsAxis::never, false},
     {Mode::causal, "causal", true, false, HeadsAxis::never, true},
     {Mode::multihead, "multihead", true, false, HeadsAxis::always, true},
     {Mode::cross, "cross", true, true, HeadsAxis::named, false},
     {Mode::sdpa, "sdpa", false, true, HeadsAxis::of_query, false}}};

constexpr const ModeRow& row_of(Mode mode) {
    return mode_rows[static_cast<std::size_t>(mode)];
}
static_assert(std::all_of(mode_rows.begin(), mode_rows.end(),
                          [](const ModeRow& row) { return &row == &row_of(row.mode); }),
              "rows are in the order of their modes");

/// The row of this name, or null.
constexpr const ModeRow* mode_named(std::string_view name) {
    for (const ModeRow& row : mode_rows)
        if (row.name == name) return &row;
    return nullptr;
}

}  // namespace attn
