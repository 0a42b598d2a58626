// Layouts that have no config.json: each gives the numbers of the attention's formula once what the
// tensors do not show is given, and an error names what is missing.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/run_attn.hpp"
#include "tests/support/sample.hpp"
#include "tests/support/support.hpp"

namespace layouts_test {

using namespace attn::test;
using nlohmann::json;

namespace {

using Row = std::vector<double>;
using Matrix = std::vector<Row>;

enum class Joins { no, parts, groups };

struct Layout {
    std::string module, out;
    std::vector<std::string> projections;  ///< one name if they are joined
    Joins joins = Joins::no;
    std::string norm_weight = {}, norm_bias = {};  ///< empty: it has no norms of heads
    bool has_groups = true;
};

const std::vector<Layout> layouts{
    {"transformer.h.1.attn.", "c_proj", {"c_attn"}, Joins::parts, {}, {}, false},
    {"_orig_mod.transformer.h.1.attn.", "c_proj", {"c_attn"}, Joins::parts, {}, {}, false},
    {"layers.1.attention.", "wo", {"wq", "wk", "wv"}, Joins::no, "weight", "bias"},
    {"model.layers.1.attention.", "wo", {"wqkv"}, Joins::groups},
    {"model.layers.1.self_attn.", "o_proj", {"W_pack"}, Joins::parts},
    {"transformer.encoder.layers.1.self_attention.", "dense", {"query_key_value"}, Joins::parts},
    {"blocks.1.attn.", "proj", {"qkv"}, Joins::parts, "weight", "bias"},
    {"trf_blocks.1.att.", "proj", {"qkv"}, Joins::parts, "scale", "shift"},
    {"trf_blocks.1.att.", "out_proj", {"W_query", "W_key", "W_value"}, Joins::no, "scale", "shift"},
    {"model.layers.1.self_attn.",
     "o_proj",
     {"q_proj", "k_proj", "v_proj"},
     Joins::no,
     "weight",
     "bias"}};

/// One layer with its settings; widths are those of four tokens.
struct Case {
    std::size_t heads, kv_heads, d;
    bool has_bias, causal;
    std::string norm, rope;  ///< "" or a form; "none" or the pairs
};

constexpr double scale = 0.4, base = 500, eps = 1e-3;
constexpr std::size_t tokens = 4;

class Layer {
public:
    Layer(const Case& c, std::mt19937& random) : c_(c), random_(random) {
        const std::size_t width = c.heads * c.d, narrow = c.kv_heads * c.d;
        x = drawn(tokens, width);
        for (const std::size_t outputs : {width, narrow, narrow, width}) {
            weights.push_back(drawn(outputs, width));
            biases.push_back(c.has_bias ? drawn(1, outputs)[0] : Row(outputs, 0));
        }
        for (std::size_t i = 0; i < 2; ++i) {
            norms.push_back(drawn(1, c.d)[0]);
            shifts.push_back(c.norm == "layer" ? drawn(1, c.d)[0] : Row(c.d, 0));
        }
    }

    json tensors(const Layout& layout) const {
        json all;
        const auto add = [&](const std::string& name, const Matrix& weight, const Row& bias) {
            all[layout.module + name + ".weight"] = weight;
            if (c_.has_bias) all[layout.module + name + ".bias"] = bias;
        };
        add(layout.out, weights[3], biases[3]);
        if (layout.joins == Joins::no) {
            for (std::size_t i = 0; i < 3; ++i) add(layout.projections[i], weights[i], biases[i]);
        } else {
            Matrix weight;
            Row bias;
            const std::size_t groups = layout.joins == Joins::groups ? c_.kv_heads : 1;
            for (std::size_t group = 0; group < groups; ++group)
                for (std::size_t part = 0; part < 3; ++part) {
                    const std::size_t rows = weights[part].size() / groups;
                    for (std::size_t row = group * rows; row < (group + 1) * rows; ++row) {
                        weight.push_back(weights[part][row]);
                        bias.push_back(biases[part][row]);
                    }
                }
            add(layout.projections[0], weight, bias);
        }
        for (std::size_t i = 0; i < 2 && !c_.norm.empty(); ++i) {
            const std::string module = layout.module + (i == 0 ? "q_norm." : "k_norm.");
            all[module + layout.norm_weight] = norms[i];
            if (c_.norm == "layer") all[module + layout.norm_bias] = shifts[i];
        }
        return all;
    }

