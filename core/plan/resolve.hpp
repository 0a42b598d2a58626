// The parts of planning: sizes and widths of one question, and errors at what is wrong with it.
#pragma once

#include "core/base/error.hpp"
#include "core/plan/plan.hpp"

namespace attn {

/// "what was found; what was expected", of kind usage.
template <class... Parts>
[[noreturn]] void refuse(std::string_view key, Parts... message) {
    throw SettingError(ErrorKind::usage, std::string(key), message...);
}

/// Whether a layer's result has a heads axis: multihead always, cross if heads are given.
bool has_heads_axis(const Settings& settings);

/// Fills in the plan's sizes and visible axes, and checks that the operands match each other and
/// the settings, whose widths and heads must be resolved. Errors: SettingError of kind shape or
/// usage.
void read_sizes(Plan& plan, const Settings& settings, const OperandShapes& operands);

/// Sets the order of axes that the answer has. Errors: kind usage where the question has none.
void resolve_order(Plan& plan, const Settings& s, bool is_shown);

/// Gives a setting of `s` the value that follows from the others, unless it is given. If it is
/// given and has that value, sets s.may_follow.
template <class T>
void follow(Settings& s, std::optional<T>& setting, std::type_identity_t<T> value) {
    if (!setting)
        setting = value;
    else if (*setting == value)
        s.may_follow = true;
}

/// Fills in the widths, heads and biases of a mode with projections, from the settings, the input
/// and given parameters. Errors: SettingError of kind usage or shape.
void resolve_widths(Settings& settings, const OperandShapes& operands);

/// Its part for given parameters (given_weights.cpp): fills in the settings that they fix, for an
/// input of d_in columns, keys made from d_context and values from d_value_input. Errors:
/// SettingError of kind usage or shape, if they do not match each other, the input, or a given
/// setting.
void resolve_given_weights(Settings& settings, const WeightShapes& weights, std::size_t d_in,
                           std::size_t d_context, std::size_t d_value_input);

/// Fills in and checks the settings of scores, heads and the rotation. The plan has its sizes.
/// Errors: SettingError of kind usage.
void resolve_scores(Settings& s, const Plan& plan);
/// The rotary embedding of settings that are filled in, for the length of the sequence.
RopeSettings rope_settings(const Settings& s, const Plan& plan);

/// Checks what the question draws. Errors: SettingError of kind usage.
void check_draws(const Plan& plan);

/// The settings of dropout's own stream, and of a GPU's, where one is drawn from. Errors:
/// SettingError of kind usage for those that have no effect.
void resolve_streams(Settings& s);

/// Sets the plan's positions of tokens.
void read_positions(Plan& plan, const Settings& s);
/// Reads the settings that are formulas. The plan has positions, and an offset or not yet.
void read_formulas(Settings& s, const Plan& plan);
/// Sets the plan's masks that are formulas, and checks the indices of all formulas.
void check_formulas(Plan& plan, Settings& s);

}  // namespace attn
