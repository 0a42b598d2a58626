#include "tests/support/model_cases.hpp"

#include <sstream>

#include "tests/support/drawn_model.hpp"
#include "tests/support/support.hpp"

namespace attn::test {

using nlohmann::json;

std::string ids_of(const json& model) {
    return list_of(model["token_ids"]);
}

bool is_refused(const json& model) {
    const std::string type = model["config"]["model_type"], name = model["name"];
    return type == "bamba" || type == "falcon_h1" || type == "jamba" || type == "nemotron_h" ||
           name == "granitemoehybrid";
}

std::vector<json> model_cases() {
    std::istringstream lines(read_text(data_path("models/families.ndjson")));
    std::vector<json> cases;
    for (std::string line; std::getline(lines, line);) cases.push_back(json::parse(line));
    return cases;
}

}  // namespace attn::test
