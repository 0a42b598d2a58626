// The contents of a model's file, as --weights reads it.
#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "cli/inspect/inspect.hpp"
#include "cli/question/layer_source.hpp"
#include "cli/request/errors.hpp"
#include "cli/request/request.hpp"
#include "core/base/error.hpp"
#include "io/model/find_layer.hpp"
#include "io/read/json_document.hpp"
#include "io/text/number_text.hpp"
#include "io/transformer/attention_layer.hpp"
#include "io/transformer/model.hpp"

namespace attn::cli {
namespace {

using io::ModelLayer;
using nlohmann::ordered_json;

/// The mode whose layers look like this one.
Mode mode_for(const io::ArrayFile& file, const ModelLayer& layer) {
    const io::LayerWidths widths = io::layer_widths(file, layer);
    if (widths.context != widths.d_in) return Mode::cross;
    const bool has_out = file.find(layer.full_out(layer.names->out.weight)) != nullptr;
    if (has_out || layer.names->is_wrapper) return Mode::multihead;
    return file.find(layer.full("mask")) != nullptr ? Mode::causal : Mode::self;
}

/// The settings that the file and its config determine, besides the defaults, by the keys of a
/// request.
ordered_json fixed_settings(const Request& request) {
    Request untold;
    untold.settings.mode = request.settings.mode;
    const auto config = io::parse_own(config_of(request)),
               defaults = io::parse_own(config_of(untold));
    ordered_json fixed = ordered_json::object();
    for (const Option& option : options())
        if ((option.use & as_saved) != 0 && config.contains(option.key) &&
            config[option.key] != defaults.value(option.key, nlohmann::json()))
            fixed[option.key] = config[option.key];
    return fixed;
}

void add_norm(bool is_rms, double eps, ordered_json& model) {
    model["norm"] = is_rms ? "RMSNorm" : "LayerNorm";
    model["norm_eps"] = eps;
}

class ModelInspector {
public:
    ModelInspector(ordered_json& found, const io::ArrayFile& file, std::string path,
                   std::string prefix, std::vector<ModelLayer> layers)
        : found_(found), file_(file), path_(std::move(path)), prefix_(std::move(prefix)),
          layers_(std::move(layers)) {}

    void inspect(std::optional<std::uint64_t> number) {
        const ModelLayer& layer = choose(number);
        request_.settings.mode = mode_for(file_, layer);
        request_.layer = layer.number;
        request_.locations["weights"] = path_;
        request_.operand_files["weights"] = path_;
        if (has_norm(layer)) request_.pre_norm = true;
        describe(layer);
        try {
            at_locations(request_, [&] { take_settings(layer); });
        } catch (const Error&) {
            const ErrorReport failure = current_error();
            found_["problem"] = failure.location + ": " + failure.message;
        }
        found_["model"] = std::move(model_);
    }

private:
    /// The layer with that number, else the first.
    const ModelLayer& choose(std::optional<std::uint64_t> number) {
        std::ranges::stable_sort(
            layers_, [](const ModelLayer& a, const ModelLayer& b) { return a.number < b.number; });
        if (!number) return layers_.front();
        const auto fits = [&](const ModelLayer& layer) { return layer.number == number; };
        const auto chosen = std::ranges::find_if(layers_, fits);
        if (chosen != layers_.end()) return *chosen;
        io::find_layer(file_, {nullptr, number, prefix_, std::nullopt});  // lists the layers
        throw Error(ErrorKind::usage, "--layer", "no such layer in ", file_.name);
    }

    /// What the names and shapes determine.
    void describe(const ModelLayer& layer) {
        const io::LayerWidths widths = io::layer_widths(file_, layer);
        std::set<std::size_t> numbers;
        for (const ModelLayer& one : layers_)
            if (one.number) numbers.insert(*one.number);
        model_ = {{"family", layer.family->name}, {"layers", numbers}};
        if (layer.number) model_["layer"] = *layer.number;
        model_["dtype"] = file_.find(layer.full(layer.names->query.weight))->type_name;
        if (widths.d_in != 0) model_["d_in"] = widths.d_in;
        for (const auto& [name, shape] : io::weight_shapes(file_, layer))
            model_["tensors"].push_back(name);
        if (const io::StoredArray* words = io::named_ids(file_, layer))
            model_["vocab_size"] = words->shape[0];
    }

    /// Files with only the attention have none.
    bool has_norm(const ModelLayer& layer) const {
        const std::string module = layer.full_outside(layer.family->norm) + ".";
        return !layer.family->norm.empty() &&
               std::ranges::any_of(
                   file_.arrays, [&](const auto& array) { return array.name.starts_with(module); });
    }

    void take_settings(const ModelLayer& layer) {
        const std::unique_ptr<LayerSource> input =
            path_.empty() ? open_layer_source(request_, models_, file_)
                          : open_layer_source(request_, models_, whole_path());
        request_ = input->with_model(request_);
        const auto norm = input->read_norm(request_);
        if (norm) add_norm(norm->is_rms, norm->eps, model_);
        const std::size_t heads =
            std::max(layer.groups(), std::size_t{request_.settings.heads.value_or(1)});
        const io::LayerWidths widths = io::layer_widths(file_, layer);
        const std::size_t in_all = layer.groups() * widths.queries;
        if (in_all % heads == 0 && in_all != 0) model_["head_dim"] = in_all / heads;
        model_["settings"] = fixed_settings(request_);
        if (!path_.empty()) found_["command"] = command_of(layer);
    }

    std::string whole_path() const { return prefix_.empty() ? path_ : path_ + ":" + prefix_; }

