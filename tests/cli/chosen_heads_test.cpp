// --head: arrays of each head hold the chosen heads, and nothing else changes.
#include "core/operator/arrays.hpp"
#include "tests/support/answers.hpp"

namespace chosen_heads_test {
namespace {

using namespace attn;
using namespace attn::test;
using Json = nlohmann::ordered_json;

using Heads = std::vector<std::size_t>;

Json matrix(std::size_t rows, std::size_t columns, double phase) {
    std::size_t i = 0;
    return nested<Json>({rows, columns}, [&] {
        return std::round(1000 * std::sin(phase + 1.7 * double(i++))) / 500;
    });
}

Json stack(std::size_t count, std::size_t rows, std::size_t columns, double phase) {
    Json all = Json::array();
    for (std::size_t i = 0; i < count; ++i) all.push_back(matrix(rows, columns, phase + double(i)));
    return all;
}

/// Four heads in every mode and rank that has them.
std::vector<Json> questions() {
    std::vector<Json> all;
    const Json rows = matrix(5, 8, 0), batch = stack(2, 5, 8, 0);
    const Json layer{{"mode", "multihead"}, {"inputs", rows}, {"heads", 4}, {"d_out", 8}};
    const auto add = [&](Json question, const Json& more) {
        if (!more.is_null()) question.update(more);
        all.push_back(question);
    };
    add(layer, {});
    add(layer, {{"inputs", batch}, {"kv_heads", 2}, {"token", 3}});
    add(layer, {{"kv_heads", 1}, {"alibi", true}, {"sink", {0.5, 1, 2, 3}}});
    add(layer, {{"style", "wrapper"}, {"d_out", 2}, {"dropout", 0.5}, {"inputs", batch}});
    add(layer, {{"dropout", 0.3}, {"dropout_seed", 7}, {"init", "mha"}, {"dtype", "float64"}});
    add(layer, {{"causal", false},
                {"mask_true", "keep"},
                {"mask", Json::parse(R"([[[true]], [[false]], [[true]], [[true]]])")}});
    add(layer,
        {{"rope", "half"}, {"past_key", stack(4, 3, 2, 1)}, {"past_value", stack(4, 3, 2, 2)}});
    add(layer, {{"mode", "cross"}, {"context", matrix(7, 8, 4)}, {"kv_heads", 2}});
    const Json sdpa{{"mode", "sdpa"}};
    add(sdpa,
        {{"query", stack(4, 5, 2, 0)}, {"key", stack(2, 6, 2, 1)}, {"value", stack(2, 6, 3, 2)}});
    add(sdpa,
        {{"heads", 4}, {"query", rows}, {"key", matrix(6, 8, 1)}, {"value", matrix(6, 8, 2)}});
    add(sdpa, {{"query", Json::array({stack(4, 3, 2, 0), stack(4, 3, 2, 5)})},
               {"key", Json::array({stack(4, 3, 2, 1), stack(4, 3, 2, 6)})},
               {"value", Json::array({stack(4, 3, 2, 2), stack(4, 3, 2, 7)})}});
    const Json linear{{"mode", "linear"}, {"heads", 4}, {"decay", {-0.25, -0.5, -0.125, 0}}};
    add(linear, {{"inputs", rows}, {"d_out", 8}, {"beta", 0.5}, {"qk_norm", true}});
    add(linear, {{"inputs", batch}, {"d_out", 8}, {"kv_heads", 2}, {"decay", {-0.25, -0.5}}});
    add({{"mode", "linear"}, {"decay", -0.25}}, {{"query", stack(4, 5, 2, 0)},
                                                 {"key", stack(4, 5, 2, 1)},
                                                 {"value", stack(4, 5, 3, 2)},
                                                 {"past_state", stack(4, 2, 3, 4)}});
    return all;
}

/// Arrays that kernels compute.
Json arrays_of(const Json& question) {
    Json names{"queries", "keys", "values", "attention_weights", "head_outputs", "context_vectors"};
    const bool is_linear = question["mode"] == "linear";
    const Json more = is_linear ? Json{"present_state"}
                                : Json{"scores", "logsumexp", "present_key", "present_value"};
    for (const Json& name : more) names.push_back(name);
    return names;
}

Json answer_to(Json question) {
    write_text("q.json", question.dump());
    return Json::parse(output_of({question["mode"].get<std::string>(), "q.json"}));
}

/// The entries `heads` of the axis at `depth`.
Json picked(const Json& array, std::size_t depth, const Heads& heads) {
    Json part = Json::array();
    if (depth != 0)
        for (const Json& item : array) part.push_back(picked(item, depth - 1, heads));
    else
        for (std::size_t head : heads) part.push_back(array[head]);
    return part;
}

std::size_t axis_of_heads(const Json& axes) {
    return std::size_t(std::find(axes.begin(), axes.end(), "heads") - axes.begin());
}

/// The result of all heads, as that of the chosen ones should be.
Json limited(Json all, const Heads& heads) {
    const std::size_t group =
        all["shapes"]["heads"].get<std::size_t>() / all["shapes"]["kv_heads"].get<std::size_t>();
    Heads key_heads;
    for (std::size_t head : heads) key_heads.push_back(head / group);
    for (const ArrayRow& row : emitted_arrays) {
        const std::string name(row.name);
        const bool is_by_key_head = row.axes[1] == Axis::kv_heads;
        if (!all.contains(name) || (row.axes[1] != Axis::heads && !is_by_key_head)) continue;
        const std::size_t axis = axis_of_heads(all["layout"]["axes"][name]);
        all[name] = picked(all[name], axis, is_by_key_head ? key_heads : heads);
    }
    return all;
}

TEST_CASE("chosen heads: every array of each head holds those, as the result of all has them") {
    for (const char* kernel : {"reference", "generic"})
        for (Json question : questions()) {
            question["kernel"] = kernel;
            const bool is_reference = kernel == std::string("reference");
            question["emit"] = is_reference ? Json("all") : arrays_of(question);
            const Json all = answer_to(question);
            for (const Heads& heads :
                 {Heads{0}, {3}, {0, 3}, {3, 0}, {0, 1, 2, 3}, {2, 2, 1, 2, 0}}) {
                question["head"] = heads;
                CAPTURE(question.dump());
                Json chosen = answer_to(question), expected = limited(all, heads);
                CHECK(chosen["config"]["head"] == heads);
                CHECK(chosen["layout"]["heads"] == heads);
                chosen["config"].erase("head");
                chosen["layout"].erase("heads");
                if (chosen.contains("asked")) chosen["asked"].erase("head");
                CHECK(chosen == expected);
            }
        }
}

TEST_CASE("chosen heads: --average-heads is the mean of these") {
    for (const char* kernel : {"reference", "generic"})
        for (Json question : questions()) {
            question.update({{"kernel", kernel}, {"emit", {"attention_weights"}}});
            question["head"] = {3, 1};
            const std::vector<double> weights = flat(answer_to(question)["attention_weights"]);
            question["average_heads"] = true;
            const Json averaged = answer_to(question);
            CHECK(averaged["layout"]["heads"] == Heads{3, 1});
            const std::vector<double> mean = flat(averaged["attention_weights"]);
            REQUIRE(weights.size() == 2 * mean.size());
            const std::size_t panel = shape_of(averaged["attention_weights"]).back() *
                                      *(shape_of(averaged["attention_weights"]).end() - 2);
            for (std::size_t i = 0; i < mean.size(); ++i) {
                const std::size_t first = i / panel * 2 * panel + i % panel;
                const double expected = (weights[first] + weights[first + panel]) / 2;
                CHECK(std::abs(mean[i] - expected) <= 1e-7 * std::max(1.0, std::abs(expected)));
            }
        }
}

TEST_CASE("chosen heads: pictures and comparisons name them") {
    const Words layer = words_in("multihead --example pair --heads 4 --d-out 8");
    REQUIRE(run_attn(layer + words_in("--head 3,1 -o r.json --plot r.svg")).code == 0);
    REQUIRE(run_attn({"plot", "r.json", "-o", "p.svg"}).code == 0);
    const std::string table = run_attn(layer + Words{"--head", "3,1", "--format", "table"}).out;
    CHECK(table.find("\nbatch 0, head 3\n") < table.find("\nbatch 0, head 1\n"));
    CHECK_FALSE(contains(table, ", head 0\n"));
    for (const char* picture : {"r.svg", "p.svg"}) {
        const std::string svg = read_text(picture);
        CHECK(contains(svg, "head 3"));
        CHECK(contains(svg, "head 1"));
        CHECK_FALSE(contains(svg, "head 0"));
    }
    REQUIRE(run_attn(words_in("plot r.json -o p.svg --head 1")).code == 0);
    CHECK_FALSE(contains(read_text("p.svg"), "head 3"));
    REQUIRE(run_attn(layer + words_in("--head 3,2 -o s.json --seed 1")).code == 0);
    const Outcome compared = run_attn({"compare", "r.json", "s.json"});
    CHECK(compared.out.find("head 3") + 1 + compared.out.find("head 1") + 1 != 0);
    CHECK(contains(compared.err, "r.json has heads [3,1], and s.json heads [3,2]"));
}

}  // namespace
}  // namespace chosen_heads_test
