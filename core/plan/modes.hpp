// The modes, one row each: what a mode makes of its input, asked by every room.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace attn {

enum class Mode { self, causal, multihead, cross, sdpa };

/// Where an answer has a heads axis.
enum class HeadsAxis {
    never,
    named,    ///< where the setting `heads` is given
    always,   ///< of one head where `heads` says nothing
    of_query  ///< as the query's shape has it
};

struct ModeRow {
    Mode mode;
    std::string_view name;
    bool projects;  ///< queries, keys and values are made from inputs; else they are given
    bool context;   ///< keys and values belong to another input than the queries
    HeadsAxis heads_axis;
    bool causal;  ///< unless the settings say otherwise
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
              "rows stand in the order of their modes");

/// The row of this name, or null.
constexpr const ModeRow* mode_named(std::string_view name) {
    for (const ModeRow& row : mode_rows)
        if (row.name == name) return &row;
    return nullptr;
}

}  // namespace attn
