// The built-in inputs; data/README.md lists their sources. That of softmax is one query of 1, so
// that the scores are the keys: five numbers whose softmax a notebook takes.
#include "io/read/examples.hpp"

#include <nlohmann/json.hpp>

#include "io/read/json_document.hpp"

namespace attn::io {

extern const std::string_view example_questions;  // examples.json

Example find_example(std::string_view name) {
    const Source source{"examples.json", example_questions};
    const JsonDocument all(source), example(source, *all.find(std::string(name)));
    const auto array = [&](const char* key) {
        const JsonMember* const found = example.find(key);
        return found == nullptr ? NumberArray()
                                : example.read_array(*found, ArrayRules::anything(3));
    };
    Example made{array("inputs"), {}, {}, array("query"), array("key"), array("value")};
    if (const JsonMember* tokens = example.find("tokens"))
        made.tokens = example.read_value(*tokens).get<std::vector<std::string>>();
    if (const JsonMember* text = example.find("text"))
        made.text = example.read_value(*text).get<std::string>();
    return made;
}

}  // namespace attn::io
