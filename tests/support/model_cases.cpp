#include "tests/support/model_cases.hpp"

#include <sstream>

#include "tests/support/drawn_model.hpp"
#include "tests/support/support.hpp"

namespace attn::test {

using nlohmann::json;

std::string ids_of(const json& model) {
    return list_of(model["token_ids"]);
}

std::vector<json> model_cases() {
    std::istringstream lines(read_text(data_path("models/families.ndjson")));
    std::vector<json> cases;
    for (std::string line; std::getline(lines, line);) cases.push_back(json::parse(line));
    return cases;
}

}  // namespace attn::test
