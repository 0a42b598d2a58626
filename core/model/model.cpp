#include "core/model/model.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/free_memory.hpp"
#include "core/model/products.hpp"

namespace attn {
namespace {

constexpr std::size_t best_tokens = 10;

/// Adds a row of a table of this width to `out`.
template <class T>
void add_row(const Parameter& table, std::size_t row, double scale, T* out, std::size_t width,
             const std::string& what) {
    if (table->shape().size() != 2 || table->shape()[1] != width)
        throw SettingError(
            ErrorKind::input, what,
            "the model's table does not have the width of the hidden states; expected " +
                std::to_string(width) + " columns");
    if (row >= table->shape()[0])
        throw SettingError(
            ErrorKind::input, what,
            std::to_string(row) + " is not a row of the model's table; expected " +
                (table->shape()[0] == 0 ? std::string("a table that is not empty")
                                        : "at most " + std::to_string(table->shape()[0] - 1)));
    std::vector<T> values(width);
    table->read(row * width, width, values.data());
    const T factor = static_cast<T>(scale);
    for (std::size_t i = 0; i < width; ++i) out[i] += scale == 1 ? values[i] : values[i] * factor;
}

template <class T>
Tensor3<T> embed(const Compute& compute, const EmbeddingSpec& spec, const ModelInput& input,
                 std::size_t past) {
    const std::size_t tokens = input.ids.size(), width = spec.ids->shape()[1];
    Tensor3<T> x = Tensor3<T>::from_shape({1, tokens, width});
    x.fill(T{0});
    for (std::size_t t = 0; t < tokens; ++t)
        add_row(spec.ids, static_cast<std::size_t>(input.ids[t]), spec.scale, x.data() + t * width,
                width, "token_ids");
    if (spec.id_factors != nullptr) {
        const std::vector<double> factors = spec.id_factors(input.ids, input.valid);
        for (std::size_t i = 0; i < x.size(); ++i)
            x.data()[i] = static_cast<T>(static_cast<double>(x.data()[i]) * factors[i / width]);
    }
    if (spec.projects_before_sum && spec.projection) x = apply(compute, spec.projection, x);
    std::int64_t counted = static_cast<std::int64_t>(past);
    const bool gives_rows = spec.padding_id && !input.positions.empty();
    const std::int64_t first_position = gives_rows ? 0 : spec.first_position;
    for (std::size_t t = 0; t < tokens; ++t) {
        T* const row = x.data() + t * x.shape(2);
        auto position = static_cast<std::int64_t>(
            input.positions.empty() ? static_cast<double>(past + t) : input.positions[t]);
        if (spec.padding_id && input.positions.empty())
            position = input.ids[t] == *spec.padding_id ? -1 : counted++;
        if (spec.counts_valid && input.positions.empty() && !input.valid.empty())
            position = input.valid[t] ? counted++ : -1;
        if (spec.segments != nullptr)
            add_row(spec.segments,
                    input.segments.empty() ? 0 : static_cast<std::size_t>(input.segments[t]), 1,
                    row, x.shape(2), "token_type_ids");
        if (spec.positions != nullptr)
            add_row(spec.positions, static_cast<std::size_t>(position + first_position), 1, row,
                    x.shape(2), "position_ids");
        if (spec.position_row != nullptr && position >= 0) {
            const std::vector<double> added = spec.position_row(static_cast<std::size_t>(position));
            if (added.size() != x.shape(2))
                throw SettingError(ErrorKind::input, "position_ids",
                                   "the position embedding has " + std::to_string(added.size()) +
                                       " columns, by the model's config.json; expected " +
                                       std::to_string(x.shape(2)));
            for (std::size_t i = 0; i < added.size(); ++i) row[i] += static_cast<T>(added[i]);
        }
        for (const Parameter& table : spec.first_rows)
            add_row(table, 0, 1, row, x.shape(2), "token_ids");
    }
    if (spec.projects_before_norm && spec.projection) x = apply(compute, spec.projection, x);
    if (spec.norm) x = normed(compute, *spec.norm, std::move(x));
    for (std::size_t t = 0; t < input.valid.size() && spec.clears_invalid; ++t)
        if (!input.valid[t]) std::fill_n(x.data() + t * x.shape(2), x.shape(2), T{0});
    if (!spec.projects_before_sum && !spec.projects_before_norm && spec.projection)
        x = apply(compute, spec.projection, x);
    if (spec.last != nullptr) x = spec.last->run(compute, input.ids, std::move(x));
    return x;
}

template <class T>
class ModelRun {
public:
    ModelRun(const Compute& compute, const ModelSpec& model, const ModelRequest& request)
        : compute_(compute), model_(&model), request_(request),
          cache_(request.generate == 0 ? 0 : model.layers),
          blocks_(request.generate == 0 ? 0 : model.layers) {}

