// DeepSeek and related models: latent attention, and experts behind a router with groups. DeepSeek
// V4: streams with hyper-connections, and attention to compressed keys.
#include <algorithm>
#include <cmath>
#include <utility>

#include "io/transformer/shared_rows.hpp"

namespace attn::io::rows_latent {
namespace {

Rope rope_by_key(const ModelConfig& config) {
    return config.flag("rope_interleave", true) ? Rope::interleaved : Rope::half;
}

/// The library takes the width of the rotary embedding from head_dim, a part of it if the config
/// says so; elsewhere head_dim has no effect.
void check_head_dim(const BlockReader& reader, double part) {
    const ModelConfig& config = reader.config;
    const std::size_t turned = config.whole("qk_rope_head_dim"),
                      given = config.whole("head_dim", turned);
    if (static_cast<std::size_t>(static_cast<double>(given) * part) != turned)
        config.fail("head_dim", "a width whose rotary columns (partial_rotary_factor ",
                    nlohmann::json(part).dump(), ") are qk_rope_head_dim, ", turned);
}

void make_attention(BlockReader& reader, TransformerBlock& block) {
    block.mixer = latent_attention(reader, rope_by_key(reader.config));
    check_head_dim(reader, 1);
}

void check_deepseek2(const ModelConfig& config, FamilyRow& /*row*/) {
    const std::string method = config.text("topk_method", "greedy");
    if (method != "greedy" && method != "group_limited_greedy")
        config.fail("topk_method", "\"greedy\" or \"group_limited_greedy\"");
}

void adjust_deepseek2(BlockReader& reader, TransformerBlock& block, AttentionPart&) {
    auto* const experts = std::get_if<Experts>(&block.ffn);
    if (experts == nullptr) return;
    experts->normalise = false;  // whatever norm_topk_prob says
    experts->groups_by_best = true;
    if (reader.config.text("topk_method", "greedy") == "greedy")
        experts->chosen_groups = experts->groups;
}

void make_mistral4_attention(BlockReader& reader, TransformerBlock& block) {
    AttentionPart part = latent_attention(reader, rope_by_key(reader.config));
    const nlohmann::json rope = reader.config.rope();
    constexpr const char* key = "partial_rotary_factor";
    // The one outside completes rope_scaling, but not rope_parameters.
    const nlohmann::json factor = reader.config.gives("rope_scaling") && !rope.contains(key)
                                      ? reader.config.at(key)
                                      : rope.value(key, nlohmann::json());
    if (factor.is_number() && reader.config.gives("head_dim"))
        check_head_dim(reader, factor.get<double>());
    if (rope.contains("llama_4_scaling_beta") && !rope["llama_4_scaling_beta"].is_null())
        part.query_factor = position_factor(reader, rope);
    block.mixer = std::move(part);
}

void make_minicpm3_attention(BlockReader& reader, TransformerBlock& block) {
    block.mixer = latent_attention(reader, Rope::half);
    const double layers = reader.config.number("num_hidden_layers");
    block.residual_factor =
        reader.config.number("scale_depth", std::sqrt(layers)) / std::sqrt(layers);
}

void adjust_minicpm3(ModelReader& reader) {
    const double width = reader.config.number("hidden_size");
    reader.spec.embedding.scale = reader.config.number("scale_emb");
    reader.spec.logit_factor = reader.config.number("dim_model_base", width) / width;
}

/// The layer whose indexer chooses the keys of this one: itself, or the last before it of type
/// "full" where indexer_types or an older rule say "shared".
std::size_t indexing_layer(const BlockReader& reader) {
    const ModelConfig& config = reader.config;
    const auto is_full = [&](std::size_t layer) {
        for (const char* key : {"indexer_types", "index_topk_pattern"}) {
            if (!config.gives(key)) continue;
            if (config.at(key).is_string()) {
                const std::string pattern = config.text(key);
                if (pattern.size() <= layer || (pattern[layer] != 'F' && pattern[layer] != 'S'))
                    config.fail(key, "a letter F or S for layer ", layer);
                return pattern[layer] == 'F';
            }
            const nlohmann::json& type = config.of_layer(key, layer);
            if (type != "full" && type != "shared")
                config.fail(key, "a list of \"full\" and \"shared\"");
            return type == "full";
        }
        const std::size_t every = std::max<std::size_t>(1, config.whole("index_topk_freq", 1)),
                          offset = config.whole("index_skip_topk_offset", 2);
        return (layer + 1 < offset ? 0 : layer + 1 - offset) % every == 0;
    };
    for (std::size_t layer = reader.layer;; --layer) {
        if (is_full(layer)) return layer;
        if (layer == 0)
            config.fail("indexer_types", "\"full\" at a layer before the first \"shared\" one");
    }
}

void make_indexed_attention(BlockReader& reader, TransformerBlock& block, Rope pairs,
                            std::size_t chooser) {
    const ModelConfig& config = reader.config;
    if (config.gives("layer_types") &&
        config.of_layer("layer_types", reader.layer) != "indexed_attention")
        config.fail("layer_types", "\"indexed_attention\" alone");
    AttentionPart part = latent_attention(reader, Rope::interleaved);
    if (!part.latent->query_down) config.fail("q_lora_rank", "an integer from 1 on");
    const std::size_t chosen = config.positive("index_topk");
    if (chooser != reader.layer) {
        part.choice_from = chooser;
        block.mixer = std::move(part);
        return;
    }
    IndexerPart indexer;
    indexer.heads = config.positive("index_n_heads");
    indexer.width = config.whole("index_head_dim");
    indexer.chosen = chosen;
    const std::size_t turned = config.whole("qk_rope_head_dim");
    if (indexer.width == 0 || indexer.width < turned)
        config.fail("index_head_dim", "at least qk_rope_head_dim ", turned);
    indexer.query = reader.linear("self_attn.indexer.wq_b", part.latent->query_down.d_out,
                                  indexer.heads * indexer.width);
    indexer.key = reader.linear("self_attn.indexer.wk", reader.width(), indexer.width);
    indexer.key_norm = reader.norm("self_attn.indexer.k_norm");
    indexer.key_norm.is_rms = false;
    indexer.key_norm.eps = 1e-6;
    indexer.weights =
        reader.linear("self_attn.indexer.weights_proj", reader.width(), indexer.heads);
    indexer.rotation = part.rotation;
    if (indexer.rotation) {
        indexer.rotation->first = 0;
        indexer.rotation->rope.pairs = pairs;
    }
    indexer.is_shared = true;
    part.indexer = std::move(indexer);
    block.mixer = std::move(part);
}

void make_deepseek2_attention(BlockReader& reader, TransformerBlock& block) {
    block.mixer = latent_attention(reader, Rope::interleaved);
}
void make_deepseek32_attention(BlockReader& reader, TransformerBlock& block) {
    make_indexed_attention(reader, block, Rope::half, reader.layer);
}
void make_glm_attention(BlockReader& reader, TransformerBlock& block) {
    make_indexed_attention(reader, block, Rope::interleaved, indexing_layer(reader));
}

constexpr std::string_view sliding = "sliding_attention", sparse = "compressed_sparse_attention";

/// The index in layer_types.
std::size_t attention_type(const BlockReader& reader, std::size_t layer) {
    const ModelConfig& config = reader.config;
    if (!config.gives("compress_ratios")) return layer < 2 || layer % 2 == 0 ? 2 : 1;
    const nlohmann::json& ratio = config.of_layer("compress_ratios", layer);
    for (std::size_t type = 0; type < 3; ++type)
        if (ratio == std::array{0, 4, 128}[type]) return type;
    config.fail("compress_ratios", "a list of 0, 4 and 128");
}

/// The part of a head's columns that turns.
double turned_part(const ModelConfig& config) {
    if (config.gives("partial_rotary_factor")) return config.number("partial_rotary_factor");
    if (config.gives("qk_rope_head_dim"))
        return config.number("qk_rope_head_dim") / config.number("head_dim");
    return 0.125;
}

/// Of layers without compression ("main") or with it ("compress"), for heads of `width`.
Rotation rotation_for(const BlockReader& reader, bool compresses, std::size_t width) {
    const ModelConfig& config = reader.config;
    const bool scales = config.gives("rope_scaling") && !config.at("rope_scaling").empty();
    const nlohmann::json& given = config.at(scales ? "rope_scaling" : "rope_parameters");
    const bool is_given = scales || config.gives("rope_parameters");
    nlohmann::json rope = nlohmann::json::object();
    if (is_given && given.is_object() && given.contains("main") && given.contains("compress")) {
        rope = given[compresses ? "compress" : "main"];
        if (!rope.is_object()) config.fail("rope_parameters", "objects main and compress");
        if (!rope.contains("rope_theta")) rope["rope_theta"] = config.number("rope_theta");
        if (!rope.contains("partial_rotary_factor"))
            rope["partial_rotary_factor"] = config.number("partial_rotary_factor", 1);
    } else {
        if (compresses && is_given && given.is_object()) rope = given;
        if (rope.contains("type") && !rope.contains("rope_type")) rope["rope_type"] = rope["type"];
        rope["rope_theta"] = config.number(compresses ? "compress_rope_theta" : "rope_theta");
        rope["partial_rotary_factor"] = turned_part(config);
        if (rope.contains("rope_type") && rope["rope_type"] == "yarn" &&
            !rope.contains("attention_factor"))
            rope["attention_factor"] = 1;
    }
    Rotation rotation =
        rotation_of(config, rope, config.whole("head_dim"), Rope::interleaved, reader.tokens);
    const std::size_t turned = 2 * rotation.frequencies.size();
    if (turned > width)
        config.fail("index_head_dim", "at least ", turned, ", the rotated columns of a head");
    rotation.first = width - turned;
    return rotation;
}

std::size_t compress_rate(const ModelConfig& config, const std::string& type) {
    const char* const older = type == sparse ? "compress_rate_csa" : "compress_rate_hca";
    if (config.gives(older)) return config.whole(older);
    const nlohmann::json& rates = config.at("compress_rates");
    if (rates.is_null()) return type == sparse ? 4 : 128;
    if (!rates.is_object() || !rates.contains(type) || !rates[type].is_number_unsigned() ||
        rates[type] == 0)
        config.fail("compress_rates", "an object with an integer from 1 on for ", type);
    return rates[type].get<std::size_t>();
}

Compressor read_compressor(const BlockReader& reader, const std::string& module,
                           const std::string& type, std::size_t width) {
    Compressor part;
    part.rate = compress_rate(reader.config, type);
    if (part.rate == 0) reader.config.fail("compress_rates", "at least 1");
    part.width = width;
    part.overlaps = type == sparse;
    const std::size_t columns = part.overlaps ? 2 * width : width;
    part.value = reader.linear(module + ".wkv", reader.width(), columns);
    part.gate = reader.linear(module + ".wgate", reader.width(), columns);
    part.gate_bias = reader.numbers(module + ".ape", part.rate * columns);
    part.norm = reader.norm(module + ".norm");
    part.rotation = rotation_for(reader, true, width);
    return part;
}

CompressedAttention read_attention(const BlockReader& reader) {
    const ModelConfig& config = reader.config;
    const std::string type(reader.layer_type());
    CompressedAttention part;
    const std::size_t heads = reader.heads(), d = config.whole("head_dim"),
                      rank = config.positive("q_lora_rank"), width = reader.width(),
                      groups = config.whole("o_groups"), narrow = config.positive("o_lora_rank");
    if (heads == 0 || d == 0)
        config.fail("num_attention_heads", "an integer from 1 on, with head_dim from 1 on");
    if (groups == 0 || heads % groups != 0)
        config.fail("o_groups", "a divisor of num_attention_heads ", heads);
    config.require("num_key_value_heads", 1);
    part.part.heads = heads;
    part.part.kv_heads = 1;
    part.part.d_k = part.part.d_v = d;
    part.part.causal = false;  // the masks say it
    part.part.scale = 1 / std::sqrt(static_cast<double>(d));
    part.part.sink = reader.numbers("attn.attn_sink", heads);
    part.query_down = reader.linear("attn.wq_a", width, rank);
    part.query_norm = reader.norm("attn.q_norm");
    part.part.query = reader.linear("attn.wq_b", rank, heads * d);
    part.head_norm.eps = config.number("rms_norm_eps");
    part.key = reader.linear("attn.wkv", width, d);
    part.key_norm = reader.norm("attn.norm");
    part.rotation = rotation_for(reader, type != sliding, d);
    part.window = config.positive("sliding_window");
    const LinearMap all = reader.linear("attn.wo_a", heads * d / groups, groups * narrow);
    for (std::size_t g = 0; g < groups; ++g) {
        LinearMap own = all;
        own.d_out = narrow;
        own.first = g * narrow * all.d_in;
        own.first_bias = g * narrow;
        part.groups.push_back(own);
    }
    part.out = reader.linear("attn.wo_b", groups * narrow, width);
    if (type == sliding) return part;
    part.compressor = read_compressor(reader, "attn.compressor", type, d);
    if (type != sparse) return part;
    CompressedIndexer indexer;
    const std::size_t own_width = config.whole("index_head_dim");
    indexer.heads = config.positive("index_n_heads");
    indexer.chosen = config.positive("index_topk");
    indexer.query = reader.linear("attn.indexer.wq_b", rank, indexer.heads * own_width);
    indexer.weights = reader.linear("attn.indexer.weights_proj", width, indexer.heads);
    indexer.keys = read_compressor(reader, "attn.indexer.compressor", type, own_width);
    part.indexer = std::move(indexer);
    return part;
}

bool is_by_table(const BlockReader& reader) {
    const ModelConfig& config = reader.config;
    if (!config.gives("mlp_layer_types")) return reader.layer < config.whole("num_hash_layers", 3);
    const nlohmann::json& type = config.of_layer("mlp_layer_types", reader.layer);
    if (type != "hash_moe" && type != "moe")
        config.fail("mlp_layer_types", "a list of \"hash_moe\" and \"moe\"");
    return type == "hash_moe";
}

void read_experts(const BlockReader& reader, HyperBlock& block) {
    const ModelConfig& config = reader.config;
    Experts part = reader.experts(*reader.row.experts);
    part.router.bias = nullptr;  // it is for the choice alone
    const std::string scores = config.text("scoring_func", "sqrtsoftplus");
    if (scores == "sigmoid")
        part.scores = Experts::Scores::sigmoid;
    else if (scores != "sqrtsoftplus")
        config.fail("scoring_func", "\"sqrtsoftplus\" or \"sigmoid\"");
    part.normalise = true;
    part.sum_eps = 1e-20;
    part.factor = config.number("routed_scaling_factor");
    const double limit = config.number("swiglu_limit");
    if (!(limit > 0)) config.fail("swiglu_limit", "a number above 0");
    part.expert = [inner = part.expert, limit](std::size_t expert) {
        FeedForward own = inner(expert);
        own.limit = limit;
        return own;
    };
    part.shared = reader.feed_forward("ffn.shared_experts.w1", "ffn.shared_experts.w3",
                                      "ffn.shared_experts.w2");
    part.shared->limit = limit;
    const std::string bias = reader.full("ffn.gate.bias");
    if (is_by_table(reader)) {
        block.experts_of_ids = reader.tensors.get(reader.full("ffn.gate.tid2eid"));
        const std::vector<std::size_t>& shape = block.experts_of_ids->shape();
        if (shape.size() != 2 || shape[1] != part.chosen)
            config.fail("num_experts_per_tok", "the number of columns of tid2eid");
        reader.tensors.pass(bias);
    } else {
        part.choice_bias = elements_of(reader.tensors.get(bias, {part.count}));
    }
    block.ffn = std::move(part);
}

/// The connection of tensors `name` + fn, base and scale, with `outputs` rows.
template <class Get>
HyperConnection connection(const ModelConfig& config, const Get& get, std::size_t outputs,
                           std::size_t scales) {
    HyperConnection part;
    part.streams = config.whole("hc_mult");
    part.iterations = config.whole("hc_sinkhorn_iters");
    if (part.iterations > 1000) config.fail("hc_sinkhorn_iters", "at most 1000");
    part.eps = config.number("hc_eps");
    part.norm_eps = config.number("rms_norm_eps");
    part.map.d_in = part.streams * config.whole("hidden_size");
    part.map.d_out = outputs;
    part.map.weight = get("fn", std::vector{outputs, part.map.d_in});
    part.base = elements_of(get("base", std::vector{outputs}));
    part.scale = elements_of(get("scale", std::vector{scales}));
    return part;
}

TransformerBlock make_block(BlockReader& reader) {
    const ModelConfig& config = reader.config;
    config.pass_known();
    HyperBlock part;
    const std::size_t n = config.whole("hc_mult");
    for (const bool is_ffn : {false, true}) {
        const std::string start = is_ffn ? "hc_ffn_" : "hc_attn_";
        const auto get = [&](const char* name, const std::vector<std::size_t>& shape) {
            return reader.tensor(start + name, shape);
        };
        (is_ffn ? part.ffn_streams : part.attention_streams) =
            connection(config, get, 2 * n + n * n, 3);
    }
    part.attention_norm = reader.norm("attn_norm");
    part.ffn_norm = reader.norm("ffn_norm");
    part.attention = read_attention(reader);
    read_experts(reader, part);
    TransformerBlock block;
    block.whole = std::move(part);
    return block;
}

void adjust_deepseek4(ModelReader& reader) {
    const std::size_t n = reader.config.positive("hc_mult");
    const auto get = [&](const char* name, const std::vector<std::size_t>& shape) {
        const bool is_module = reader.tensors.has("hc_head.hc_fn");
        return reader.tensors.get((is_module ? "hc_head.hc_" : "hc_head_") + std::string(name),
                                  shape);
    };
    reader.spec.embedding.last = CopiedStreams{n};
    reader.spec.before_norm = SumOfStreams{connection(reader.config, get, n, 1)};
    reader.spec.shows_tokens_first = true;
}

constexpr RowFunction functions[] = {NAMED(make_attention),
                                     NAMED(check_deepseek2),
                                     NAMED(adjust_deepseek2),
                                     NAMED(make_mistral4_attention),
                                     NAMED(make_minicpm3_attention),
                                     NAMED(adjust_minicpm3),
                                     NAMED(make_deepseek2_attention),
                                     NAMED(make_deepseek32_attention),
                                     NAMED(make_glm_attention),
                                     NAMED(attention_type),
                                     NAMED(make_block),
                                     NAMED(adjust_deepseek4)};

}  // namespace
}  // namespace attn::io::rows_latent

constinit const attn::io::RowFunctions attn::io::latent_functions = rows_latent::functions;
