// Reads rows of families.ndjson, one per line, when they are asked for. A row has the fields of its
// base, except those that it gives itself. A row whose name has several words is only a base for
// others. `note` is a comment.
#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "io/model/row_reader.hpp"
#include "io/read/json_document.hpp"
#include "io/transformer/family_row.hpp"
#include "io/transformer/model_config.hpp"

namespace attn::io {

extern const std::string_view families_text;  // families.ndjson

template <>
constexpr std::string_view value_names<BlockOrder> = "sequential parallel";
template <>
constexpr std::string_view value_names<Rotary> = "none half interleaved";
template <>
constexpr std::string_view value_names<Windowed> = "none all qwen alternating pattern";
template <>
constexpr std::string_view value_names<FeedForward::Joined> = "no gate_first up_first interleaved";
template <>
constexpr std::string_view value_names<Experts::Scores> =
    "softmax sigmoid sqrt_softplus softmax_of_chosen one_by_one";

namespace {

using nlohmann::json;

constexpr const RowFunctions* all_functions[] = {
    &delta_functions,  &encoder_functions, &encoder_decoder_functions, &gemma_functions,
    &gpt_functions,    &hybrid_functions,  &latent_functions,          &llama_functions,
    &shared_functions, &vision_functions};

constexpr std::string_view row_start = "{\"name\": \"";

std::string_view name_in(std::string_view line) {
    line.remove_prefix(row_start.size());
    return line.substr(0, line.find('"'));
}

class FamilyTable : public RowReader<FamilyTable> {
public:
    using RowReader::read;

    /// The row of this name, or null. It stays where it is.
    const FamilyRow* find(std::string_view name) {
        const std::lock_guard lock(mutex_);
        return line_of(name).empty() ? nullptr : &row_of(name);
    }

    /// `row` is one of the table, to whose texts the changed one refers.
    FamilyRow changed(const FamilyRow& row, const ModelConfig& config) {
        const std::lock_guard lock(mutex_);
        FamilyRow to = row;
        for (const auto& [key, fields] : row.when.items())
            if (config.flag(key)) read_row(fields, to);
        for (const auto& [key, fields] : row.unless.items())
            if (!config.flag(key, true)) read_row(fields, to);
        if (row.adjust_row != nullptr) row.adjust_row(config, to);
        return to;
    }

