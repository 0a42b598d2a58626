#include "io/transformer/model.hpp"

#include <algorithm>
#include <iterator>

#include "io/file/source.hpp"
#include "io/text/text.hpp"

namespace attn::io {
namespace {

using nlohmann::json;

/// The tensor whose name ends with this after a '.' or at the start.
const StoredArray* find_end(const ArrayFile& file, const std::string& end) {
    for (const StoredArray& array : file.arrays)
        if (array.name == end || array.name.ends_with("." + end)) return &array;
    return nullptr;
}

class LayoutReader {
public:
    LayoutReader(std::string_view type, const ArrayFile& file, LayoutSettings settings)
        : type_(type), file_(file), settings_(std::move(settings)) {}

    json read_nanogpt() {
        const StoredArray& ids = matrix("wte.weight");
        matrix("h.0.attn.c_attn.weight");
        require(settings_.heads.has_value(), "--heads");
        check_missing();
        return {{"model_type", type_},
                {"hidden_size", ids.shape[1]},
                {"num_hidden_layers", layers("h.", ".attn.c_attn.weight")},
                {"num_attention_heads", *settings_.heads},
                {"tie_word_embeddings", true}};
    }

    /// Of fairseq's classes, whose norms have the epsilon of torch.nn.LayerNorm.
    json read_roberta() {
        const StoredArray &ids = matrix("embed_tokens.weight"),
                          &positions = matrix("embed_positions.weight"),
                          &inner = matrix("layers.0.fc1.weight");
        require(settings_.heads.has_value(), "--heads");
        check_missing();
        return {{"model_type", type_},
                {"hidden_size", ids.shape[1]},
                {"num_hidden_layers", layers("layers.", ".self_attn.out_proj.weight")},
                {"num_attention_heads", *settings_.heads},
                {"intermediate_size", inner.shape[0]},
                {"vocab_size", ids.shape[0]},
                {"max_position_embeddings", positions.shape[0]},
                {"pad_token_id", 1u},
                {"layer_norm_eps", 1e-5}};
    }

    json read_meta(const json& params, const std::string& location) {
        const bool is_heads_flag = settings_.heads.has_value();
        take_params(params, location);
        const StoredArray &ids = matrix("tok_embeddings.weight"),
                          &query = matrix("layers.0.attention.wq.weight"),
                          &key = matrix("layers.0.attention.wk.weight");
        require(settings_.heads.has_value(), "--heads");
        require(settings_.rope_base.has_value(), "--rope-base");
        require(settings_.norm_eps.has_value(), "--norm-eps");
        check_missing();
        const std::size_t heads = *settings_.heads;
        if (heads == 0 || query.shape[0] % heads != 0 ||
            key.shape[0] % (query.shape[0] / heads) != 0)
            throw Error(ErrorKind::usage, "--heads " + std::to_string(heads), query.location(),
                        " has ", query.shape[0], " rows and ", key.name, " ", key.shape[0],
                        "; expected a number of heads that divides both into heads of one "
                        "width");
        const std::size_t d = query.shape[0] / heads;
        json rope{{"rope_type", "default"}, {"rope_theta", *settings_.rope_base}};
        if (settings_.rope_scaling != nullptr)
            rope.update(json::parse(settings_.rope_scaling->text));
        const std::size_t count = layers("layers.", ".attention.wq.weight"),
                          key_heads = key.shape[0] / d,
                          inner = matrix("layers.0.feed_forward.w1.weight").shape[0];
        if (!is_heads_flag) check_param(params, location, "n_heads", heads);
        check_param(params, location, "dim", ids.shape[1]);
        check_param(params, location, "n_layers", count);
        check_param(params, location, "n_kv_heads", key_heads);
        check_param(params, location, "head_dim", d);
        check_param(params, location, "hidden_dim", inner);
        if (params.is_null() ||
            params.value("vocab_size", json()) != json(-1))  // that of the tokenizer
            check_param(params, location, "vocab_size", ids.shape[0]);
        return {{"model_type", type_},
                {"hidden_size", ids.shape[1]},
                {"num_hidden_layers", count},
                {"num_attention_heads", heads},
                {"num_key_value_heads", key_heads},
                {"head_dim", d},
                {"rms_norm_eps", *settings_.norm_eps},
                {"rope_parameters", std::move(rope)},
                {"tie_word_embeddings", find_end(file_, "output.weight") == nullptr}};
    }

private:
    const StoredArray& matrix(const std::string& name) const {
        const StoredArray* const found = find_end(file_, name);
        if (found == nullptr)
            throw Error(ErrorKind::input, file_.name, "has no tensor \"", name,
                        "\", which a model of type ", type_, " has; it has ",
                        list_of(file_.arrays));
        if (found->shape.size() != 2 || found->elements() == 0) refuse_shape(*found, "a matrix");
        return *found;
    }