    ModelResult run(ModelInput input) {
        const std::vector<std::uint64_t> prompt = input.ids;
        for (std::size_t step = 0; step < request_.generate; ++step) {
            records_ = false;
            take_length(input.ids.size());
            ModelInput fresh;
            fresh.ids.assign(input.ids.begin() + static_cast<std::ptrdiff_t>(past_),
                             input.ids.end());
            fresh.encoder = input.encoder;
            fresh.encoder_valid = input.encoder_valid;
            fresh.pixel_values = input.pixel_values;
            fresh.spatial_shapes = input.spatial_shapes;
            fresh.input_values = input.input_values;
            fresh.input_features = input.input_features;
            const Tensor3<T> last = finish(run_blocks(fresh));
            past_ = input.ids.size();
            const std::uint64_t next = best_of(logits_of(last)).front().first;
            result_.generated.push_back(next);
            input.ids.push_back(next);
            if (std::find(model_->end_ids.begin(), model_->end_ids.end(), next) !=
                model_->end_ids.end())
                break;
        }
        if (request_.generate != 0) take_length(input.ids.size());
        cache_.clear();
        past_ = 0;
        records_ = true;
        Tensor3<T> x = run_blocks(input);
        if (request_.run_layers < model_->layers) return std::move(result_);
        x = finish(std::move(x));
        record_logits(x);
        const std::vector<std::size_t> shape{x.shape(1), x.shape(2)};
        Array<T> last(std::move(x), {1, shape[0], shape[1]});
        last.reshape(shape);
        if (request_.arrays.has("last_hidden_state"))
            add((model_->prefix == "decoder_" ? "" : model_->prefix) + "last_hidden_state",
                Array<T>(last), {"q_len", "d_out"});
        result_.last = std::move(last);
        return std::move(result_);
    }

private:
    /// If the angles of this length are others, the tokens so far are computed again.
    void take_length(std::size_t tokens) {
        if (!model_->length_of_angles) return;
        const std::size_t length = model_->length_of_angles(tokens);
        if (length_ == length) return;
        if (length_) {
            own_ = model_->of_length(tokens);
            model_ = &own_;
            blocks_.assign(model_->layers, {});
            cache_.assign(model_->layers, {});
            past_ = 0;
        }
        length_ = length;
    }

    void add(std::string name, AnyArray values, std::vector<std::string_view> axes,
             std::optional<std::size_t> layer = {}) {
        NamedArray array{std::move(name), std::move(values), std::move(axes), {}};
        array.layer = layer;
        result_.arrays.push_back(std::move(array));
    }

    /// Between uses of weights that are not needed soon.
    void release_weights() const {
        if (request_.generate == 0 && model_->release_weights) model_->release_weights();
    }

    /// Each token to generate needs all blocks, which are found once.
    TransformerBlock block_of(std::size_t layer) {
        if (blocks_.empty()) return model_->block(layer);
        if (!blocks_[layer]) blocks_[layer] = model_->block(layer);
        return *blocks_[layer];
    }

    bool is_recorded(std::size_t layer) const {
        return records_ &&
               std::binary_search(request_.layers.begin(), request_.layers.end(), layer);
    }

    void record_hidden(const Tensor3<T>& x, std::size_t layer) {
        if (!request_.arrays.has("hidden_states")) return;
        const std::size_t streams = x.shape(0), tokens = x.shape(1), width = x.shape(2);
        Array<T> copy(Tensor3<T>(x), {streams, tokens, width});
        std::vector<std::string_view> axes{"streams", "q_len", "d_in"};
        if (model_->shows_tokens_first) {
            for (std::size_t s = 0; s < streams; ++s)
                for (std::size_t t = 0; t < tokens; ++t)
                    std::copy_n(x.data() + (s * tokens + t) * width, width,
                                copy.data() + (t * streams + s) * width);
            copy.reshape({tokens, streams, width});
            std::swap(axes[0], axes[1]);
        }
        if (x.shape(0) == 1) {
            copy.reshape({x.shape(1), x.shape(2)});
            axes.erase(axes.begin());
        }
        add(model_->prefix + "hidden_states", std::move(copy), std::move(axes), layer);
    }

