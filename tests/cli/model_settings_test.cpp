// Settings that the tensors of a model do not show: with all of them as flags the numbers are those
// of a plain formula, without one of them, or of an unsupported model type, there is an error.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include <nlohmann/json.hpp>

#include "tests/support/run_attn.hpp"
#include "tests/support/sample.hpp"
#include "tests/support/support.hpp"

namespace model_settings_test {

using namespace attn::test;
using nlohmann::json;

namespace {

using Matrix = std::vector<std::vector<double>>;
using Words = std::vector<std::string>;

constexpr std::size_t width = 8, heads = 2, head_width = width / heads, vocabulary = 9;

/// Names of one style of tensors; those of the layer are behind `layer`.
struct Style {
    std::string family, layer, query, key, value, out, norm, ids, positions;
};

const std::vector<Style> styles{
    {"gpt2", "h.0.attn.", "c_attn", "", "", "c_proj", "h.0.ln_1", "wte", "wpe"},
    {"llama", "layers.0.self_attn.", "q_proj", "k_proj", "v_proj", "o_proj",
     "layers.0.input_layernorm", "embed_tokens", ""},
    {"bert", "encoder.layer.0.attention.", "self.query", "self.key", "self.value", "output.dense",
     "embeddings.LayerNorm", "embeddings.word_embeddings", "embeddings.position_embeddings"},
    {"neox", "layers.0.attention.", "query_key_value", "", "", "dense", "layers.0.input_layernorm",
     "embed_in", ""}};

enum class Source { hidden, normed, ids };

struct Question {
    const Style* style = nullptr;
    std::string prefix;
    Source source = Source::hidden;
    bool causal = false, layer_norm = false, plus_one = false;
    std::string rope;
    double scale = 1, base = 1, eps = 0, embedding_scale = 1;
    std::size_t dims = 0, offset = 0;

    bool is_bert() const { return style->family == "bert"; }
    bool has_norm() const {
        return source == Source::ids || (source == Source::normed && !is_bert());
    }
};

class Model {
public:
    Model(const Question& question, std::mt19937& random) : q_(question), random_(random) {
        const std::string& p = q_.prefix;
        const Style& s = *q_.style;
        for (Matrix* part : {&query_, &key_, &value_, &out_}) *part = drawn(width, width);
        ids_ = drawn(vocabulary, width);
        positions_ = drawn(vocabulary + 8, width);
        segment_ = drawn(2, width);
        norm_weight_ = drawn(1, width)[0];
        norm_bias_ = drawn(1, width)[0];
        const std::string layer = p + s.layer;
        if (s.family == "gpt2") {
            weights_[layer + "c_attn.weight"] = transposed(joined());
            weights_[layer + "c_attn.bias"] = std::vector<double>(3 * width, 0.0);
        } else if (s.family == "neox") {
            weights_[layer + "query_key_value.weight"] = by_head();
        } else {
            weights_[layer + s.query + ".weight"] = query_;
            weights_[layer + s.key + ".weight"] = key_;
            weights_[layer + s.value + ".weight"] = value_;
        }
        weights_[layer + s.out + ".weight"] = out_;
        weights_[p + s.norm + ".weight"] = norm_weight_;
        if (q_.layer_norm) weights_[p + s.norm + ".bias"] = norm_bias_;
        weights_[p + s.ids + ".weight"] = ids_;
        if (!s.positions.empty()) weights_[p + s.positions + ".weight"] = positions_;
        if (q_.is_bert()) weights_[p + "embeddings.token_type_embeddings.weight"] = segment_;
    }

    const json& weights() const { return weights_; }
    Matrix inputs() { return drawn(4, width); }

    Matrix embedded(const std::vector<std::size_t>& tokens) const {
        Matrix x;
        for (std::size_t t = 0; t < tokens.size(); ++t) {
            std::vector<double> row(width);
            for (std::size_t i = 0; i < width; ++i) {
                row[i] = ids_[tokens[t]][i] * q_.embedding_scale;
                if (q_.is_bert()) row[i] += segment_[0][i];
                if (!q_.style->positions.empty()) row[i] += positions_[q_.offset + t][i];
            }
            x.push_back(row);
        }
        return x;
    }

