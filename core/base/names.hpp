// The names of an enumeration's values, as requests and results spell them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <utility>

namespace attn {

/// In help's order; the first is the default.
template <class E, std::size_t N>
using Names = std::array<std::pair<E, std::string_view>, N>;

template <class E, std::size_t N>
constexpr std::string_view name_of(const Names<E, N>& names, E value) {
    for (const auto& [candidate, name] : names)
        if (candidate == value) return name;
    return "?";
}

/// Whether each row's index in a table is the number of its value.
template <class E, class Row, std::size_t N>
constexpr bool are_in_order(const std::array<Row, N>& rows, E Row::*value) {
    for (std::size_t i = 0; i < N; ++i)
        if (static_cast<std::size_t>(rows[i].*value) != i) return false;
    return true;
}

/// The first row of a table whose `member` is this, or null.
template <class Rows, class Row, class Member, class Value>
constexpr auto* find_row(Rows&& rows, Member Row::*member, const Value& value) {
    const auto found = std::ranges::find(rows, value, member);
    return found == std::end(rows) ? nullptr : &*found;
}

/// Whether the rows of a table have these keys, in this order.
template <class Rows, class Keys>
constexpr bool same_keys(const Rows& rows, const Keys& keys) {
    return std::equal(std::begin(rows), std::end(rows), std::begin(keys), std::end(keys),
                      [](const auto& row, std::string_view key) { return row.key == key; });
}

}  // namespace attn
