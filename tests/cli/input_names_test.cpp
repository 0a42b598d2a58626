// The names of arrays: every one of the table means its key, in a request and in a file, and no
// array is dropped in silence.
#include "cli/args/names.hpp"
#include "cli/request/request_builder.hpp"
#include "io/text/text.hpp"
#include "tests/support/answers.hpp"
#include "tests/support/drawn_model.hpp"

namespace input_names_test {
namespace {

using namespace attn;
using namespace attn::test;
using nlohmann::json;

struct Given {
    json numbers;
    Words flags = {};
};

/// Operands of two heads, three queries and four keys; and each key of the table.
json required(const std::string& mode) {
    const std::size_t keys = mode == "linear" ? 3 : 4;
    int next = 0;
    const auto number = [&] { return json((next++ * 7 % 11) / 8.0); };
    return {{"query", nested({2, 3, 4}, number)},
            {"key", nested({2, keys, 4}, number)},
            {"value", nested({2, keys, 4}, number)}};
}

Given given(const std::string& key) {
    int next = 0;
    const auto number = [&] { return json((next++ * 5 % 7) / -8.0); };
    const auto bit = [&] { return json(next++ % 3 == 0 ? 0 : 1); };
    if (key == "mask") return {nested({2, 3, 4}, number)};
    if (key == "key_padding_mask") return {nested({1, 4}, bit), {"--mask-true", "keep"}};
    if (key == "decay") return {nested({2, 3}, number)};
    if (key == "past_state") return {nested({2, 4, 4}, number)};
    if (key == "bonus") return {nested({2, 4}, number)};
    if (key == "causal") return {json::array({1}), {"--causal-align", "top-left"}};
    if (key == "scale") return {json::array({0.25})};
    if (key == "dropout") return {json::array({0.5})};
    if (key == "sink") return {json::array({0.5, -1.0})};
    return {};
}

StoredTensor tensor_of(const std::string& name, const json& array) {
    std::string bytes;
    const json flat = array.flatten();
    for (const auto& [path, number] : flat.items()) {
        const auto element = number.get<float>();
        bytes.append(reinterpret_cast<const char*>(&element), sizeof element);
    }
    return {name, "F32", shape_of(array), bytes};
}

/// In a request, a setting of one number is that number.
json in_request(const std::string& key, const json& numbers) {
    if (key == "causal") return true;
    return key == "scale" || key == "dropout" ? numbers[0] : numbers;
}

std::vector<std::string> names_of(const cli::NameRow& row) {
    std::vector<std::string> names;
    for (const std::string_view name : io::split_text(row.names, ' '))
        if (!name.empty()) names.emplace_back(name);
    return names;
}

Outcome of_request(const json& members, const Words& flags = {}) {
    return run_attn(Words{"sdpa"} + flags, members.dump());
}

Outcome of_record(const json& members, const Words& flags = {}) {
    json record = members;
    record["mode"] = "sdpa";
    return run_attn(Words{"batch", "-"} + flags, record.dump());
}

TEST_CASE("names: other programs' names of arrays mean their keys in requests and in files") {
    std::size_t tested = 0;
    const Outcome manual = run_attn({"help", "requests"});
    for (const cli::NameRow& row : cli::all_other_names) {
        if (!row.table.starts_with("input")) continue;
        const std::string key(row.of);
        const bool is_linear = key == "decay" || key == "past_state" || key == "bonus";
        const std::string mode = is_linear ? "linear" : "sdpa";
        const auto [numbers, flags] = given(key);
        const Words emit{"--emit", "context_vectors"};
        const json operands = required(mode);
        json members = operands;
        if (!numbers.is_null()) members[key] = in_request(key, numbers);
        const json expected = json::parse(run_attn(Words{mode} + flags + emit, members.dump()).out);
        for (const std::string& name : names_of(row)) {
            INFO(key, " ", name);
            CHECK(contains(manual.out, name));
            json renamed = members;
            renamed[name] = renamed[key];
            renamed.erase(key);
            const Outcome asked = run_attn(Words{mode} + flags + emit, renamed.dump());
            CHECK(asked.err == "");
            CHECK(json::parse(asked.out)["context_vectors"] == expected["context_vectors"]);
            std::vector<StoredTensor> tensors;
            for (const auto& [own, array] : operands.items())
                tensors.push_back(tensor_of(own == key ? name : own, array));
            if (!numbers.is_null()) tensors.push_back(tensor_of(name, numbers));
            write_text("named.safetensors", safetensors_of(tensors));
            const Outcome stored = run_attn(Words{mode, "named.safetensors"} + flags + emit);
            CHECK(stored.err == "");
            CHECK(json::parse(stored.out)["context_vectors"] == expected["context_vectors"]);
            json both = renamed;
            both[key] = renamed[name];
            CHECK(contains(run_attn({mode}, both.dump()).err, "are both " + key));
            ++tested;
        }
    }
    CHECK(tested > 15);
}

TEST_CASE("names: an array of no known name is an error, and that of a result a note") {
    const json members = required("sdpa");
    const auto written = [&](const std::string& name) {
        std::vector<StoredTensor> tensors;
        for (const auto& [own, array] : members.items()) tensors.push_back(tensor_of(own, array));
        tensors.push_back(tensor_of(name, members["query"]));
        write_text("more.safetensors", safetensors_of(tensors));
        json more = members;
        more[name] = members["query"];
        return more;
    };
    const std::string plain = of_request(members, {"--bare"}).out;
    for (const std::string name :
         {"position_bias", "past_key_values", "g", "beta", "initial_state", "document_ids", "bias",
          "rope", "context", "weights", "text", "k_cache", "enable_gqa", "Mask", "QUERY"}) {
        INFO(name);
        const json more = written(name);
        for (const Words& command :
             {Words{"sdpa", "more.safetensors"},
              {"repro", "sdpa", "more.safetensors"},
              {"explain", "sdpa", "more.safetensors"},
              {"check", "sdpa", "more.safetensors", "--against", "more.safetensors"}}) {
            const Outcome refused = run_attn(command);
            CHECK(refused.code == 2);
            CHECK(refused.out == "");
            CHECK(contains(refused.err, name));
            CHECK(contains(refused.err, "--ignore-arrays " + name));
        }
        const Words ignored{"--bare", "--ignore-arrays", name};
        CHECK(of_request(more).code == 2);
        for (const Outcome& refused : {of_request(more), of_record(more)})
            // A setting of this mode is an invalid value instead.
            CHECK((name == "rope" || contains(refused.err, "; or --ignore-arrays " + name)));
        CHECK(of_record(more, ignored).code == 0);
        CHECK(run_attn(Words{"sdpa", "more.safetensors"} + ignored).out == plain);
        CHECK(of_request(more, ignored).out == plain);
    }
    for (const std::string name : {"output", "out", "expected", "attention_weights", "lse", "Y"}) {
        INFO(name);
        const json more = written(name);
        for (const Outcome& noted :
             {run_attn({"sdpa", "more.safetensors", "--bare"}), of_request(more, {"--bare"})}) {
            CHECK(noted.out == plain);
            CHECK(contains(noted.err, name));
        }
        CHECK(contains(of_record(more).err, "; or --ignore-arrays " + name));
    }
    for (const Words& words :
         {Words{"sdpa", "more.safetensors"}, {"self", "--example", "journey"}, {"self", "-"}})
        CHECK(contains(run_attn(words + Words{"--ignore-arrays", "lse"}, "[[1, 2]]").err,
                       "has no array lse"));
}

}  // namespace
}  // namespace input_names_test
