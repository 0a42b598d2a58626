// Reads rows of families.ndjson, one per line, when they are asked for. A row has the fields of its
// base, except those that it gives itself. A row whose name has several words is only a base for
// others. `note` is a comment.
#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <mutex>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "io/read/json_document.hpp"
#include "io/text/text.hpp"
#include "io/transformer/family_row.hpp"

namespace attn::io {

extern const std::string_view families_text;  // families.ndjson

namespace {

using nlohmann::json;

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
    throw std::logic_error("families.ndjson has an unknown " + found);
}

std::string_view text_in(const json& value) {
    return value.get_ref<const std::string&>();
}

constexpr std::string_view row_start = "{\"name\": \"";

std::string_view name_in(std::string_view line) {
    line.remove_prefix(row_start.size());
    return line.substr(0, line.find('"'));
}

class FamilyTable {
public:
    /// The row of this name, or null. It stays where it is.
    const FamilyRow* find(std::string_view name) {
        const std::lock_guard lock(mutex_);
        return line_of(name).empty() ? nullptr : &row_of(name);
    }

private:
    void read_row(const json& members, FamilyRow& to) {
        read_members(
            members, Field("part", to.part), Field("prefix", to.prefix), Field("layer", to.layer),
            Field("ids", to.ids), Field("positions", to.positions), Field("segments", to.segments),
            Field("embedding_norm", to.embedding_norm),
            Field("embedding_projection", to.embedding_projection),
            Field("final_norm", to.final_norm), Field("head", to.head), Field("eps", to.eps),
            Field("attention_norm", to.attention_norm),
            Field("attention_post_norm", to.attention_post_norm),
            Field("attention_sum_norm", to.attention_sum_norm), Field("ffn_norm", to.ffn_norm),
            Field("ffn_post_norm", to.ffn_post_norm), Field("ffn_sum_norm", to.ffn_sum_norm),
            Field("query_norm", to.query_norm), Field("key_norm", to.key_norm),
            Field("activation", to.activation), Field("activation_name", to.activation_name),
            Field("passed", to.passed), Field("required", to.required), Field("cross", to.cross),
            Field("cross_norm", to.cross_norm), Field("cross_post_norm", to.cross_post_norm),
            Field("cross_sum_norm", to.cross_sum_norm), Field("layers_key", to.layers_key),
            Field("heads_key", to.heads_key), Field("kv_heads_key", to.kv_heads_key),
            Field("vocabulary_key", to.vocabulary_key), Field("positions_key", to.positions_key),
            Field("inner_key", to.inner_key), Field("always_ties", to.always_ties),
            Field("rms", to.rms), Field("norm_plus_one", to.norm_plus_one),
            Field("norm_has_weight", to.norm_has_weight),
            Field("ffn_shares_norm", to.ffn_shares_norm), Field("in_out", to.in_out),
            Field("norms_whole", to.norms_whole),
            Field("norms_after_rotation", to.norms_after_rotation), Field("causal", to.causal),
            Field("order", to.order), Field("joined", to.joined), Field("rotary", to.rotary),
            Field("windowed", to.windowed), Field("ffn_joined", to.ffn_joined),
            Field("layer_types", to.layer_types), Field("ignored", to.ignored),
            Field("inputs", to.inputs), Field("other_ids", to.other_ids),
            Field("other_prefixes", to.other_prefixes), Field("adjust_model", to.adjust_model),
            Field("adjust", to.adjust), Field("make_block", to.make_block),
            Field("has_experts", to.has_experts), Field("layer_rule", to.layer_rule),
            Field("layer_name", to.layer_name), Field("adjust_row", to.adjust_row),
            Field("kv_heads", to.kv_heads), Field("inner_width", to.inner_width),
            Field("make_mixer", to.make_mixer), Field("make_block_ffn", to.make_block_ffn),
            Field("attention", to.attention), Field("ffn", to.ffn), Field("experts", to.experts),
            Field("other_experts", to.other_experts), Field("eps_value", to.eps_value),
            Field("window_pattern", to.window_pattern), Field("decoder", to.decoder),
            Field("other_names", to.other_names));
    }

    void read_experts(const json& members, ExpertNames& to) {
        read_members(members, Field("module", to.module), Field("router", to.router),
                     Field("stacked_gate_up", to.stacked_gate_up),
                     Field("stacked_down", to.stacked_down), Field("shared", to.shared),
                     Field("shared_gate", to.shared_gate), Field("count", to.count),
                     Field("chosen", to.chosen), Field("normalise_key", to.normalise_key),
                     Field("shared_count", to.shared_count), Field("choice_bias", to.choice_bias),
                     Field("factor", to.factor), Field("has_letters", to.has_letters),
                     Field("stacked_in_out", to.stacked_in_out), Field("normalise", to.normalise),
                     Field("stacked_by_shape", to.stacked_by_shape),
                     Field("stacked_joined", to.stacked_joined), Field("scores", to.scores),
                     Field("sum_eps", to.sum_eps), Field("least_in_group", to.least_in_group));
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

    /// A member of a row, whatever its type.
    class Field {
    public:
        template <class Member>
        Field(std::string_view name, Member& member)
            : key(name), to_(&member), read_([](FamilyTable& table, const json& value, void* to) {
                  table.read(value, *static_cast<Member*>(to));
              }) {}
        void read(FamilyTable& table, const json& value) const { read_(table, value, to_); }

        const std::string_view key;

    private:
        void* const to_;
        void (*const read_)(FamilyTable&, const json&, void*);
    };

    template <class... Fields>
    void read_members(const json& from, const Fields&... all) {
        const std::array fields{all...};
        for (const auto& member : from.items()) {
            const std::string_view key = member.key();
            const auto field = std::find_if(fields.begin(), fields.end(),
                                            [&](const Field& one) { return one.key == key; });
            if (field != fields.end())
                field->read(*this, member.value());
            else if (key != "name" && key != "base" && key != "note")
                refuse_unknown("field " + member.key());
        }
    }

    void read(const json& value, std::string_view& member) { member = text_in(value); }
    void read(const json& value, json& member) { member = value; }
    void read(const json& value, std::vector<std::string_view>& member) {
        member = split_text(text_in(value), ' ');
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
    template <class Value>
    void read(const json& value, Value& member) {
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
    void read(const json& value, Result (*&member)(Arguments...)) {
        member = nullptr;
        if (value.is_null()) return;
        for (const RowFunctions* const group : all_functions)
            for (const RowFunction& one : *group)
                if (one.name == text_in(value))
                    member = std::get<Result (*)(Arguments...)>(one.function);
        if (member == nullptr) refuse_unknown("function " + value.dump());
    }

    std::mutex mutex_;
    std::deque<json> texts_;  // to which rows refer
    std::map<std::string_view, FamilyRow> rows_;
};

bool is_type(std::string_view name) {
    return name.find(' ') == std::string_view::npos;
}

}  // namespace

const FamilyRow* find_family_row(std::string_view model_type) {
    static FamilyTable table;
    return is_type(model_type) ? table.find(model_type) : nullptr;
}

std::vector<std::string_view> family_types() {
    std::vector<std::string_view> types;
    for (const std::string_view line : lines_of(families_text))
        if (is_type(name_in(line))) types.push_back(name_in(line));
    std::sort(types.begin(), types.end());
    return types;
}

}  // namespace attn::io