    /// As attention_weights: heads, queries, keys.
    std::vector<double> attention(Matrix x) const {
        if (q_.has_norm())
            for (std::vector<double>& row : x) normalise(row);
        Matrix queries = product(x, query_), keys = product(x, key_);
        for (Matrix* rows : {&queries, &keys})
            for (std::size_t t = 0; t < rows->size(); ++t) rotate((*rows)[t], t);
        std::vector<double> weights;
        for (std::size_t head = 0; head < heads; ++head)
            for (std::size_t i = 0; i < x.size(); ++i) {
                std::vector<double> row(x.size(), 0.0);
                double total = 0;
                for (std::size_t j = 0; j < (q_.causal ? i + 1 : x.size()); ++j) {
                    double score = 0;
                    for (std::size_t n = head * head_width; n < (head + 1) * head_width; ++n)
                        score += queries[i][n] * keys[j][n];
                    total += row[j] = std::exp(score * q_.scale);
                }
                for (double weight : row) weights.push_back(weight / total);
            }
        return weights;
    }

private:
    Matrix drawn(std::size_t rows, std::size_t columns) {
        std::uniform_int_distribution<int> number(-1000, 1000);
        Matrix matrix(rows, std::vector<double>(columns));
        for (auto& row : matrix)
            for (double& x : row) x = number(random_) / 1024.0;
        return matrix;
    }
    Matrix joined() const {
        Matrix all = query_;
        for (const Matrix* part : {&key_, &value_})
            all.insert(all.end(), part->begin(), part->end());
        return all;
    }
    Matrix by_head() const {
        Matrix all;
        for (std::size_t head = 0; head < heads; ++head)
            for (const Matrix* part : {&query_, &key_, &value_})
                for (std::size_t n = 0; n < head_width; ++n)
                    all.push_back((*part)[head * head_width + n]);
        return all;
    }
    static Matrix transposed(const Matrix& m) {
        Matrix t(m[0].size(), std::vector<double>(m.size()));
        for (std::size_t i = 0; i < m.size(); ++i)
            for (std::size_t j = 0; j < m[i].size(); ++j) t[j][i] = m[i][j];
        return t;
    }
    static Matrix product(const Matrix& x, const Matrix& w) {
        Matrix y(x.size(), std::vector<double>(w.size()));
        for (std::size_t i = 0; i < x.size(); ++i)
            for (std::size_t j = 0; j < w.size(); ++j)
                for (std::size_t k = 0; k < width; ++k) y[i][j] += x[i][k] * w[j][k];
        return y;
    }
    void normalise(std::vector<double>& row) const {
        double mean = 0, squares = 0;
        if (q_.layer_norm)
            for (double x : row) mean += x / static_cast<double>(width);
        for (double x : row) squares += (x - mean) * (x - mean) / static_cast<double>(width);
        for (std::size_t i = 0; i < width; ++i) {
            row[i] = (row[i] - mean) / std::sqrt(squares + q_.eps) *
                     (norm_weight_[i] + (q_.plus_one ? 1 : 0));
            if (q_.layer_norm) row[i] += norm_bias_[i];
        }
    }
    void rotate(std::vector<double>& row, std::size_t position) const {
        if (q_.rope == "none") return;
        for (std::size_t head = 0; head < heads; ++head)
            for (std::size_t m = 0; m < q_.dims / 2; ++m) {
                const bool half = q_.rope == "half";
                double& a = row[head * head_width + (half ? m : 2 * m)];
                double& b = row[head * head_width + (half ? m + q_.dims / 2 : 2 * m + 1)];
                const double angle =
                    static_cast<double>(position) *
                    std::pow(q_.base, -2.0 * static_cast<double>(m) / static_cast<double>(q_.dims));
                const double turned = a * std::cos(angle) - b * std::sin(angle);
                b = a * std::sin(angle) + b * std::cos(angle);
                a = turned;
            }
    }

