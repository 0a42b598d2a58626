#include "core/model/model.hpp"

#include <cmath>
#include <iterator>

#include "core/base/error.hpp"
#include "core/base/memory.hpp"

namespace attn {
namespace {

/// The most probable ids with their probabilities; among equal ones the lower id first.
std::vector<std::pair<std::uint64_t, double>> best_of(const States& logits) {
    constexpr std::size_t best_tokens = 10;
    std::vector<double> x(logits.size());
    numbers_of(logits)([&](const auto* values) { std::copy_n(values, x.size(), x.begin()); });
    const std::vector<std::size_t> order = best(x, best_tokens);
    const double largest = x[order.front()];
    double sum = 0;
    for (const double value : x) sum += std::exp(value - largest);
    std::vector<std::pair<std::uint64_t, double>> tokens;
    tokens.reserve(order.size());
    for (const std::size_t id : order) tokens.emplace_back(id, std::exp(x[id] - largest) / sum);
    return tokens;
}

class ModelRun {
public:
    ModelRun(const Compute& compute, const ModelSpec& model, const ModelRequest& request,
             NumberType dtype)
        : compute_(compute), model_(&model), request_(request), dtype_(dtype),
          cache_(request.generate == 0 ? 0 : model.layers),
          blocks_(request.generate == 0 ? 0 : model.layers) {}

    ModelResult run(ModelInput input) {
        if (is_dry_)
            measure_generating(input);
        else
            generate(input);
        cache_.clear();
        past_ = 0;
        records_ = true;
        States x = run_blocks(input);
        if (request_.run_layers < model_->layers) return std::move(result_);
        x = finish(std::move(x));
        record_logits(x);
        if (request_.arrays.has("last_hidden_state"))
            add((model_->prefix == "decoder_" ? "" : model_->prefix) + "last_hidden_state",
                States(x).array({x.rows(), x.columns()}), {"q_len", "hidden_size"});
        result_.last = std::move(x);
        return std::move(result_);
    }

private:
    void generate(ModelInput& input) {
        for (std::size_t step = 0; step < request_.generate; ++step) {
            take_length(input.ids.size());
            const std::uint64_t next = best_of(logits_after(input)).front().first;
            result_.generated.push_back(next);
            input.ids.push_back(next);
            if (std::ranges::find(model_->end_ids, next) != model_->end_ids.end()) break;
        }
        if (request_.generate != 0) take_length(input.ids.size());
    }

    /// The first step, the second and the last. The scores of one token grow by the same number
    /// with each earlier one.
    void measure_generating(ModelInput& input) {
        if (request_.generate == 0) return;
        const std::size_t steps = request_.generate, tokens = input.ids.size() + steps;
        logits_after(input);
        double& flops = *compute_.flops;
        const double first = flops;
        const auto run_next = [&] {
            input.ids.resize(past_ + 1);
            logits_after(input);
        };
        if (steps > 1) run_next();
        if (steps > 2) {
            extend_cache(steps - 3);
            run_next();
        }
        const auto others = static_cast<double>(steps - 1);
        if (steps > 2) flops = first + (flops - first) / 2 * others;
        input.ids.resize(tokens);
    }

    /// As if so many more tokens had run.
    void extend_cache(std::size_t tokens) {
        const auto extend = [&](States& x) {
            if (!x.empty() && x.rows() == past_)
                x = States(dtype_, x.depth(), past_ + tokens, x.columns());
        };
        for (LayerCache& cache : cache_) {
            for (States* const x : {&cache.attention.key, &cache.attention.value, &cache.index_key})
                extend(*x);
            for (States& x : cache.last_rows) extend(x);
        }
        past_ += tokens;
    }

    /// Runs the tokens that are not in the cache yet.
    States logits_after(const ModelInput& input) {
        records_ = false;
        ModelInput fresh = input;
        fresh.ids.erase(fresh.ids.begin(), fresh.ids.begin() + static_cast<std::ptrdiff_t>(past_));
        const States last = finish(run_blocks(fresh));
        past_ = input.ids.size();
        return logits_of(last);
    }

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
        if (is_rounded(dtype_) && std::holds_alternative<Array<float>>(array.values))
            array.type = dtype_;
        result_.arrays.push_back(std::move(array));
    }

