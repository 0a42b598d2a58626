// Layers under the names of other classes: those of the table, and any by --weight-names. The
// numbers are those of the same weights under the notebooks' names.
#include "tests/support/answers.hpp"
#include "tests/support/drawn_model.hpp"

namespace class_names_test {
namespace {

using namespace attn::test;
using nlohmann::json;

enum class Form { separate, parts, heads, heads_first, heads_second };

/// Names of the tensors of q, k, v and out, or q, kv and out, or qkv and out, and of their biases.
struct ClassNames {
    const char* family;
    Words weights, biases;  ///< no biases: the class has none
    Form form = Form::separate;
};

Words with(const Words& names, const std::string& end) {
    Words all;
    for (const std::string& name : names) all.push_back(name + end);
    return all;
}

ClassNames linear(const char* family, const Words& names, Form form = Form::separate) {
    return {family, with(names, ".weight"), with(names, ".bias"), form};
}

ClassNames keras(const char* family, const Words& names, const char* weight, const char* bias) {
    return {family, with(names, weight), with(names, bias), Form::heads_second};
}

const Words qkv{"query", "key", "value"};

const ClassNames notebook = linear("notebook", {"W_query", "W_key", "W_value", "out_proj"});

const std::vector<ClassNames> classes{
    linear("diffusers", {"to_q", "to_k", "to_v", "to_out.0"}),
    linear("diffusers", {"to_q", "to_k", "to_v", "to_out"}),
    linear("diffusers", {"to_q", "to_kv", "to_out.0"}),
    linear("diffusers", {"to_q", "to_kv", "to_out"}),
    linear("qkv-proj", {"q_proj", "kv_proj", "o_proj"}),
    linear("qkv-proj", {"q_proj", "kv_proj", "out_proj"}),
    linear("labml", {"query.linear", "key.linear", "value.linear", "output"}),
    linear("ldm", {"q", "k", "v", "proj_out"}),
    linear("diffusers", {"to_qkv", "to_out.0"}, Form::parts),
    linear("diffusers", {"to_qkv", "to_out"}, Form::parts),
    linear("d2l", {"W_q", "W_k", "W_v", "W_o"}),
    linear("annotated", {"linears.0", "linears.1", "linears.2", "linears.3"}),
    linear("fairseq", {"q_proj", "k_proj", "v_proj", "out_proj"}),
    linear("mlx", {"query_proj", "key_proj", "value_proj", "out_proj"}),
    linear("mlx", {"query_proj", "key_proj", "value_proj", "output_proj"}),
    linear("openai-whisper", qkv + Words{"out"}),
    linear("jadore", {"w_qs", "w_ks", "w_vs", "fc"}),
    linear("nanogpt", {"c_attn", "c_proj"}, Form::parts),
    {"gpt-dev", with(qkv + Words{"proj"}, ".weight"), {}},
    linear("uvadlc", {"qkv_proj", "o_proj"}, Form::heads),
    {"qkv-proj", {"qkv_proj.weight", "o_proj.weight"}, {}, Form::parts},
    {"transformer-lens",
     {"W_Q", "W_K", "W_V", "W_O"},
     {"b_Q", "b_K", "b_V", "b_O"},
     Form::heads_first},
    keras("flax", qkv + Words{"out"}, "/kernel", "/bias"),
    keras("flax", qkv + Words{"out"}, ".kernel", ".bias"),
    keras("keras", qkv + Words{"attention_output"}, "/kernel", "/bias"),
    keras("keras", qkv + Words{"attention_output"}, "/kernel:0", "/bias:0"),
    keras("keras", qkv + Words{"attention_output"}, ".kernel", ".bias"),
    keras("keras", {"query_dense", "key_dense", "value_dense", "output_dense"}, "/vars/0",
          "/vars/1")};

constexpr std::size_t d = 3, tokens = 4;

struct Layer {
    Layer(std::size_t heads_, bool biased_, std::mt19937& random) : heads(heads_), biased(biased_) {
        std::uniform_real_distribution<double> uniform(-1, 1);
        const auto drawn = [&](std::size_t rows, std::size_t columns) {
            return nested({rows, columns}, [&] { return uniform(random); });
        };
        const std::size_t width = heads * d;
        x = drawn(tokens, width);
        for (std::size_t part = 0; part < 4; ++part) {
            weights.push_back(drawn(width, width));
            biases.push_back(drawn(1, width)[0]);
        }
    }

    /// Rows of q, k and v, or numbers of their biases, in one tensor; without q from part 1 on.
    json joined(const json& parts, bool by_head, std::size_t first) const {
        json all;
        for (std::size_t head = 0; head < (by_head ? heads : 1); ++head)
            for (std::size_t part = first; part < 3; ++part)
                for (std::size_t i = 0; i < (by_head ? d : heads * d); ++i)
                    all.push_back(parts[part][head * d + i]);
        return all;
    }

    json with_axis(std::size_t part, Form form) const {
        const std::size_t width = heads * d;
        std::vector<std::size_t> shape{heads, part == 3 ? d : width, part == 3 ? width : d};
        if (part < 3 && form == Form::heads_second) shape = {width, heads, d};
        std::size_t next = 0;
        return nested(shape, [&] {
            const std::size_t k = next % shape[2], j = next / shape[2] % shape[1],
                              i = next++ / shape[2] / shape[1];
            if (part == 3) return weights[part][k][i * d + j];
            return form == Form::heads_first ? weights[part][i * d + k][j]
                                             : weights[part][j * d + k][i];
        });
    }

