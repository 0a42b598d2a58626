// The table of families: each row is correct, is in the manual and has a case.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>

#include <nlohmann/json.hpp>

#include "io/model/families.hpp"
#include "io/model/find_layer.hpp"
#include "tests/support/contains.hpp"
#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"

namespace family_test {

using namespace attn::test;
using attn::io::Family;
using attn::io::LayerNames;
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

std::string numbered(std::string_view name, const char* number) {
    std::string text(name);
    if (const std::size_t at = text.find('#'); at != std::string::npos) text.replace(at, 1, number);
    return text;
}

/// A file whose tensors have the names of layer or head 0, and shapes that are not looked at.
attn::io::ArrayFile file_of(const Family& family, const LayerNames& names) {
    attn::io::ArrayFile file;
    file.name = "names";
    const auto add = [&](const std::string& name) {
        if (file.find(name) != nullptr) return;
        attn::io::StoredArray array;
        array.name = name;
        array.shape = {2, 2};
        file.arrays.push_back(array);
    };
    const std::string prefix(family.published), layer = prefix + numbered(names.layer, "0");
    for (const attn::io::ProjectionNames& part : {names.query, names.key, names.value})
        for (std::string_view name : {part.weight, part.bias})
            if (!name.empty()) add(layer + std::string(name));
    for (std::string_view name : {names.out.weight, names.out.bias})
        add((names.is_wrapper ? prefix : layer) + std::string(name));
    return file;
}

}  // namespace

TEST_CASE("families: each is a choice of --family, and is in the manual") {
    scratch_folder();
    const std::string help = run_attn({"multihead", "--help"}).out;
    for (const Family* family : attn::io::all_families()) {
        CAPTURE(family->name);
        CHECK(contains(help, family->name));
        CHECK(attn::io::find_family(family->name) == family);
        const std::string row = manual_row(*family);
        CHECK(row != "");
        CHECK(contains(row, family->layers.front().query.weight));
        for (const std::string_view type : family->types) CHECK(contains(lower(row), type));
    }
    CHECK(attn::io::find_family("other") == nullptr);
}

TEST_CASE("families: the names of each form are found as that form") {
    for (const Family* family : attn::io::all_families())
        for (const LayerNames& names : family->layers) {
            const attn::io::ArrayFile file = file_of(*family, names);
            CAPTURE(names.query.weight);
            const attn::io::ModelLayer layer = attn::io::find_layer(file, {});
            CHECK(layer.family == family);
            CHECK(layer.names == &names);
            CHECK(layer.full(names.query.weight) == file.arrays.front().name);
            attn::io::ArrayFile more = file;
            more.arrays.push_back(more.arrays.front());
            more.arrays.back().name = layer.module() + "unknown";
            CHECK(contains(
                error_of([&] { attn::io::check_others(more, attn::io::find_layer(more, {})); }),
                "unknown"));
        }
}

TEST_CASE("families: a family with a norm has its epsilon") {
    for (const Family* family : attn::io::all_families()) {
        CAPTURE(family->name);
        const bool has_norm = !family->norm.empty() || !family->embedding.norm.empty();
        CHECK((family->eps > 0) == has_norm);
        CHECK((family->eps < 1e-4));
    }
}

TEST_CASE("families: each has a case against an independent computation") {
    const json cases = load_data("models/expected.json")["cases"];
    for (const Family* family : attn::io::all_families()) {
        // Those without a config are in layouts_test.cpp.
        if (family->types.empty() && !family->is_plain) continue;
        CAPTURE(family->name);
        CHECK(std::any_of(cases.begin(), cases.end(),
                          [&](const json& one) { return one["family"] == family->name; }));
    }
}

TEST_CASE("families: an output projection of another width is an error in the file, by its name") {
    scratch_folder();
    const json inputs = json::parse("[[1,2,3,4],[4,3,2,1]]");
    const auto rows = [](std::size_t count, std::size_t columns) {
        return json(std::vector<std::vector<double>>(count, std::vector<double>(columns, 0.5)));
    };
    for (const std::size_t columns : {2u, 4u, 8u}) {
        json weights;
        weights["layers.0.self_attn.q_proj.weight"] = rows(4, 4);
        for (const char* part : {"k", "v"})
            weights[std::string("layers.0.self_attn.") + part + "_proj.weight"] = rows(2, 4);
        weights["layers.0.self_attn.o_proj.weight"] = rows(4, columns);
        write_text("w.json", weights.dump());
        const Outcome outcome =
            run_attn({"multihead", "-", "--weights", "w.json", "--heads", "2", "--causal",
                      "--scale", "0.5", "--rope", "half", "--rope-base", "10000"},
                     inputs.dump());
        CAPTURE(outcome.err);
        CHECK(outcome.code == (columns == 4 ? 0 : 3));
        if (columns == 4) continue;
        const std::string place = "w.json:layers.0.self_attn.o_proj.weight: shape (4, " +
                                  std::to_string(columns) + "); expected 4 columns";
        CHECK(contains(outcome.err, place));
    }
    json bare{{"W_query", rows(4, 2)}, {"W_key", rows(4, 2)}, {"W_value", rows(4, 2)}};
    bare["W_out"] = rows(3, 4);
    write_text("w.json", bare.dump());
    const Outcome outcome =
        run_attn({"multihead", "-", "--weights", "w.json", "--heads", "1"}, inputs.dump());
    CHECK(outcome.code == 3);
    CHECK(contains(outcome.err, "w.json:W_out: shape (3, 4); expected 2 rows"));
}

TEST_CASE("save-weights: a family that cannot hold them is named by the flag that was given") {
    scratch_folder();
    const Words grouped{"multihead", "--text",     "a b c d", "--embed-dim",    "8",    "--heads",
                        "4",         "--kv-heads", "2",       "--save-weights", "w.npz"};
    for (const std::string flag : {"--save-family", "--family"}) {
        const Outcome outcome = run_attn(with(grouped, {flag, "gpt2"}));
        CHECK(outcome.code == 2);
        CAPTURE(outcome.err);
        CHECK(contains(outcome.err, flag +
                                        " gpt2: gpt2 joins queries, keys and values of one width; "
                                        "expected llama, bert, meta or notebook"));
    }
}

}  // namespace family_test
