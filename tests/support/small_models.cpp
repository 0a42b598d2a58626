// The smallest models; see small_models.hpp.
#include "tests/support/small_models.hpp"

namespace attn::test::small_models {

json numbers(const std::vector<int>& shape, int seed, std::size_t axis) {
    if (axis == shape.size()) return std::round(std::sin(12.9898 * seed) * 1000) / 1000;
    json list = json::array();
    for (int i = 0; i < shape[axis]; ++i)
        list.push_back(numbers(shape, seed * 7 + i + 1, axis + 1));
    return list;
}

std::vector<Model> models() {
    std::vector<Model> all;
    const std::string table = read_text(data_path("../tests/support/small_models.json"));
    for (const json& entry : json::parse(table)) {
        const bool has_module = entry.contains("module");
        const Words modules{"", "blocks.0.att."};
        for (const std::string& module : has_module ? Words{entry["module"]} : modules) {
            Model model{entry["name"],
                        module,
                        entry.value("norm", ""),
                        entry.value("embedding", ""),
                        entry["settings"],
                        entry["harmless"],
                        {}};
            if (!has_module) model.name += " " + module;
            for (const auto& [tensor, shape] : entry["tensors"].items())
                model.tensors[(has_module ? "" : module) + tensor] = shape.get<std::vector<int>>();
            all.push_back(std::move(model));
        }
    }
    return all;
}

json weights_of(const Model& model) {
    json weights = json::object();
    int seed = 1;
    for (const auto& [name, shape] : model.tensors) weights[name] = numbers(shape, ++seed);
    return weights;
}

json form_of(const std::string& name) {
    if (name.ends_with("inv_freq")) return {1.0};
    if (name.ends_with("masked_bias")) return {-1e9};
    // torch.tril of the models, torch.triu of the notebooks.
    if (name.ends_with("bias")) return json::parse("[[1,0,0],[1,1,0],[1,1,1]]");
    return json::parse("[[0,1,1],[0,0,1],[0,0,0]]");
}

Outcome run_model(const Model& model, const json& weights, const std::string& input,
                  const Words& more) {
    write_text("w.json", weights.dump());
    Words command{"multihead", "--weights", "w.json", "--emit", "context_vectors"};
    if (!input.empty()) command.insert(command.begin() + 1, "-");
    for (const auto& [key, value] : model.settings.items()) {
        std::string name = key;
        std::replace(name.begin(), name.end(), '_', '-');
        command.push_back((value == json(false) ? "--no-" : "--") + name);
        if (!value.is_boolean())
            command.push_back(value.is_string() ? value.get<std::string>() : value.dump());
    }
    return run_attn(command + more, input);
}

}  // namespace attn::test::small_models