    /// Between uses of weights that are not needed soon.
    void release_weights() const {
        if (request_.generate == 0 && model_->release_weights && !is_dry_)
            model_->release_weights();
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

    void record_hidden(const States& x, std::size_t layer) {
        if (!request_.arrays.has("hidden_states")) return;
        std::vector<std::size_t> shape{x.depth(), x.rows(), x.columns()};
        std::vector<std::string_view> axes{"streams", "q_len", "hidden_size"};
        const bool turns = model_->shows_tokens_first && x.depth() != 1;
        if (turns) {
            std::swap(shape[0], shape[1]);
            std::swap(axes[0], axes[1]);
        }
        if (x.depth() == 1) {
            shape.erase(shape.begin());
            axes.erase(axes.begin());
        }
        add(model_->prefix + "hidden_states",
            (turns ? merged(x) : States(x)).array(std::move(shape)), std::move(axes), layer);
    }

    States first_states(const ModelInput& input) const {
        if (input.hidden_states) {
            const std::vector<std::size_t> shape = input.hidden_states->shape();
            return {*input.hidden_states, dtype_, {1, shape[0], shape[1]}};
        }
        return std::visit(
            [&]<class Part>(const Part& part) {
                if constexpr (std::is_same_v<Part, std::monostate>)
                    return embed(compute_, model_->embedding, input, past_, dtype_,
                                 model_->prefix == "decoder_" ? "decoder_ids" : "token_ids");
                else
                    return run_input(compute_, part, input, dtype_);
            },
            model_->input);
    }

    /// Gives the result the arrays that a block recorded.
    void keep(BlockRun& run, std::size_t layer) {
        for (NamedArray& array : run.arrays) {
            array.layer = layer;
            if (request_.take)
                request_.take(std::move(array));
            else
                result_.arrays.push_back(std::move(array));
        }
        if (!run.arrays.empty() && !request_.take && !is_dry_) return_free_memory();
        for (LayerAttention& attention : run.attentions) {
            attention.layer = layer;
            result_.attentions.push_back(std::move(attention));
        }
    }

    States run_blocks(const ModelInput& input) {
        const bool keeps_embedding = model_->keeps_embedding && !input.hidden_states;
        States x = first_states(input);
        release_weights();
        const std::size_t tokens = x.rows();
        const States embedding = keeps_embedding ? slice(x, 0, 0, 1) : States();
        std::vector<double> positions = input.positions;
        if (positions.empty())
            for (std::size_t t = 0; t < tokens; ++t)
                positions.push_back(static_cast<double>(past_ + t));
        std::vector<bool> valid = input.valid;
        if (valid.empty() && model_->masked_id && past_ == 0)
            for (const std::uint64_t id : input.ids) valid.push_back(id != *model_->masked_id);
        std::map<std::size_t, KeysAndValues> shared;
        static const ArrayRequest nothing;
        // A generated token depends on all layers.
        const std::size_t layers = records_ ? request_.run_layers : model_->layers;
        for (std::size_t layer = input.first_layer; layer < layers; ++layer) {
            if (is_recorded(layer)) record_hidden(x, layer);
            if (request_.progress) request_.progress(layer, layers);
            const TransformerBlock block = block_of(layer);
            BlockRun run{compute_, block, is_recorded(layer) ? request_.arrays : nothing};
            run.past = past_;
            run.positions = positions;
            run.token_ids = input.ids;
            run.valid_keys = valid;
            run.packed = input.packed;
            run.cache = cache_.empty() ? nullptr : &cache_[layer];
            run.shared = &shared;
            run.encoder = input.encoder;
            run.valid_encoder_keys = input.encoder_valid;
            run.prefix = model_->prefix;
            run.embedding = embedding.empty() ? nullptr : &embedding;
            x = run_block(run, std::move(x));
            release_weights();
            keep(run, layer);
        }
        result_.tokens = tokens;
        if (records_ && (request_.enters ||
                         (layers == model_->layers && layers != 0 && is_recorded(layers - 1))))
            record_hidden(x, layers);
        return x;
    }

    States finish(States x) const {
        x = run_stage(compute_, model_->before_norm, std::move(x));
        x = normed(compute_, model_->final_norm, std::move(x));
        if (model_->final_projection) x = apply(compute_, model_->final_projection, x);
        return run_stage(compute_, model_->after_norm, std::move(x));
    }

    /// Finds it at the first call.
    bool has_head() {
        if (!head_) head_ = model_->head ? model_->head() : LinearMap();
        return bool{*head_};
    }

    /// Of the last row of the last hidden state.
    States logits_of(const States& last) {
        if (!has_head())
            throw SettingError(
                ErrorKind::input, "emit",
                "logits and next_tokens require a head, which the model does not have; expected "
                "other arrays");
        States logits = apply(compute_, *head_, slice(last, 1, last.rows() - 1, 1));
        map(logits, [&](double x) {
            const double value = x * model_->logit_factor, cap = model_->logit_softcap;
            return cap != 0 ? cap * std::tanh(value / cap) : value;
        });
        return logits;
    }

    void record_logits(const States& last) {
        const bool has_ids = request_.arrays.has("next_tokens"),
                   has_next = has_ids || request_.arrays.has("next_token_probabilities");
        if (!has_next && !request_.arrays.has("logits")) return;
        if (!has_head() && !request_.arrays.requires_head) return;
        States logits = logits_of(last);
        if (has_next) {
            const auto best = best_of(logits);
            const std::size_t count = best.size();
            Array<std::int64_t> ids = Array<std::int64_t>::from_shape({count});
            States probabilities(dtype_, 1, 1, count);
            map(probabilities, [&](double, std::size_t i) { return best[i].second; });
            for_each_index(count, [&](std::size_t i) {
                ids.data()[i] = static_cast<std::int64_t>(best[i].first);
            });
            if (has_ids) add("next_tokens", std::move(ids), {"rank"});
            add("next_token_probabilities", std::move(probabilities).array({count}), {"rank"});
        }
        const std::size_t count = logits.size();
        if (request_.arrays.has("logits"))
            add("logits", std::move(logits).array({count}), {"vocabulary"});
    }

    const bool is_dry_ = is_dry_run();
    const Compute& compute_;
    const ModelSpec* model_;
    ModelSpec own_;                      ///< for another length
    std::optional<std::size_t> length_;  ///< with the angles of the model
    const ModelRequest& request_;
    NumberType dtype_;
    std::vector<LayerCache> cache_;
    std::vector<std::optional<TransformerBlock>> blocks_;
    std::optional<LinearMap> head_;
    std::size_t past_ = 0;
    bool records_ = true;
    ModelResult result_;
};

/// Whether a block rotates heads, or chooses keys, by the positions of tokens.
bool uses_positions(const TransformerBlock& block) {
    const auto* const part = std::get_if<AttentionPart>(&block.mixer);
    return !std::holds_alternative<std::monostate>(block.whole) ||
           (part != nullptr && (part->rotation || part->indexer || part->choice_from ||
                                (part->query_factor && !part->query_factor->by_row)));
}

/// Positions and segments without effect would be ignored.
void check_lists(const ModelSpec& model, const ModelInput& input, std::size_t layers) {
    const bool embeds = !input.hidden_states && model.takes_ids();
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

/// Layers that join tokens in another way than by attention would mix the sequences.
void check_packed(const ModelSpec& model, const ModelInput& input, std::size_t layers) {
    for (std::size_t layer = input.first_layer; layer < layers && !input.packed.empty(); ++layer) {
        const TransformerBlock block = model.block(layer);
        const auto* const part = std::get_if<AttentionPart>(&block.mixer);
        if (!std::holds_alternative<std::monostate>(block.whole) || part == nullptr ||
            part->key_bias || block.convolution)
            throw SettingError(ErrorKind::usage, "segment_ids", "layer ", layer,
                               " joins tokens in another way than by attention; expected a model "
                               "of attention layers, or no such flag");
    }
}

/// Each packed sequence counts from 0, or from the first position of a table that padding begins.
std::vector<double> restarted_positions(const ModelSpec& model, const ModelInput& input) {
    const bool has_padding = model.embedding.padding_id.has_value() && !input.hidden_states;
    const auto first = static_cast<double>(has_padding ? model.embedding.first_position : 0);
    std::vector<double> positions;
    std::map<double, double> counts;
    for (const double sequence : input.packed) positions.push_back(first + counts[sequence]++);
    return positions;
}

template <class Part>
void prepend(std::vector<Part>& list, std::vector<Part>& first) {
    list.insert(list.begin(), std::make_move_iterator(first.begin()),
                std::make_move_iterator(first.end()));
}

}  // namespace

ModelResult run_model(const Compute& compute, const ModelSpec& model, ModelInput input,
                      const ModelRequest& request, NumberType dtype) {
    if (is_rounded(dtype) && !model.takes_ids())
        throw SettingError(ErrorKind::unsupported, "dtype", row_of(dtype).name,
                           " is for models of token ids; expected float32 or float64");
    const std::size_t layers = request.generate != 0 ? model.layers : request.run_layers;
    check_lists(model, input, layers);
    check_packed(model, input, layers);
    if (input.positions.empty()) input.positions = restarted_positions(model, input);
    return ModelRun(compute, model, request, dtype).run(std::move(input));
}

ModelResult run_encoder_decoder(const Compute& compute, ModelSpec encoder, ModelInput input,
                                ModelRequest request, Decoder decoder, NumberType dtype) {
    encoder.head = nullptr;  // which is the decoder's
    request.generate = 0;
    request.run_layers = encoder.layers;
    request.arrays.requires_head = false;
    ModelInput of_decoder;
    of_decoder.ids = std::move(decoder.ids);
    of_decoder.encoder_valid = input.valid;
    ModelResult first = run_model(compute, encoder, std::move(input), request, dtype);
    of_decoder.encoder = &first.last;
    ModelResult result =
        run_model(compute, decoder.model, std::move(of_decoder), decoder.request, dtype);
    result.tokens = first.tokens;
    prepend(result.arrays, first.arrays);
    prepend(result.attentions, first.attentions);
    return result;
}

}  // namespace attn
