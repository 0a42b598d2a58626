#include "io/transformer/shared_rows.hpp"

#include <algorithm>
#include <cmath>

namespace attn::io {

bool has_experts_after_dense(const BlockReader& reader) {
    return reader.layer >= reader.config.whole("first_k_dense_replace", 0);
}

bool has_experts_by_type(const BlockReader& reader) {
    return has_experts_from(reader, reader.config.whole("first_k_dense_replace", 1));
}

bool has_experts_from(const BlockReader& reader, std::size_t first) {
    if (!reader.config.gives("mlp_layer_types")) return reader.layer >= first;
    const nlohmann::json& type = reader.config.of_layer("mlp_layer_types", reader.layer);
    if (type != "sparse" && type != "dense")
        reader.config.fail("mlp_layer_types", "a list of \"sparse\" and \"dense\"");
    return type == "sparse";
}

bool has_experts_by_step(const BlockReader& reader) {
    const std::size_t step = reader.config.positive("decoder_sparse_step", 1);
    const nlohmann::json& dense = reader.config.at("mlp_only_layers");
    if (!dense.is_array() && !dense.is_null()) reader.config.fail("mlp_only_layers", "a list");
    if (std::find(dense.begin(), dense.end(), reader.layer) != dense.end()) return false;
    return reader.config.whole("num_experts") > 0 && (reader.layer + 1) % step == 0;
}

std::function<double(double)> position_factor(const BlockReader& reader,
                                              const nlohmann::json& rope) {
    const auto number = [&](const char* key) {
        if (!rope.contains(key) || !rope[key].is_number() || !(rope[key].get<double>() > 0))
            reader.config.fail("rope_parameters",
                               std::string("a number ") + key + " above 0 in it");
        return rope[key].get<double>();
    };
    const double beta = number("llama_4_scaling_beta"),
                 length = number("original_max_position_embeddings");
    return [beta, length](double position) {
        return 1 + beta * std::log1p(std::floor(position / length));
    };
}

NormSpec layer_norm_of(const TensorSet& tensors, const std::string& name, double eps,
                       std::size_t width) {
    NormSpec norm;
    norm.is_rms = false;
    norm.eps = eps;
    norm.weight = tensors.get(name + ".weight", {width});
    norm.bias = tensors.bias_of(name, {width});
    return norm;
}

double bound_of(const ModelConfig& config, const std::string& key) {
    if (!config.gives(key)) return config.names(key) ? 0 : config.number(key, 0);
    if (!(config.number(key) > 0)) config.fail(key, "a number above 0, or null");
    return config.number(key);
}

bool is_without_rotation(const BlockReader& reader, std::size_t layer) {
    const std::size_t every = reader.config.whole("no_rope_layer_interval", 4);
    const nlohmann::json& list = reader.config.at("no_rope_layers");
    if (!list.is_array() && !list.is_null()) reader.config.fail("no_rope_layers", "a list");
    if (list.empty()) {
        if (every == 0) reader.config.fail("no_rope_layer_interval", "at least 1");
        return (layer + 1) % every == 0;
    }
    const nlohmann::json& turns = reader.config.of_layer("no_rope_layers", layer);
    return turns == 0 || turns == false;
}

}  // namespace attn::io
