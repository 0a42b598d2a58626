// What enters a layer: its embedding and the norm before it.
#include <variant>

#include "cli/question/layer_source.hpp"
#include "core/base/error.hpp"
#include "io/file/path.hpp"
#include "io/file/source.hpp"
#include "io/text/text.hpp"

namespace attn::cli {
namespace {

/// Whether the setting is the model's own, as in the config of a result.
bool is_of_model(const Request& request, std::string_view key, const ModelSpec& model) {
    const EmbeddingSpec& embedding = model.embedding;
    if (key == "position_offset")
        return embedding.first_position ==
               static_cast<std::int64_t>(request.position_offset.value_or(0));
    if (key == "embedding_scale") return embedding.scale == request.embedding_scale;
    const std::optional<NormSpec>& norm = model.final_norm ? model.final_norm : embedding.norm;
    if (!norm) return false;
    if (key == "norm_eps") return norm->eps == request.norm_eps;
    return norm->is_rms == (request.norm == NormForm::rms);
}

/// Flags take precedence over the model's embedding; positions continue after cached keys.
void replace_embedding(const Request& request, EmbeddingSpec& embedding, std::size_t past_len) {
    embedding.scale = request.embedding_scale.value_or(embedding.scale);
    replace_norm(request, embedding.norm);
    // A flag counts padding like other tokens; the key of a result's config does not.
    const auto first = static_cast<std::int64_t>(request.position_offset.value_or(0));
    if (request.position_offset &&
        (is_from_flag(request, "position_offset") || embedding.first_position != first)) {
        embedding.first_position = first;
        embedding.padding_id.reset();
    }
    embedding.first_position += static_cast<std::int64_t>(past_len);
}

/// The hidden states that enter `layer` for the request's token ids, (tokens, width), in its dtype.
Array<double> hidden_states(const Request& request, const ModelSpec& model, std::size_t layer) {
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
    ModelResult result = run_model(compute, model, std::move(input), asked, request.settings.dtype);
    return std::visit([](auto& values) { return Array<double>(std::move(values)); },
                      result.arrays.front().values);
}

}  // namespace

void replace_norm(const Request& request, std::optional<NormSpec>& norm) {
    if (!norm) return;
    norm->eps = request.norm_eps.value_or(norm->eps);
    if (!request.norm) return;
    norm->is_rms = *request.norm != NormForm::layer;
    norm->weight_offset = *request.norm == NormForm::rms_plus_one ? 1 : 0;
}

Array<double> ModelSource::embed_token_ids(const Request& request, std::size_t past_len) const {
    const std::size_t layer = static_cast<std::size_t>(request.layer.value_or(0));
    const auto refuse_deep = [&](const std::string& instead) {
        throw setting_error(request, "token_ids",
                            "layer " + std::to_string(layer) +
                                " takes hidden states, which need the layers before it; expected "
                                "layer 0, INPUT, or " +
                                instead);
    };
    ModelSpec spec;
    if (model_ == nullptr) {
        if (layer != 0) refuse_deep("a model's folder with its config");
        const auto first =
            static_cast<std::int64_t>(past_len + request.position_offset.value_or(0));
        spec.embedding = io::named_embedding(
            file_, *names_, {first, request.embedding_scale, norm_settings(request)});
        return hidden_states(request, spec, layer);
    }
    if (model_->row().ids.empty())
        throw setting_error(
            request, "token_ids",
            "a " + model_->type() + " has no embedding of token ids; expected INPUT instead");
    spec = model_->specify(request.token_ids.size());
    if (layer == 0) {
        replace_embedding(request, spec.embedding, past_len);
    } else {
        if (past_len != 0) refuse_deep("no cache");
        for (const char* key : {"position_offset", "embedding_scale", "norm", "norm_eps"})
            if ((is_from_flag(request, key) || is_from_key(request, key)) &&
                !is_of_model(request, key, spec))
                throw setting_error(request, key,
                                    "conflicts with --token-ids for layer " +
                                        std::to_string(layer) +
                                        ", since the layers before it follow the model's config");
    }
    if (const io::OpenModel* const decoder = model_->decoder())
        model_->check(spec, layer, decoder->specify(1), 1);
    else
        model_->check(spec, layer);
    return hidden_states(request, spec, layer);
}

LayerSource::Labels ModelSource::token_labels(const Request& request) const {
    Labels labels;
    const bool has_folder =
        !path_.empty() && path_ != "-" && (model_ == nullptr || !model_->files().folder.empty());
    const std::string file = has_folder ? io::vocabulary_beside(path_) : "";
    if (file.empty()) return labels;
    io::Access access = access_to(request, "weights");
    access.regular_only = true;
    try {
        const auto vocabulary = files_.vocabulary(file, access);
        labels.tokens.reserve(request.token_ids.size());
        for (std::uint64_t id : request.token_ids) labels.tokens.push_back(vocabulary->piece(id));
    } catch (const io::WrittenFile&) {
        throw;
    } catch (const Error& error) {
        labels.note = error.location() + ": " + error.what() +
                      "; the tokens have no names, --tokens LIST gives them some";
    }
    return labels;
}

std::optional<InputNorm> ModelSource::read_norm(const Request& request) const {
    if (!request.pre_norm.value_or(false)) return std::nullopt;
    if (model_) return io::input_norm(*layer_.norm, layer_.part.query.d_in);
    return io::input_norm(io::named_pre_norm(file_, *names_, norm_settings(request)), 0);
}

/// The tensors in the module of those that --weight-names has, which may belong to the attention.
std::string ModelSource::note_of_left_out() const {
    if (!given_) return {};
    const std::vector<std::string> used = io::projection_tensors(*file_, *names_);
    std::string module = names_->full(names_->names->query.weight);
    for (const auto& [name, shape] : io::weight_shapes(*file_, *names_))
        while (!name.starts_with(module)) module.pop_back();
    module.resize(module.find_last_of("./") + 1);
    std::vector<std::string> tensors;
    for (const io::StoredArray& array : file_->arrays)
        if (array.name.starts_with(module) && std::ranges::count(used, array.name) == 0)
            tensors.push_back(array.name);
    if (tensors.empty()) return {};
    return concat(file_->name, ": not used, since --weight-names does not have them: ",
                  io::shortened(io::comma_list(tensors), 200),
                  "; a bias is named as THEIRS=query.bias, and no other part is computed");
}

/// What the attention of the file's layers may do and the request does not, by a tensor's name, or
/// since --weight-names leaves a config aside.
std::string ModelSource::note_of_other_attention(const Request& request) const {
    if (model_ || request.is_saved_model) return {};
    const bool has_rope = request.has("rope") || request.settings.rope,
               has_scale = request.settings.scale.has_value();
    const char* const bias =
        "T5's layers do not scale scores (--scale 1), and all such layers add a bias of relative "
        "positions to them (--relative-bias FILE, --mask FILE)";
    const char* const turn = "such layers rotate queries and keys (--rope half|interleaved)";
    for (const auto& [part, text] : {std::pair("relative_attention_bias", bias),
                                     {"SelfAttention.q.", bias},
                                     {"rotary", turn},
                                     {"inv_freq", turn}})
        for (const io::StoredArray& array : file_->arrays)
            if (array.name.find(part) != std::string::npos &&
                !(text == turn
                      ? has_rope
                      : has_scale && (request.has("mask") || request.has("relative_bias"))))
                return concat(file_->name, " has ", io::quoted_name(array.name), ": ", text);
    if (!given_ || request.model_config || (has_scale && has_rope) || type_problem(request).empty())
        return {};
    return folder_config() + ": not read with --weight-names; --scale and --rope give its settings";
}

/// Words have random embeddings, which must be as wide as the model's.
std::vector<std::string> ModelSource::notes_on_input(const Request& request) const {
    const io::StoredArray* const table =
        model_ ? model_->embedding() : io::named_ids(*file_, *names_);
    std::string norm;
    if (model_ && layer_.norm) norm = layer_.norm_name;
    if (!model_ && io::has_pre_norm(*file_, *names_))
        norm = names_->full_outside(names_->family->norm);
    std::vector<std::string> notes;
    for (std::string note : {note_of_left_out(), note_of_other_attention(request)})
        if (!note.empty()) notes.push_back(std::move(note));
    if (request.text && table != nullptr && table->shape.size() == 2) {
        const bool has_tokenizer = io::suffix_of_name(path_) == ".gguf" ||
                                   io::vocabulary_beside(path_).ends_with("tokenizer.json");
        if (*request.embed_dim != table->shape[1])
            throw setting_error(
                request, request.example ? "example" : "text",
                concat("gives words random embeddings of width ", *request.embed_dim,
                       ", and the model's have width ", table->shape[1],
                       "; expected in its place --token-ids N,...",
                       has_tokenizer ? ", as attn tokenize prints them, or attn model with --text"
                                     : ""));
        notes.emplace_back(
            "--text embeds words at random; --token-ids uses the model's own embedding");
    }
    if (!norm.empty() && !request.pre_norm && !row_of(request.settings.mode).context)
        notes.push_back(norm + ", the model's norm before this layer, is not applied; " +
                        (is_supported_ ? "--pre-norm applies it, " : "") +
                        "--no-pre-norm specifies that the input is normed already");
    return notes;
}

}  // namespace attn::cli
