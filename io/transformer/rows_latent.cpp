// DeepSeek and related models: latent attention, and experts behind a router with groups.
#include <algorithm>
#include <cmath>

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

constexpr RowFunction functions[] = {
    NAMED(make_attention),           NAMED(check_deepseek2),           NAMED(adjust_deepseek2),
    NAMED(make_mistral4_attention),  NAMED(make_minicpm3_attention),   NAMED(adjust_minicpm3),
    NAMED(make_deepseek2_attention), NAMED(make_deepseek32_attention), NAMED(make_glm_attention)};

}  // namespace
}  // namespace attn::io::rows_latent

constinit const attn::io::RowFunctions attn::io::latent_functions = rows_latent::functions;
