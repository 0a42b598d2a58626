// Tensors that a family has or has not, and padding, against what the classes of transformers do
// with them.
#include "tests/support/answers.hpp"
#include "tests/support/model_cases.hpp"

namespace model_tensors_test {
namespace {

using namespace attn::test;
using nlohmann::json;

/// "h.#.attn" of "h.11.attn".
std::string pattern_of(const std::string& name) {
    std::string pattern;
    for (const char c : name) {
        const bool is_digit = c >= '0' && c <= '9';
        const bool begins = pattern.empty() || pattern.back() == '.';
        if (is_digit && begins)
            pattern += '#';
        else if (!is_digit || pattern.back() != '#')
            pattern += c;
    }
    return pattern;
}

Words words_for(const std::string& ids) {
    return {"model",   "model",   "--token-ids", ids,
            "--dtype", "float64", "--emit",      "last_hidden_state"};
}

Outcome run_case(const json& c) {
    return run_attn(words_for(ids_of(c)));
}

/// The last hidden states of token ids, with these flags.
json states_of(const std::string& ids, const Words& flags = {}) {
    return result_of(words_for(ids) + flags)["last_hidden_state"];
}

TEST_CASE("models: a bias that the family's class does not have is an error that names it") {
    std::size_t refused = 0, unused = 0, number = 0;
    for (const json& c : model_cases()) {
        if (is_refused(c)) continue;
        CAPTURE(c["name"].get<std::string>());
        write_model(c, "model");
        const std::string plain = run_case(c).out;
        std::set<std::string> seen;
        for (const auto& [tensor, row] : c["tensors"].items()) {
            const std::string ending = ".weight";
            if (!tensor.ends_with(ending) || !seen.insert(pattern_of(tensor)).second) continue;
            const std::string bias = tensor.substr(0, tensor.size() - 6) + "bias";
            // A part of them, to be fast: each family has some.
            if (c["tensors"].contains(bias) || ++number % (4 * one_in) != 0) continue;
            CAPTURE(bias);
            json more = c;
            more["tensors"][bias] = {{row[0][0]}, 0.5, 0.25};
            write_model(more, "model");
            const Outcome run = run_case(more);
            if (run.code == 0) {  // of a part that does not run, as that for images
                CHECK_EQ(run.out, plain);
                ++unused;
                continue;
            }
            CHECK_EQ(run.code, 3);
            CHECK(run.out.empty());
            CHECK_MESSAGE(contains(run.err, bias), run.err);
            ++refused;
        }
    }
    if (one_in == 1) CHECK_GE(refused, 150);
    CHECK_LE(unused, refused / 10);
}

TEST_CASE("models: a bias that one module lacks is an error that names it, or is not read") {
    Sample sample(12);
    std::size_t named = 0, unread = 0;
    for (const json& c : model_cases()) {
        if (is_refused(c)) continue;
        CAPTURE(c["name"].get<std::string>());
        const auto run_both = [&](const json& model) {
            write_model(model, "model");
            return std::vector{run_case(model),
                               run_attn({"multihead", "--weights", "model", "--token-ids",
                                         ids_of(model), "--dtype", "float64"})};
        };
        std::vector<Outcome> plain;
        for (const auto& [name, row] : c["tensors"].items()) {
            const std::string& tensor = name;  // Clang captures no structured bindings
            // Those that have several names are all taken.
            const bool has_names =
                tensor.ends_with("_correction_bias") || tensor.ends_with("_sink_bias");
            if (!tensor.ends_with("bias") || !(has_names || sample.takes())) continue;
            CAPTURE(tensor);
            if (plain.empty()) plain = run_both(c);
            json fewer = c;
            fewer["tensors"].erase(tensor);
            const std::vector<Outcome> runs = run_both(fewer);
            for (std::size_t i = 0; i < runs.size(); ++i) {
                if (plain[i].code != 0) continue;
                CAPTURE(runs[i].err);
                CHECK((runs[i].code == 3 || runs[i].out == plain[i].out));
                if (runs[i].code == 0) ++unread;
                if (runs[i].code != 3) continue;
                CHECK(runs[i].out.empty());
                CHECK(contains(runs[i].err, "\"" + tensor + "\""));
                ++named;
            }
        }
    }
    if (one_in == 1) CHECK_GE(named, 60);
    CHECK_LE(unread, named);
}

TEST_CASE("models: without any bias in any layer a model computes as with biases of zeros") {
    std::size_t models = 0;
    for (const std::string name : {"gpt2", "bert", "qwen2", "opt"}) {
        CAPTURE(name);
        const json c = model_case(name);
        std::set<std::string> patterns;
        for (const auto& [tensor, row] : c["tensors"].items())
            if (tensor.ends_with(".bias") && pattern_of(tensor) != tensor)
                patterns.insert(pattern_of(tensor));
        for (const std::string& pattern : patterns) {
            json zeros = c, none = c;
            for (const auto& [tensor, row] : c["tensors"].items()) {
                if (pattern_of(tensor) != pattern) continue;
                none["tensors"].erase(tensor);
                zeros["tensors"][tensor] = {row[0], 0, 0};
            }
            write_model(zeros, "model");
            const Outcome expected = run_case(zeros);
            write_model(none, "model");
            const Outcome run = run_case(none);
            CAPTURE(pattern);
            CAPTURE(run.err);
            REQUIRE_EQ(expected.code, 0);
            if (run.code == 0)
                CHECK_EQ(run.out, expected.out);
            else  // the config has them
                CHECK(contains(run.err, "is true"));
            models += run.code == 0 ? 1 : 0;
        }
    }
    CHECK_GE(models, 15);
}

TEST_CASE(
    "models: a config that turns biases off contradicts a file that has them; both are named") {
    const Words keys = words_in(
        "attention_bias qkv_bias mlp_bias use_qkv_bias use_bias bias lm_head_bias norm_bias "
        "enable_bias conv_bias");
    std::size_t refused = 0;
    for (const json& c : model_cases())
        for (const std::string& key : keys) {
            if (is_refused(c) || c["config"].value(key, json()) != json(true)) continue;
            CAPTURE(c["name"].get<std::string>());
            CAPTURE(key);
            json other = c;
            other["config"][key] = false;
            write_model(other, "model");
            check_error(words_for(ids_of(c)), "", 3,
                        key + " is false; expected true, as the file has the tensor \"");
            ++refused;
        }
    CHECK_GE(refused, 5);
}

TEST_CASE("models: the bare class's names open, without a prefix") {
    for (const auto& [name, prefix] : {std::pair("llama", "model."),
                                       {"qwen3", "model."},
                                       {"gpt2", "transformer."},
                                       {"bert", "bert."},
                                       {"cohere", "model."}}) {
        const std::string model = name;
        CAPTURE(model);
        const json c = model_case(model);
        write_model(c, "model");
        const json expected = states_of(ids_of(c));
        std::vector<StoredTensor> tensors;
        for (const auto& [tensor, row] : c["tensors"].items())
            if (tensor.starts_with(prefix))
                tensors.push_back({tensor.substr(std::string(prefix).size()), "F32", row[0],
                                   drawn(tensor, count_of(row[0]), row[1], row[2])});
        write_text("model/model.safetensors", safetensors_of(tensors));
        CHECK_EQ(states_of(ids_of(c)), expected);
    }
}

TEST_CASE("models: an embedding under the head's name, and an image encoder alone") {
    const auto last = [](const json& c) {
        write_model(c, "model");
        return result_of(words_of(c) + Words{"--emit", "last_hidden_state"})["last_hidden_state"];
    };
    std::size_t models = 0;
    for (json c : all_model_cases()) {
        const std::string name = c["name"];
        CAPTURE(name);
        if (name == "clip-vision" || name == "siglip-vision") {
            const json expected = last(c);
            c["config"] = {{"model_type", name.substr(0, name.find('-'))},
                           {"text_config", json::object()},
                           {"vision_config", c["config"]}};
            CHECK_EQ(last(c), expected);
            ++models;
        }
        if (name != "openai-gpt") continue;
        json& tensors = c["tensors"];
        const std::string embedding = "transformer.tokens_embed.weight";
        tensors["lm_head.weight"] = tensors.at(embedding);
        tensors.erase(embedding);
        last(c);
        c["config"]["tie_word_embeddings"] = false;
        write_model(c, "model");
        check_error(words_of(c), "", 3, "tokens_embed.weight");
        ++models;
    }
    CHECK_EQ(models, 3);
}

TEST_CASE("models: positions of Bloom, Falcon and OPT count only the tokens that are not padding") {
    for (const std::string name : {"bloom", "opt", "opt-350m"}) {
        CAPTURE(name);
        const json c = model_case(name);
        write_model(c, "model");
        const json plain = states_of("5,9,3,12");
        // A gap, padding on the left, and both.
        const std::vector<std::pair<std::string, std::string>> padded = {
            {"5,9,7,3,12", "1,1,0,1,1"},
            {"7,5,9,3,12", "0,1,1,1,1"},
            {"7,5,7,9,7,7,3,12", "0,1,0,1,0,0,1,1"}};
        for (const auto& one : padded) {
            const std::string &ids = one.first, &mask = one.second;
            CAPTURE(mask);
            const json states = states_of(ids, {"--attention-mask", mask});
            std::size_t row = 0;
            for (std::size_t token = 0; token < states.size(); ++token)
                if (mask[2 * token] == '1')
                    CHECK_LE(difference_of(states[token], plain[row++]), 1e-13);
        }
    }
}

TEST_CASE("models: chunks of Llama 4 begin after padding on the left") {
    json c = model_case("llama4");
    c["config"]["attention_chunk_size"] = 3;
    c["config"]["attn_temperature_tuning"] = false;  // by the row, padding included
    write_model(c, "model");
    const json plain = states_of("5,9,3,12,6");
    std::string ids = "5,9,3,12,6", mask = "1,1,1,1,1";
    for (std::size_t padding = 1; padding < 5; ++padding) {
        ids = "7," + ids;
        mask = "0," + mask;
        const json states = states_of(ids, {"--attention-mask", mask});
        for (std::size_t token = 0; token < plain.size(); ++token)
            CHECK_LE(difference_of(states[padding + token], plain[token]), 1e-12);
    }
}

TEST_CASE("models: position ids of RoBERTa and its kin are rows of the table") {
    for (const std::string name : {"roberta", "camembert", "mpnet", "xlm-roberta", "esm1"}) {
        CAPTURE(name);
        const json c = model_case(name);
        write_model(c, "model");
        const auto padding = c["config"]["pad_token_id"].get<std::uint64_t>();
        std::string ids, rows;
        for (std::uint64_t i = 0; i < 4; ++i) {
            ids += (i == 0 ? "" : ",") + std::to_string(padding + 3 + i);
            rows += (i == 0 ? "" : ",") + std::to_string(padding + 1 + i);
        }
        CHECK_EQ(states_of(ids, {"--position-ids", rows}), states_of(ids));
    }
}

TEST_CASE("models: padding on the left with a table of positions has a note that names the flag") {
    write_model(model_case("gpt2"), "model");
    const Words words{"model", "model", "--token-ids", "1,3,5", "--attention-mask", "0,1,1"};
    const Outcome run = run_attn(words);
    CHECK_EQ(run.code, 0);
    CHECK(contains(run.err, "note: --attention-mask"));
    REQUIRE_NE(run.err.find("--position-ids 0,0,1 "), std::string::npos);
    const json padded =
        states_of("1,3,5", {"--attention-mask", "0,1,1", "--position-ids", "0,0,1"});
    const json plain = states_of("3,5");
    for (std::size_t token = 0; token < 2; ++token)
        CHECK_LE(difference_of(padded[token + 1], plain[token]), 1e-13);
    for (const std::string name : {"gpt2", "llama", "opt"}) {
        write_model(model_case(name), "model");
        Words others = words;
        if (name == "gpt2") others.back() = "1,1,0";
        CHECK(run_attn(others).err.empty());
    }
}

TEST_CASE("models: fewer generated tokens are the first of more, for angles of any length") {
    for (const std::string name : {"phi3", "llama-dynamic", "gpt2"}) {
        CAPTURE(name);
        json c = model_case(name);
        if (name == "phi3") {
            const std::size_t half = c["config"]["hidden_size"].get<std::size_t>() /
                                     c["config"]["num_attention_heads"].get<std::size_t>() / 2;
            c["config"].update({{"max_position_embeddings", 32},
                                {"original_max_position_embeddings", 8},
                                {"rope_parameters",
                                 {{"rope_type", "longrope"},
                                  {"rope_theta", 100.0},
                                  {"original_max_position_embeddings", 8},
                                  {"short_factor", std::vector<double>(half, 1.0)},
                                  {"long_factor", std::vector<double>(half, 4.0)}}}});
        }
        write_model(c, "model");
        json before;
        for (const std::string count : {"12", "6", "3", "1"}) {
            const json generated =
                result_of({"model", "model", "--token-ids", "35,42,57", "--generate", count,
                           "--dtype", "float64"})["generated"];
            for (std::size_t i = 0; i < generated.size() && !before.is_null(); ++i)
                CHECK_EQ(generated[i], before[i]);
            before = generated;
        }
        if (name == "gpt2") continue;
        // Positions beyond the original length count as well.
        CHECK_NE(states_of("3,5,9", {"--position-ids", "0,1,40"})[1], states_of("3,5,9")[1]);
    }
}

}  // namespace
}  // namespace model_tensors_test
