// Reads families.json. A row has the fields of its base, except those that it gives itself; it
// comes after the rows that it names. A name of several words is of a row that only others use. A
// note is for readers of the file.
#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "io/read/json_document.hpp"
#include "io/text/text.hpp"
#include "io/transformer/family_row.hpp"

namespace attn::io {

extern const std::string_view families_text;  // families.json

namespace {

using nlohmann::json;
using Rows = std::map<std::string_view, FamilyRow>;

constexpr const RowFunctions* all_functions[] = {
    &deepseek4_functions,  &delta_functions, &encoder_functions, &encoder_decoder_functions,
    &gemma_functions,      &gpt_functions,   &hybrid_functions,  &latent_functions,
    &layer_norm_functions, &llama_functions, &shared_functions,  &vision_functions};

// The names of an enumeration's values, in their order.
std::string_view value_names(BlockOrder /*order*/) {
    return "sequential parallel";
}
std::string_view value_names(JoinedHeads /*heads*/) {
    return "separate parts groups blocks";
}
std::string_view value_names(Rotary /*rotary*/) {
    return "none half interleaved";
}
std::string_view value_names(Windowed /*windowed*/) {
    return "none all qwen alternating pattern";
}
std::string_view value_names(FeedForward::Joined /*joined*/) {
    return "no gate_first up_first interleaved";
}
std::string_view value_names(Experts::Scores /*scores*/) {
    return "softmax sigmoid sqrt_softplus softmax_of_chosen one_by_one";
}

[[noreturn]] void refuse_unknown(const std::string& found) {
    throw std::logic_error("families.json has an unknown " + found);
}

std::string_view text_in(const json& value) {
    return value.get_ref<const std::string&>();
}

class TableReader {
public:
    Rows read(const json& table) {
        for (const json& members : table) {
            const std::string_view name = text_in(members["name"]);
            FamilyRow row = members.contains("base") ? row_of(members["base"]) : FamilyRow{};
            row.type = name.substr(0, name.find(' '));
            read_row(members, row);
            rows_.emplace(name, std::move(row));
        }
        return std::move(rows_);
    }

private:
    void read_row(const json& members, FamilyRow& to) const {
        using Row = FamilyRow;
        read_members(
            members, to, "part", &Row::part, "prefix", &Row::prefix, "layer", &Row::layer, "ids",
            &Row::ids, "positions", &Row::positions, "segments", &Row::segments, "embedding_norm",
            &Row::embedding_norm, "embedding_projection", &Row::embedding_projection, "final_norm",
            &Row::final_norm, "head", &Row::head, "eps", &Row::eps, "attention_norm",
            &Row::attention_norm, "attention_post_norm", &Row::attention_post_norm,
            "attention_sum_norm", &Row::attention_sum_norm, "ffn_norm", &Row::ffn_norm,
            "ffn_post_norm", &Row::ffn_post_norm, "ffn_sum_norm", &Row::ffn_sum_norm, "query_norm",
            &Row::query_norm, "key_norm", &Row::key_norm, "activation", &Row::activation,
            "activation_name", &Row::activation_name, "passed", &Row::passed, "required",
            &Row::required, "cross", &Row::cross, "cross_norm", &Row::cross_norm, "cross_post_norm",
            &Row::cross_post_norm, "cross_sum_norm", &Row::cross_sum_norm, "layers_key",
            &Row::layers_key, "heads_key", &Row::heads_key, "kv_heads_key", &Row::kv_heads_key,
            "vocabulary_key", &Row::vocabulary_key, "positions_key", &Row::positions_key,
            "inner_key", &Row::inner_key, "always_ties", &Row::always_ties, "rms", &Row::rms,
            "norm_plus_one", &Row::norm_plus_one, "norm_has_weight", &Row::norm_has_weight,
            "ffn_shares_norm", &Row::ffn_shares_norm, "in_out", &Row::in_out, "norms_whole",
            &Row::norms_whole, "norms_after_rotation", &Row::norms_after_rotation, "causal",
            &Row::causal, "order", &Row::order, "joined", &Row::joined, "rotary", &Row::rotary,
            "windowed", &Row::windowed, "ffn_joined", &Row::ffn_joined, "layer_types",
            &Row::layer_types, "ignored", &Row::ignored, "inputs", &Row::inputs, "other_ids",
            &Row::other_ids, "other_prefixes", &Row::other_prefixes, "adjust_model",
            &Row::adjust_model, "adjust", &Row::adjust, "make_block", &Row::make_block,
            "has_experts", &Row::has_experts, "layer_rule", &Row::layer_rule, "layer_name",
            &Row::layer_name, "adjust_row", &Row::adjust_row, "kv_heads", &Row::kv_heads,
            "inner_width", &Row::inner_width, "make_mixer", &Row::make_mixer, "make_block_ffn",
            &Row::make_block_ffn, "attention", &Row::attention, "ffn", &Row::ffn, "experts",
            &Row::experts, "other_experts", &Row::other_experts, "eps_value", &Row::eps_value,
            "window_pattern", &Row::window_pattern, "decoder", &Row::decoder, "other_names",
            &Row::other_names);
    }