    /// The context vectors, row after row.
    Row context() const {
        Matrix parts[3];
        for (std::size_t part = 0; part < 3; ++part)
            for (const Row& row : x) parts[part].push_back(project(part, row));
        Row out;
        Matrix joined(tokens, Row(c_.heads * c_.d, 0));
        for (std::size_t head = 0; head < c_.heads; ++head) {
            const std::size_t key_head = head / (c_.heads / c_.kv_heads);
            for (std::size_t i = 0; i < tokens; ++i) {
                const Row query = turned(head_of(parts[0][i], head, 0), i);
                Row weight;
                double sum = 0;
                for (std::size_t j = 0; j < tokens; ++j) {
                    const Row key = turned(head_of(parts[1][j], key_head, 1), j);
                    double score = 0;
                    for (std::size_t n = 0; n < c_.d; ++n) score += query[n] * key[n];
                    weight.push_back(c_.causal && j > i ? 0 : std::exp(scale * score));
                    sum += weight.back();
                }
                for (std::size_t j = 0; j < tokens; ++j)
                    for (std::size_t n = 0; n < c_.d; ++n)
                        joined[i][head * c_.d + n] +=
                            weight[j] / sum * parts[2][j][key_head * c_.d + n];
            }
        }
        for (const Row& row : joined)
            for (const double value : project(3, row)) out.push_back(value);
        return out;
    }

    Matrix x;
    std::vector<Matrix> weights;
    Matrix biases, norms, shifts;

private:
    Matrix drawn(std::size_t rows, std::size_t columns) {
        std::uniform_real_distribution<double> uniform(-1, 1);
        Matrix matrix(rows, Row(columns));
        for (Row& row : matrix)
            for (double& value : row) value = uniform(random_);
        return matrix;
    }

    Row project(std::size_t part, const Row& row) const {
        Row out = biases[part];
        for (std::size_t o = 0; o < out.size(); ++o)
            for (std::size_t i = 0; i < row.size(); ++i) out[o] += weights[part][o][i] * row[i];
        return out;
    }

    /// One head's part of a query (norm 0) or a key (norm 1), normed.
    Row head_of(const Row& row, std::size_t head, std::size_t norm) const {
        Row part(row.begin() + static_cast<std::ptrdiff_t>(head * c_.d),
                 row.begin() + static_cast<std::ptrdiff_t>((head + 1) * c_.d));
        if (c_.norm.empty()) return part;
        double mean = 0, squares = 0;
        const auto count = static_cast<double>(c_.d);
        for (const double value : part) mean += c_.norm == "layer" ? value / count : 0;
        for (const double value : part) squares += (value - mean) * (value - mean) / count;
        for (std::size_t i = 0; i < c_.d; ++i)
            part[i] = (part[i] - mean) / std::sqrt(squares + eps) *
                          (norms[norm][i] + (c_.norm == "rms-plus-one" ? 1 : 0)) +
                      shifts[norm][i];
        return part;
    }

    Row turned(const Row& row, std::size_t position) const {
        if (c_.rope == "none") return row;
        Row out = row;
        for (std::size_t i = 0; i < c_.d / 2; ++i) {
            const std::size_t a = c_.rope == "half" ? i : 2 * i,
                              b = c_.rope == "half" ? i + c_.d / 2 : 2 * i + 1;
            const double angle =
                static_cast<double>(position) *
                std::pow(base, -2 * static_cast<double>(i) / static_cast<double>(c_.d));
            out[a] = row[a] * std::cos(angle) - row[b] * std::sin(angle);
            out[b] = row[b] * std::cos(angle) + row[a] * std::sin(angle);
        }
        return out;
    }

