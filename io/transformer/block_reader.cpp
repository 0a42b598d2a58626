#include "io/transformer/block_reader.hpp"

#include <cmath>

#include "io/file/source.hpp"
#include "io/model/find_layer.hpp"
#include "io/text/text.hpp"

namespace attn::io {

std::string layer_name(const FamilyRow& row, const ModelConfig& config, std::size_t layer) {
    return row.layer_name != nullptr ? row.layer_name(config, layer)
                                     : with_number(row.layer, layer);
}

double eps_of(const FamilyRow& row, const ModelConfig& config) {
    const double eps = row.eps.empty() ? row.eps_value : config.number(row.eps);
    if (eps < 0) config.fail(row.eps, "a number of at least 0");
    return eps;
}

NormSpec ModelSource::norm_of(const std::string& name) const {
    NormSpec norm;
    norm.is_rms = row.rms;
    norm.eps = eps_of(row, config);
    norm.weight_offset = row.norm_plus_one ? 1 : 0;
    if (row.norm_has_weight) norm.weight = tensors.get(name + ".weight");
    norm.bias = tensors.bias_of(name);
    return norm;
}

std::vector<double> BlockReader::numbers(std::string_view names, std::size_t count) const {
    std::vector<std::string> all;
    for (const std::string_view name : split_text(names, ' ')) all.push_back(full(name));
    const std::string& found = tensors.name_among(all);
    std::vector<double> values = elements_of(tensors.get(found));
    if (values.size() != count)
        throw Error(ErrorKind::input, tensors.find_array(found)->location(), values.size(),
                    " elements; expected ", count, " by the model's settings");
    return values;
}

std::size_t BlockReader::kv_heads() const {
    if (row.kv_heads != nullptr) return row.kv_heads(config);
    return config.whole(row.kv_heads_key, heads());
}

std::size_t BlockReader::head_width() const {
    if (const std::size_t given = config.whole("head_dim", 0); given != 0) return given;
    const std::size_t all = config.positive("hidden_size"), count = heads();
    if (count == 0 || all % count != 0)
        config.fail(row.heads_key, "a divisor of ", config.name_of("hidden_size"), " ", all);
    return all / count;
}

std::string_view BlockReader::layer_type(std::size_t of_layer) const {
    const bool has_window = !config.at("sliding_window").is_null();
    // Where layer_types is given, these are what it was made from.
    for (const char* key : {"use_sliding_window", "sliding_window_pattern",
                            "_sliding_window_pattern", "max_window_layers"})
        config.at(key);
    if (config.gives("layer_types") && config.has("layer_types")) {
        const nlohmann::json& type = config.of_layer("layer_types", of_layer);
        for (const std::string_view one : row.layer_types)
            if (type == one) return one;
        config.fail("layer_types", "a list of ", comma_list(row.layer_types));
    }
    if (row.layer_rule != nullptr) return row.layer_types[row.layer_rule(*this, of_layer)];
    bool slides = false;
    switch (row.windowed) {
        case Windowed::none: break;
        case Windowed::all: slides = has_window; break;
        case Windowed::qwen:
            slides = config.flag("use_sliding_window") && has_window &&
                     of_layer >= config.whole("max_window_layers", 0);
            break;
        case Windowed::alternating: slides = of_layer % 2 == 0; break;
        case Windowed::pattern: {
            const std::size_t every =
                config.whole("sliding_window_pattern",
                             config.whole("_sliding_window_pattern", row.window_pattern));
            slides = every != 0 && (of_layer + 1) % every != 0;
            break;
        }
    }
    return slides ? "sliding_attention" : "full_attention";
}

void BlockReader::add_window(AttentionPart& part) const {
    if (row.windowed == Windowed::none || layer_type() != "sliding_attention") return;
    part.window_left = window_left();
    if (!part.causal) part.window_right = part.window_left;
}

std::optional<Rotation> BlockReader::rotation(std::size_t columns) const {
    if (row.rotary == Rotary::none) return std::nullopt;
    return rotation(columns, config.rope(layer_type()));
}

Rotation BlockReader::rotation(std::size_t columns, const nlohmann::json& rope) const {
    return rotation_of(config, rope, columns,
                       row.rotary == Rotary::half ? Rope::half : Rope::interleaved, tokens);
}

AttentionPart BlockReader::attention_of(std::size_t key_heads, std::size_t columns) const {
    AttentionPart part;
    part.heads = heads();
    part.kv_heads = key_heads;
    part.d_k = part.d_v = columns;
    if (part.heads == 0 || part.kv_heads == 0 || part.heads % part.kv_heads != 0)
        config.fail(row.kv_heads_key, "a divisor of ", config.name_of(row.heads_key), " ",
                    part.heads);
    if (part.d_k == 0) config.fail("head_dim", "at least 1");
    part.scale = 1 / std::sqrt(static_cast<double>(part.d_k));
    part.causal = row.causal;
    return part;
}

AttentionPart BlockReader::attention(AttentionPart part) const {
    const std::size_t q = part.heads * part.d_k, k = part.kv_heads * part.d_k,
                      v = part.kv_heads * part.d_v;
    part.joined = row.joined;
    if (row.joined == JoinedHeads::separate) {
        const bool has_gate = part.gate.from == ContextGate::From::query_projection;
        part.query = linear(row.attention.query, 0, has_gate ? 2 * q : q);
        part.key = linear(row.attention.key, 0, k);
        part.value = linear(row.attention.value, 0, v);
    } else {
        part.query = linear(row.attention.query, 0, q + k + v);
    }
    if (!row.attention.out.empty()) part.out = linear(row.attention.out, part.heads * part.d_v);
    part.query_norm = maybe_norm(row.query_norm);
    part.key_norm = maybe_norm(row.key_norm);
    part.norms_whole = row.norms_whole;
    part.norms_after_rotation = row.norms_after_rotation;
    part.rotation = rotation(part.d_k);
    add_window(part);
    return part;
}

AttentionPart BlockReader::cross_attention() const {
    AttentionPart part = attention_of(kv_heads(), head_width());
    const std::size_t q = part.heads * part.d_k, kv = part.kv_heads * part.d_k;
    const auto name = [&](std::string_view own) {
        return std::string(row.cross) + std::string(own.substr(own.rfind('.')));
    };
    part.query = linear(name(row.attention.query), 0, q);
    part.key = linear(name(row.attention.key), 0, kv);
    part.value = linear(name(row.attention.value), part.key.d_in, kv);
    part.out = linear(name(row.attention.out), q);
    part.causal = false;
    return part;
}

const Activation& BlockReader::activation(const std::string& name) const {
    if (const Activation* found = find_activation(name)) return *found;
    config.fail(row.activation, "one of ", comma_list(activations(), &Activation::name));
}

FeedForward BlockReader::feed_forward(std::string_view gate, std::string_view up,
                                      std::string_view down) const {
    FeedForward part;
    part.activation = &activation();
    part.joined = row.ffn_joined;
    if (!gate.empty()) part.gate = linear(gate);
    part.up = linear(up, 0, gate.empty() ? 0 : part.gate.d_out);
    part.down = linear(down, part.up.d_out / (part.joined == FeedForward::Joined::no ? 1 : 2));
    return part;
}

FeedForward BlockReader::feed_forward_in(std::string_view module) const {
    const std::string name(module);
    FeedForward part;
    part.activation = &activation();
    part.gate = linear(name + ".gate_proj");
    part.up = linear(name + ".up_proj", part.gate.d_in, part.gate.d_out);
    part.down = linear(name + ".down_proj", part.up.d_out, part.gate.d_in);
    return part;
}

const ExpertNames* BlockReader::expert_names() const {
    if (!row.experts) return nullptr;
    // Of layers that have experts, though this one may have none.
    for (const std::string_view key :
         {row.experts->count, row.experts->chosen, row.experts->shared_count, row.experts->factor,
          std::string_view("norm_topk_prob"), std::string_view("routed_scaling_factor"),
          std::string_view("n_group"), std::string_view("topk_group")})
        config.at(key);
    const bool is_other = row.other_experts && has_experts(*row.other_experts);
    const ExpertNames& names = is_other ? *row.other_experts : *row.experts;
    const bool has = row.has_experts != nullptr ? row.has_experts(*this) : has_experts(names);
    return has ? &names : nullptr;
}

std::size_t BlockReader::whole_of_layer(const std::string& key) const {
    if (!config.at(key).is_array()) return config.whole(key);
    const nlohmann::json& value = config.of_layer(key, layer);
    if (!value.is_number_unsigned()) config.fail(key, "a list of integers");
    return value.get<std::size_t>();
}

Experts BlockReader::experts(const ExpertNames& names) const {
    Experts part;
    part.count = whole_of_layer(std::string(names.count));
    part.chosen = whole_of_layer(std::string(names.chosen));
    if (part.chosen == 0 || part.chosen > part.count)
        config.fail(names.chosen, "1 to ", part.count, ", the number of experts");
    part.router = linear(names.in_module(names.router), 0, part.count);
    part.scores = names.scores;
    part.normalise = names.normalise;
    if (const std::string key(names.normalise_key); !key.empty() && config.has(key))
        part.normalise = config.flag(key, names.normalise);
    const std::string stacked = full(names.in_module(names.stacked_gate_up));
    const bool is_stacked = !names.stacked_gate_up.empty() && tensors.has(stacked);
    bool in_out = names.stacked_in_out;
    if (names.stacked_by_shape && is_stacked) {
        const std::vector<std::size_t>& shape = tensors.get(stacked)->shape();
        in_out = shape.size() == 3 && shape[2] != width();
    }
    // Tensors are found now, so that those missing are reported before anything is computed.
    auto all = std::make_shared<std::vector<FeedForward>>(part.count);
    for (std::size_t e = 0; e < part.count; ++e) {
        FeedForward& expert = (*all)[e];
        expert.activation = &activation();
        if (is_stacked) {
            const std::string down = full(names.in_module(names.stacked_down));
            expert.joined = names.stacked_joined;
            expert.up = tensors.of_stack(stacked, e, in_out);
            expert.down = tensors.of_stack(down, e, in_out);
            const std::size_t parts = expert.joined == FeedForward::Joined::no ? 1 : 2;
            const bool fits = expert.up.d_in == width() && expert.down.d_out == width() &&
                              expert.up.d_out == parts * expert.down.d_in &&
                              expert.up.weight->shape()[0] == part.count &&
                              expert.down.weight->shape()[0] == part.count;
            if (!fits)
                throw Error(ErrorKind::input, tensors.file().name, stacked, " and ", down,
                            " do not have matching shapes; expected ", part.count,
                            " experts of width ", width());
            continue;
        }
        const std::string start = names.in_module("experts." + std::to_string(e) + ".");
        expert.gate = linear(start + (names.has_letters ? "w1" : "gate_proj"), width());
        expert.up =
            linear(start + (names.has_letters ? "w3" : "up_proj"), width(), expert.gate.d_out);
        expert.down =
            linear(start + (names.has_letters ? "w2" : "down_proj"), expert.up.d_out, width());
    }
    part.expert = [all](std::size_t e) { return (*all)[e]; };
    const std::string shared = names.in_module(names.shared);
    bool has_shared = !names.shared.empty();
    if (has_shared && names.shared_count.empty())
        has_shared = tensors.has(full(shared) + ".up_proj.weight");
    else if (has_shared)
        has_shared = config.whole(names.shared_count, 0) != 0;
    if (has_shared) part.shared = feed_forward_in(shared);
    if (!names.shared_gate.empty())
        part.shared_gate = linear(names.in_module(names.shared_gate), 0, 1);
    read_routing(names, part);
    check_sizes(*this, names, part);
    return part;
}

void BlockReader::read_routing(const ExpertNames& names, Experts& part) const {
    if (!names.factor.empty()) part.factor = config.number(names.factor, 1);
    part.sum_eps = names.sum_eps;
    if (names.least_in_group != 0) read_groups(names.least_in_group, part);
    std::string biases;
    for (const std::string_view word : split_text(names.choice_bias, ' '))
        biases += (biases.empty() ? "" : " ") + names.in_module(word);
    if (!biases.empty()) part.choice_bias = numbers(biases, part.count);
}

void BlockReader::read_groups(std::size_t least, Experts& part) const {
    part.groups = config.whole("n_group", 1);
    part.chosen_groups = config.whole("topk_group", part.groups);
    const std::size_t each = part.groups == 0 ? 0 : part.count / part.groups;
    if (each < least || part.count % part.groups != 0)
        config.fail("n_group", "a divisor of the number of experts ", part.count,
                    " that leaves at least ", least, " in each group");
    if (part.chosen_groups == 0 || part.chosen_groups > part.groups ||
        part.chosen_groups * each < part.chosen)
        config.fail("topk_group", "1 to n_group, with at least num_experts_per_tok experts");
}

void BlockReader::read_mixer(TransformerBlock& block) {
    if (row.make_mixer != nullptr)
        row.make_mixer(*this, block);
    else
        block.mixer = attention();
}

void BlockReader::adjust(TransformerBlock& block) {
    if (row.adjust != nullptr) row.adjust(*this, block, std::get<AttentionPart>(block.mixer));
    check_sizes(*this, block);
}

TransformerBlock BlockReader::read_attention() {
    if (row.make_block != nullptr) return read();
    TransformerBlock block;
    block.layer = layer;
    const auto norm_there = [this](std::string_view name) {
        const bool is_there = !row.norm_has_weight || tensors.has(full(name) + ".weight");
        return is_there ? maybe_norm(name) : std::nullopt;
    };
    block.attention_norm = norm_there(row.attention_norm);
    block.attention_sum_norm = norm_there(row.attention_sum_norm);
    read_mixer(block);
    adjust(block);
    return block;
}

TransformerBlock BlockReader::read() {
    if (row.make_block != nullptr) {
        TransformerBlock block = row.make_block(*this);
        block.layer = layer;
        check_sizes(*this, block);
        return block;
    }
    TransformerBlock block;
    block.layer = layer;
    block.order = row.order;
    block.ffn_shares_norm = row.ffn_shares_norm;
    block.attention_norm = maybe_norm(row.attention_norm);
    block.attention_post_norm = maybe_norm(row.attention_post_norm);
    block.attention_sum_norm = maybe_norm(row.attention_sum_norm);
    block.ffn_norm = maybe_norm(row.ffn_norm);
    block.ffn_post_norm = maybe_norm(row.ffn_post_norm);
    block.ffn_sum_norm = maybe_norm(row.ffn_sum_norm);
    read_mixer(block);
    if (!row.cross.empty()) {
        block.cross = cross_attention();
        block.cross_norm = maybe_norm(row.cross_norm);
        block.cross_post_norm = maybe_norm(row.cross_post_norm);
        block.cross_sum_norm = maybe_norm(row.cross_sum_norm);
    }
    if (row.make_block_ffn != nullptr)
        row.make_block_ffn(*this, block);
    else if (const ExpertNames* const names = expert_names())
        block.ffn = experts(*names);
    else
        block.ffn = feed_forward();
    adjust(block);
    return block;
}

}  // namespace attn::io
