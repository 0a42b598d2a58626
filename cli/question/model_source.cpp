#include "cli/question/model_source.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/question/layers_before.hpp"
#include "cli/question/more_keys.hpp"
#include "cli/question/required_settings.hpp"
#include "cli/request/request.hpp"
#include "cli/request/request_builder.hpp"
#include "core/base/error.hpp"
#include "core/operator/rope.hpp"
#include "io/file/path.hpp"
#include "io/model/config.hpp"
#include "io/model/embeddings.hpp"
#include "io/model/other_tensors.hpp"
#include "io/model/read_weights.hpp"
#include "io/read/input_file.hpp"
#include "io/text/json_text.hpp"

namespace attn::cli {
namespace {

/// The settings that the config of a model fills in.
class RequestSettings final : public io::SettingStore {
public:
    explicit RequestSettings(RequestBuilder& builder) : builder_(builder) {}
    bool has(std::string_view setting) const override { return builder_.request.has(setting); }
    void store(std::string_view setting, const nlohmann::json& value,
               const std::string& place) override {
        builder_.apply_value(std::string(setting), value, place);
    }
    const Settings& settings() const override { return builder_.request.settings; }

private:
    RequestBuilder& builder_;
};

/// Applies the config that attn saved with parameters or a result: heads, masks and score settings
/// of their layer. `config` is the file's; null if it has none.
void apply_saved_config(RequestBuilder& builder, const nlohmann::json& config,
                        const std::string& path) {
    if (config.is_null()) return;
    const Request& request = builder.request;
    const bool other_heads = request.has("heads");
    builder.request.is_saved_model = true;
    for (const Option& option : options()) {
        const std::string key = option.key;
        const bool here = (option.modes & in(request.settings.mode)) != 0;
        if (!here || (option.use & as_saved) == 0) continue;
        if (!config.contains(key) || config[key].is_null() || request.has(key)) continue;
        if ((option.use & of_heads) != 0 && other_heads) continue;
        if (key.starts_with("rope_") && !request.settings.rope) continue;
        if (key == "alibi_slopes" && !request.settings.alibi) continue;
        builder.apply_value(key, config[key],
                            path + ": config " + key + " " + io::shortened(config[key].dump()));
    }
}

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

std::string file_in_folder(const std::string& path) {
    if (path == "config.json" || path.ends_with("/config.json"))
        throw Error(ErrorKind::usage, path,
                    "is a model's configuration; expected its folder, --weights " +
                        (path == "config.json" ? "." : path.substr(0, path.size() - 12)));
    if (!io::is_folder(path)) return path;
    for (const char* name : {"model.safetensors", "model.safetensors.index.json"})
        if (std::string file = io::path_in(path, name); io::path_exists(file)) return file;
    throw Error(ErrorKind::io, path,
                "is a folder without model.safetensors and model.safetensors.index.json; expected "
                "one of them, or a file");
}

void open_model_files(const Request& request, io::LoadedModels& files, const std::string& path) {
    const auto attempt = [](const auto& open) {
        try {
            open();
        } catch (const io::WrittenFile&) {
            throw;
        } catch (const Error&) {
        }
    };
    attempt([&] {
        const std::string file = io::split_data_path(file_in_folder(path)).file;
        const std::string config = config_beside(request, file);
        attempt([&] { files.open(file, access_to(request, "weights")); });
        if (!config.empty()) files.config(config, access_to(request, "model_config"));
    });
}

ModelSource::ModelSource(const Request& request, io::LoadedModels& files, const std::string& path)
    : files_(files) {
    const std::string whole = file_in_folder(path);
    const io::DataPath parts = io::split_data_path(whole);
    io::Access access = access_to(request, "weights");
    access.regular_only = access.regular_only || whole != path;
    file_ = files.open(parts.file, access);
    path_ = parts.file;
    find_layer(request, parts.array);
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
        if (const std::string problem = is_whole ? type_problem(request, nullptr) : "";
            !problem.empty())
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

/// The error of the model type in the folder's config, for this family; empty if there is none, or
/// if the config cannot be read.
std::string ModelSource::type_problem(const Request& request, const io::Family* family) const {
    const std::string path = folder_config();
    if (path.empty()) return "";
    try {
        const auto config = files_.config(path, access_to(request, "weights"));
        if (!config->is_object() || !config->contains("model_type")) return "";
        return io::problem_of_type(*config, family);
    } catch (const io::WrittenFile&) {
        throw;
    } catch (const Error&) {
        return "";
    }
}

Request ModelSource::with_model(Request asked) {
    RequestBuilder builder{std::move(asked)};
    const Request& request = builder.request;
    const io::Family& family = *layer_.family;
    const bool wants_eps = request.has("norm_eps"), wants_norm = request.has("norm");
    const bool wants_rope = request.has("rope_base") || request.has("rope_scaling");
    const bool wants_dims = request.has("rope_dims"), wants_offset = request.has("position_offset");
    builder.request.family = &family;
    if (layer_.number) builder.request.layer = layer_.number;
    builder.request.weights_layout = layer_.in_out ? WeightsLayout::in_out : WeightsLayout::out_in;
    std::map<std::string, std::string> shapes;
    for (const auto& [name, shape] : io::weight_shapes(*file_, layer_))
        io::append_json(shapes[name], shape);
    check_shapes(builder.request, std::move(shapes));
    check_embedding_flags(request);
    // Families without model types have no config; a config.json next to their weights is another
    // program's.
    const bool has_config = !family.model_types.empty();
    const std::string config_path = config_beside(request, path_ == "-" ? "" : path_);
    RequestSettings store(builder);
    if (!config_path.empty() && has_config)
        type_ =
            &io::read_model_config(store, *file_, layer_, config_path,
                                   *files_.config(config_path, access_to(request, "model_config")));
    else if (request.model_config && *request.model_config != "none")
        throw setting_error(
            request, "model_config",
            "family " + std::string(family.name) + " has no config; expected --model-config none");
    if (type_ != nullptr && type_->has_padding_positions && !wants_offset)
        padding_id_ = *request.position_offset - 1;
    apply_saved_config(builder, file_->config(), file_->name);
    if (!request.pre_norm && !request.token_ids.empty())
        builder.request.pre_norm = !family.norm.empty();
    if (request.model_config && has_config) check_folder_type(request);
    const bool is_known = type_ != nullptr || request.is_saved_model;
    const io::HeadNormNames head_norms = io::head_norm_names(*file_, layer_);
    const auto has_head_norms = static_cast<bool>(head_norms);
    check_can_save(request, head_norms.query);
    check_saved_parts(*file_);
    if (is_known || (family.is_plain && !has_head_norms))
        builder.request = with_family_defaults(std::move(builder.request), family);
    require_settings(request, *file_, layer_, {is_known, has_head_norms, is_supported_});
    check_rope(request, wants_rope, wants_dims);
    if (request.token_ids.empty()) builder.request.position_offset.reset();
    check_more_keys(request, *file_, layer_);
    if (request.pre_norm.value_or(false) || !request.token_ids.empty() || has_head_norms)
        return std::move(builder.request);
    for (const char* key : {"norm", "norm_eps"})
        if (key == std::string("norm") ? wants_norm : wants_eps)
            throw setting_error(request, key,
                                "requires --pre-norm, --token-ids or norms of queries and keys");
    builder.request.norm_eps.reset();
    return std::move(builder.request);
}

/// A config that --model-config replaces still determines which embeddings and norms the model has.
void ModelSource::check_folder_type(const Request& request) {
    const std::string problem = type_problem(request, layer_.family);
    is_supported_ = problem.empty();
    const bool uses_model = request.pre_norm.value_or(false) || !request.token_ids.empty();
    if (!is_supported_ && uses_model)
        throw Error(ErrorKind::input, folder_config(),
                    problem +
                        " (--token-ids and --pre-norm need one of them, whatever "
                        "--model-config is)");
}

void ModelSource::check_embedding_flags(const Request& request) const {
    for (const char* key : {"position_offset", "embedding_scale"})
        if (request.has(key) && request.token_ids.empty())
            throw setting_error(request, key, "requires --token-ids");
    if (request.has("position_offset") && layer_.family->embedding.positions.empty())
        throw setting_error(request, "position_offset",
                            "family " + std::string(layer_.family->name) +
                                " has no table of positions; expected no offset");
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
            auto weights =
                std::make_shared<LayerWeights<T>>(io::read_layer_weights<T>(*file_, layer_, heads));
            const io::HeadNormNames norms = io::head_norm_names(*file_, layer_);
            const std::size_t width = weights->query.d_out(), d = width / heads,
                              key_heads = d == 0 ? 0 : weights->key.d_out() / d;
            if (!norms.query.empty())
                weights->query_norm =
                    io::read_head_norm(*file_, norms.query, width, heads, norm_settings(request));
            if (!norms.key.empty())
                weights->key_norm = io::read_head_norm(*file_, norms.key, weights->key.d_out(),
                                                       key_heads, norm_settings(request));
            return weights;
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

void ModelSource::read_more_keys(const Request& request, Operands& operands) const {
    cli::read_more_keys(request, *file_, layer_, operands);
}

Array<double> ModelSource::embed_token_ids(const Request& request, std::size_t past_len) const {
    check_padding(request);
    if (const std::size_t layer = layer_.number.value_or(0); layer != 0) {
        if (type_ == nullptr || path_.empty() || past_len != 0)
            throw setting_error(request, "token_ids",
                                "layer " + std::to_string(layer) +
                                    " takes hidden states, which need the layers before it; "
                                    "expected layer 0, INPUT, or a model's folder and no cache");
        return hidden_states_before(request, path_, layer);
    }
    const std::size_t first = past_len + request.position_offset.value_or(0);
    return io::embed_token_ids(*file_, layer_, request.token_ids,
                               {first, request.embedding_scale, norm_settings(request)},
                               request.settings.dtype);
}

/// Padding tokens have their own position and are not counted, which is not supported. With
/// --position-offset they are tokens like the others.
void ModelSource::check_padding(const Request& request) const {
    const auto& ids = request.token_ids;
    if (padding_id_ && std::find(ids.begin(), ids.end(), *padding_id_) != ids.end())
        throw setting_error(request, "token_ids",
                            "id " + std::to_string(*padding_id_) + " is the padding of " +
                                std::string(type_->name) +
                                ", which is not supported; expected other ids");
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
    std::vector<std::string> notes;
    const std::optional<std::size_t> width = io::embedding_width(*file_, layer_);
    if (request.text && width) {
        if (*request.embed_dim != *width)
            throw setting_error(
                request, request.example ? "example" : "text",
                "gives words random embeddings of width " + std::to_string(*request.embed_dim) +
                    ", and the model's have width " + std::to_string(*width) +
                    "; expected --token-ids N,..., as attn tokenize prints them, or attn model "
                    "with --text");
        notes.emplace_back(
            "--text embeds words at random; --token-ids uses the model's own embedding");
    }
    const bool may_have_norm = !row_of(request.settings.mode).context;
    if (may_have_norm && !request.pre_norm && io::has_pre_norm(*file_, layer_))
        notes.push_back(layer_.beside(layer_.family->norm) +
                        ", the model's norm before this layer, is not applied; " +
                        (is_supported_ ? "--pre-norm applies it, " : "") +
                        "--no-pre-norm specifies that the input is normed already");
    return notes;
}

std::optional<InputNorm> ModelSource::read_norm(const Request& request) const {
    if (!request.pre_norm.value_or(false)) return std::nullopt;
    return io::read_pre_norm(*file_, layer_, norm_settings(request));
}

void check_no_model(const Request& request) {
    for (std::string_view key :
         {"family", "layer", "weights_layout", "weights_shapes", "model_config", "token_ids",
          "pre_norm", "norm", "norm_eps", "position_offset", "embedding_scale"}) {
        const bool of_saved = key == "family" || key == "layer";
        if (request.has(key) && !(of_saved && !request.save_weights.empty()))
            throw setting_error(request, std::string(key), "requires --weights");
    }
}

}  // namespace attn::cli