    void read_experts(const json& members, ExpertNames& to) const {
        using Names = ExpertNames;
        read_members(members, to, "module", &Names::module, "router", &Names::router,
                     "stacked_gate_up", &Names::stacked_gate_up, "stacked_down",
                     &Names::stacked_down, "shared", &Names::shared, "shared_gate",
                     &Names::shared_gate, "count", &Names::count, "chosen", &Names::chosen,
                     "normalise_key", &Names::normalise_key, "shared_count", &Names::shared_count,
                     "choice_bias", &Names::choice_bias, "factor", &Names::factor, "has_letters",
                     &Names::has_letters, "stacked_in_out", &Names::stacked_in_out, "normalise",
                     &Names::normalise, "stacked_by_shape", &Names::stacked_by_shape,
                     "stacked_joined", &Names::stacked_joined, "scores", &Names::scores, "sum_eps",
                     &Names::sum_eps, "least_in_group", &Names::least_in_group);
    }

    const FamilyRow& row_of(const json& name) const {
        const auto found = rows_.find(text_in(name));
        if (found == rows_.end()) refuse_unknown("row " + name.dump());
        return found->second;
    }

    /// Reads members by their keys. Each key is before its member.
    template <class To, class... Items>
    void read_members(const json& from, To& to, const Items&... items) const {
        const std::tuple<const Items&...> all(items...);
        for (const auto& member : from.items()) {
            const std::string_view key = member.key();
            const bool is_known = [&]<std::size_t... i>(std::index_sequence<i...>) {
                return ((key == std::get<2 * i>(all) &&
                         (read(member.value(), to.*std::get<2 * i + 1>(all)), true)) ||
                        ...);
            }
            (std::make_index_sequence<sizeof...(items) / 2>());
            if (!is_known && key != "name" && key != "base" && key != "note")
                refuse_unknown("field " + member.key());
        }
    }

    void read(const json& value, std::string_view& member) const { member = text_in(value); }
    void read(const json& value, json& member) const { member = value; }
    void read(const json& value, std::vector<std::string_view>& member) const {
        member = split_text(text_in(value), ' ');
    }
    /// Query, key, value and output, or joined queries, keys and values, and the output.
    void read(const json& value, ProjectionModules& member) const {
        const std::vector<std::string_view> names = split_text(text_in(value), ' ');
        member = {.query = names.front(), .out = names.back()};
        if (names.size() == 4) member = {names[0], names[1], names[2], names[3]};
    }
    /// Gate, up and down, or up and down.
    void read(const json& value, FeedForwardModules& member) const {
        const std::vector<std::string_view> names = split_text(text_in(value), ' ');
        member = {{}, names.front(), names.back()};
        if (names.size() == 3) member = {names[0], names[1], names[2]};
    }
    /// Changes of the base's names of experts, or of those of another row.
    void read(const json& value, std::optional<ExpertNames>& member) const {
        if (value.is_null()) return member.reset();
        if (value.contains("base")) member = row_of(value["base"]).experts;
        if (!member) member.emplace();
        read_experts(value, *member);
    }
    void read(const json& value, const FamilyRow*& member) const { member = &row_of(value); }
    template <class Value>
    void read(const json& value, Value& member) const {
        if constexpr (std::is_enum_v<Value>) {
            const std::vector<std::string_view> names = split_text(value_names(member), ' ');
            const auto found = std::ranges::find(names, text_in(value));
            if (found == names.end()) refuse_unknown("value " + value.dump());
            member = static_cast<Value>(found - names.begin());
        } else {
            member = value.get<Value>();
        }
    }
    template <class Result, class... Arguments>
    void read(const json& value, Result (*&member)(Arguments...)) const {
        member = nullptr;
        if (value.is_null()) return;
        for (const RowFunctions* const group : all_functions)
            for (const RowFunction& one : *group)
                if (one.name == text_in(value))
                    member = std::get<Result (*)(Arguments...)>(one.function);
        if (member == nullptr) refuse_unknown("function " + value.dump());
    }

    Rows rows_;
};

const Rows& family_rows() {
    static const json table = parse_own(families_text);  // rows refer to its texts
    static const Rows rows = TableReader().read(table);
    return rows;
}

bool is_type(std::string_view name) {
    return name.find(' ') == std::string_view::npos;
}

}  // namespace

const FamilyRow* find_family_row(std::string_view model_type) {
    const auto found = family_rows().find(model_type);
    return found != family_rows().end() && is_type(model_type) ? &found->second : nullptr;
}

std::vector<std::string_view> family_types() {
    std::vector<std::string_view> types;
    for (const auto& [name, row] : family_rows())
        if (is_type(name)) types.push_back(name);
    return types;
}

}  // namespace attn::io
