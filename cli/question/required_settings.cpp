#include "cli/question/sources.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "cli/args/args.hpp"
#include "core/base/error.hpp"
#include "io/text/number_text.hpp"
#include "io/transformer/attention_layer.hpp"

namespace attn::cli {
namespace {

class MissingSettings {
public:
    MissingSettings(const Request& request, const io::ArrayFile& file, const io::ModelLayer& layer,
                    const KnownModel& known)
        : request_(request), file_(file), layer_(layer), family_(*layer.family), known_(known) {}

    void require() {
        find_heads();
        // Files of plain layers show the other settings.
        const bool is_plain = family_.is_plain && !known_.has_head_norms;
        if (!known_.has_config && !is_plain) {
            find_scores();
            find_rope();
            find_norm();
            find_embedding();
        }
        if (!flags_.empty()) fail();
    }

private:
    /// `usual` is the flag with the family's usual value, or empty.
    void add(const std::string& flag, const std::string& usual = "") {
        flags_.push_back(flag);
        if (!usual.empty()) usual_ += " " + usual;
    }

    void find_heads() {
        if (!request_.settings.heads && layer_.heads == 0) add("--heads");
    }

    void find_scores() {
        const std::optional<std::uint64_t>& heads = request_.settings.heads;
        if (request_.settings.mode == Mode::multihead && !request_.has("causal"))
            add("--causal or --no-causal", family_.causal ? "--causal" : "--no-causal");
        if (request_.settings.scale) return;
        const double width = static_cast<double>(io::layer_widths(file_, layer_).queries);
        add("--scale",
            heads ? "--scale " + io::number_text(1 / std::sqrt(width / static_cast<double>(*heads)))
                  : "");
    }

    void find_rope() {
        const Settings& settings = request_.settings;
        const bool usually = family_.rotates != io::Rotates::none;
        if (!request_.has("rope"))
            add("--rope half|interleaved|none",
                "--rope " + (usually ? std::string(name_of(rope_names, family_.pairs)) : "none"));
        if (request_.has("rope") ? !settings.rope : !usually) return;
        if (!settings.rope_base)
            add("--rope-base", usually ? "--rope-base " + io::number_text(default_rope_base) : "");
        if (family_.rotates == io::Rotates::part_of_heads && !settings.rope_dims)
            add("--rope-dims");
    }

    /// The norm before the layer, after the embedding, or of queries and keys.
    void find_norm() {
        const bool after_ids = !request_.token_ids.empty() && !family_.embedding.norm.empty();
        if (!request_.pre_norm.value_or(false) && !after_ids && !known_.has_head_norms) return;
        if (!request_.norm)
            add("--norm layer|rms|rms-plus-one", family_.rms ? "--norm rms" : "--norm layer");
        if (!request_.norm_eps)
            add("--norm-eps", family_.eps > 0 ? "--norm-eps " + io::number_text(family_.eps) : "");
    }

    void find_embedding() {
        if (request_.token_ids.empty() || family_.embedding.ids.empty()) return;
        if (!request_.embedding_scale) add("--embedding-scale", "--embedding-scale 1");
        if (!family_.embedding.positions.empty() && !request_.position_offset)
            add("--position-offset", std::string("--position-offset ") + (is_padded() ? "2" : "0"));
    }

    /// Whether the names are those of the type whose positions begin after those of padding.
    bool is_padded() const {
        return !family_.padded.empty() && layer_.prefix == std::string(family_.padded) + ".";
    }

    [[noreturn]] void fail() const {
        const std::string others = listed({flags_.begin() + 1, flags_.end()}, "and");
        std::string text = "missing";
        if (!others.empty()) text += ", as are " + others;
        text +=
            "; the tensors of " + file_.name + " do not show " + (others.empty() ? "it" : "them");
        const bool may_have_config = !known_.has_config && !family_.types.empty() &&
                                     !request_.model_config && known_.is_supported;
        if (may_have_config) text += ", the model's config.json next to them does";
        if (known_.is_supported && !usual_.empty()) {
            text += "; usual for " + std::string(is_padded() ? family_.padded : family_.name) +
                    ":" + usual_;
        }
        throw Error(ErrorKind::usage, flags_.front(), text);
    }

    const Request& request_;
    const io::ArrayFile& file_;
    const io::ModelLayer& layer_;
    const io::Family& family_;
    const KnownModel& known_;
    std::vector<std::string> flags_;  // as in help
    std::string usual_;
};

}  // namespace

void require_settings(const Request& request, const io::ArrayFile& file,
                      const io::ModelLayer& layer, const KnownModel& known) {
    // A layer of the notebooks without an output projection has one head. The modes of one head
    // refuse layers that have one.
    const bool may_have_heads = row_of(request.settings.mode).heads_axis != HeadsAxis::never;
    const bool has_out = file.find(layer.full_out(layer.names->out.weight)) != nullptr;
    if (may_have_heads && (has_out || known.has_head_norms))
        MissingSettings(request, file, layer, known).require();
}

}  // namespace attn::cli