    Tensor3<T> run_blocks(ModelInput& input) {
        Tensor3<T> x;
        if (input.hidden_states) {
            Array<T> given = input.hidden_states->take<T>();
            const std::vector<std::size_t> shape = given.shape();
            given.reshape({1, shape[0], shape[1]});
            x = Tensor3<T>(std::move(given), {1, shape[0], shape[1]});
        } else if (model_->input != nullptr) {
            x = model_->input->run(compute_, input, T{});
        } else {
            x = embed<T>(compute_, model_->embedding, input, past_);
        }
        release_weights();
        const std::size_t tokens = x.shape(1);
        Tensor3<T> embedding;
        if (model_->keeps_embedding && !input.hidden_states) {
            embedding = Tensor3<T>::from_shape({1, tokens, x.shape(2)});
            std::copy_n(x.data(), embedding.size(), embedding.data());
        }
        std::vector<double> positions = input.positions;
        if (positions.empty())
            for (std::size_t t = 0; t < tokens; ++t)
                positions.push_back(static_cast<double>(past_ + t));
        Tensor3<T> encoder;
        if (input.encoder != nullptr) {
            const Array<T> states = RealArray(*input.encoder).take<T>();
            encoder = Tensor3<T>(Array<T>(states), {1, states.shape()[0], states.shape()[1]});
        }
        std::vector<bool> valid = input.valid;
        if (valid.empty() && model_->masked_id && past_ == 0)
            for (const std::uint64_t id : input.ids) valid.push_back(id != *model_->masked_id);
        std::map<std::size_t, KeysAndValues<T>> shared;
        static const ArrayRequest nothing;
        // A generated token depends on all layers.
        const std::size_t layers = records_ ? request_.run_layers : model_->layers;
        for (std::size_t layer = input.first_layer; layer < layers; ++layer) {
            if (is_recorded(layer)) record_hidden(x, layer);
            if (request_.progress) request_.progress(layer, layers);
            const TransformerBlock block = block_of(layer);
            BlockRun<T> run(compute_, block, is_recorded(layer) ? request_.arrays : nothing);
            run.past = past_;
            run.positions = positions;
            run.token_ids = input.ids;
            run.valid_keys = valid;
            run.cache = cache_.empty() ? nullptr : &cache_[layer];
            run.shared = &shared;
            run.encoder = input.encoder == nullptr ? nullptr : &encoder;
            run.valid_encoder_keys = input.encoder_valid;
            run.prefix = model_->prefix;
            run.embedding = embedding.size() == 0 ? nullptr : &embedding;
            x = run_block(run, std::move(x));
            release_weights();
            for (NamedArray& array : run.arrays) {
                array.layer = layer;
                if (request_.take)
                    request_.take(std::move(array));
                else
                    result_.arrays.push_back(std::move(array));
            }
            if (!run.arrays.empty() && !request_.take) return_free_memory();
            for (LayerAttention& attention : run.attentions) {
                attention.layer = layer;
                result_.attentions.push_back(std::move(attention));
            }
        }
        if (records_ && (request_.enters ||
                         (layers == model_->layers && layers != 0 && is_recorded(layers - 1))))
            record_hidden(x, layers);
        return x;
    }

    Tensor3<T> finish(Tensor3<T> x) const {
        if (model_->before_norm != nullptr)
            x = model_->before_norm->run(compute_, {}, std::move(x));
        if (model_->final_norm) x = normed(compute_, *model_->final_norm, std::move(x));
        if (model_->final_projection) x = apply(compute_, model_->final_projection, x);
        if (model_->after_norm != nullptr) x = model_->after_norm->run(compute_, {}, std::move(x));
        return x;
    }

    /// Finds it at the first call.
    bool has_head() {
        if (!head_) head_ = model_->head ? model_->head() : LinearMap();
        return bool{*head_};
    }

    /// Of the last row of the last hidden state.
    Array<T> logits_of(const Tensor3<T>& last) {
        if (!has_head())
            throw SettingError(
                ErrorKind::input, "emit",
                "logits and next_tokens require a head, which the model does not have; expected "
                "other arrays");
        const std::size_t width = last.shape(2);
        Tensor3<T> row = Tensor3<T>::from_shape({1, 1, width});
        std::copy_n(last.data() + last.size() - width, width, row.data());
        if (model_->head_transform != nullptr)
            row = model_->head_transform->run(compute_, {}, std::move(row));
        Tensor3<T> logits = apply(compute_, *head_, row);
        for (T& x : logits) {
            auto value = static_cast<double>(x) * model_->logit_factor;
            if (model_->logit_softcap != 0)
                value = model_->logit_softcap * std::tanh(value / model_->logit_softcap);
            x = static_cast<T>(value);
        }
        const std::size_t count = logits.size();
        Array<T> out(std::move(logits), {1, 1, count});
        out.reshape({count});
        return out;
    }

