// Requests of mode model: the same by flags, in a file and in a batch; layers and costs.
#include "cli/model/model_options.hpp"
#include "tests/support/answers.hpp"

namespace model_records_test {
namespace {

using namespace attn;
using namespace attn::test;
using nlohmann::json;

const char* const models[] = {"gpt2", "llama", "mistral", "qwen2", "bert", "neox"};

std::string listed(const json& list) {
    std::string text;
    for (const json& item : list)
        text +=
            (text.empty() ? "" : ",") + (item.is_string() ? item.get<std::string>() : item.dump());
    return text;
}

/// A request with some of the keys, each of them with some value.
json drawn_request(std::mt19937& random) {
    const auto one_of = [&](std::size_t count) { return random() % count; };
    const std::string model = models[one_of(std::size(models))];
    const std::size_t tokens = 1 + one_of(4);
    json request{{"mode", "model"}, {"model", data_path("models/" + model)}};
    json ids = json::array(), mask = json::array(), positions = json::array();
    for (std::size_t t = 0; t < tokens; ++t) {
        ids.push_back(1 + one_of(8));
        mask.push_back(one_of(4) == 0 ? 0 : 1);
        positions.push_back(one_of(5));
    }
    request["token_ids"] = ids;
    if (one_of(2) == 0) request["attention_mask"] = mask;
    if (one_of(2) == 0) request["position_ids"] = positions;
    if (one_of(2) == 0) request["layers"] = std::vector<json>{"all", {-1}, {0}}[one_of(3)];
    if (one_of(2) == 0) request["head"] = {1, 0};
    if (one_of(2) == 0)
        request["emit"] =
            one_of(2) == 0 ? json("all") : json({"attention_weights", "queries", "hidden_states"});
    if (one_of(3) == 0) request["dtype"] = "float64";
    if (one_of(3) == 0) request["kernel"] = "reference";
    if (one_of(3) == 0) request["precision"] = 3;
    if (one_of(3) == 0) request["bare"] = true;
    const bool may_generate =
        model != "bert" && !request.contains("attention_mask") && !request.contains("position_ids");
    if (may_generate && one_of(2) == 0) request["generate"] = 2;
    return request;
}

/// A key of a request as a flag.
Words flag_of(const std::string& key, const json& value) {
    if (value.is_boolean()) return {flag_of_key(key)};
    return {flag_of_key(key), value.is_array()    ? listed(value)
                              : value.is_string() ? value.get<std::string>()
                                                  : value.dump()};
}

/// The command with the request's keys as flags.
Words flags_of(const json& request) {
    Words words{"model", request["model"]};
    for (const auto& [key, value] : request.items())
        if (key != "mode" && key != "model") words = words + flag_of(key, value);
    return words;
}

json without_id(json result) {
    result.erase("id");
    if (result.contains("config")) result["config"].erase("id");
    return result;
}

std::string numbers_text(std::size_t rows, std::size_t columns) {
    json matrix = json::array();
    for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < columns; ++j) matrix[i][j] = 0.25 * double((7 * i + 3 * j) % 9);
    return matrix.dump();
}

std::size_t count_of(const json& value) {
    if (value.is_null()) return 0;
    if (!value.is_array()) return 1;
    std::size_t count = 0;
    for (const json& item : value) count += count_of(item);
    return count;
}

std::size_t numbers_in(const json& result) {
    std::size_t count = 0;
    for (const auto& [key, value] : result.items())
        if (value.is_array() && key != "tokens" && key != "layer_numbers" && key != "generated")
            count += count_of(value);
    return count;
}

/// Some of the keys as flags of the batch: defaults, which keys of the record override.
void check_defaults(std::mt19937& random, const json& request, const json& record) {
    json rest = request;
    Words batch{"batch", "--threads", "2"};
    for (const auto& [key, value] : request.items()) {
        if (key == "mode" || key == "model" || random() % 3 == 0) continue;
        const bool is_overridden = key == "layers" && random() % 2 == 0;
        batch = batch + (is_overridden ? Words{"--layers", "1"} : flag_of(key, value));
        if (!is_overridden) rest.erase(key);
    }
    CAPTURE(batch);
    CHECK_EQ(result_of(batch, rest.dump()), record);
}

TEST_CASE("model requests: every flag is a default of the records of that mode") {
    const json model{{"mode", "model"}, {"model", data_path("models/gpt2")}},
        self{{"mode", "self"}, {"inputs", {{1, 2}, {3, 4}}}};
    write_text("states.json", numbers_text(3, 12));
    std::size_t tried = 0, answered = 0;
    for (const cli::Option& option : cli::model_options) {
        const std::string key = option.key, argument = option.argument;
        // Every mode has them.
        if (key == "text" || key == "text_file" || key == "truncate" || key == "position_ids")
            continue;
        const bool is_switch = argument.empty();
        const std::string value = is_switch                   ? ""
                                  : argument == "FILE"        ? "states.json"
                                  : argument == "TEXT"        ? "hi"
                                  : key == "attention_mask"   ? "1,0,1"
                                  : argument.starts_with("N") ? "2"
                                  : key == "layers"           ? "-1"
                                                              : "0,1,2";
        json with_key = model;
        if (key != "hidden_states") with_key["token_ids"] = {3, 1, 4};
        const json without = with_key;
        with_key[key] = is_switch ? json(true) : json(value);
        Words flag{flag_of_key(key)};
        if (!is_switch) flag.push_back(value);
        CAPTURE(flag);
        const Outcome by_key = run_attn({"batch"}, with_key.dump()),
                      by_flag = run_attn(with({"batch"}, flag), without.dump()),
                      mixed = run_attn(with({"batch"}, flag), without.dump() + "\n" + self.dump());
        CHECK(by_flag.code == by_key.code);
        if (by_key.code == 0) CHECK((by_flag.out == by_key.out));
        CHECK(mixed.out.starts_with(by_flag.out));
        // As its key there, the flag is an error in a record of another mode.
        const json refused = answers_in(mixed.out).at(1);
        CHECK(contains(refused["error"]["where"].dump(), flag[0]));
        CHECK(contains(refused["error"]["message"].dump(), "mode self does not have this setting"));
        ++tried;
        if (by_key.code == 0) ++answered;
        // With --out-dir and a file of flags too.
        std::filesystem::remove_all("out");
        write_text("flags.json", json{{key, is_switch ? json(true) : json(value)}}.dump());
        run_attn({"batch", "--out-dir", "out", "--config", "flags.json"}, without.dump());
        const json line = answers_in(read_text("out/index.ndjson")).at(0);
        CHECK(line.contains("error") == (by_key.code != 0));
    }
    CHECK(tried == std::size(cli::model_options) - 4);
    CHECK(answered >= 4);
}

TEST_CASE("model requests: flags, a request file, a config and a record give one result") {
    std::mt19937 random(7);
    std::string requests, answers;
    for (int trial = 0; trial < 40; ++trial) {
        const json request = drawn_request(random);
        requests += request.dump() + "\n[]\n";
        CAPTURE(request.dump());
        const std::string by_flags = output_of(flags_of(request));
        write_text("request.json", request.dump());
        CHECK_EQ(output_of({"model", "request.json"}), by_flags);
        CHECK_EQ(output_of({"model", "-"}, request.dump()), by_flags);
        const json record = result_of({"batch", "--threads", "2"}, request.dump());
        CHECK_EQ(without_id(record), json::parse(by_flags));
        check_defaults(random, request, record);
        answers += by_flags;
        if (request.contains("bare")) continue;
        write_text("result.json", by_flags);
        CHECK_EQ(output_of({"model", "--config", "result.json"}), by_flags);
        write_text("asked.json", json::parse(by_flags)["config"].dump());
        CHECK_EQ(output_of({"model", "asked.json"}), by_flags);
    }
    const Outcome batch = run_attn({"batch", "--jobs", "3"}, requests);
    CHECK_EQ(batch.code, 1);
    const std::vector<json> expected = answers_in(answers), found = answers_in(batch.out);
    REQUIRE_EQ(found.size(), 2 * expected.size());
    for (std::size_t i = 0; i < found.size(); ++i)
        if (i % 2 == 0)
            CHECK_EQ(without_id(found[i]), expected[i / 2]);
        else
            CHECK(found[i].contains("error"));
}

TEST_CASE("model results: layers have the heads, the shapes and the axes of their arrays") {
    for (const char* model : models) {
        CAPTURE(model);
        const std::string path = data_path(std::string("models/") + model);
        const json result = json::parse(
            output_of({"model", path, "--token-ids", "3,1,4,1,5", "--emit",
                       "hidden_states,queries,keys,attention_weights,context_vectors"}));
        std::size_t entry = 0;
        for (const json& number : result["layer_numbers"]) {
            const json& layer = result["layers"][number.dump()];
            for (const auto& [name, axes] : layer["layout"]["axes"].items())
                CHECK_EQ(shape_of(result[name][entry]).size(), axes.size());
            const auto weights = shape_of(result["attention_weights"][entry]),
                       keys = shape_of(result["keys"][entry]);
            CHECK_EQ(layer["config"]["heads"], weights[0]);
            CHECK_EQ(layer["config"]["kv_heads"], keys[0]);
            CHECK_EQ(layer["shapes"]["kv_len"], weights[2]);
            CHECK_EQ(layer["shapes"]["d_k"], keys[2]);
            // The same settings as the layer has by itself.
            const json alone = json::parse(
                output_of({"multihead", "--weights", path, "--layer", number.dump(), "--token-ids",
                           "3,1,4,1,5", "--emit", "context_vectors"}))["config"];
            for (const char* key : {"heads", "kv_heads", "causal", "scale", "softcap", "window",
                                    "rope", "rope_base", "rope_dims"}) {
                CAPTURE(key);
                const bool is_rope = std::string(key).starts_with("rope");
                if (!alone.contains(key) || (is_rope && alone["rope"] == "none")) continue;
                CHECK_EQ(layer["config"][key], alone[key]);
            }
            ++entry;
        }
    }
}

TEST_CASE("model costs: the elements are those of the result, the operations those of products") {
    std::mt19937 random(3);
    for (int trial = 0; trial < 30; ++trial) {
        json request = drawn_request(random);
        request.erase("generate");
        request.erase("bare");
        CAPTURE(request.dump());
        Words command = flags_of(request);
        const json result = result_of(command);
        command.emplace_back("--dry-run");
        const json cost = result_of(command);
        CHECK_EQ(cost["output_numbers"], numbers_in(result));
        const json in_batch = result_of({"batch", "--dry-run"}, request.dump());
        CHECK_EQ(in_batch["flops"], cost["flops"]);
        CHECK_GT(in_batch["memory_bytes"], cost["memory_bytes"]);
    }
    // Llama: width 16, 4 heads of 4 and 2 key heads, gated feed-forward.
    const std::string path = data_path("models/llama");
    const json config = json::parse(read_text(path + "/config.json"));
    const double width = config["hidden_size"], inner = config["intermediate_size"],
                 heads = config["num_attention_heads"], layers = config["num_hidden_layers"],
                 kv_heads = config["num_key_value_heads"], d = width / heads;
    for (const double tokens : {1.0, 7.0, 64.0}) {
        json ids = json::array();
        for (int t = 0; t < static_cast<int>(tokens); ++t) ids.push_back(t % 7);
        const json cost = result_of({"model", path, "--token-ids", listed(ids), "--dry-run"});
        const double products = 2 * width * width + 2 * width * kv_heads * d + 3 * width * inner;
        CHECK_EQ(cost["flops"].get<double>(),
                 layers * 2 * (tokens * products + 2 * tokens * tokens * width));
    }
}

}  // namespace
}  // namespace model_records_test