    const Question& q_;
    std::mt19937& random_;
    Matrix query_, key_, value_, out_, ids_, positions_, segment_;
    std::vector<double> norm_weight_, norm_bias_;
    json weights_ = json::object();
};

Question drawn_question(const Style& style, const std::string& prefix, Source source,
                        std::mt19937& random) {
    const auto among = [&](const auto& values) {
        return values[std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random)];
    };
    Question q;
    q.style = &style;
    q.prefix = prefix;
    q.source = source;
    q.causal = among(std::vector<int>{0, 1}) == 1;
    const int form = among(std::vector<int>{0, 1, 2});
    q.layer_norm = form == 0;
    q.plus_one = form == 2;
    q.rope = among(Words{"none", "half", "interleaved"});
    q.base = among(std::vector<double>{2, 10000, 500000});
    q.dims = among(std::vector<std::size_t>{2, 4});
    q.scale = among(std::vector<double>{0.5, 0.25, 1, 1.5});
    q.eps = among(std::vector<double>{1e-6, 1e-5, 0.5});
    q.embedding_scale = among(std::vector<double>{1, 4, 0.125});
    q.offset = among(std::vector<std::size_t>{0, 1, 2, 5});
    return q;
}

/// All flags that the question needs: each is the words of one setting.
std::vector<Words> flags_of(const Question& q) {
    const auto text = [](double x) { return json(x).dump(); };
    std::vector<Words> flags{{"--heads", std::to_string(heads)},
                             {q.causal ? "--causal" : "--no-causal"},
                             {"--scale", text(q.scale)},
                             {"--rope", q.rope}};
    if (q.rope != "none") flags.push_back({"--rope-base", text(q.base)});
    if (q.rope != "none") flags.push_back({"--rope-dims", std::to_string(q.dims)});
    if (q.has_norm()) {
        flags.push_back({"--norm", q.layer_norm ? "layer" : q.plus_one ? "rms-plus-one" : "rms"});
        flags.push_back({"--norm-eps", text(q.eps)});
    }
    if (q.source != Source::ids) return flags;
    flags.push_back({"--embedding-scale", text(q.embedding_scale)});
    if (!q.style->positions.empty())
        flags.push_back({"--position-offset", std::to_string(q.offset)});
    return flags;
}

Outcome ask(const Question& q, const std::vector<Words>& flags, const Matrix& inputs,
            const std::string& path, const Words& more = {}) {
    Words command{"multihead", "--weights",        path, "--dtype", "float64",
                  "--emit",    "attention_weights"};
    for (const Words& flag : flags) command.insert(command.end(), flag.begin(), flag.end());
    command.insert(command.end(), more.begin(), more.end());
    if (q.source == Source::ids)
        command.insert(command.end(), {"--token-ids", "3,1,4,1"});
    else
        command.insert(command.begin() + 1, "-");
    if (q.source == Source::normed && !q.is_bert()) command.emplace_back("--pre-norm");
    return run_attn(command, json(inputs).dump());
}

void check_answer(const Outcome& outcome, const std::vector<double>& expected) {
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    const std::vector<double> computed = flat(json::parse(outcome.out)["attention_weights"]);
    REQUIRE(computed.size() == expected.size());
    double worst = 0;
    for (std::size_t i = 0; i < expected.size(); ++i)
        worst = std::max(worst, std::abs(computed[i] - expected[i]));
    CHECK(worst < 1e-11);
}

void check_error(const Outcome& outcome, int code, const std::string& part) {
    CAPTURE(outcome.err);
    CHECK(outcome.code == code);
    CHECK(outcome.out.empty());
    CHECK(outcome.err.find(part) != std::string::npos);
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
    CHECK(outcome.err.size() < 700);
}

/// One model in every way: all flags, one of them missing, a config of an unsupported type.
void check_model(const Question& q, std::mt19937& random) {
    Model model(q, random);
    const Matrix inputs = model.inputs();
    const std::vector<double> expected =
        model.attention(q.source == Source::ids ? model.embedded({3, 1, 4, 1}) : inputs);
    const std::vector<Words> flags = flags_of(q);
    write_text("w.json", model.weights().dump());
    std::remove("config.json");
    check_answer(ask(q, flags, inputs, "w.json"), expected);
    check_answer(ask(q, flags, inputs, "w.json", {"--family", q.style->family}), expected);
    for (std::size_t i = 0; i < flags.size(); ++i) {
        // Its default is all of a head, but for NeoX.
        if (flags[i][0] == "--rope-dims" && q.style->family != "neox") continue;
        std::vector<Words> fewer = flags;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
        if (flags[i][0] == "--rope")
            std::erase_if(fewer, [](const Words& f) { return f[0].starts_with("--rope-"); });
        const std::string name = flags[i][0] == "--no-causal" ? "--causal" : flags[i][0];
        for (const Words& more :
             {Words{}, {"--family", q.style->family}, {"--model-config", "none"}})
            check_error(ask(q, fewer, inputs, "w.json", more), 2, name);
    }
    for (const char* type : {"gemma-like", "phi-like", "no-such"}) {
        write_text("config.json", json{{"model_type", type}}.dump());
        const std::string problem = "model type " + std::string(type) + " is not supported";
        check_error(ask(q, flags, inputs, "w.json"), 3, problem);
        const Outcome none = ask(q, flags, inputs, "w.json", {"--model-config", "none"});
        if (q.has_norm() || q.source == Source::ids)
            check_error(none, 3, problem);
        else
            check_answer(none, expected);
        const Outcome bare = ask(q, {flags[0]}, inputs, "w.json", {"--model-config", "none"});
        CHECK(bare.code != 0);
        CHECK(bare.err.find("usual for") == std::string::npos);
    }
    std::remove("config.json");
}

}  // namespace

