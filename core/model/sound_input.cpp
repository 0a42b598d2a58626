#include "core/base/error.hpp"
#include "core/model/model.hpp"

namespace attn {
namespace {

void run_norm(const Compute& compute, const SoundStage& stage, States& x) {
    if (!stage.norm) return;
    if (stage.norm_groups == 0) return norm_rows(compute, *stage.norm, x.columns(), x);
    // Groups of channels over all frames.
    States groups = split(x, stage.norm_groups);
    norm_rows(compute, *stage.norm, groups.rows() * groups.columns(), groups, groups.rows());
    x = merged(groups);
}

States run_sound_stage(const Compute& compute, const SoundStage& stage, const States& x) {
    States y = convolve(compute, stage.convolution, x);
    if (!stage.norm_is_last) run_norm(compute, stage, y);
    if (stage.activation != nullptr) {
        const auto activate_one = [&]<class T>(std::size_t i, T* values) {
            values[i] = static_cast<T>(stage.activation->of(static_cast<double>(values[i])));
        };
        for_each_row(compute, y.size(), 8, activate_one, y);
    }
    if (stage.norm_is_last) run_norm(compute, stage, y);
    return y;
}

/// (1, samples, 1).
States samples(const ModelInput& input, NumberType dtype) {
    const RealArray& given = *input.input_values;
    const std::size_t count = given.in<double>().size();
    if (count == 0 || given.shape().back() != count)
        throw SettingError(
            ErrorKind::input, "input_values",
            "the array is not one row of samples; expected (samples) or (1, samples)");
    return {given, dtype, {1, count, 1}};
}

/// (1, frames, bins).
States features(const SoundSpec& spec, const ModelInput& input, NumberType dtype) {
    const Array<double>& given = input.input_features->in<double>();
    const std::vector<std::size_t>& shape = given.shape();
    const std::size_t bins = spec.stages.front().convolution.d_in(),
                      frames = shape.empty() ? 0 : shape.back();
    if (shape.size() < 2 || frames == 0 || given.size() != bins * frames ||
        shape[shape.size() - 2] != bins ||
        (spec.frames_needed != 0 && frames != spec.frames_needed))
        throw SettingError(
            ErrorKind::input, "input_features",
            "the array does not have the model's shape; expected (", bins, ", ",
            spec.frames_needed == 0 ? std::string("frames") : std::to_string(spec.frames_needed),
            ")");
    return merged(States(*input.input_features, dtype, {bins, frames, 1}));
}

void add_positions(const Compute& compute, const SoundSpec& spec, States& x) {
    const std::size_t width = x.columns();
    States shifted = x;
    if (!spec.position_scale.empty())
        map(shifted, [&](double value, std::size_t i) {
            return value * spec.position_scale[i % width] + spec.position_shift[i % width];
        });
    const States added = run_sound_stage(compute, *spec.positions, shifted);
    if (added.columns() != width || added.size() < x.size())
        throw SettingError(ErrorKind::input, "model",
                           "the position convolution changes the shape of the hidden states; "
                           "expected the same shape");
    add(x, added);
}

void add_table(const SoundSpec& spec, States& x) {
    if (spec.table->size() != x.size())
        throw SettingError(ErrorKind::input, "model",
                           "the position table does not have the shape of the hidden states; "
                           "expected the same shape");
    States rows(x.dtype(), 1, x.rows(), x.columns());
    numbers_of(rows)([&](auto* to) { spec.table->read(0, x.size(), to); });
    add(x, rows);
}

}  // namespace

States run_input(const Compute& compute, const SoundSpec& spec, const ModelInput& input,
                 NumberType dtype) {
    States x = spec.takes_features ? features(spec, input, dtype) : samples(input, dtype);
    for (const SoundStage& stage : spec.stages) x = run_sound_stage(compute, stage, x);
    x = normed(compute, spec.feature_norm, std::move(x));
    if (spec.projection) x = apply(compute, spec.projection, x);
    if (spec.positions) add_positions(compute, spec, x);
    if (spec.table != nullptr) add_table(spec, x);
    return normed(compute, spec.norm, std::move(x));
}

States run_stage(const Compute& compute, const SoundAdapter& part, States x) {
    if (part.projection) x = apply(compute, part.projection, x);
    x = normed(compute, part.norm, std::move(x));
    for (const Convolution& convolution : part.convolutions) {
        const States both = convolve(compute, convolution, x);
        const std::size_t width = both.columns() / 2;
        x = slice(both, 2, 0, width);
        map(x, slice(both, 2, width, width), [](double a, double b) { return a * sigmoid(b); });
    }
    return x;
}

}  // namespace attn
