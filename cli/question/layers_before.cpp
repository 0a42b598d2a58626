#include "cli/question/layers_before.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "core/base/error.hpp"
#include "core/model/model.hpp"
#include "io/transformer/model.hpp"

namespace attn::cli {

namespace {

/// Whether the setting is the model's own, as in the config of a result.
bool is_of_model(const Request& request, std::string_view key, const ModelSpec& model) {
    const EmbeddingSpec& embedding = model.embedding;
    if (key == "position_offset")
        return embedding.first_position ==
               static_cast<std::int64_t>(request.position_offset.value_or(0));
    if (key == "embedding_scale") return embedding.scale == request.embedding_scale;
    if (!model.final_norm) return false;
    if (key == "norm_eps") return model.final_norm->eps == request.norm_eps;
    return model.final_norm->is_rms == (request.norm == NormForm::rms);
}

}  // namespace

Array<double> hidden_states_before(const Request& request, const std::string& path,
                                   std::size_t layer) {
    const io::OpenModel model(
        io::open_model_folder(path, request.model_config, access_to(request, "weights")));
    const ModelSpec spec = model.specify(request.token_ids.size());
    for (const char* key : {"position_offset", "embedding_scale", "norm", "norm_eps"})
        if ((is_from_flag(request, key) || is_from_key(request, key)) &&
            !is_of_model(request, key, spec))
            throw setting_error(request, key,
                                "conflicts with --token-ids for layer " + std::to_string(layer) +
                                    ", since the layers before it follow the model's config");
    // One block at least, which reads the keys of the config.
    const std::size_t layers = std::max<std::size_t>(layer, 1);
    if (const io::OpenModel* const decoder = model.decoder())
        model.check(spec, layers, decoder->specify(1), 1);
    else
        model.check(spec, layers);
    ModelRequest asked;
    asked.layers = {layer};
    asked.run_layers = layer;
    asked.arrays.names = {"hidden_states"};
    asked.enters = true;
    ModelInput input;
    input.ids = request.token_ids;
    ThreadPool pool(static_cast<std::size_t>(request.threads.value_or(0)));
    const Compute compute{pool, request.settings.kernel,
                          &backend_of_products(request.settings.kernel)};
    ModelResult result = run_model(compute, spec, std::move(input), asked, request.settings.dtype);
    return std::visit([](auto& values) { return Array<double>(std::move(values)); },
                      result.arrays.front().values);
}

}  // namespace attn::cli
