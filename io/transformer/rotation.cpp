#include "io/transformer/model_config.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/plan/settings.hpp"
#include "io/file/source.hpp"

namespace attn::io {
namespace {

using nlohmann::json;

class RopeReader {
public:
    RopeReader(const ModelConfig& config, const json& rope) : config_(config), rope_(rope) {}

    bool contains(const char* key) const { return rope_.contains(key); }
    bool gives(const char* key) const { return rope_.contains(key) && !rope_[key].is_null(); }
    double number(const char* key) const {
        if (!rope_.contains(key) || !rope_[key].is_number())
            throw Error(ErrorKind::input, config_.location(), name(), " has no number ", key,
                        "; expected one for rope_type ",
                        shortened(rope_.value("rope_type", json("default")).dump()));
        return rope_[key].get<double>();
    }
    double number(const char* key, double otherwise) const {
        return rope_.contains(key) ? number(key) : otherwise;
    }
    double number_or_null(const char* key, double otherwise) const {
        return gives(key) ? number(key) : otherwise;
    }
    std::string type() const {
        if (!rope_.contains("rope_type")) return "default";
        if (!rope_["rope_type"].is_string())
            throw Error(ErrorKind::input, config_.location(),
                        "rope_type is not a string; expected one, such as \"default\"");
        return rope_["rope_type"];
    }
    std::vector<double> numbers(const char* key, std::size_t count) const {
        std::vector<double> list;
        if (gives(key) && rope_[key].is_array())
            for (const json& value : rope_[key])
                if (value.is_number()) list.push_back(value.get<double>());
        if (list.size() != count)
            throw Error(ErrorKind::input, config_.location(), name(), " has no list ", key, " of ",
                        count, " numbers; expected one");
        return list;
    }

private:
    /// The key that gives the settings.
    std::string name() const {
        return config_.gives("rope_scaling") ? "rope_scaling" : "rope_parameters";
    }

