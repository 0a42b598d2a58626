#include "tests/support/model_cases.hpp"

namespace attn::test {

using nlohmann::json;

namespace {

std::vector<json> cases_in(const std::string& path) {
    std::istringstream lines(read_text(data_path(path)));
    std::vector<json> cases;
    for (std::string line; std::getline(lines, line);) cases.push_back(json::parse(line));
    return cases;
}

}  // namespace

std::string ids_of(const json& model) {
    return list_of(model["token_ids"]);
}

bool is_refused(const json& model) {
    const std::string type = model["config"]["model_type"], name = model["name"];
    return type == "bamba" || type == "falcon_h1" || type == "jamba" || type == "nemotron_h" ||
           name == "granitemoehybrid";
}

std::vector<json> model_cases() {
    return cases_in("models/families.ndjson");
}

json model_case(const std::string& name) {
    for (json& c : model_cases())
        if (c["name"] == name) return c;
    throw std::runtime_error("no case " + name);
}

std::vector<json> generation_cases() {
    std::map<std::string, json> families;
    for (const json& c : model_cases()) families[c["name"]] = c;
    std::vector<json> cases = cases_in("models/generation.ndjson");
    for (json& c : cases) {
        if (c.contains("config")) continue;
        const json& family = families.at(c["name"]);
        c["config"] = family["config"];
        c["tensors"] = family["tensors"];
    }
    return cases;
}

std::vector<json> all_model_cases() {
    std::vector<json> cases = model_cases();
    for (json& c : generation_cases()) cases.push_back(std::move(c));
    return cases;
}

std::vector<std::string> words_of(const json& model) {
    std::vector<std::string> words{"model", "model", "--dtype", "float64"};
    for (const char* key : {"token_ids", "decoder_ids"})
        if (model.contains(key) && !model[key].empty()) {
            words.push_back(flag_of_key(key));
            words.push_back(list_of(model[key]));
        }
    const json inputs = model.value("inputs", json::object());
    for (const auto& [key, form] : inputs.items()) {
        write_text(key + ".npy",
                   npy_of(form[0], drawn("input." + key, count_of(form[0]), form[1], form[2])));
        words.push_back(flag_of_key(key));
        words.push_back(key + ".npy");
    }
    return words;
}

}  // namespace attn::test
