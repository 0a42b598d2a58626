// Whole models whose config.json is any bytes, with the tensors of a family.
#include "core/model/model.hpp"
#include "io/transformer/model.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/support/model_cases.hpp"

namespace attn::fuzz {
namespace {

using nlohmann::json;

/// The first case of each model_type.
const std::map<std::string, json>& cases() {
    static const std::map<std::string, json> all = [] {
        std::map<std::string, json> found;
        for (const json& c : test::model_cases())
            found.emplace(c["config"]["model_type"].get<std::string>(), c);
        return found;
    }();
    return all;
}

/// The folder with the tensors of the config's model_type.
std::string folder_of(std::string_view config) {
    static std::map<std::string, bool> written;
    const json read = json::parse(config, nullptr, false);
    const bool has_type =
        read.is_object() && read.contains("model_type") && read["model_type"].is_string();
    std::string type = has_type ? read["model_type"].get<std::string>() : "gpt2";
    if (!cases().contains(type)) type = "gpt2";
    if (!written[type]) test::write_model(cases().at(type), type);
    written[type] = true;
    return test::scratch_folder() + "/" + type;
}

}  // namespace

std::vector<std::string> model_seeds() {
    std::vector<std::string> seeds;
    for (const auto& entry : cases()) seeds.push_back(entry.second["config"].dump());
    return seeds;
}

void run_model_of_config(std::string_view bytes) {
    error_of([&] {
        const io::OpenModel model(io::open_model_folder(
            folder_of(bytes), file_of(bytes, "config_of_model.json"), io::Access{}));
        if (!model.row().inputs.empty()) return;
        ModelInput input;
        input.ids = {3, 1, 4};
        const ModelSpec spec = model.specify(input.ids.size());
        model.check(spec, spec.layers);
        ModelRequest request;
        request.run_layers = spec.layers;
        for (std::size_t layer = 0; layer < spec.layers; ++layer) request.layers.push_back(layer);
        request.arrays.names = {"hidden_states", "attention_weights", "last_hidden_state",
                                "logits"};
        ThreadPool pool(1);
        run_model({pool, "auto", &backend_of_products("auto")}, spec, std::move(input), request,
                  NumberType::float32);
    });
}

}  // namespace attn::fuzz