    /// As many as there are without a gap.
    std::size_t layers(const std::string& start, const std::string& end) const {
        std::size_t count = 0;
        while (find_end(file_, start + std::to_string(count) + end) != nullptr) ++count;
        return count;
    }

    /// A size in params.json that the tensors show as well.
    static void check_param(const json& params, const std::string& location, const char* key,
                            std::size_t size) {
        if (params.is_null() || !params.contains(key) || params[key].is_null()) return;
        if (params[key] != json(size))
            throw Error(ErrorKind::input, location, key, " is ", shortened(params[key].dump()),
                        "; expected ", size, ", as the tensors show");
    }

    void require(bool is_there, const char* flag) {
        if (!is_there) missing_.emplace_back(flag);
    }
    void check_missing() const {
        if (missing_.empty()) return;
        const std::string others = listed({missing_.begin() + 1, missing_.end()}, "and");
        throw Error(ErrorKind::usage, std::string(missing_.front()), "missing",
                    missing_.size() == 1   ? ""
                    : missing_.size() == 2 ? ", as is "
                                           : ", as are ",
                    others, "; the tensors of ", file_.name, " do not show ",
                    others.empty() ? "it" : "them");
    }

    void take_params(const json& params, const std::string& location) {
        if (params.is_null()) return;
        const auto number = [&](const char* key, auto& setting) {
            if (setting || !params.contains(key) || params[key].is_null()) return;
            if (!params[key].is_number() || !(params[key].get<double>() > 0))
                throw Error(ErrorKind::input, location, key, " is ", shortened(params[key].dump()),
                            "; expected a number above 0");
            setting = params[key];
        };
        number("n_heads", settings_.heads);
        number("norm_eps", settings_.norm_eps);
        number("rope_theta", settings_.rope_base);
        // The tensors show the widths and the number of layers and key heads.
        constexpr std::string_view known[] = {
            "dim",        "n_layers",       "n_heads",    "n_kv_heads",  "vocab_size",
            "head_dim",   "hidden_dim",     "norm_eps",   "multiple_of", "ffn_dim_multiplier",
            "rope_theta", "max_batch_size", "max_seq_len"};
        for (const auto& [key, value] : params.items()) {
            if (std::find(std::begin(known), std::end(known), key) != std::end(known)) continue;
            const json usual = key == "causal";  // others are off
            if (value.is_null() || value == usual) continue;
            if (key == "use_scaled_rope" && settings_.rope_scaling != nullptr) continue;
            throw Error(ErrorKind::input, location, one_line(shortened(key)), " is ",
                        shortened(value.dump()),
                        key == "use_scaled_rope"
                            ? "; expected --rope-scaling FACTOR,LOW,HIGH,LENGTH with it"
                            : ", whose effect attn does not compute; expected no such key");
        }
    }

    std::string type_;
    const ArrayFile& file_;
    LayoutSettings settings_;
    std::vector<std::string_view> missing_;
};

}  // namespace

json layout_config(std::string_view model_type, const ArrayFile& tensors, const json& params,
                   const std::string& params_location, LayoutSettings settings) {
    LayoutReader reader(model_type, tensors, std::move(settings));
    return model_type == "meta"      ? reader.read_meta(params, params_location)
           : model_type == "roberta" ? reader.read_roberta()
                                     : reader.read_nanogpt();
}

}  // namespace attn::io
