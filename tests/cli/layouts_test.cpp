// Layers without a config: with all that the tensors do not show as flags the numbers are those of
// a plain formula, for every style of names; without one of the flags there is an error that names
// it.
#include "tests/support/answers.hpp"
#include "tests/support/drawn_model.hpp"

namespace layouts_test {
namespace {

using namespace attn::test;
using nlohmann::json;

enum class Joins { no, parts, groups };

/// How a layer's tensors are named.
struct Layout {
    std::string module, out;
    Words projections;  ///< one name if they are joined
    Joins joins = Joins::no;
    std::string norm_weight = {}, norm_bias = {};  ///< of norms of heads; empty: it has none
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
    {"encoder.sentence_encoder.layers.1.self_attn.", "out_proj", {"q_proj", "k_proj", "v_proj"}},
    {"trf_blocks.1.att.", "proj", {"qkv"}, Joins::parts, "scale", "shift"},
    {"trf_blocks.1.att.", "out_proj", {"W_query", "W_key", "W_value"}, Joins::no, "scale", "shift"},
    {"model.layers.1.self_attn.",
     "o_proj",
     {"q_proj", "k_proj", "v_proj"},
     Joins::no,
     "weight",
     "bias"}};

constexpr std::size_t d = 4, tokens = 4;

struct Question {
    const Layout* layout = nullptr;
    std::size_t heads = 2, kv_heads = 2;
    bool has_bias = false, causal = false;
    std::string norm = {}, rope = {};  ///< of heads: "" or a form; "none" or the pairs
    double scale = 0.4, base = 500, eps = 1e-3;
    std::size_t dims = d;
};

/// One layer of attention, under the names of any layout: what the tensors do not show is drawn.
class Layer {
public:
    Layer(const Question& question, std::mt19937& random) : q_(question), random_(random) {
        const std::size_t width = q_.heads * d, narrow = q_.kv_heads * d;
        x = drawn({tokens, width});
        for (const std::size_t outputs : {width, narrow, narrow, width}) {
            weights_.push_back(drawn({outputs, width}));
            biases_.push_back(drawn({outputs}));
        }
        for (json* rows : {&norms_, &shifts_})
            for (std::size_t i = 0; i < 2; ++i) rows->push_back(drawn({d}));
    }

    json tensors(const Layout& layout) const {
        json all;
        const auto add = [&](const std::string& name, const json& weight, const json& bias) {
            all[layout.module + name + ".weight"] = weight;
            if (q_.has_bias) all[layout.module + name + ".bias"] = bias;
        };
        add(layout.out, weights_[3], biases_[3]);
        if (layout.joins == Joins::no) {
            for (std::size_t i = 0; i < 3; ++i) add(layout.projections[i], weights_[i], biases_[i]);
        } else {
            json weight, bias;
            const std::size_t groups = layout.joins == Joins::groups ? q_.kv_heads : 1;
            for (std::size_t group = 0; group < groups; ++group)
                for (std::size_t part = 0; part < 3; ++part) {
                    const std::size_t rows = weights_[part].size() / groups;
                    for (std::size_t row = group * rows; row < (group + 1) * rows; ++row) {
                        weight.push_back(weights_[part][row]);
                        bias.push_back(biases_[part][row]);
                    }
                }
            add(layout.projections[0], weight, bias);
        }
        for (std::size_t i = 0; i < 2 && !q_.norm.empty(); ++i) {
            const std::string norm = layout.module + (i == 0 ? "q_norm." : "k_norm.");
            all[norm + layout.norm_weight] = norms_[i];
            if (q_.norm == "layer") all[norm + layout.norm_bias] = shifts_[i];
        }
        return all;
    }
    json tensors() const { return tensors(*q_.layout); }

    json x;

private:
    json drawn(const std::vector<std::size_t>& shape) {
        std::uniform_real_distribution<double> uniform(-1, 1);
        return nested(shape, [&] { return uniform(random_); });
    }

