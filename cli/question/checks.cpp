// What a layer that is found by the names of its tensors needs besides them, and what else is in
// its file.
#include "cli/question/layer_source.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <nlohmann/json.hpp>

#include "cli/args/args.hpp"
#include "core/base/error.hpp"
#include "io/file/source.hpp"
#include "io/text/number_text.hpp"

namespace attn::cli {
namespace {

/// A setting that the names of tensors do not show: its flag as in help, and the flag with the
/// family's usual value, or empty.
struct NeededSetting {
    bool is_missing;
    std::string flag, usual = {};
};

}  // namespace

void require_settings(const Request& request, const io::ArrayFile& file,
                      const io::ModelLayer& layer, bool has_head_norms, bool is_supported) {
    const Settings& s = request.settings;
    const io::Family& family = *layer.family;
    // A layer of the notebooks without an output projection has one head. The modes of one head
    // refuse layers that have one.
    const bool may_have_heads = row_of(s.mode).heads_axis != HeadsAxis::never;
    const bool has_out = file.find(layer.full_out(layer.names->out.weight)) != nullptr;
    const bool has_one_head = !may_have_heads || !(has_out || has_head_norms);
    // With one head both layouts are the same.
    const bool may_be_either = layer.names->asks_joined && may_have_heads && s.heads != 1u;
    std::vector<NeededSetting> needed{
        {!has_one_head && !s.heads && layer.heads == 0, "--heads"},
        {may_be_either && !request.qkv_layout, "--qkv-layout parts|heads"}};
    // The names are those of the type whose positions begin after those of padding.
    const bool is_padded =
        !family.padded.empty() && layer.prefix == std::string(family.padded) + ".";
    // Files of plain layers show the other settings.
    const bool is_plain = layer.is_plain() && !has_head_norms;
    if (!has_one_head && !request.is_saved_model && !is_plain) {
        std::string scale;
        if (!s.scale && s.heads) {
            const double width = static_cast<double>(io::layer_widths(file, layer).queries);
            scale =
                "--scale " + io::number_text(1 / std::sqrt(width / static_cast<double>(*s.heads)));
        }
        const bool rotates = family.rotates != io::Rotates::none,
                   is_rotated = request.has("rope") ? s.rope.has_value() : rotates;
        const std::string pairs(rotates ? name_of(rope_names, family.pairs) : "none");
        const bool embeds = !request.token_ids.empty(),
                   has_table = embeds && !family.embedding.ids.empty(),
                   norms_ids = embeds && !family.embedding.norm.empty(),
                   is_normed = request.pre_norm.value_or(false) || norms_ids || has_head_norms;
        needed.insert(
            needed.end(),
            {{s.mode == Mode::multihead && !request.has("causal"), "--causal or --no-causal",
              family.causal ? "--causal" : "--no-causal"},
             {!s.scale, "--scale", scale},
             {!request.has("rope"), "--rope half|interleaved|none", "--rope " + pairs},
             {is_rotated && !s.rope_base, "--rope-base",
              rotates ? "--rope-base " + io::number_text(default_rope_base) : ""},
             {is_rotated && family.rotates == io::Rotates::part_of_heads && !s.rope_dims,
              "--rope-dims"},
             {is_normed && !request.norm, "--norm layer|rms|rms-plus-one",
              family.rms ? "--norm rms" : "--norm layer"},
             {is_normed && !request.norm_eps, "--norm-eps",
              family.eps > 0 ? "--norm-eps " + io::number_text(family.eps) : ""},
             {has_table && !request.embedding_scale, "--embedding-scale", "--embedding-scale 1"},
             {has_table && !family.embedding.positions.empty() && !request.position_offset,
              "--position-offset", is_padded ? "--position-offset 2" : "--position-offset 0"}});
    }
    std::erase_if(needed, [](const NeededSetting& setting) { return !setting.is_missing; });
    if (needed.empty()) return;
    std::vector<std::string_view> others;
    std::string usual;
    for (const NeededSetting& setting : needed) {
        if (&setting != &needed.front()) others.push_back(setting.flag);
        if (!setting.usual.empty()) usual += " " + setting.usual;
    }
    std::string text = "missing";
    if (!others.empty())
        text += (others.size() == 1 ? ", as is " : ", as are ") + listed(others, "and");
    text += "; the tensors of " + file.name + " do not show " + (others.empty() ? "it" : "them");
    if (!request.is_saved_model && !family.types.empty() && !request.model_config && is_supported)
        text += ", the model's config.json next to them does";
    if (is_supported && !usual.empty())
        text += "; usual for " + std::string(is_padded ? family.padded : family.name) + ":" + usual;
    throw Error(ErrorKind::usage, needed.front().flag, text);
}

void check_saved_parts(const io::ArrayFile& file) {
    const nlohmann::json config = file.config();
    if (!config.is_object() || !config.contains("weights_shapes")) return;
    for (const auto& [name, shape] : config["weights_shapes"].items())
        for (const char* part : {"norm.", "_norm", "bias_k", "bias_v"})
            if (name.find(part) != std::string::npos && file.find(name) == nullptr)
                throw Error(ErrorKind::input, file.name,
                            "its layer has \"" + io::one_line(io::shortened(name)) +
                                "\", which the result does not hold; expected the weights "
                                "that it was computed with");
}

void check_can_save(const Request& request, const std::string& part) {
    if (!part.empty() && !request.save_weights.empty())
        throw setting_error(request, "save_weights",
                            "the layer has \"" + part +
                                "\", which is not written; expected a layer of projections alone");
}

void check_more_keys(const Request& request, const io::ArrayFile& file,
                     const io::ModelLayer& layer) {
    if (!io::has_more_keys(file, layer)) return;
    check_can_save(request, layer.full(layer.names->more_key));
    const Settings& s = request.settings;
    for (const auto& [setting, is_given] : {std::pair("past_key", request.has_file("past_key")),
                                            {"rope", s.rope.has_value()},
                                            {"alibi", s.alibi},
                                            {"window", !s.window.empty()}})
        if (is_given)
            throw setting_error(request, setting,
                                "conflicts with \"" + layer.full(layer.names->more_key) + "\" of " +
                                    file.name +
                                    ", a key without a position; expected no such flag");
}

void ModelSource::read_more_keys(const Request& request, Operands& operands) const {
    if (!names_ || !io::has_more_keys(*file_, *names_)) return;
    const io::StoredArray &key = *file_->find(names_->full(names_->names->more_key)),
                          &value = *file_->find(names_->full(names_->names->more_value));
    const std::vector<std::size_t>& inputs = operands["inputs"].shape();
    const std::size_t batch = inputs.size() == 3 ? inputs[0] : 1;
    const std::size_t heads = request.settings.heads.value_or(1);
    for (const auto& [array, past, name] : {std::tuple(&key, &operands["past_key"], "past_key"),
                                            {&value, &operands["past_value"], "past_value"}}) {
        if (past->dimension() != 0)
            throw setting_error(
                request, name,
                "conflicts with \"" + array->name + "\" of " + file_->name + "; expected no cache");
        const std::size_t width = array->elements();
        if (width % heads != 0) io::refuse_shape(*array, "a multiple of ", heads, " heads");
        Array<double> rows = Array<double>::from_shape({batch, heads, 1, width / heads});
        for (std::size_t b = 0; b < batch; ++b)
            io::read_elements<double>(
                *array, 0, width, [&](std::size_t before, std::span<const double> piece) {
                    std::copy(piece.begin(), piece.end(), rows.data() + b * width + before);
                });
        for (double& x : rows)
            if (request.settings.quantised_type)
                x = quantised(x, *request.settings.quantised_type, name);
        *past = std::move(rows);
    }
}

}  // namespace attn::cli
