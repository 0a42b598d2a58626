#include "cli/question/layer_source.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/request/request.hpp"
#include "cli/request/request_builder.hpp"
#include "core/base/error.hpp"
#include "core/operator/rope.hpp"
#include "io/file/path.hpp"
#include "io/file/source.hpp"
#include "io/model/families.hpp"
#include "io/model/find_layer.hpp"
#include "io/read/input_file.hpp"
#include "io/text/json_text.hpp"
#include "io/transformer/attention_layer.hpp"
#include "io/transformer/family_row.hpp"
#include "io/transformer/model.hpp"

namespace attn::cli {
namespace {

/// Fills in the family's defaults if neither a flag nor the file specifies a setting.
Request with_family_defaults(Request request, const io::Family& family) {
    Settings& settings = request.settings;
    if (!family.causal && settings.mode == Mode::multihead && !request.has("causal"))
        settings.causal = false;
    const bool rotates = family.rotates != io::Rotates::none && !request.is_saved_model;
    if (rotates && !request.has("rope")) settings.rope = Rope::half;
    request.norm_eps = request.norm_eps.value_or(family.eps);
    return request;
}

}  // namespace

ModelSource::ModelSource(const Request& request, io::LoadedModels& files, const std::string& path)
    : files_(files) {
    const io::WeightsFile weights = io::find_weights(path, access_to(request, "weights"));
    file_ = files.open(weights.file, weights.access);
    path_ = weights.file;
    find_layer(request, weights.array);
}

ModelSource::ModelSource(const Request& request, io::LoadedModels& files, io::ArrayFile file)
    : files_(files), file_(std::make_shared<const io::ArrayFile>(std::move(file))) {
    find_layer(request, "");
}

void ModelSource::find_layer(const Request& request, const std::string& prefix) {
    io::LayerQuery query{request.family, request.layer, prefix, std::nullopt};
    if (request.weights_layout) query.in_out = *request.weights_layout == WeightsLayout::in_out;
    try {
        layer_ = io::find_layer(*file_, query);
    } catch (const Error& error) {
        // An unsupported model has other tensor names: report its type, not a broken file.
        const bool is_whole = error.kind() == ErrorKind::input && prefix.empty();
        if (const std::string problem = is_whole ? type_problem(request) : ""; !problem.empty())
            throw Error(ErrorKind::input, folder_config(), problem);
        throw;
    }
    io::check_others(*file_, layer_);
}

/// config.json next to the weights, regardless of --model-config; empty if there is none.
std::string ModelSource::folder_config() const {
    if (path_.empty() || path_ == "-") return "";
    std::string path = io::path_beside(path_, "config.json");
    return io::path_exists(path) ? path : "";
}

/// The error of a config's model type; empty if the layer's family has it.
std::string ModelSource::problem_of(const nlohmann::json& config) const {
    const nlohmann::json type = config.value("model_type", nlohmann::json());
    if (!type.is_string()) return "has no model_type; expected one of those of attn help model";
    const auto& name = type.get_ref<const std::string&>();
    const io::Family* const family = io::family_of_type(name);
    if (family != nullptr && (layer_.family == nullptr || layer_.family == family)) return "";
    const bool is_known = layer_.family != nullptr && io::find_family_row(name) != nullptr;
    return "model type " + io::one_line(io::shortened(name)) +
           (is_known ? ", but the tensors' names are those of family " +
                           std::string(layer_.family->name) + "; expected a type that has them"
                     : " is not supported; expected one of those of attn help model");
}

/// The same for the folder's config; empty if there is none, or if it cannot be read.
std::string ModelSource::type_problem(const Request& request) const {
    const std::string path = folder_config();
    if (path.empty()) return "";
    try {
        const auto config = files_.config(path, access_to(request, "weights"));
        return config->contains("model_type") ? problem_of(*config) : "";
    } catch (const io::WrittenFile&) {
        throw;
    } catch (const Error&) {
        return "";
    }
}

Request ModelSource::with_model(Request request) {
    const io::Family& family = *layer_.family;
    const bool wants_eps = request.has("norm_eps"), wants_norm = request.has("norm");
    const bool wants_rope = request.has("rope_base") || request.has("rope_scaling");
    const bool wants_dims = request.has("rope_dims");
    request.family = &family;
    if (layer_.number) request.layer = layer_.number;
    request.weights_layout = layer_.in_out ? WeightsLayout::in_out : WeightsLayout::out_in;
    std::map<std::string, std::string> shapes;
    for (const auto& [name, shape] : io::weight_shapes(*file_, layer_))
        io::append_json(shapes[name], shape);
    check_shapes(request, std::move(shapes));
    check_embedding_flags(request, "family " + std::string(family.name),
                          !family.embedding.positions.empty());
    // Families without model types have no config; a config.json next to their weights is another
    // program's.
    const bool has_config = !family.types.empty();
    const std::string config = config_beside(request, path_ == "-" ? "" : path_);
    if (has_config && !config.empty()) {
        const auto members = files_.config(config, access_to(request, "model_config"));
        throw Error(ErrorKind::input, config, problem_of(*members));
    } else if (request.model_config && *request.model_config != "none" && !has_config) {
        throw setting_error(
            request, "model_config",
            "family " + std::string(family.name) + " has no config; expected --model-config none");
    }
    apply_saved_config(request, file_->config(), file_->name);
    if (!request.pre_norm && !request.token_ids.empty()) request.pre_norm = !family.norm.empty();
    if (request.model_config && has_config) check_folder_type(request);
    const bool is_known = request.is_saved_model;
    const io::HeadNormNames head_norms = io::head_norm_names(*file_, layer_);
    const auto has_head_norms = static_cast<bool>(head_norms);
    check_can_save(request, head_norms.query);
    check_saved_parts(*file_);
    if (is_known || (family.is_plain && !has_head_norms))
        request = with_family_defaults(std::move(request), family);
    require_settings(request, *file_, layer_, {is_known, has_head_norms, is_supported_});
    check_rope(request, wants_rope, wants_dims);
    if (request.token_ids.empty()) request.position_offset.reset();
    check_more_keys(request, *file_, layer_);
    if (request.pre_norm.value_or(false) || !request.token_ids.empty() || has_head_norms)
        return request;
    check_no_norm(request, wants_norm, wants_eps);
    request.norm_eps.reset();
    return request;
}

/// A config that --model-config replaces still determines which embeddings and norms the model has.
void ModelSource::check_folder_type(const Request& request) {
    const std::string problem = type_problem(request);
    is_supported_ = problem.empty();
    const bool uses_model = request.pre_norm.value_or(false) || !request.token_ids.empty();
    if (!is_supported_ && uses_model)
        throw Error(ErrorKind::input, folder_config(),
                    problem +
                        " (--token-ids and --pre-norm need one of them, whatever "
                        "--model-config is)");
}

/// The settings determine the rotation; frequencies in the file that contradict them are an error.
void ModelSource::check_rope(const Request& request, bool wants_other_angles,
                             bool wants_dims) const {
    const Settings& s = request.settings;
    if (!s.rope) return;
    const std::size_t head =
        io::layer_widths(*file_, layer_).queries / std::max<std::size_t>(1, s.heads.value_or(1));
    io::check_frequencies(*file_, layer_,
                          rope_frequencies(s.rope_base.value_or(default_rope_base),
                                           s.rope_dims.value_or(head), s.rope_scaling),
                          wants_other_angles, wants_dims);
}

AnyLayerWeights ModelSource::read_weights(const Request& request) const {
    const std::size_t heads = request.settings.heads.value_or(1);
    const auto read = [&] {
        return for_dtype(request.settings.dtype, [&]<class T>(T) -> AnyLayerWeights {
            return std::make_shared<const LayerWeights<T>>(io::read_attention<T>(
                io::named_parts(file_, layer_, heads, norm_settings(request)), file_->name));
        });
    };
    if (path_.empty()) return read();
    // Everything that the weights depend on. The prefix is last because it may contain any
    // character.
    const std::string key =
        path_ + "\n" + std::string(layer_.family->name) + " " + std::to_string(heads) + " " +
        std::string(row_of(request.settings.dtype).name) + " " +
        (layer_.in_out ? "in-out " : "out-in ") +
        (request.norm_eps ? std::to_string(static_cast<int>(norm_settings(request).form)) + " " +
                                nlohmann::json(*request.norm_eps).dump() + " "
                          : "") +
        (layer_.number ? std::to_string(*layer_.number) : "-") + " " + layer_.prefix;
    return files_.weights(key, read);
}

Array<double> ModelSource::embed_token_ids(const Request& request, std::size_t past_len) const {
    if (const std::size_t layer = layer_.number.value_or(0); layer != 0)
        throw setting_error(request, "token_ids",
                            "layer " + std::to_string(layer) +
                                " takes hidden states, which need the layers before it; expected "
                                "layer 0, INPUT, or a model's folder with its config");
    ModelSpec model;
    const auto first = static_cast<std::int64_t>(past_len + request.position_offset.value_or(0));
    model.embedding = io::named_embedding(file_, layer_,
                                          {first, request.embedding_scale, norm_settings(request)});
    return hidden_states(request, model, 0);
}

io::NormSettings ModelSource::norm_settings(const Request& request) const {
    const io::Family& family = *layer_.family;
    return {request.norm.value_or(family.rms ? NormForm::rms : NormForm::layer),
            request.norm_eps.value_or(family.eps), request.norm.has_value()};
}

ModelSource::Labels ModelSource::token_labels(const Request& request) const {
    return labels_beside(request, files_, path_);
}

std::vector<std::string> ModelSource::notes_on_input(const Request& request) const {
    return cli::notes_on_input(
        request, io::named_ids(*file_, layer_),
        io::has_pre_norm(*file_, layer_) ? layer_.beside(layer_.family->norm) : "", is_supported_);
}

std::optional<InputNorm> ModelSource::read_norm(const Request& request) const {
    if (!request.pre_norm.value_or(false)) return std::nullopt;
    return io::input_norm(io::named_pre_norm(file_, layer_, norm_settings(request)), 0);
}

}  // namespace attn::cli