    /// The most probable ids with their probabilities; among equal ones the lower id first.
    static std::vector<std::pair<std::uint64_t, double>> best_of(const Array<T>& logits) {
        std::vector<std::size_t> order(logits.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        const std::size_t count = std::min(best_tokens, order.size());
        const T* const x = logits.data();
        std::partial_sort(
            order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
            [&](std::size_t a, std::size_t b) { return x[a] != x[b] ? x[a] > x[b] : a < b; });
        const auto largest = static_cast<double>(x[order.front()]);
        double sum = 0;
        for (const T value : logits) sum += std::exp(static_cast<double>(value) - largest);
        std::vector<std::pair<std::uint64_t, double>> best;
        for (std::size_t i = 0; i < count; ++i)
            best.emplace_back(order[i], std::exp(static_cast<double>(x[order[i]]) - largest) / sum);
        return best;
    }

    void record_logits(const Tensor3<T>& last) {
        const bool has_ids = request_.arrays.has("next_tokens"),
                   has_next = has_ids || request_.arrays.has("next_token_probabilities");
        if (!has_next && !request_.arrays.has("logits")) return;
        if (!has_head() && !request_.arrays.requires_head) return;
        Array<T> logits = logits_of(last);
        if (has_next) {
            const auto best = best_of(logits);
            Array<std::int64_t> ids = Array<std::int64_t>::from_shape({best.size()});
            Array<T> probabilities = Array<T>::from_shape({best.size()});
            for (std::size_t i = 0; i < best.size(); ++i) {
                ids.data()[i] = static_cast<std::int64_t>(best[i].first);
                probabilities.data()[i] = static_cast<T>(best[i].second);
            }
            if (has_ids) add("next_tokens", std::move(ids), {"rank"});
            add("next_token_probabilities", std::move(probabilities), {"rank"});
        }
        if (request_.arrays.has("logits")) add("logits", std::move(logits), {"vocabulary"});
    }

    const Compute& compute_;
    const ModelSpec* model_;
    ModelSpec own_;                      ///< for another length
    std::optional<std::size_t> length_;  ///< with the angles of the model
    const ModelRequest& request_;
    std::vector<LayerCache<T>> cache_;
    std::vector<std::optional<TransformerBlock>> blocks_;
    std::optional<LinearMap> head_;
    std::size_t past_ = 0;
    bool records_ = true;
    ModelResult result_;
};

/// Whether a block rotates heads, or chooses keys, by the positions of tokens.
bool uses_positions(const TransformerBlock& block) {
    const auto* const part = std::get_if<AttentionPart>(&block.mixer);
    return block.whole != nullptr ||
           (part != nullptr && (part->rotation || part->choice != nullptr ||
                                (part->query_factor && !part->factor_by_row)));
}

/// Positions and segments without effect would be ignored.
void check_lists(const ModelSpec& model, const ModelInput& input, std::size_t layers) {
    const bool embeds = !input.hidden_states && model.input == nullptr;
    if (!embeds && !input.segments.empty())
        throw SettingError(ErrorKind::usage, "token_type_ids",
                           "no effect on hidden states; expected no such flag");
    if (input.positions.empty()) return;
    const EmbeddingSpec& embedding = model.embedding;
    bool uses = embeds && (embedding.positions != nullptr || embedding.position_row != nullptr);
    for (std::size_t layer = input.first_layer; layer < layers && !uses; ++layer)
        uses = uses_positions(model.block(layer));
    if (!uses)
        throw SettingError(
            ErrorKind::usage, "position_ids",
            "no effect: the computed layers do not use position ids; expected no such flag");
}

}  // namespace

ModelResult run_model(const Compute& compute, const ModelSpec& model, ModelInput input,
                      const ModelRequest& request, Dtype dtype) {
    check_lists(model, input, request.generate != 0 ? model.layers : request.run_layers);
    return for_dtype(dtype, [&]<class T>(T) {
        return ModelRun<T>(compute, model, request).run(std::move(input));
    });
}

}  // namespace attn
