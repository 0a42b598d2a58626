#include <algorithm>

#include "cli/question/layer_source.hpp"
#include "cli/request/field.hpp"
#include "core/base/error.hpp"
#include "core/operator/rope.hpp"
#include "io/file/path.hpp"
#include "io/file/source.hpp"
#include "io/model/families.hpp"
#include "io/transformer/family_row.hpp"

namespace attn::cli {
namespace {

std::optional<bool> is_in_out(const Request& request) {
    if (!request.weights_layout) return {};
    return *request.weights_layout == WeightsLayout::in_out;
}

/// "--token-ids", which may replace an input.
std::string token_ids_instead(const Request& request) {
    const std::string other = request.text ? "--text" : request.input;
    return "--token-ids" + (other.empty() ? "" : " in place of " + other);
}

/// Refuses flags of an embedding that is not used, or has no positions; `owner` names what the
/// embedding belongs to.
void check_embedding_flags(const Request& request, const std::string& owner, bool has_positions) {
    for (const char* key : {"position_offset", "embedding_scale"})
        if (request.has(key) && request.token_ids.empty())
            throw setting_error(request, key, "requires " + token_ids_instead(request));
    if (request.has("position_offset") && !has_positions)
        throw setting_error(request, "position_offset",
                            owner + " has no table of positions; expected no offset");
}

/// Stores the shapes of the weights as those of the request, which may require other ones, as a
/// config that was printed for other weights does.
void take_shapes(Request& request, std::map<std::string, std::string> found) {
    const auto shape_in = [](const auto& shapes, const std::string& name) {
        const auto shape = shapes.find(name);
        return shape == shapes.end() ? "no such tensor" : io::shortened(shape->second);
    };
    const auto& wanted = request.weights_shapes;
    if (wanted)
        for (const auto* shapes : {&std::as_const(found), &*wanted})
            for (const auto& [name, shape] : *shapes)
                if (shape_in(found, name) != shape_in(*wanted, name))
                    throw Error(ErrorKind::input, location_of(request, "weights_shapes"),
                                "the weights have ", shape_in(found, name), " for \"", name,
                                "\"; expected ", shape_in(*wanted, name));
    request.weights_shapes = std::move(found);
}

/// Applies the config that attn saved with parameters or a result: heads, masks and score settings
/// of their layer.
void apply_saved_config(Request& request, const io::ArrayFile& file) {
    const nlohmann::json config = file.config();
    if (config.is_null()) return;
    const bool other_heads = request.has("heads");
    request.is_saved_model = true;
    for (const Option& option : options()) {
        const std::string key = option.key;
        const bool here = (option.modes & in(request.settings.mode)) != 0;
        if (!here || (option.use & as_saved) == 0) continue;
        if (!config.contains(key) || config[key].is_null() || request.has(key)) continue;
        if ((option.use & of_heads) != 0 && other_heads) continue;
        if (key.starts_with("rope_") && !request.settings.rope) continue;
        if (key == "alibi_slopes" && !request.settings.alibi) continue;
        apply_value(request, key, config[key],
                    file.name + ": config " + key + " " + io::shortened(config[key].dump()));
    }
}

/// Fills in the family's defaults if neither a flag nor the file specifies a setting.
void take_family_defaults(Request& request, const io::Family& family) {
    Settings& settings = request.settings;
    if (!family.causal && settings.mode == Mode::multihead && !request.has("causal"))
        settings.causal = false;
    const bool rotates = family.rotates != io::Rotates::none && !request.is_saved_model;
    if (rotates && !request.has("rope")) settings.rope = Rope::half;
    request.norm_eps = request.norm_eps.value_or(family.eps);
}

}  // namespace

ModelSource::ModelSource(io::LoadedModels& files, std::string path, io::ModelFolder model)
    : files_(files), path_(std::move(path)), file_(model.tensors),
      model_(std::make_unique<const io::OpenModel>(std::move(model))) {}

ModelSource::ModelSource(const Request& request, io::LoadedModels& files, std::string path,
                         std::shared_ptr<const io::ArrayFile> file, const std::string& prefix)
    : files_(files), path_(std::move(path)), file_(std::move(file)) {
    if (!request.weight_names.empty())
        given_ = std::make_unique<const io::Family>(io::family_of_names(
            request.family,
            name_pairs(request.weight_names, location_of(request, "weight_names"))));
    try {
        names_ = io::find_layer(*file_, {given_ ? given_.get() : request.family, request.layer,
                                         prefix, is_in_out(request), request.qkv_layout});
    } catch (const Error& error) {
        // An unsupported model has other tensor names: report its type, not a broken file.
        const bool is_whole = error.kind() == ErrorKind::input && prefix.empty() && !given_;
        if (const std::string problem = is_whole ? type_problem(request) : ""; !problem.empty())
            throw Error(ErrorKind::input, folder_config(), problem);
        throw;
    }
    if (given_) return;
    // The names of a class do not determine a model.
    const bool may_be_model =
        names_->family->of_class && request.family == nullptr && !request.model_config;
    if (const std::string problem = may_be_model ? type_problem(request) : ""; !problem.empty())
        throw Error(ErrorKind::input, folder_config(), problem,
                    ", or --model-config none where the layer is of no model");
    io::check_others(*file_, *names_);
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
    if (family != nullptr && (!names_ || names_->family == family)) return "";
    const bool is_known = names_ && io::find_family_row(name) != nullptr;
    return "model type " + io::one_line(io::shortened(name)) +
           (is_known ? ", but the tensors' names are those of family " +
                           std::string(names_->family->name) + "; expected a type that has them"
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

/// Finds the layer of the request, the only one of the file, or the first, with its names if the
/// model's type is that of a family.
void ModelSource::find_block(Request& request) {
    if (!request.layer) {
        const std::vector<io::NameMatch> stored = model_->stored_layers();
        request.layer = stored.size() == 1 ? stored.front().number.value_or(0) : 0;
    }
    layer_ = io::attention_layer(*model_, static_cast<std::size_t>(*request.layer));
    const io::Family* const family = io::family_of_type(model_->type());
    if (request.family != nullptr && request.family != family)
        throw setting_error(
            request, "family",
            concat("the model is of type ", model_->type(), "; expected ",
                   family != nullptr ? concat("--family ", family->name) : "no --family"));
    if (family != nullptr && !names_)
        for (io::ModelLayer& layer : io::layers_of(*file_))
            if (layer.family == family && layer.number == request.layer &&
                layer.full("").starts_with(model_->files().prefix))
                names_ = std::move(layer);
    io::check_layout(*file_, is_in_out(request), layer_.part.query.in_out);
    if (request.qkv_layout.value_or(layer_.part.joined) != layer_.part.joined)
        throw setting_error(request, "qkv_layout",
                            "the model's config determines it; expected no such flag, or "
                            "--model-config none");
    if (request.pre_norm.value_or(false) && !layer_.norm)
        throw setting_error(
            request, "pre_norm",
            "a " + model_->type() + " has no norm before its attention; expected --no-pre-norm");
    if (!names_) return;
    io::check_others(*file_, *names_);
    io::check_causal_masks(*file_, *names_);
}

/// What the names of the tensors determine, and their shapes.
void ModelSource::take_names(Request& request) const {
    if (names_) {
        const bool in_out = model_ ? layer_.part.query.in_out : names_->in_out;
        if (!given_) request.family = names_->family;
        request.weights_layout = in_out ? WeightsLayout::in_out : WeightsLayout::out_in;
        if (names_->number) request.layer = names_->number;
        if (!model_) request.read_layout = names_->joined;
    }
    std::map<std::string, std::string> shapes;
    for (const auto& [name, shape] : names_ ? io::weight_shapes(*file_, *names_) : layer_.shapes)
        io::append_json(shapes[name], shape);
    take_shapes(request, std::move(shapes));
}

/// Flags take precedence over the model's config.
void ModelSource::take_config(Request& request) {
    const std::size_t heads = static_cast<std::size_t>(request.settings.heads.value_or(0));
    if (request.has("heads") && heads != layer_.part.heads) io::use_heads(layer_, heads);
    for (std::optional<NormSpec>* norm :
         {&layer_.norm, &layer_.part.query_norm, &layer_.part.key_norm})
        replace_norm(request, *norm);
    const bool turns = !request.has("rope") || request.settings.rope,
               is_multihead = request.settings.mode == Mode::multihead;
    for (const auto& [key, value] : layer_.settings.items())
        if (!request.has(key) && (turns || !key.starts_with("rope")) &&
            (is_multihead || key != "causal"))
            apply_value(request, key, value, model_->files().config_location + ": " + key);
}

/// Families without model types have no config; a config.json next to their weights is another
/// program's.
void ModelSource::refuse_config(const Request& request) const {
    const io::Family& family = *names_->family;
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
}

/// The norm of queries or keys; empty: there is none.
std::string ModelSource::head_norm() const {
    if (model_ == nullptr) return io::head_norm_names(*file_, *names_).query;
    return layer_.part.query_norm ? "query_norm" : layer_.part.key_norm ? "key_norm" : "";
}

/// What a layer without a config needs. A config that --model-config replaces still determines
/// which embeddings and norms the model has.
void ModelSource::take_flags(Request& request) {
    const io::Family& family = *names_->family;
    std::string problem;
    if (request.model_config && !family.types.empty()) problem = type_problem(request);
    is_supported_ = problem.empty();
    const bool uses_model = request.pre_norm.value_or(false) || !request.token_ids.empty();
    if (!is_supported_ && uses_model)
        throw Error(ErrorKind::input, folder_config(), problem,
                    " (--token-ids and --pre-norm need one of them, whatever "
                    "--model-config is)");
    const bool has_head_norms = !head_norm().empty();
    if (request.is_saved_model || (names_->is_plain() && !has_head_norms))
        take_family_defaults(request, family);
    const std::size_t heads = io::stored_heads(*file_, *names_);
    if (heads != 0 && row_of(request.settings.mode).heads_axis != HeadsAxis::never) {
        if (request.settings.heads.value_or(heads) != heads)
            throw setting_error(request, "heads",
                                concat("the weights have ", heads, " heads; expected that"));
        request.settings.heads = heads;
    }
    require_settings(request, *file_, *names_, has_head_norms, is_supported_);
}

/// The settings determine the rotation; frequencies in the file that contradict them are an error.
void ModelSource::check_rope(const Request& request, bool wants_other_angles,
                             bool wants_dims) const {
    const Settings& s = request.settings;
    if (!s.rope || !names_ || (model_ && !layer_.part.rotation)) return;
    const std::size_t head =
        io::layer_widths(*file_, *names_).queries / std::max<std::size_t>(1, s.heads.value_or(1));
    io::check_frequencies(*file_, *names_,
                          model_ ? layer_.part.rotation->frequencies
                                 : RopeSettings{*s.rope, s.rope_base.value_or(default_rope_base),
                                                s.rope_dims.value_or(head), s.rope_scaling}
                                       .frequencies(),
                          wants_other_angles, wants_dims);
}

Request ModelSource::with_model(Request request) {
    // The config of a result of token ids has the model's own epsilon.
    const bool is_own_eps = model_ && request.norm_eps == model_->eps() &&
                            !location_of(request, "norm_eps").starts_with("--");
    const bool wants_eps = request.has("norm_eps") && !is_own_eps, wants_norm = request.has("norm"),
               wants_angles = request.has("rope_base") || request.has("rope_scaling"),
               wants_dims = request.has("rope_dims");
    if (model_) find_block(request);
    take_names(request);
    check_embedding_flags(
        request, model_ ? "a " + model_->type() : "family " + std::string(names_->family->name),
        model_ ? !model_->row().positions.empty() : !names_->family->embedding.positions.empty());
    if (model_)
        take_config(request);
    else
        refuse_config(request);
    apply_saved_config(request, *file_);
    if (!request.pre_norm && !request.token_ids.empty())
        request.pre_norm = model_ ? layer_.norm.has_value() : !names_->family->norm.empty();
    check_can_save(request, head_norm());
    check_saved_parts(*file_);
    if (!model_) take_flags(request);
    check_rope(request, wants_angles, wants_dims);
    if (request.token_ids.empty()) request.position_offset.reset();
    if (!model_) check_more_keys(request, *file_, *names_);
    const bool has_norm =
        request.pre_norm.value_or(false) || !request.token_ids.empty() || !head_norm().empty();
    if (has_norm && model_ && names_) {
        repeat_config(request);
    } else if (!has_norm) {
        const bool has_pre = model_ ? layer_.norm.has_value() : !names_->family->norm.empty(),
                   has_ids = model_ ? model_->embedding() != nullptr
                                    : io::named_ids(*file_, *names_) != nullptr;
        if (wants_norm || wants_eps)
            throw setting_error(request, wants_norm ? "norm" : "norm_eps",
                                has_pre && has_ids
                                    ? "requires --pre-norm, or " + token_ids_instead(request)
                                : has_pre ? "requires --pre-norm"
                                : has_ids ? "requires " + token_ids_instead(request)
                                          : "the layer has no norm; expected no such flag");
        request.norm_eps.reset();
    }
    return request;
}

/// The epsilon and the first position that the answer's config repeats.
void ModelSource::repeat_config(Request& request) const {
    if (!request.norm_eps) {
        request.norm_eps = model_->eps();
        request.locations["norm_eps"] = Location(model_->files().config_location + ": norm_eps");
    }
    if (request.token_ids.empty() || request.position_offset) return;
    const std::int64_t first = model_->specify(1).embedding.first_position;
    if (first != 0) request.position_offset = first;
}

io::NormSettings ModelSource::norm_settings(const Request& request) const {
    const io::Family& family = *names_->family;
    return {request.norm.value_or(family.rms ? NormForm::rms : NormForm::layer),
            request.norm_eps.value_or(family.eps), request.norm.has_value()};
}

AnyLayerWeights ModelSource::read_weights(const Request& request) const {
    const std::size_t heads = request.settings.heads.value_or(1);
    const auto read = [&] {
        const std::vector<AttentionPart> parts =
            model_ ? std::vector{layer_.part}
                   : io::named_parts(file_, *names_, heads, norm_settings(request));
        return io::read_attention(parts, request.settings.dtype, file_->name);
    };
    if (path_.empty()) return read();
    const auto text = [](const auto& value) { return nlohmann::json(value).dump() + " "; };
    // Everything that the weights depend on. Names are last because they may contain any character.
    return files_.weights(
        path_ + "\n" +
            (model_           ? "block "
             : names_->in_out ? "in-out "
                              : "out-in ") +
            text(request.layer.value_or(0)) + text(heads) +
            std::string(row_of(request.settings.dtype).name) + " " +
            (request.norm ? text(static_cast<int>(*request.norm)) : "- ") +
            (request.norm_eps ? text(*request.norm_eps) : "- ") +
            (model_ ? model_->files().prefix + "\n" + request.model_config.value_or("")
                    : text(request.weight_names) + text(static_cast<int>(names_->joined)) +
                          std::string(names_->family->name) + " " + names_->full("")),
        read);
}

}  // namespace attn::cli
