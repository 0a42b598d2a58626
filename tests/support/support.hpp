// What several tests need: data files, arrays from JSON, comparisons; doctest and the standard
// library's usual headers, so that a test names only what it alone needs.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/base/tensor.hpp"
#include "io/file/output.hpp"
#include "io/file/source.hpp"
#include "tests/support/dice.hpp"
#include "tests/support/sample.hpp"
#include "tests/support/words.hpp"

namespace attn::test {

/// Absolute path of a file under data/.
std::string data_path(const std::string& name);
nlohmann::json load_data(const std::string& name);

std::string read_text(const std::string& path);

/// README.md and every page of cli/manual: their paths; their concatenated text.
std::vector<std::string> manual_pages();
std::string manual_text();

void write_text(const std::string& path, const std::string& text);

/// The bytes of base64, or all before a digit that is none.
std::string from_base64(std::string_view text);

/// The contents of a page's script element with that id, which ends where a browser sees its end.
std::string script_of(const std::string& page, const std::string& id);

/// A separate folder for each test process, removed at its end; it is the working directory.
const std::string& scratch_folder();

/// A seed of a data file, which may be negative, as 64 bits.
std::uint64_t seed_bits(const nlohmann::json& seed);

/// A nested JSON array flattened in row-major order; "-inf", "-Infinity", "nan" and so on are
/// numbers too.
std::vector<double> flat(const nlohmann::json& nested);
std::vector<std::size_t> shape_of(const nlohmann::json& nested);
Array<double> array_of(const nlohmann::json& nested);
template <class T>
Array<T> array_of(const nlohmann::json& nested) {
    return Array<T>(array_of(nested));
}

/// Nested lists of this shape, with what `element` returns, the last axis fastest.
template <class Json = nlohmann::json, class Element>
Json nested(const std::vector<std::size_t>& shape, const Element& element, std::size_t axis = 0) {
    if (axis == shape.size()) return element();
    Json all = Json::array();
    for (std::size_t i = 0; i < shape[axis]; ++i)
        all.push_back(nested<Json>(shape, element, axis + 1));
    return all;
}

/// The numbers in row-major order.
inline std::vector<double> numbers_of(const Array<double>& array) {
    return {array.begin(), array.end()};
}

/// The same bits, or NaN both.
template <class T>
bool same_bits(T a, T b) {
    return std::memcmp(&a, &b, sizeof a) == 0 || (std::isnan(a) && std::isnan(b));
}

/// FNV-1a over the bytes of numbers or letters.
template <class List>
std::uint64_t hash_of_bytes(const List& list) {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(list.data());
    std::uint64_t hash = 0xcbf29ce484222325;
    for (std::size_t i = 0; i < list.size() * sizeof *list.data(); ++i)
        hash = (hash ^ bytes[i]) * 0x100000001b3;
    return hash;
}

/// A text as a file that was read.
io::Source make_source(std::string name, std::string_view text);

/// What `write` writes, as text.
template <class Write>
std::string written(Write write) {
    io::TextOutput out;
    write(out);
    return std::move(out.text());
}

/// "where: what" of the error that `action` throws; empty where it throws none.
template <class Action>
std::string error_of(Action action) {
    try {
        action();
    } catch (const Error& error) {
        return error.location() + ": " + error.what();
    }
    return {};
}

}  // namespace attn::test
