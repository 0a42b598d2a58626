// Layers whose settings the tensors do not show: with all of them as flags the numbers are those of
// a plain formula, for every style of names; without one of them, or with the config of a type that
// is not supported, there is an error that names what is missing.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "tests/support/answers.hpp"
#include "tests/support/formula_layer.hpp"
#include "tests/support/sample.hpp"
#include "tests/support/support.hpp"

namespace layouts_test {

using namespace attn::test;
using namespace attn::test::formula_layer;

namespace {

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

/// The layout of a family's layer, with the names of its norm and embedding.
Layout of_family(const char* family, Layout layout, const char* norm, const char* ids,
                 const char* positions = "") {
    layout.family = family;
    layout.norm = norm;
    layout.ids = ids;
    layout.positions = positions;
    return layout;
}

const std::vector<Layout> families{
    of_family("gpt2", {"h.0.attn.", "c_proj", {"c_attn"}, Joins::columns}, "h.0.ln_1", "wte",
              "wpe"),
    of_family("llama", {"layers.0.self_attn.", "o_proj", {"q_proj", "k_proj", "v_proj"}},
              "layers.0.input_layernorm", "embed_tokens"),
    of_family(
        "bert",
        {"encoder.layer.0.attention.", "output.dense", {"self.query", "self.key", "self.value"}},
        "embeddings.LayerNorm", "embeddings.word_embeddings", "embeddings.position_embeddings"),
    of_family("neox", {"layers.0.attention.", "dense", {"query_key_value"}, Joins::groups},
              "layers.0.input_layernorm", "embed_in")};

/// All flags that the question needs: each is the words of one setting.
std::vector<Words> flags_of(const Question& q) {
    const auto text = [](double value) { return json(value).dump(); };
    std::vector<Words> flags{{"--heads", std::to_string(q.heads)},
                             {q.causal ? "--causal" : "--no-causal"},
                             {"--scale", text(q.scale)},
                             {"--rope", q.rope}};
    if (q.rope != "none") flags.push_back({"--rope-base", text(q.base)});
    if (q.rope != "none") flags.push_back({"--rope-dims", std::to_string(q.dims)});
    if (q.norms_heads() || q.norms_input()) {
        flags.push_back({"--norm", q.norm});
        flags.push_back({"--norm-eps", text(q.eps)});
    }
    if (q.source != Source::ids) return flags;
    flags.push_back({"--embedding-scale", text(q.embedding_scale)});
    if (!q.layout->positions.empty())
        flags.push_back({"--position-offset", std::to_string(q.offset)});
    return flags;
}

Words words_of(const Question& q, const std::vector<Words>& flags, const Words& more = {}) {
    Words words{"multihead", "--weights", "w.json", "--dtype", "float64"};
    if (q.source == Source::ids)
        words = words + Words{"--token-ids", "3,1,4,1"};
    else
        words.insert(words.begin() + 1, "-");
    if (q.source == Source::normed) words.emplace_back("--pre-norm");
    if (!q.has_embedding()) words = words + Words{"--layer", "1", "--no-pre-norm"};
    for (const Words& flag : flags) words = words + flag;
    return words + more;
}

void check_answer(const Layer& layer, const Words& words) {
    const Outcome outcome = run_attn(words, json(layer.x).dump());
    REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
    const json found = json::parse(outcome.out);
    const auto [weights, context] = layer.answer();
    for (const auto& [name, expected] :
         {std::pair("attention_weights", weights), {"context_vectors", context}}) {
        const Row numbers = flat(found[name]);
        REQUIRE(numbers.size() == expected.size());
        double worst = 0;
        for (std::size_t i = 0; i < numbers.size(); ++i)
            worst = std::max(worst, std::abs(numbers[i] - expected[i]));
        CHECK(worst < 1e-11);
    }
}

std::vector<Question> questions(std::mt19937& random) {
    const auto among = [&](const auto& values) { return values[random() % values.size()]; };
    const Words norms{"layer", "rms", "rms-plus-one"}, ropes{"none", "half", "interleaved"};
    std::vector<Question> all;
    const auto add = [&](Question q) {
        q.causal = random() % 2 == 0;
        q.rope = among(ropes);
        q.dims = among(std::vector<std::size_t>{2, 4});
        q.base = among(Row{2, 500, 10000, 500000});
        q.scale = among(Row{0.5, 0.25, 0.4, 1, 1.5});
        q.eps = among(Row{1e-6, 1e-3, 0.5});
        all.push_back(q);
    };
    for (const Layout& layout : layouts)
        for (const auto& [heads, kv_heads] :
             {std::pair<std::size_t, std::size_t>{2, 2}, {4, 2}, {3, 1}, {1, 1}})
            for (const bool has_bias : {false, true})
                for (const std::string norm : {"", "layer", "rms", "rms-plus-one"}) {
                    if (heads != kv_heads && !layout.has_groups) continue;
                    if (!norm.empty() && layout.norm_weight.empty()) continue;
                    Question q{&layout, "", Source::hidden, heads, kv_heads, has_bias};
                    q.norm = norm;
                    add(q);
                }
    for (const Layout& layout : families)
        for (const std::string prefix : {"", "model.", "transformer.", "roberta."})
            for (const Source source : {Source::hidden, Source::normed, Source::ids}) {
                Question q{&layout, prefix, source};
                if (q.is_bert() && source == Source::normed) continue;
                q.has_bias = layout.family == "gpt2";
                q.norm = among(norms);
                q.embedding_scale = among(Row{1, 4, 0.125});
                q.offset = among(std::vector<std::size_t>{0, 1, 2, 5});
                add(q);
            }
    return all;
}

template <class Check>
void for_each_layer(const Check& check) {
    std::mt19937 random(7);
    for (const Question& q : questions(random)) {
        const Layer layer(q, random);
        CAPTURE(q.prefix + q.layout->module + q.layout->projections[0]);
        CAPTURE(q.norm);
        write_text("w.json", layer.tensors().dump());
        std::filesystem::remove("config.json");
        check(q, layer);
    }
}

void check_missing(const Question& q, const Layer& layer, const Words& more) {
    const bool is_plain = q.layout->projections[0] == "W_query" && q.norm.empty();
    const std::vector<Words> flags = flags_of(q);
    for (std::size_t i = 0; i < flags.size(); ++i) {
        std::string name = flags[i][0];
        // Its default is all of a head, but for NeoX.
        if (name == "--rope-dims" && q.layout->family != "neox") continue;
        if (is_plain && name != "--heads") continue;
        std::vector<Words> fewer = flags;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
        if (name == "--no-causal") name = "--causal";
        if (name == "--rope")
            std::erase_if(fewer, [](const Words& f) { return f[0].starts_with("--rope-"); });
        check_error(words_of(q, fewer, more), json(layer.x).dump(), 2, name);
    }
}

}  // namespace

TEST_CASE("layouts: names, heads, biases, norms and embeddings give the formula's numbers") {
    scratch_folder();
    for_each_layer([](const Question& q, const Layer& layer) {
        check_answer(layer, words_of(q, flags_of(q)));
        if (q.has_embedding())
            check_answer(layer, words_of(q, flags_of(q), {"--family", q.layout->family}));
    });
}

TEST_CASE("layouts: what the tensors do not show must be given") {
    scratch_folder();
    Sample sample(3);
    for_each_layer([&](const Question& q, const Layer& layer) {
        if (!sample.takes()) return;
        check_missing(q, layer, {});
        if (!q.has_embedding()) return;
        check_missing(q, layer, {"--family", q.layout->family});
        check_missing(q, layer, {"--model-config", "none"});
    });
}

TEST_CASE("layouts: a config of an unsupported type is an error, and its layout is not guessed") {
    scratch_folder();
    Sample sample(3);
    for_each_layer([&](const Question& q, const Layer& layer) {
        if (!q.has_embedding() || !sample.takes()) return;
        const std::string input = json(layer.x).dump();
        const std::vector<Words> flags = flags_of(q);
        const Words none{"--model-config", "none"};
        write_text("config.json", R"({"model_type": "no-such"})");
        const std::string problem = "model type no-such is not supported";
        check_error(words_of(q, flags), input, 3, problem);
        if (q.norms_input())
            check_error(words_of(q, flags, none), input, 3, problem);
        else
            check_answer(layer, words_of(q, flags, none));
        const Outcome bare = run_attn(words_of(q, {flags[0]}, none), input);
        CHECK(bare.code != 0);
        CHECK_FALSE(contains(bare.err, "usual for"));
    });
}

TEST_CASE("layouts: RoBERTa's positions begin behind those of its padding") {
    scratch_folder();
    std::mt19937 random(21);
    for (const std::string type : {"bert", "roberta", "xlm-roberta", "camembert"})
        for (const json& padding : {json(), json(0), json(1), json(5)}) {
            CAPTURE(type);
            CAPTURE(padding.dump());
            Question q{&families[2], type == "bert" ? "bert." : "roberta.", Source::ids};
            q.norm = "layer";
            q.rope = "none";
            q.scale = 1 / std::sqrt(static_cast<double>(d));
            const std::size_t id = padding.is_null() ? 1 : padding.get<std::size_t>();
            q.offset = type == "bert" ? 0 : id + 1;
            const Layer layer(q, random);
            write_text("w.json", layer.tensors().dump());
            json config{{"model_type", type},
                        {"num_attention_heads", q.heads},
                        {"hidden_size", q.heads * d},
                        {"layer_norm_eps", q.eps}};
            if (!padding.is_null()) config["pad_token_id"] = padding;
            write_text("config.json", config.dump());
            if (type != "bert" && id == 1)  // one of the ids that are asked for: not counted
                CHECK(run_attn(words_of(q, {})).code == 0);
            else
                check_answer(layer, words_of(q, {}));
            check_answer(layer, words_of(q, {{"--position-offset", std::to_string(q.offset)}}));
            config["pad_token_id"] = "x";
            write_text("config.json", config.dump());
            if (type != "bert") check_error(words_of(q, {}), "", 3, "pad_token_id is \"x\"");
        }
    std::filesystem::remove("config.json");
}

TEST_CASE("layouts: norms of heads are not lost") {
    scratch_folder();
    std::mt19937 random(8);
    Question q{&layouts[2], "", Source::hidden, 2, 1};
    q.causal = true;
    q.norm = "rms";
    q.rope = "half";
    const Layer layer(q, random);
    const std::string input = json(layer.x).dump();
    write_text("w.json", layer.tensors().dump());
    check_error(words_of(q, flags_of(q), {"--save-weights", "saved.npz"}), input, 2, "q_norm");
    const Words all = words_of(q, flags_of(q), {"--emit", "all", "-o", "all.json"});
    REQUIRE(run_attn(all, input).code == 0);
    check_error({"multihead", "-", "--weights", "all.json"}, input, 3, "_norm.weight");
    const Outcome explained = run_attn({"explain", "all.json"});
    CHECK(explained.code != 0);
    CHECK(contains(explained.err, "norms of queries and keys"));
    // One norm without the other is not a norm of heads.
    json weights = layer.tensors();
    weights.erase(layouts[2].module + "k_norm.weight");
    write_text("w.json", weights.dump());
    check_error(words_of(q, flags_of(q)), input, 3, "q_norm.weight");
}

TEST_CASE("layouts: bias_k and bias_v are a key and a value that all queries see") {
    scratch_folder();
    std::mt19937 random(9);
    Question q{&layouts[4], "", Source::hidden, 2, 2, true};
    const Layer layer(q, random);
    const json joined = layer.tensors();
    const std::string module = layouts[4].module;
    json weights{{"in_proj_weight", joined[module + "W_pack.weight"]},
                 {"in_proj_bias", joined[module + "W_pack.bias"]},
                 {"out_proj.weight", joined[module + "o_proj.weight"]},
                 {"out_proj.bias", joined[module + "o_proj.bias"]}};
    write_text("w.json", weights.dump());
    const Words words{"multihead", "-", "--weights", "w.json",
                      "--heads",   "2", "--dtype",   "float64"};
    const std::string x = json(layer.x).dump();
    // As a cache of one key and one value.
    json past_key = json::array(), past_value = json::array();
    for (std::size_t head = 0; head < 2; ++head) {
        const auto part = [&](const Row& row) {
            const auto begin = row.begin() + static_cast<std::ptrdiff_t>(d * head);
            return json::array({Row(begin, begin + static_cast<std::ptrdiff_t>(d))});
        };
        past_key.push_back(part(layer.x[0]));
        past_value.push_back(part(layer.x[1]));
    }
    write_text("k.json", past_key.dump());
    write_text("v.json", past_value.dump());
    const Words cache{"--past-key", "k.json", "--past-value", "v.json"};
    const json expected = answer(words + cache, x);
    weights["bias_k"] = {{layer.x[0]}};
    weights["bias_v"] = {{layer.x[1]}};
    write_text("w.json", weights.dump());
    const json found = answer(words, x);
    for (const char* array : {"context_vectors", "attention_weights"})
        CHECK(found[array] == expected[array]);
    for (const Words& more :
         {cache, {"--window", "1"}, {"--alibi"}, {"--save-weights", "saved.npz"}})
        check_error(words + more, x, 2, "bias_k");
}

}  // namespace layouts_test
