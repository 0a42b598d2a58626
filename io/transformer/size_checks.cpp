#include "io/transformer/block_reader.hpp"

#include "core/model/model.hpp"

namespace attn::io {
namespace {

using nlohmann::json;

[[noreturn]] void fail(const ModelConfig& config, std::string_view key, std::uint64_t expected,
                       const Parameter& tensor, std::size_t found, std::string_view what) {
    throw Error(ErrorKind::input, tensor->location(), found, " ", what, "; expected ", expected,
                " by ", config.name_of(key), " in ", config.location());
}

/// The key of the width inside experts.
std::string_view expert_width_key(const ModelConfig& config) {
    return config.at("moe_intermediate_size").is_null() ? "intermediate_size"
                                                        : "moe_intermediate_size";
}

/// One row for every head, or a matrix with a row for each; or one row over all heads.
void check_head_norm(const AttentionPart& part, const std::optional<NormSpec>& norm,
                     std::size_t heads) {
    const bool is_stored = norm && norm->weight != nullptr && !norm->weight->location().empty();
    if (!is_stored) return;
    const bool is_whole = part.norms_whole || norm->weight->shape().size() == 2;
    const std::size_t found = norm->weight->size(), expected = (is_whole ? heads : 1) * part.d_k;
    if (found != expected)
        throw Error(ErrorKind::input, norm->weight->location(), found, " elements; expected ",
                    expected, is_whole ? ", a norm over all heads" : ", a norm of single heads");
}

}  // namespace

void require_size(const ModelConfig& config, std::string_view key, std::size_t layer,
                  const Parameter& tensor, std::size_t found, std::string_view what) {
    if (key.empty() || tensor == nullptr || !config.gives(key)) return;
    const json& given = config.at(key);
    const json& size = given.is_array() && layer < given.size() ? given[layer] : given;
    if (!size.is_number_unsigned())
        config.fail(key, "an integer from 0, or a list of one for each layer");
    if (size != found) fail(config, key, size.get<std::uint64_t>(), tensor, found, what);
}

void check_sizes(const ModelSource& source, const ModelSpec& model) {
    const ModelConfig& config = source.config;
    const EmbeddingSpec& embedding = model.embedding;
    if (embedding.ids == nullptr) return;
    const std::size_t rows = embedding.ids->shape()[0], width = embedding.ids->shape()[1];
    require_size(config, source.row.vocabulary_key, 0, embedding.ids, rows, "rows");
    for (const char* key : {"embedding_size", "input_embedding_size", "word_embed_proj_dim"})
        require_size(config, key, 0, embedding.ids, width, "columns");
    if (embedding.projection)
        require_size(config, "hidden_size", 0, embedding.projection.weight,
                     embedding.projection.d_out, "outputs");
    else
        require_size(config, "hidden_size", 0, embedding.ids, width, "columns");
    if (const Parameter& table = embedding.positions;
        table != nullptr && table->shape().size() == 2) {
        // Rows before the first position belong to no position, unless padding has one of them.
        const std::size_t others =
            embedding.padding_id ? 0 : static_cast<std::size_t>(embedding.first_position);
        if (table->shape()[0] < others)
            throw Error(ErrorKind::input, table->location(), table->shape()[0],
                        " rows; expected more than ", others);
        require_size(config, source.row.positions_key, 0, table, table->shape()[0] - others,
                     others == 0 ? "rows" : "rows without the first " + std::to_string(others));
    }
    if (const Parameter& table = embedding.segments; table != nullptr && table->shape().size() == 2)
        require_size(config, "type_vocab_size", 0, table, table->shape()[0], "rows");
}

void check_sizes(const BlockReader& reader, const TransformerBlock& block) {
    const ModelConfig& config = reader.config;
    const auto check_width = [&](const LinearMap& map, bool is_input) {
        require_size(config, "hidden_size", reader.layer, map.weight,
                     is_input ? map.d_in : map.d_out, is_input ? "inputs" : "outputs");
    };
    if (const auto* const part = std::get_if<AttentionPart>(&block.mixer)) {
        check_head_norm(*part, part->query_norm, part->heads);
        check_head_norm(*part, part->key_norm, part->kv_heads);
        if (!part->latent) check_width(part->query, true);
        check_width(part->out, false);
    }
    const auto check_ffn = [&](const FeedForward& part) {
        check_width(part.up, true);
        check_width(part.down, false);
        const std::string_view key = reader.row.inner_key;
        if (reader.row.inner_width == nullptr)
            return require_size(config, key, reader.layer, part.down.weight, part.down.d_in,
                                "inputs");
        if (const std::size_t width = reader.row.inner_width(reader); width != part.down.d_in)
            fail(config, key, width, part.down.weight, part.down.d_in, "inputs");
    };
    if (const auto* const part = std::get_if<FeedForward>(&block.ffn)) check_ffn(*part);
    if (block.dense) check_ffn(*block.dense);
}

void check_sizes(const BlockReader& reader, const ExpertNames& names, const Experts& experts) {
    const ModelConfig& config = reader.config;
    const std::string_view inner = expert_width_key(config);
    if (experts.count != 0) {
        const LinearMap down = experts.expert(0).down;
        require_size(config, inner, reader.layer, down.weight, down.d_in, "inputs");
    }
    if (names.shared.empty()) return;
    if (experts.shared)
        require_size(config, "shared_expert_intermediate_size", reader.layer,
                     experts.shared->down.weight, experts.shared->down.d_in, "inputs");
    if (!config.gives(inner) || !config.at(inner).is_number_unsigned()) return;
    for (const char* key : {"n_shared_experts", "num_shared_experts", "moe_num_shared_experts"}) {
        if (!config.gives(key)) continue;
        const std::size_t expected = config.whole(key) * config.whole(inner);
        if (!experts.shared && expected != 0)
            config.fail(key, "0, as the file has no tensors of shared experts");
        if (experts.shared && experts.shared->down.d_in != expected)
            fail(config, std::string(key) + " times " + std::string(inner), expected,
                 experts.shared->down.weight, experts.shared->down.d_in, "inputs");
    }
}

}  // namespace attn::io