    Case c_;
    std::mt19937& random_;
};

using Flags = std::vector<std::vector<std::string>>;

Flags flags_of(const Case& c) {
    Flags flags{{"--heads", std::to_string(c.heads)},
                {c.causal ? "--causal" : "--no-causal"},
                {"--scale", std::to_string(scale)},
                {"--rope", c.rope}};
    if (c.rope != "none")
        flags.insert(flags.end(),
                     {{"--rope-base", std::to_string(base)}, {"--rope-dims", std::to_string(c.d)}});
    if (!c.norm.empty())
        flags.insert(flags.end(), {{"--norm", c.norm}, {"--norm-eps", std::to_string(eps)}});
    return flags;
}

Outcome ask(const Layer& layer, const Flags& flags, const std::vector<std::string>& more = {}) {
    std::vector<std::string> command{"multihead", "-",        "--weights",     "w.json",
                                     "--layer",   "1",        "--no-pre-norm", "--dtype",
                                     "float64",   "--format", "json"};
    for (const auto& flag : flags) command.insert(command.end(), flag.begin(), flag.end());
    command.insert(command.end(), more.begin(), more.end());
    return run_attn(command, json(layer.x).dump());
}

void check_context(const Outcome& outcome, const Row& expected) {
    REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
    const std::vector<double> found = flat(json::parse(outcome.out)["context_vectors"]);
    REQUIRE_EQ(found.size(), expected.size());
    double worst = 0;
    for (std::size_t i = 0; i < found.size(); ++i)
        worst = std::max(worst, std::abs(found[i] - expected[i]));
    CHECK_LE(worst, 1e-11);
}

/// Every layout with these settings, if it has them.
template <class Check>
void for_each_case(const Check& check) {
    std::mt19937 random(7);
    std::size_t turn = 0;
    for (const Layout& layout : layouts)
        for (const auto& [heads, kv_heads] :
             {std::pair<std::size_t, std::size_t>{2, 2}, {4, 2}, {3, 1}, {1, 1}})
            for (const bool has_bias : {false, true})
                for (const char* norm : {"", "layer", "rms", "rms-plus-one"}) {
                    if (heads != kv_heads && !layout.has_groups) continue;
                    if (*norm != '\0' && layout.norm_weight.empty()) continue;
                    const char* const ropes[] = {"none", "half", "interleaved"};
                    const Case c{heads, kv_heads,       4, has_bias, turn % 2 == 0,
                                 norm,  ropes[turn % 3]};
                    ++turn;
                    CAPTURE(layout.module);
                    CAPTURE(layout.projections.front());
                    CAPTURE(norm);
                    const Layer layer(c, random);
                    write_text("w.json", layer.tensors(layout).dump());
                    check(layout, c, layer);
                }
}

}  // namespace

TEST_CASE("layouts: names, heads, biases and norms give the formula's numbers") {
    scratch_folder();
    for_each_case([](const Layout&, const Case& c, const Layer& layer) {
        check_context(ask(layer, flags_of(c)), layer.context());
    });
}

TEST_CASE("layouts: what the tensors do not show must be given") {
    scratch_folder();
    Sample sample(3);
    for_each_case([&](const Layout& layout, const Case& c, const Layer& layer) {
        if (!sample.takes()) return;
        const bool is_plain = layout.projections.front() == "W_query" && c.norm.empty();
        const Flags flags = flags_of(c);
        for (std::size_t i = 0; i < flags.size(); ++i) {
            Flags fewer = flags;
            fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
            std::string name = flags[i][0];
            if (name == "--rope-dims" || (is_plain && name != "--heads")) continue;
            if (name == "--no-causal") name = "--causal";
            if (name == "--rope")
                std::erase_if(fewer, [](const auto& f) { return f[0].starts_with("--rope-"); });
            const Outcome outcome = ask(layer, fewer);
            CHECK_EQ(outcome.code, 2);
            CHECK_NE(outcome.err.find(name), std::string::npos);
            CHECK_NE(outcome.err.find("missing"), std::string::npos);
        }
    });
}

TEST_CASE("layouts: norms of heads are not lost") {
    scratch_folder();
    std::mt19937 random(8);
    const Case c{2, 1, 4, false, true, "rms", "half"};
    const Layer layer(c, random);
    write_text("w.json", layer.tensors(layouts[2]).dump());
    const Outcome saved = ask(layer, flags_of(c), {"--save-weights", "saved.npz"});
    CHECK_EQ(saved.code, 2);
    CHECK_NE(saved.err.find("q_norm"), std::string::npos);
    const Outcome all = ask(layer, flags_of(c), {"--emit", "all", "-o", "all.json"});
    REQUIRE_MESSAGE(all.code == 0, all.err);
    const Outcome again =
        run_attn({"multihead", "-", "--weights", "all.json"}, json(layer.x).dump());
    CAPTURE(again.err);
    CHECK_EQ(again.code, 3);
    CHECK_NE(again.err.find("_norm.weight"), std::string::npos);
    const Outcome explained = run_attn({"explain", "all.json"});
    CHECK_NE(explained.code, 0);
    CHECK_NE(explained.err.find("norms of queries and keys"), std::string::npos);
    // One norm without the other is not a norm of heads.
    json weights = layer.tensors(layouts[2]);
    weights.erase(layouts[2].module + "k_norm.weight");
    write_text("w.json", weights.dump());
    const Outcome one = ask(layer, flags_of(c));
    CHECK_EQ(one.code, 3);
    CHECK_NE(one.err.find("q_norm.weight"), std::string::npos);
}

TEST_CASE("layouts: bias_k and bias_v are a key and a value that all queries see") {
    scratch_folder();
    std::mt19937 random(9);
    const Case c{2, 2, 4, true, true, "", "none"};
    const Layer layer(c, random);
    json weights;
    json joined = json::array(), bias = json::array();
    for (std::size_t part = 0; part < 3; ++part)
        for (std::size_t row = 0; row < layer.weights[part].size(); ++row) {
            joined.push_back(layer.weights[part][row]);
            bias.push_back(layer.biases[part][row]);
        }
    weights["in_proj_weight"] = joined;
    weights["in_proj_bias"] = bias;
    weights["out_proj.weight"] = layer.weights[3];
    weights["out_proj.bias"] = layer.biases[3];
    write_text("w.json", weights.dump());
    const std::vector<std::string> command{"multihead", "-",   "--weights", "w.json",
                                           "--heads",   "2",   "--dtype",   "float64",
                                           "--format",  "json"};
    const std::string x = json(layer.x).dump();
    // As a cache of one key and one value.
    json past_key = json::array(), past_value = json::array();
    for (std::size_t head = 0; head < 2; ++head) {
        const auto part = [&](const Row& row) {
            return json::array({Row(row.begin() + static_cast<std::ptrdiff_t>(4 * head),
                                    row.begin() + static_cast<std::ptrdiff_t>(4 * head + 4))});
        };
        past_key.push_back(part(layer.x[0]));
        past_value.push_back(part(layer.x[1]));
    }
    write_text("k.json", past_key.dump());
    write_text("v.json", past_value.dump());
    std::vector<std::string> cached = command;
    cached.insert(cached.end(), {"--past-key", "k.json", "--past-value", "v.json"});
    const Outcome expected = run_attn(cached, x);
    REQUIRE_MESSAGE(expected.code == 0, expected.err);
    weights["bias_k"] = {{layer.x[0]}};
    weights["bias_v"] = {{layer.x[1]}};
    write_text("w.json", weights.dump());
    const Outcome found = run_attn(command, x);
    REQUIRE_MESSAGE(found.code == 0, found.err);
    for (const char* array : {"context_vectors", "attention_weights"})
        CHECK_EQ(json::parse(found.out)[array], json::parse(expected.out)[array]);
    for (const std::vector<std::string>& more :
         {std::vector<std::string>{"--past-key", "k.json", "--past-value", "v.json"},
          {"--window", "1"},
          {"--alibi"},
          {"--save-weights", "saved.npz"}}) {
        std::vector<std::string> refused = command;
        refused.insert(refused.end(), more.begin(), more.end());
        const Outcome outcome = run_attn(refused, x);
        CHECK_EQ(outcome.code, 2);
        CHECK_NE(outcome.err.find("bias_k"), std::string::npos);
    }
}

}  // namespace layouts_test
