// --head: arrays of each head hold the chosen heads, and nothing else changes. --token takes an
// index or a label. Slopes of ALiBi, of any number of heads, and the layers of models that have
// them; every form of --alibi-slopes: same_answers.txt.
#include "core/operator/arrays.hpp"
#include "core/plan/settings.hpp"
#include "tests/support/answers.hpp"
#include "tests/support/model_cases.hpp"

namespace chosen_heads_test {
namespace {

using namespace attn;
using namespace attn::test;
using Json = nlohmann::ordered_json;
using Heads = std::vector<std::size_t>;
using nlohmann::json;

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

/// The recursion of the paper's own code.
std::vector<double> published(std::size_t heads) {
    std::vector<double> slopes;
    std::size_t power = 1;
    while (2 * power <= heads) power *= 2;
    for (std::size_t i = 1; i <= power; ++i)
        slopes.push_back(std::pow(2, -8.0 * static_cast<double>(i) / static_cast<double>(power)));
    if (power == heads) return slopes;
    const std::vector<double> twice = published(2 * power);
    for (std::size_t i = 0; slopes.size() < heads; i += 2) slopes.push_back(twice[i]);
    return slopes;
}

std::vector<double> geometric(std::size_t heads) {
    std::vector<double> slopes;
    for (std::size_t h = 1; h <= heads; ++h)
        slopes.push_back(std::pow(2, -8.0 * static_cast<double>(h) / static_cast<double>(heads)));
    return slopes;
}

/// Scores of zero, so that what is added is the score: three queries and keys in each head.
json question(std::size_t heads) {
    const json head{{0}, {0}, {0}};
    json request{{"query", json::array({json::array()})}, {"alibi", true}, {"dtype", "float64"}};
    for (std::size_t h = 0; h < heads; ++h) request["query"][0].push_back(head);
    request["key"] = request["value"] = request["query"];
    return request;
}

/// The slopes that the answer's scores have.
std::vector<double> slopes_in(const json& answer) {
    std::vector<double> slopes;
    for (const json& head : answer["biased_scores"][0]) {
        slopes.push_back(-head[0][1].get<double>());
        CHECK(head[0][2].get<double>() == -2 * slopes.back());
        CHECK(head[2][0].get<double>() == -2 * slopes.back());
    }
    return slopes;
}

json answered(const Words& words, const json& request) {
    return result_of(words, request.dump());
}

bool are_near(const std::vector<double>& a, const std::vector<double>& b) {
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i)
        if (std::abs(a[i] - b[i]) > 1e-15 * std::abs(b[i])) return false;
    return true;
}

TEST_CASE("alibi: slopes by default, by name and in a list") {
    CHECK(are_near(published(6), {0.25, 0.0625, 1 / 64.0, 1 / 256.0, 0.5, 0.125}));
    const Words words{"sdpa", "-", "--emit", "biased_scores"};
    for (std::size_t heads = 1; heads <= 24; ++heads) {
        CAPTURE(heads);
        json request = question(heads);
        std::vector<double> given;
        for (std::size_t h = 0; h < heads; ++h)
            given.push_back((static_cast<double>(h * 5 % 7) - 2) / 8);
        CHECK(are_near(slopes_in(answered(words, request)), published(heads)));
        request["alibi_slopes"] = "geometric";
        CHECK(are_near(slopes_in(answered(words, request)), geometric(heads)));
        request["alibi_slopes"] = given;
        CHECK(slopes_in(answered(words, request)) == given);
    }
}

TEST_CASE("alibi: a layer of BLOOM or MPT with any number of heads is one of attn multihead") {
    for (const json& original : model_cases())
        for (std::size_t heads : std::vector<std::size_t>{1, 2, 3, 4, 5, 6, 7, 8, 12}) {
            const std::string name = original["name"];
            if (name != "bloom" && name != "mpt") continue;
            CAPTURE(name);
            CAPTURE(heads);
            json model = original;
            const std::size_t width = 4 * heads;
            for (auto& [tensor, drawn] : model["tensors"].items())
                for (json& size : drawn[0])
                    if (const std::size_t old = size; old % 32 == 0) size = old / 32 * width;
            for (const char* key : {"hidden_size", "d_model"})
                if (model["config"].contains(key)) model["config"][key] = width;
            for (const char* key : {"n_head", "n_heads"})
                if (model["config"].contains(key)) model["config"][key] = heads;
            write_model(model, "model");
            const Words ids{"--token-ids", "3,1,4,1,5", "--dtype", "float64"};
            const json whole = answered(
                Words{"model", "model", "--emit", "attention_weights"} + ids, json::object());
            for (const std::string layer : {"0", "1"}) {
                const json one = answered(Words{"multihead", "--weights", "model", "--layer", layer,
                                                "--emit", "attention_weights,biased_scores"} +
                                              ids,
                                          json::object());
                CHECK(one["config"]["alibi"] == true);
                CHECK(difference_of(one["attention_weights"],
                                    whole["attention_weights"][std::stoul(layer)]) < 1e-12);
            }
        }
}

const Words labels{"Your", " journey", "12a", "-x", "1.5", "a,b", "\xc3\xa9t\xc3\xa9"};

Json question_of(const ModeRow& mode) {
    Json rows = Json::array();
    for (std::size_t i = 0; i < labels.size(); ++i) rows.push_back({0.5 * double(i), 1.0, -0.25});
    Json question{{"mode", mode.name}, {"tokens", labels}};
    for (const char* key : {"query", "key", "value"})
        if (!mode.projects(false)) question[key] = rows;
    if (mode.projects(false)) question["inputs"] = rows;
    if (mode.projects(false) && mode.context) question["context"] = {{1, 2, 3}, {4, 5, 6}};
    return question;
}

TEST_CASE("token label: every label is its index, however it is given") {
    Sample is_taken;
    for (const ModeRow& mode : mode_rows) {
        const std::string name(mode.name);
        for (std::size_t i = 0; i < labels.size(); ++i) {
            if (!is_taken.takes()) continue;
            Json question = question_of(mode);
            write_text("q.json", question.dump());
            const std::string by_index =
                run_attn({name, "q.json", "--token", std::to_string(i)}).out;
            CHECK(Json::parse(by_index)["config"]["token"] == i);
            for (const std::string& label : {labels[i], " " + labels[i]}) {
                CAPTURE(name + " " + label);
                CHECK(run_attn({name, "q.json", "--token=" + label}).out == by_index);
                write_text("f.json", Json{{"token", label}}.dump());
                CHECK(run_attn({name, "q.json", "--config", "f.json"}).out == by_index);
                question["token"] = label;
                CHECK(run_attn({name}, question.dump()).out == by_index);
                Json answer = Json::parse(run_attn({"batch"}, question.dump()).out);
                answer.erase("id");
                answer["config"].erase("id");
                CHECK(answer == Json::parse(by_index));
                const auto headline = [&](const std::string& token) {
                    const std::string page =
                        run_attn({"explain", name, "q.json", "--token=" + token}).out;
                    return page.substr(0, page.find("\n\n", page.find("looks at")));
                };
                CHECK(headline(label) == headline(std::to_string(i)));
            }
        }
    }
}

}  // namespace
}  // namespace chosen_heads_test