    Question q_;
    std::mt19937& random_;
    json weights_, biases_, norms_, shifts_;
};

/// All flags that the question needs: each is the words of one setting.
std::vector<Words> flags_of(const Question& q) {
    const auto text = [](double value) { return json(value).dump(); };
    std::vector<Words> flags{{"--heads", std::to_string(q.heads)},
                             {q.causal ? "--causal" : "--no-causal"},
                             {"--scale", text(q.scale)},
                             {"--rope", q.rope}};
    if (q.rope != "none") flags.push_back({"--rope-base", text(q.base)});
    if (q.rope != "none") flags.push_back({"--rope-dims", std::to_string(q.dims)});
    if (q.norm.empty()) return flags;
    flags.push_back({"--norm", q.norm});
    flags.push_back({"--norm-eps", text(q.eps)});
    return flags;
}

Words words_of(const std::vector<Words>& flags, const Words& more = {}) {
    Words words{"multihead", "-",       "--weights", "w.json",       "--layer",
                "1",         "--dtype", "float64",   "--no-pre-norm"};
    for (const Words& flag : flags) words = words + flag;
    return words + more;
}

std::vector<Question> questions(std::mt19937& random) {
    const auto among = [&](const auto& values) { return values[random() % values.size()]; };
    const Words ropes{"none", "half", "interleaved"};
    std::vector<Question> all;
    for (const Layout& layout : layouts)
        for (const auto& [heads, kv_heads] :
             {std::pair<std::size_t, std::size_t>{2, 2}, {4, 2}, {3, 1}, {1, 1}})
            for (const bool has_bias : {false, true})
                for (const std::string norm : {"", "layer", "rms", "rms-plus-one"}) {
                    if (heads != kv_heads && !layout.has_groups) continue;
                    if (!norm.empty() && layout.norm_weight.empty()) continue;
                    Question q{&layout, heads, kv_heads, has_bias};
                    q.norm = norm;
                    q.causal = random() % 2 == 0;
                    q.rope = among(ropes);
                    q.dims = among(std::vector<std::size_t>{2, 4});
                    q.base = among(std::vector<double>{2, 500, 10000, 500000});
                    q.scale = among(std::vector<double>{0.5, 0.25, 0.4, 1, 1.5});
                    q.eps = among(std::vector<double>{1e-6, 1e-3, 0.5});
                    all.push_back(q);
                }
    return all;
}

void check_missing(const Question& q, const Layer& layer) {
    const bool is_plain = q.layout->projections[0] == "W_query" && q.norm.empty();
    const std::vector<Words> flags = flags_of(q);
    for (std::size_t i = 0; i < flags.size(); ++i) {
        std::string name = flags[i][0];
        if (name == "--rope-dims") continue;  // its default is all of a head
        if (is_plain && name != "--heads") continue;
        std::vector<Words> fewer = flags;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
        if (name == "--no-causal") name = "--causal";
        if (name == "--rope")
            std::erase_if(fewer, [](const Words& f) { return f[0].starts_with("--rope-"); });
        check_error(words_of(fewer), layer.x.dump(), 2, name);
    }
}

TEST_CASE("layouts: under all names a layer is that of separate projections, by all flags") {
    std::mt19937 random(7);
    Sample sample(3);
    for (const Question& q : questions(random)) {
        const Layer layer(q, random);
        CAPTURE(q.layout->module + q.layout->projections[0]);
        CAPTURE(q.norm);
        const auto found = [&](const Layout& layout) {
            write_text("w.json", layer.tensors(layout).dump());
            return result_of(words_of(flags_of(q)), layer.x.dump());
        };
        // Projections apart, whose numbers data/models has from other programs.
        const json expected = found(layouts.back()), own = found(*q.layout);
        for (const char* name : {"attention_weights", "context_vectors"})
            CHECK_LE(difference_of(own[name], expected[name]), 1e-13);
        if (sample.takes()) check_missing(q, layer);
    }
}

TEST_CASE("layouts: norms of heads are not lost") {
    std::mt19937 random(8);
    Question q{&layouts[2], 2, 1};
    q.causal = true;
    q.norm = "rms";
    q.rope = "half";
    const Layer layer(q, random);
    const std::string input = layer.x.dump();
    write_text("w.json", layer.tensors().dump());
    check_error(words_of(flags_of(q), {"--save-weights", "saved.npz"}), input, 2, "q_norm");
    const Words all = words_of(flags_of(q), {"--emit", "all", "-o", "all.json"});
    REQUIRE(run_attn(all, input).code == 0);
    check_error({"multihead", "-", "--weights", "all.json"}, input, 3, "_norm.weight");
    check_error({"explain", "all.json"}, "", 2, "norms of queries and keys");
    // One norm without the other is not a norm of heads.
    json weights = layer.tensors();
    weights.erase(layouts[2].module + "k_norm.weight");
    write_text("w.json", weights.dump());
    check_error(words_of(flags_of(q)), input, 3, "q_norm.weight");
}

TEST_CASE("layouts: bias_k and bias_v are a key and a value that all queries see") {
    std::mt19937 random(9);
    const Layer layer({&layouts[4], 2, 2, true}, random);
    const json joined = layer.tensors();
    const std::string module = layouts[4].module;
    json weights{{"in_proj_weight", joined[module + "W_pack.weight"]},
                 {"in_proj_bias", joined[module + "W_pack.bias"]},
                 {"out_proj.weight", joined[module + "o_proj.weight"]},
                 {"out_proj.bias", joined[module + "o_proj.bias"]}};
    write_text("w.json", weights.dump());
    const Words words{"multihead", "-",       "--weights", "w.json",  "--heads",
                      "2",         "--dtype", "float64",   "--causal"};
    const std::string x = layer.x.dump();
    // As a cache of one key and one value.
    for (const auto& [file, row] : {std::pair("k.json", layer.x[0]), {"v.json", layer.x[1]}}) {
        auto at = row.begin();
        write_text(file, nested({2, 1, d}, [&] { return *at++; }).dump());
    }
    const Words cache{"--past-key", "k.json", "--past-value", "v.json"};
    const json expected = answer(words + cache, x);
    weights["bias_k"] = json::array({json::array({layer.x[0]})});
    weights["bias_v"] = json::array({json::array({layer.x[1]})});
    write_text("w.json", weights.dump());
    const json found = answer(words, x);
    for (const char* array : {"context_vectors", "attention_weights"})
        CHECK(found[array] == expected[array]);
    for (const Words& more :
         {cache, {"--window", "1"}, {"--alibi"}, {"--save-weights", "saved.npz"}})
        check_error(words + more, x, 2, "bias_k");
}

}  // namespace
}  // namespace layouts_test
