#include "io/transformer/model_config.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/did_you_mean.hpp"
#include "core/plan/settings.hpp"
#include "io/file/source.hpp"

namespace attn::io {

using nlohmann::json;

std::size_t length_of_angles(const ModelConfig& config, std::size_t tokens) {
    const json all = config.rope();
    std::size_t length = 0;
    const auto add = [&](const json& settings) {
        const json type = settings.value("rope_type", json()),
                   original = settings.value("original_max_position_embeddings", json());
        if (type == "dynamic")
            length = std::max({length, tokens, config.whole("max_position_embeddings")});
        const bool is_long = type == "longrope" || type == "su" || type == "yarn";
        if (is_long && static_cast<double>(tokens) >
                           (original.is_number() ? original.get<double>()
                                                 : config.number("max_position_embeddings")))
            length = std::max(length, std::size_t{1});
    };
    add(all);
    for (const json& of_type : all)  // one for each type of layer
        if (of_type.is_object()) add(of_type);
    return length;
}

std::string read_rope_scaling(const json& given, bool is_model, RopeScaling& to) {
    constexpr const char* original = "original_max_position_embeddings";
    json settings = given;
    if (given.is_array()) {
        constexpr const char* keys[] = {"factor", "low_freq_factor", "high_freq_factor", original};
        settings = {{"rope_type", given.size() == 1 ? "linear" : "llama3"}};
        for (std::size_t i = 0; i < given.size(); ++i) settings[keys[i]] = given[i];
    }
    const json type = settings.value("rope_type", settings.value("type", json("default")));
    if (!is_model && settings.value("type", type) != type)
        return concat("rope_type is ", shortened(type.dump()), " and type ",
                      shortened(settings["type"].dump()), "; expected one of them");
    std::string name = type.is_string() ? type.get<std::string>() : type.dump();
    name = name == "mrope" ? "default" : name == "su" ? "longrope" : name;  // older names
    to.type = find_row(rope_types, &RopeType::name, std::string_view(name));
    if (to.type == nullptr) {
        std::vector<std::string> names;
        for (const RopeType& row : rope_types) names.emplace_back(row.name);
        const std::string near = did_you_mean(name, names);
        return concat("rope_type is ", shortened(name),
                      "; expected default, linear, dynamic, yarn, longrope, llama3, proportional, "
                      "axial or divisors",
                      near.empty() ? "" : concat("; did you mean ", near, '?'));
    }
    json kept{{"rope_type", name}};
    for (const auto& [key, value] : settings.items()) {
        if (key == "rope_type" || key == "type") continue;
        if (is_model && key.starts_with("mrope_")) continue;  // the axes of a text are equal
        if (!to.reads(key)) {
            if (is_model) continue;
            if (value.is_object())
                return concat(quoted_name(key),
                              " has settings of one type of layer; expected "
                              "these settings alone");
            return concat(quoted_name(key), " has no effect with rope_type ", name,
                          "; expected no such key");
        }
        if (value.is_array() && !to.is_list(key))
            return concat(key, " is a list; expected a number");
        const bool is_switch = key == "truncate" || key == "mrope_interleaved";
        std::vector<double>& numbers = to.numbers[key];
        for (const json& number : value.is_array() ? value : json::array({value}))
            if (number.is_number() || (is_switch && number.is_boolean()))
                numbers.push_back(number.is_number() ? number.get<double>()
                                                     : double(number.get<bool>()));
            else if (!number.is_null() || key == "rope_theta" || key == "partial_rotary_factor")
                return concat(key, " is missing; expected a number for rope_type ", name);
        kept[key] = value;
    }
    // Defaults of missing numbers, as in transformers.
    const auto follow = [&](const char* key, double value) {
        std::vector<double>& numbers = to.numbers[key];
        if (numbers.empty() && std::isfinite(value)) numbers = {value};
    };
    const double most = to.number("max_position_embeddings", NAN);
    if (to.reads(original)) follow(original, most);
    if (to.is("longrope") || (to.is("yarn") && to.numbers.contains("factor")))
        follow("factor", most / to.number(original, NAN));
    to.text = kept.dump();
    return {};
}

Rotation rotation_of(const ModelConfig& config, const json& settings, std::size_t width, Rope pairs,
                     std::size_t tokens) {
    json completed = settings;
    if (const json& most = config.at("max_position_embeddings"); !most.is_null())
        completed["max_position_embeddings"] = most;
    if (settings.value("rope_type", json()) == "yarn")
        completed["truncate"] = config.rope().value("truncate", json(true));
    const auto check = [&](const std::string& problem) {
        if (!problem.empty())
            throw Error(
                ErrorKind::input, config.location(),
                config.gives("rope_scaling") ? "rope_scaling: " : "rope_parameters: ", problem);
    };
    RopeScaling scaling;
    check(read_rope_scaling(completed, true, scaling));
    scaling.tokens = static_cast<double>(tokens);
    const std::string type(scaling.type->name);
    double base = scaling.number("rope_theta", default_rope_base),
           part = scaling.number("partial_rotary_factor", 1);
    if (!(base > 0) || !(part > 0) || part > 1)
        throw Error(ErrorKind::input, config.location(), "rope_theta ", json(base).dump(),
                    " and partial_rotary_factor ", json(part).dump(),
                    "; expected rope_theta above 0 and partial_rotary_factor of at most 1");
    const bool is_proportional = type == "proportional", is_default = type == "default";
    if (is_default && !config.turns_part()) part = 1;
    if (part < 1 && !config.turns_part() && !is_proportional && type != "divisors")
        throw Error(ErrorKind::input, config.location(), "partial_rotary_factor is ",
                    json(part).dump(), " and rope_type is ", shortened(type), ", which model_type ",
                    config.type(),
                    " does not combine; expected partial_rotary_factor 1, or no such key");
    auto dims =
        is_proportional ? width : static_cast<std::size_t>(static_cast<double>(width) * part);
    const bool is_odd = dims % 2 != 0;
    // Of one column the classes that do not round up make a head of another width.
    if (is_odd && (dims == width || dims == 1 || type == "yarn" || type == "dynamic"))
        throw Error(ErrorKind::input, config.location(),
                    "the rotary embedding has an odd number of columns, ", dims,
                    " (partial_rotary_factor ", json(part).dump(), "); expected an even number");
    if (is_odd) {  // one column more, with the angles base^(-2i / dims)
        base = std::pow(base, static_cast<double>(dims + 1) / static_cast<double>(dims));
        ++dims;
    }
    RopeSettings made{pairs, base, dims};
    if (!is_default) made.scaling = std::make_shared<const RopeScaling>(std::move(scaling));
    check(made.problem());
    RopeAngles angles = made.angles();
    return {made, std::move(angles.frequencies), angles.factor};
}

}  // namespace attn::io