    const ModelConfig& config_;
    const json& rope_;
};

/// The length that the model was trained with before its angles were scaled.
double original_length(const ModelConfig& config, const RopeReader& rope) {
    constexpr const char* key = "original_max_position_embeddings";
    return rope.contains(key) ? rope.number(key) : config.number("max_position_embeddings");
}

/// Peng et al. 2023, arXiv 2309.00071.
void apply_yarn(const ModelConfig& config, const RopeReader& rope, double base, std::size_t dims,
                Rotation& rotation) {
    const double original = original_length(config, rope);
    const double ratio = config.number("max_position_embeddings") / original,
                 factor = rope.contains("factor") ? rope.number_or_null("factor", ratio)
                                                  : rope.number("factor");
    const double length = static_cast<double>(dims);
    const auto correction = [&](double turns) {
        return length * std::log(original / (turns * 2 * std::numbers::pi)) / (2 * std::log(base));
    };
    // 0 is a missing number here.
    const double fast = rope.number_or_null("beta_fast", 0),
                 slow = rope.number_or_null("beta_slow", 0);
    double low = correction(fast == 0 ? 32 : fast), high = correction(slow == 0 ? 1 : slow);
    const json settings = config.rope(), truncate = settings.value("truncate", json(true));
    if (!truncate.is_boolean() && !truncate.is_null())
        throw Error(ErrorKind::input, config.location(), "truncate in the rotary settings is ",
                    shortened(truncate.dump()), "; expected true or false");
    if (truncate == json(true)) {
        low = std::floor(low);
        high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, length - 1);
    if (low == high) high += 0.001;
    for (std::size_t i = 0; i < rotation.frequencies.size(); ++i) {
        const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
        double& frequency = rotation.frequencies[i];
        frequency = frequency / factor * ramp + frequency * (1 - ramp);
    }
    const double mscale = rope.number_or_null("mscale", 0),
                 of_all = rope.number_or_null("mscale_all_dim", 0);
    if (rope.gives("attention_factor"))
        rotation.factor = rope.number("attention_factor");
    else if (mscale != 0 && of_all != 0)
        rotation.factor = yarn_factor(factor, mscale) / yarn_factor(factor, of_all);
    else
        rotation.factor = yarn_factor(factor);
}

void apply_longrope(const ModelConfig& config, const RopeReader& rope, std::size_t tokens,
                    Rotation& rotation) {
    const double original = original_length(config, rope);
    const bool is_long = static_cast<double>(tokens) > original;
    const std::vector<double> factors =
        rope.numbers(is_long ? "long_factor" : "short_factor", rotation.frequencies.size());
    for (std::size_t i = 0; i < factors.size(); ++i) rotation.frequencies[i] /= factors[i];
    const double factor =
        rope.number_or_null("factor", config.number("max_position_embeddings") / original);
    if (rope.gives("attention_factor"))
        rotation.factor = rope.number("attention_factor");
    else if (factor > 1)
        rotation.factor = std::sqrt(1 + std::log(factor) / std::log(original));
}

}  // namespace

std::size_t length_of_angles(const ModelConfig& config, std::size_t tokens) {
    const json all = config.rope();
    std::size_t length = 0;
    const auto add = [&](const json& settings) {
        const RopeReader rope(config, settings);
        const json type = settings.value("rope_type", json());
        if (type == "dynamic")
            length = std::max({length, tokens, config.whole("max_position_embeddings")});
        const bool is_long = type == "longrope" || type == "su" || type == "yarn";
        if (is_long && static_cast<double>(tokens) > original_length(config, rope))
            length = std::max(length, std::size_t{1});
    };
    add(all);
    for (const json& of_type : all)  // one for each type of layer
        if (of_type.is_object()) add(of_type);
    return length;
}

double yarn_factor(double factor, double mscale) {
    return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

Rotation rotation_of(const ModelConfig& config, const json& settings, std::size_t width, Rope pairs,
                     std::size_t tokens) {
    const RopeReader rope(config, settings);
    const std::string type = rope.type();
    double base = rope.number("rope_theta", default_rope_base);
    double part = rope.number("partial_rotary_factor", 1);
    if (!(base > 0) || !(part > 0) || part > 1)
        throw Error(ErrorKind::input, config.location(), "rope_theta ", json(base).dump(),
                    " and partial_rotary_factor ", json(part).dump(),
                    "; expected rope_theta above 0 and partial_rotary_factor of at most 1");
    const bool is_proportional = type == "proportional",
               is_default = type == "default" || type == "mrope";
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
    if (type == "dynamic") {
        const double original = config.number("max_position_embeddings"),
                     factor = rope.number("factor"), n = static_cast<double>(dims);
        const double length = std::max(original, static_cast<double>(tokens));
        base *= std::pow(factor * length / original - (factor - 1), n / (n - 2));
    }
    if (is_odd) {  // one column more, with the angles base^(-2i / dims)
        base = std::pow(base, static_cast<double>(dims + 1) / static_cast<double>(dims));
        ++dims;
    }
    std::vector<double> scaling;
    if (type == "linear") scaling = {rope.number("factor")};
    if (type == "llama3")
        scaling = {rope.number("factor"), rope.number("low_freq_factor"),
                   rope.number("high_freq_factor"), original_length(config, rope)};
    if (type == "llama3" && !(scaling[1] > 0 && scaling[2] > 0))
        throw Error(ErrorKind::input, config.location(), "low_freq_factor is ",
                    json(scaling[1]).dump(), " and high_freq_factor is ", json(scaling[2]).dump(),
                    "; expected numbers above 0");
    const RopeSettings plain{pairs, base, dims, {}};
    Rotation rotation{{pairs, base, dims, scaling}, {}};
    rotation.frequencies = rotation.rope.frequencies();
    if (is_proportional) {
        const auto turned = static_cast<std::size_t>(static_cast<double>(width) * part / 2);
        for (std::size_t i = turned; i < rotation.frequencies.size(); ++i)
            rotation.frequencies[i] = 0;
        if (rope.gives("factor"))
            for (double& frequency : rotation.frequencies) frequency /= rope.number("factor");
    }
    if (type == "divisors") {  // of the inverse frequencies, as GGUF files have them
        const std::vector<double> divisors = rope.numbers("divisors", rotation.frequencies.size());
        for (std::size_t i = 0; i < divisors.size(); ++i) rotation.frequencies[i] /= divisors[i];
    } else if (type == "yarn")
        apply_yarn(config, rope, base, dims, rotation);
    else if (type == "longrope" || type == "su")
        apply_longrope(config, rope, tokens, rotation);
    else if (!is_default && type != "linear" && type != "dynamic" && type != "llama3" &&
             !is_proportional)
        throw Error(ErrorKind::input, config.location(), "rope_type is ", shortened(type),
                    "; expected default, linear, dynamic, yarn, longrope, llama3 or "
                    "proportional");
    bool is_finite = std::isfinite(rotation.factor);
    for (const double frequency : rotation.frequencies) is_finite &= std::isfinite(frequency);
    if (!is_finite)
        throw Error(ErrorKind::input, config.location(), "the rotary settings ",
                    shortened(settings.dump(), 120),
                    " give angles that are not finite; expected positive factors and lengths");
    if (rotation.frequencies == plain.frequencies()) rotation.rope = plain;  // without effect
    return rotation;
}

}  // namespace attn::io