    std::string command_of(const ModelLayer& layer) const {
        const bool from_ids =
            layer.number.value_or(0) == 0 && io::named_ids(file_, layer) != nullptr;
        std::string line = "attn " + std::string(row_of(request_.settings.mode).name);
        if (!from_ids) line += " INPUT";
        if (request_.settings.mode == Mode::cross) line += " --context FILE";
        const std::string weights = whole_path();
        line += " --weights" + words_text({&weights, 1});
        if (layer.number.value_or(0) != 0) line += " --layer " + std::to_string(*layer.number);
        if (from_ids) return line + " --token-ids 2,3,4";
        return request_.pre_norm ? line + " --pre-norm" : line;
    }

    ordered_json& found_;
    const io::ArrayFile& file_;
    const std::string path_, prefix_;
    std::vector<ModelLayer> layers_;
    Request request_;
    io::LoadedModels models_;
    ordered_json model_;
};

/// Whether the first number between the dots of a tensor's name is that of the layer.
bool is_of_layer(std::string_view name, std::size_t layer) {
    while (!name.empty()) {
        const std::string_view word = name.substr(0, name.find('.'));
        if (io::are_digits(word)) return word == std::to_string(layer);
        name.remove_prefix(std::min(name.size(), word.size() + 1));
    }
    return false;
}

/// The settings of a layer's attention; a layer that `attn multihead` does not compute has none.
void add_attention(const io::OpenModel& opened, std::size_t number, ordered_json& model) {
    try {
        const io::AttentionLayer layer = io::attention_layer(opened, number);
        model["d_in"] = layer.part.query.d_in;
        model["head_dim"] = layer.part.query.d_out / layer.part.heads;
        if (layer.norm) add_norm(layer.norm->is_rms, layer.norm->eps, model);
        model["settings"] = layer.settings;
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::unsupported) throw;
    }
}

std::string input_flags(const io::OpenModel& opened) {
    if (opened.row().inputs.empty()) return " --token-ids 2,3,4";
    std::string flags;
    for (const std::string_view key : opened.row().inputs)
        flags += " " + flag_of_key(key) + " FILE";
    return flags;
}

/// Describes a model that `attn model` opens by its config or its GGUF metadata.
void inspect_opened(ordered_json& found, const io::ArrayFile& file, const std::string& path,
                    std::optional<std::uint64_t> number) {
    const io::OpenModel opened(io::open_model_folder(path, std::nullopt, {.regular_only = true}));
    const ModelSpec spec = opened.specify(1);
    std::size_t count = spec.layers;
    if (const io::OpenModel* const decoder = opened.decoder())
        count = std::max(count, decoder->specify(1).layers);
    if (number.value_or(0) >= count)
        throw Error(ErrorKind::usage, "--layer " + std::to_string(*number), "no such layer in ",
                    file.name, "; expected 0 to ", count - 1);
    const auto layer = static_cast<std::size_t>(number.value_or(0));
    std::vector<std::size_t> layers(count);
    std::iota(layers.begin(), layers.end(), std::size_t{0});
    ordered_json model{{"family", opened.type()}, {"layers", layers}, {"layer", layer}};
    std::vector<std::string> tensors;
    for (const io::StoredArray& array : file.arrays) {
        if (!is_of_layer(array.name, layer)) continue;
        if (array.shape.size() > 1 && !model.contains("dtype")) model["dtype"] = array.type_name;
        tensors.push_back(array.name);
    }
    if (!model.contains("dtype"))
        throw Error(ErrorKind::input, file.name, "no tensor of layer ", layer,
                    "; expected its tensors");
    if (layer < spec.layers) {
        spec.block(layer);  // refuses a layer that is not computed
        add_attention(opened, layer, model);
    }
    model["tensors"] = std::move(tensors);
    if (spec.vocabulary != 0) model["vocab_size"] = spec.vocabulary;
    found["command"] = "attn model" + words_text({&path, 1}) + input_flags(opened);
    found["kind"] = "model";
    found["model"] = std::move(model);
}

/// Takes what `attn model` finds in the file; else returns why it refuses the file, not null.
/// Errors: kind usage for a missing layer.
ordered_json inspect_whole(ordered_json& found, const io::ArrayFile& file, const std::string& path,
                           std::optional<std::uint64_t> layer) {
    try {
        inspect_opened(found, file, path, layer);
        return nullptr;
    } catch (const Error& error) {
        if (error.kind() == ErrorKind::usage) throw;
        const ErrorReport failure = current_error();
        return failure.location + ": " + failure.message;
    }
}

}  // namespace

void inspect_model(ordered_json& found, const io::ArrayFile& file, const std::string& path,
                   const std::string& prefix, std::optional<std::uint64_t> layer) {
    io::LoadedModels models;
    const bool is_whole = !path.empty() && prefix.empty();
    const bool is_only_whole = is_whole && is_of_table({}, models, path);
    ordered_json refused;
    if (is_only_whole) {
        refused = inspect_whole(found, file, path, layer);
        if (refused.is_null()) return;
        found["problem"] = refused;
    }
    std::vector<ModelLayer> layers = io::layers_of(file);
    std::erase_if(layers, [&](const ModelLayer& one) { return !one.full("").starts_with(prefix); });
    if (layers.empty()) return;
    if (found["kind"] != "weights") found["kind"] = "model";
    ModelInspector(found, file, path, prefix, std::move(layers)).inspect(layer);
    if (is_only_whole) {
        found["problem"] = refused;
        found["command"] = nullptr;
    } else if (is_whole && !found["problem"].is_null()) {
        // A setting that --weights does not read may be one that attn model computes.
        if (inspect_whole(found, file, path, layer).is_null()) found["problem"] = nullptr;
    }
}

}  // namespace attn::cli