    /// Query, key, value and output, or joined queries, keys and values, and the output.
    void read(const json& value, ProjectionModules& member) {
        const std::vector<std::string_view> names = split_text(text_in(value), ' ');
        member = {.query = names.front(), .out = names.back()};
        if (names.size() == 4) member = {names[0], names[1], names[2], names[3]};
    }
    /// Gate, up and down, or up and down.
    void read(const json& value, FeedForwardModules& member) {
        const std::vector<std::string_view> names = split_text(text_in(value), ' ');
        member = {{}, names.front(), names.back()};
        if (names.size() == 3) member = {names[0], names[1], names[2]};
    }
    /// Changes of the base's names of experts, or of those of another row.
    void read(const json& value, std::optional<ExpertNames>& member) {
        if (value.is_null()) return member.reset();
        if (value.contains("base")) member = row_of(text_in(value["base"])).experts;
        if (!member) member.emplace();
        read_experts(value, *member);
    }
    void read(const json& value, const FamilyRow*& member) { member = &row_of(text_in(value)); }
    template <class Result, class... Arguments>
    void read(const json& value, Result (*&member)(Arguments...)) {
        member = nullptr;
        if (value.is_null()) return;
        for (const RowFunctions* const group : all_functions)
            for (const RowFunction& one : *group)
                if (one.name == text_in(value))
                    member = std::get<Result (*)(Arguments...)>(one.function);
        if (member == nullptr) refuse_unknown("function " + value.dump());
    }

private:
    void read_row(const json& members, FamilyRow& to) {
        read_members(
            members, "name base note", FIELD(part), FIELD(prefix), FIELD(layer), FIELD(ids),
            FIELD(positions), FIELD(segments), FIELD(embedding_norm), FIELD(embedding_projection),
            FIELD(final_norm), FIELD(head), FIELD(eps), FIELD(attention_norm),
            FIELD(attention_post_norm), FIELD(attention_sum_norm), FIELD(ffn_norm),
            FIELD(ffn_post_norm), FIELD(ffn_sum_norm), FIELD(query_norm), FIELD(key_norm),
            FIELD(activation), FIELD(activation_name), FIELD(passed), FIELD(required), FIELD(cross),
            FIELD(cross_norm), FIELD(cross_post_norm), FIELD(cross_sum_norm), FIELD(layers_key),
            FIELD(heads_key), FIELD(kv_heads_key), FIELD(vocabulary_key), FIELD(positions_key),
            FIELD(inner_key), FIELD(always_ties), FIELD(rms), FIELD(norm_plus_one),
            FIELD(norm_has_weight), FIELD(ffn_shares_norm), FIELD(in_out), FIELD(norms_whole),
            FIELD(norms_after_rotation), FIELD(causal), FIELD(order), FIELD(joined), FIELD(rotary),
            FIELD(windowed), FIELD(ffn_joined), FIELD(layer_types), FIELD(ignored), FIELD(inputs),
            FIELD(other_ids), FIELD(other_prefixes), FIELD(adjust_model), FIELD(adjust),
            FIELD(make_block), FIELD(has_experts), FIELD(layer_rule), FIELD(layer_name),
            FIELD(adjust_row), FIELD(kv_heads), FIELD(inner_width), FIELD(make_mixer),
            FIELD(make_block_ffn), FIELD(attention), FIELD(ffn), FIELD(experts),
            FIELD(other_experts), FIELD(eps_value), FIELD(window_pattern), FIELD(decoder),
            FIELD(other_names), FIELD(when), FIELD(unless));
    }

    void read_experts(const json& members, ExpertNames& to) {
        read_members(members, "base", FIELD(module), FIELD(router), FIELD(stacked_gate_up),
                     FIELD(stacked_down), FIELD(shared), FIELD(shared_gate), FIELD(count),
                     FIELD(chosen), FIELD(normalise_key), FIELD(shared_count), FIELD(choice_bias),
                     FIELD(factor), FIELD(has_letters), FIELD(stacked_in_out), FIELD(normalise),
                     FIELD(stacked_by_shape), FIELD(stacked_joined), FIELD(scores), FIELD(sum_eps),
                     FIELD(least_in_group));
    }

    static std::string_view line_of(std::string_view name) {
        for (const std::string_view line : lines_of(families_text))
            if (name_in(line) == name) return line;
        return {};
    }

    const FamilyRow& row_of(std::string_view name) {
        if (const auto read = rows_.find(name); read != rows_.end()) return read->second;
        const std::string_view line = line_of(name);
        if (line.empty()) refuse_unknown("row " + std::string(name));
        const json& members = texts_.emplace_back(parse_own(line));
        FamilyRow row = members.contains("base") ? row_of(text_in(members["base"])) : FamilyRow{};
        row.type = name_in(line).substr(0, name_in(line).find(' '));
        read_row(members, row);
        return rows_.emplace(name_in(line), std::move(row)).first->second;
    }

    std::mutex mutex_;
    std::deque<json> texts_;  // to which rows refer
    std::map<std::string_view, FamilyRow> rows_;
};

FamilyTable& table() {
    static FamilyTable all;
    return all;
}

bool is_type(std::string_view name) {
    return name.find(' ') == std::string_view::npos;
}

}  // namespace

FamilyRow row_for(const FamilyRow& row, const ModelConfig& config) {
    return table().changed(row, config);
}

const FamilyRow* find_family_row(std::string_view model_type) {
    return is_type(model_type) ? table().find(model_type) : nullptr;
}

std::vector<std::string_view> family_types() {
    std::vector<std::string_view> types;
    for (const std::string_view line : lines_of(families_text))
        if (is_type(name_in(line))) types.push_back(name_in(line));
    std::ranges::sort(types);
    return types;
}

}  // namespace attn::io