    json tensors(const ClassNames& names) const {
        const bool has_axis = names.form == Form::heads_first || names.form == Form::heads_second,
                   by_head = names.form == Form::heads;
        json all;
        for (std::size_t i = 0; i < names.weights.size(); ++i) {
            const std::size_t count = names.weights.size(), part = i + 1 == count ? 3 : i;
            const bool joins = part != 3 && i + 2 == count && count < 4;
            all[names.weights[i]] = joins      ? joined(weights, by_head, i)
                                    : has_axis ? with_axis(part, names.form)
                                               : weights[part];
            if (!biased) continue;
            json& bias = all[names.biases[i]] = joins ? joined(biases, by_head, i) : biases[part];
            std::size_t next = 0;
            if (has_axis && part < 3)
                bias = nested({heads, d}, [&] { return biases[part][next++]; });
        }
        return all;
    }

    std::size_t heads;
    bool biased;
    json x, weights, biases;
};

json context_of(const json& tensors, const Layer& layer, const Words& more) {
    write_text("w.json", tensors.dump());
    const Words words{"multihead", "-",           "--weights", "w.json",         "--dtype",
                      "float64",   "--no-causal", "--emit",    "context_vectors"};
    return result_of(words + more, layer.x.dump())["context_vectors"];
}

TEST_CASE("class names: a layer is the same under all names") {
    std::mt19937 random(11);
    for (const ClassNames& names : classes)
        for (const std::size_t heads : {1u, 2u, 3u})
            for (const bool biased : {false, true}) {
                const bool needs_bias = names.family == std::string("uvadlc");
                if (biased ? names.biases.empty() : needs_bias) continue;
                CAPTURE(names.weights);
                const Layer layer(heads, biased, random);
                const Words by_heads{"--heads", std::to_string(heads)};
                const json expected = context_of(layer.tensors(notebook), layer, by_heads);
                const bool is_one = names.weights.size() == 2;
                Words more = by_heads;
                if (names.family == std::string("qkv-proj") && is_one)
                    more = more + Words{"--qkv-layout", "parts"};
                const json tensors = layer.tensors(names);
                CHECK_LE(difference_of(context_of(tensors, layer, more), expected), 1e-13);
                // The same as weights of 1x1 convolutions, of one and two axes.
                json convolved = tensors;
                for (int axes = 1; axes <= 2 && names.weights[0].ends_with(".weight"); ++axes) {
                    for (const std::string& name : names.weights)
                        for (json& row : convolved[name])
                            for (json& number : row) number = json::array({number});
                    CHECK_LE(difference_of(context_of(convolved, layer, more), expected), 1e-13);
                }
                if (names.weights.size() == 3) continue;  // a name has one meaning
                // The same tensors under no class's names, which are not those of the axes.
                json renamed;
                std::string list;
                const Words ours = is_one ? Words{"qkv", "out"} : qkv + Words{"out"};
                for (std::size_t i = 0; i < ours.size(); ++i) {
                    const std::string name = "a.t" + std::to_string(i);
                    renamed[name + ".weight"] = tensors[names.weights[i]];
                    if (biased) renamed[name + ".bias"] = tensors[names.biases[i]];
                    list += (i == 0 ? "" : ",") + name + ".weight=" + ours[i];
                }
                const bool has_axis =
                    names.form == Form::heads_first || names.form == Form::heads_second;
                more = by_heads + Words{"--weight-names", list};
                if (has_axis) more = more + Words{"--family", names.family};
                if (is_one)
                    more =
                        more + Words{"--qkv-layout", names.form == Form::heads ? "heads" : "parts"};
                CHECK_LE(difference_of(context_of(renamed, layer, more), expected), 1e-13);
            }
}

TEST_CASE("class names: the error of unknown names has a flag that works") {
    std::mt19937 random(12);
    const Layer layer(2, true, random);
    const std::string x = layer.x.dump();
    for (const Words& names : {Words{"a.wq", "a.wk", "a.wv", "a.wo"},
                               {"1.2.3.0", "1.2.3.1", "1.2.3.2", "1.2.3.3"},
                               {"self.SA.q", "self.SA.k", "self.SA.v", "self.final.dense"},
                               {"h.7.W_Q", "h.7.W_K", "h.7.W_V", "h.7.to_out.0"},
                               {"self.query", "self.key", "self.value", "output.dense"},
                               {"self.qs", "self.ks", "self.vs", "out.0"}}) {
        write_text("w.json", layer.tensors(linear("", names)).dump());
        const Words words{"multihead", "-", "--weights", "w.json", "--heads", "2", "--no-causal"};
        const std::string error = run_attn(words, x).err;
        CAPTURE(error);
        const std::size_t at = error.find("--weight-names ");
        REQUIRE(at != std::string::npos);
        const Words flag = words_in(error.substr(at, error.size() - 1 - at));
        const json found = result_of(words + flag, x);
        CHECK(found["config"]["weight_names"].size() == 4);
        write_text("w.json", layer.tensors(notebook).dump());
        CHECK_LE(difference_of(found["context_vectors"], result_of(words, x)["context_vectors"]),
                 1e-6);
    }
}

}  // namespace
}  // namespace class_names_test
