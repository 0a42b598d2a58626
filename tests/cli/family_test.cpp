// The table of families: each row is correct, is in the manual and has a case.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>

#include <nlohmann/json.hpp>

#include "io/model/families.hpp"
#include "tests/support/contains.hpp"
#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"

namespace family_test {

using namespace attn::test;
using attn::io::Family;
using nlohmann::json;

namespace {

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
    return text;
}

/// The row of this family in the manual's table.
std::string manual_row(const Family& family) {
    const std::string text = attn::test::manual_text();
    const std::size_t from = text.find("\n| `" + std::string(family.name) + "` |");
    return from == std::string::npos ? "" : text.substr(from, text.find('\n', from + 1) - from);
}

}  // namespace

TEST_CASE("families: each is a choice of --family, and is in the manual") {
    scratch_folder();
    const std::string help = run_attn({"multihead", "--help"}).out;
    for (const Family& family : attn::io::all_families()) {
        CAPTURE(family.name);
        CHECK(contains(help, family.name));
        CHECK(attn::io::find_family(family.name) == &family);
        const std::string row = manual_row(family);
        CHECK(row != "");
        CHECK(contains(row, family.layers.front().query.weight));
        for (const std::string_view type : family.types) CHECK(contains(lower(row), type));
    }
    CHECK(attn::io::find_family("other") == nullptr);
}

TEST_CASE("families: each has a case against an independent computation") {
    const json cases = load_data("models/expected.json")["cases"];
    for (const Family& family : attn::io::all_families()) {
        // Those without a config are in layouts_test.cpp.
        if (family.types.empty() && !family.is_plain) continue;
        CAPTURE(family.name);
        CHECK(std::any_of(cases.begin(), cases.end(),
                          [&](const json& one) { return one["family"] == family.name; }));
    }
}

}  // namespace family_test
