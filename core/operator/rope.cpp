#include "core/operator/rope.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "core/base/error.hpp"

namespace attn {
namespace {

constexpr std::string_view original_key = "original_max_position_embeddings";

/// Of keys with a number for each pair.
bool is_of_pairs(std::string_view key) {
    return key == "short_factor" || key == "long_factor" || key == "divisors";
}

template <class Keys>
bool has(const Keys& keys, std::string_view key) {
    return std::ranges::find(keys, key) != std::end(keys);
}

void scale_llama3(const RopeScaling& s, std::vector<double>& frequencies) {
    const double factor = s.number("factor", 1), low = s.number("low_freq_factor", 1),
                 high = s.number("high_freq_factor", 4), original = s.number(original_key, 1);
    for (double& frequency : frequencies) {
        const double turns = original * frequency / (2 * std::numbers::pi),
                     slow = frequency / factor;
        const double fast_part = (turns - low) / (high - low);
        frequency = turns < low    ? slow
                    : turns > high ? frequency
                                   : (1 - fast_part) * slow + fast_part * frequency;
    }
}

void scale_yarn(const RopeScaling& s, double base, double dims, RopeAngles& angles) {
    const double factor = s.number("factor", 1), original = s.number(original_key, 1);
    const auto correction = [&](const char* key, double otherwise) {
        const double given = s.number(key, 0), turns = given == 0 ? otherwise : given;
        return dims * std::log(original / (turns * 2 * std::numbers::pi)) / (2 * std::log(base));
    };
    double low = correction("beta_fast", 32), high = correction("beta_slow", 1);
    if (const auto truncate = s.numbers.find("truncate");  // null is false
        truncate == s.numbers.end() || s.number("truncate", 0) != 0) {
        low = std::floor(low);
        high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, dims - 1);
    if (low == high) high += 0.001;
    for (std::size_t i = 0; i < angles.frequencies.size(); ++i) {
        const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
        double& frequency = angles.frequencies[i];
        frequency = frequency / factor * ramp + frequency * (1 - ramp);
    }
    const double mscale = s.number("mscale", 0), of_all = s.number("mscale_all_dim", 0);
    const bool has_both = mscale != 0 && of_all != 0;
    angles.factor = s.number(
        "attention_factor",
        has_both ? yarn_factor(factor, mscale) / yarn_factor(factor, of_all) : yarn_factor(factor));
}

}  // namespace

bool RopeScaling::reads(std::string_view key) const {
    constexpr std::string_view common[] = {"rope_theta", "partial_rotary_factor", "mrope_section",
                                           "mrope_interleaved"};
    return !key.empty() &&  // which ends the lists
           (has(type->required, key) || has(type->optional, key) || has(common, key));
}

bool RopeScaling::is_list(std::string_view key) {
    return is_of_pairs(key) || key == "mrope_section";
}

double RopeScaling::number(std::string_view key, double otherwise) const {
    const auto found = numbers.find(key);
    return found == numbers.end() || found->second.empty() ? otherwise : found->second.front();
}

std::vector<double> RopeScaling::sections(std::size_t pairs) const {
    const auto found = numbers.find("mrope_section");
    if (found != numbers.end() && !found->second.empty()) return found->second;
    return std::vector<double>(is("axial") ? 2 : 0, static_cast<double>(pairs) / 2);
}

double yarn_factor(double factor, double mscale) {
    return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

RopeAngles RopeSettings::angles(std::size_t by) const {
    const RopeScaling none, &s = scaling == nullptr ? none : *scaling;
    const double n = static_cast<double>(by == 0 ? dims : by), factor = s.number("factor", 1),
                 most = s.number("max_position_embeddings", 1);
    const double theta =
        s.is("dynamic")
            ? base * std::pow(factor * std::max(most, s.tokens) / most - (factor - 1), n / (n - 2))
            : base;
    const std::size_t count = (dims + 1) / 2;
    RopeAngles to{std::vector<double>(count), std::vector<std::size_t>(count)};
    const std::vector<double> sections = s.sections(count);
    const bool takes_turns = s.number("mrope_interleaved", 0) != 0 && !sections.empty();
    const auto turned = static_cast<std::size_t>(n * s.number("partial_rotary_factor", 1) / 2);
    for (std::size_t i = 0, axis = 0, j = 0; i < count; ++i, ++j) {
        for (; axis + 1 < sections.size() && static_cast<double>(j) >= sections[axis]; j = 0)
            ++axis;
        const double power = s.is("axial") ? -static_cast<double>(j) / sections[axis]
                                           : -2.0 * static_cast<double>(i) / n;
        const bool is_still = s.is("proportional") && i >= turned;
        to.frequencies[i] = is_still ? 0 : std::pow(theta, power);
        to.axis[i] = axis;
        if (!takes_turns) continue;
        // As in Qwen3-VL: 0, 1, 2, 0, 1, 2, ..., and 0 for the rest.
        const std::size_t next = i % sections.size(), round = i / sections.size();
        to.axis[i] = static_cast<double>(round) < sections[next] ? next : 0;
    }
    const auto divide = [&](std::string_view key) {
        const auto divisors = s.numbers.find(key);
        if (divisors == s.numbers.end()) return;
        for (std::size_t i = 0; i < std::min(count, divisors->second.size()); ++i)
            to.frequencies[i] /= divisors->second[i];
    };
    if (s.is("linear") || s.is("proportional"))
        for (double& frequency : to.frequencies) frequency /= factor;
    if (s.is("llama3")) scale_llama3(s, to.frequencies);
    if (s.is("yarn")) scale_yarn(s, theta, n, to);
    if (s.is("divisors")) divide("divisors");
    if (s.is("longrope")) {
        const double original = s.number(original_key, 1);
        divide(s.tokens > original ? "long_factor" : "short_factor");
        to.factor =
            s.number("attention_factor",
                     factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(original)));
    }
    return to;
}

std::string RopeSettings::problem() const {
    const RopeScaling none, &s = scaling == nullptr ? none : *scaling;
    const std::size_t count = (dims + 1) / 2;
    for (const auto& [key, list] : s.numbers) {
        const bool may_be_0 = has(s.type->optional, key) || key.starts_with("mrope_");
        for (const double number : list)
            if (number < 0 || (number == 0 && !may_be_0))
                return key + " is not above 0; expected numbers above 0";
    }
    if (s.number("partial_rotary_factor", 1) > 1)
        return "partial_rotary_factor is above 1; expected at most 1";
    for (const std::string_view key : s.type->required) {
        if (key.empty()) break;
        const auto found = s.numbers.find(key);
        const std::size_t size = found == s.numbers.end() ? 0 : found->second.size();
        if (is_of_pairs(key) && size != count)
            return concat("no list ", key, " of ", count, " numbers; expected one");
        if (size == 0)
            return concat(key, " is missing; expected a number for rope_type ", s.type->name);
    }
    const std::vector<double> sections = s.sections(count);
    if (sections.empty() && s.number("mrope_interleaved", 0) != 0)
        return "mrope_interleaved requires mrope_section; expected both";
    const auto is_whole = [](double size) { return size == std::floor(size); };
    if (!sections.empty() &&
        !(std::ranges::all_of(sections, is_whole) &&
          std::accumulate(sections.begin(), sections.end(), 0.0) == static_cast<double>(count)))
        return concat("mrope_section does not add up to ", count,
                      " pairs; expected integers that do");
    const RopeAngles all = angles();
    bool is_finite = std::isfinite(all.factor);
    for (const double frequency : all.frequencies) is_finite &= std::isfinite(frequency);
    return is_finite ? "" : "angles are not finite; expected positive factors and lengths";
}

template <class T>
void rotate(Tensor4<T>& x, Rope layout, const RopeAngles& angles, const TokenPositions& positions,
            std::size_t first, NumberType type) {
    const std::size_t pairs = angles.frequencies.size(), rows = x.shape(2), width = x.shape(3);
    std::vector<double> cosine(pairs), sine(pairs), at(positions.axes()), before;
    for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t b = 0; b < x.shape(0); ++b) {
            before = at;
            for (std::size_t axis = 0; axis < at.size(); ++axis)
                at[axis] = positions.at(b, first + row, axis);
            const bool is_known = b != 0 && at == before;
            for (std::size_t i = 0; i < pairs && !is_known; ++i) {
                const double angle =
                    at[at.size() == 1 ? 0 : angles.axis[i]] * angles.frequencies[i];
                cosine[i] = std::cos(angle) * angles.factor;
                sine[i] = std::sin(angle) * angles.factor;
            }
            for (std::size_t h = 0; h < x.shape(1); ++h)
                rotate_row<T>(x.data() + ((b * x.shape(1) + h) * rows + row) * width, layout,
                              cosine, sine, type);
        }
}

template void rotate(Tensor4<float>&, Rope, const RopeAngles&, const TokenPositions&, std::size_t,
                     NumberType);
template void rotate(Tensor4<double>&, Rope, const RopeAngles&, const TokenPositions&, std::size_t,
                     NumberType);

}  // namespace attn