TEST_CASE(
    "models: without a config, names x prefixes x sources x settings give the formula's numbers") {
    scratch_folder();
    std::mt19937 random(20);
    Sample is_taken(3);
    for (int round = 0; round < 2; ++round)
        for (const Style& style : styles)
            for (const std::string prefix : {"", "model.", "transformer.", "roberta."})
                for (const Source source : {Source::hidden, Source::normed, Source::ids}) {
                    if (!is_taken.takes()) continue;
                    const Question q = drawn_question(style, prefix, source, random);
                    CAPTURE(style.family);
                    CAPTURE(prefix);
                    CAPTURE(static_cast<int>(source));
                    CAPTURE(round);
                    check_model(q, random);
                }
}

TEST_CASE("models: RoBERTa's positions begin behind those of its padding") {
    scratch_folder();
    std::mt19937 random(21);
    for (const std::string type : {"bert", "roberta", "xlm-roberta", "camembert"})
        for (const json& padding : {json(), json(0), json(1), json(5)}) {
            CAPTURE(type);
            CAPTURE(padding.dump());
            Question q = drawn_question(styles[2], type == "bert" ? "bert." : "roberta.",
                                        Source::ids, random);
            q.causal = q.plus_one = false;
            q.layer_norm = true;
            q.rope = "none";
            q.scale = 1 / std::sqrt(static_cast<double>(head_width));
            q.embedding_scale = 1;
            const std::size_t id = padding.is_null() ? 1 : padding.get<std::size_t>();
            q.offset = type == "bert" ? 0 : id + 1;
            Model model(q, random);
            write_text("w.json", model.weights().dump());
            json config{{"model_type", type},
                        {"num_attention_heads", heads},
                        {"hidden_size", width},
                        {"layer_norm_eps", q.eps}};
            if (!padding.is_null()) config["pad_token_id"] = padding;
            write_text("config.json", config.dump());
            const Outcome outcome = ask(q, {}, {}, "w.json");
            if (type != "bert" && id == 1)  // one of the ids that are asked for: not counted
                CHECK(outcome.code == 0);
            else
                check_answer(outcome, model.attention(model.embedded({3, 1, 4, 1})));
            const std::string offset = std::to_string(q.offset);
            check_answer(ask(q, {{"--position-offset", offset}}, {}, "w.json"),
                         model.attention(model.embedded({3, 1, 4, 1})));
            config["pad_token_id"] = "x";
            write_text("config.json", config.dump());
            if (type != "bert") check_error(ask(q, {}, {}, "w.json"), 3, "pad_token_id is \"x\"");
        }
    std::remove("config.json");
    std::remove("config.json");
}

TEST_CASE("models: norms of queries and keys are named, many unused tensors are two examples") {
    scratch_folder();
    std::mt19937 random(22);
    Sample is_taken(3);
    for (const Style& style : styles)
        for (const std::string name :
             {"q_norm.weight", "k_norm.weight", "query_layernorm.bias", "self.k_layernorm.weight"})
            for (const std::size_t others : {0u, 1u, 2u, 5u, 40u}) {
                if (!is_taken.takes()) continue;
                const Question q = drawn_question(style, "model.", Source::hidden, random);
                json weights = Model(q, random).weights();
                for (std::size_t i = 0; i < others; ++i)
                    weights["model." + style.layer + "other_" + std::to_string(i)] = {1.0};
                write_text("w.json", weights.dump());
                if (others > 1) {
                    const std::string count = std::to_string(others);
                    check_error(ask(q, flags_of(q), {{1}}, "w.json"), 3,
                                "has " + count + " tensors which would be ignored, e.g. ");
                }
                weights["model." + style.layer + name] = {1.0};
                write_text("w.json", weights.dump());
                const std::string full = "\"model." + style.layer + name + "\"";
                check_error(
                    ask(q, flags_of(q), {{1}}, "w.json"), 3,
                    "a norm of queries or keys, " + full + ", which its layout does not have");
            }
}

}  // namespace model_settings_test
