#include "core/model/sound_input.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/error.hpp"

namespace attn {
namespace {

template <class T>
void run_norm(const Compute& compute, const SoundStage& stage, Tensor3<T>& x) {
    if (!stage.norm) return;
    if (stage.norm_groups != 0)
        norm_channels(*stage.norm, stage.norm_groups, x);
    else
        norm_rows(compute, *stage.norm, x.shape(2), std::span<T>(x.data(), x.size()));
}

template <class T>
Tensor3<T> run_stage(const Compute& compute, const SoundStage& stage, const Tensor3<T>& x) {
    Tensor3<T> y = convolve(compute, stage.convolution, x);
    if (!stage.norm_is_last) run_norm(compute, stage, y);
    if (stage.activation != nullptr) {
        const std::size_t width = y.shape(2);
        for_rows(compute.pool, y.shape(1), width * 8, [&](std::size_t first, std::size_t last) {
            for (T* at = y.data() + first * width; at != y.data() + last * width; ++at)
                *at = static_cast<T>(stage.activation->of(static_cast<double>(*at)));
        });
    }
    if (stage.norm_is_last) run_norm(compute, stage, y);
    return y;
}

class SoundInput final : public InputStage {
public:
    explicit SoundInput(SoundSpec spec) : spec_(std::move(spec)) {}

    Tensor3<float> run(const Compute& compute, const ModelInput& input, float) const override {
        return run_as<float>(compute, input);
    }
    Tensor3<double> run(const Compute& compute, const ModelInput& input, double) const override {
        return run_as<double>(compute, input);
    }

private:
    template <class T>
    Tensor3<T> run_as(const Compute& compute, const ModelInput& input) const {
        Tensor3<T> x = spec_.takes_features ? features<T>(input) : samples<T>(input);
        for (const SoundStage& stage : spec_.stages) x = run_stage(compute, stage, x);
        if (spec_.feature_norm) x = normed(compute, *spec_.feature_norm, std::move(x));
        if (spec_.projection) x = apply(compute, spec_.projection, x);
        if (spec_.positions) add_positions(compute, x);
        if (spec_.table != nullptr) add_table(x);
        if (spec_.norm) x = normed(compute, *spec_.norm, std::move(x));
        return x;
    }

    template <class T>
    static Tensor3<T> samples(const ModelInput& input) {
        Array<T> given = RealArray(*input.input_values).take<T>();
        const std::size_t count = given.size();
        if (count == 0 || given.shape().back() != count)
            throw SettingError(
                ErrorKind::input, "input_values",
                "the array is not one row of samples; expected (samples) or (1, samples)");
        given.reshape({1, count, 1});
        return Tensor3<T>(std::move(given), {1, count, 1});
    }

    template <class T>
    Tensor3<T> features(const ModelInput& input) const {
        const Array<T> given = RealArray(*input.input_features).take<T>();
        const std::vector<std::size_t>& shape = given.shape();
        const std::size_t bins = spec_.stages.front().convolution.d_in(),
                          frames = shape.empty() ? 0 : shape.back();
        if (shape.size() < 2 || frames == 0 || given.size() != bins * frames ||
            shape[shape.size() - 2] != bins ||
            (spec_.frames_needed != 0 && frames != spec_.frames_needed))
            throw SettingError(
                ErrorKind::input, "input_features",
                "the array does not have the model's shape; expected (" + std::to_string(bins) +
                    ", " +
                    (spec_.frames_needed == 0 ? std::string("frames")
                                              : std::to_string(spec_.frames_needed)) +
                    ")");
        Tensor3<T> x = Tensor3<T>::from_shape({1, frames, bins});
        for (std::size_t f = 0; f < frames; ++f)
            for (std::size_t b = 0; b < bins; ++b)
                x.data()[f * bins + b] = given.data()[b * frames + f];
        return x;
    }

    template <class T>
    void add_positions(const Compute& compute, Tensor3<T>& x) const {
        const std::size_t width = x.shape(2);
        Tensor3<T> shifted;
        if (!spec_.position_scale.empty()) {
            shifted = x;
            for (std::size_t i = 0; i < shifted.size(); ++i)
                shifted.data()[i] = static_cast<T>(static_cast<double>(shifted.data()[i]) *
                                                       spec_.position_scale[i % width] +
                                                   spec_.position_shift[i % width]);
        }
        const Tensor3<T> added =
            run_stage(compute, *spec_.positions, spec_.position_scale.empty() ? x : shifted);
        if (added.shape(2) != width || added.size() < x.size())
            throw SettingError(ErrorKind::input, "model",
                               "the position convolution changes the shape of the hidden states; "
                               "expected the same shape");
        for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] += added.data()[i];
    }

    template <class T>
    void add_table(Tensor3<T>& x) const {
        if (spec_.table->size() != x.size())
            throw SettingError(ErrorKind::input, "model",
                               "the position table does not have the shape of the hidden states; "
                               "expected the same shape");
        std::vector<T> rows(x.size());
        spec_.table->read(0, rows.size(), rows.data());
        for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] += rows[i];
    }

    SoundSpec spec_;
};

class Adapter final : public HiddenStage {
public:
    explicit Adapter(SoundAdapter spec) : spec_(std::move(spec)) {}

    Tensor3<float> run(const Compute& compute, const std::vector<std::uint64_t>&,
                       Tensor3<float> x) const override {
        return run_as(compute, std::move(x));
    }
    Tensor3<double> run(const Compute& compute, const std::vector<std::uint64_t>&,
                        Tensor3<double> x) const override {
        return run_as(compute, std::move(x));
    }

private:
    template <class T>
    Tensor3<T> run_as(const Compute& compute, Tensor3<T> x) const {
        if (spec_.projection) x = apply(compute, spec_.projection, x);
        if (spec_.norm) x = normed(compute, *spec_.norm, std::move(x));
        for (const Convolution& convolution : spec_.convolutions) {
            const Tensor3<T> both = convolve(compute, convolution, x);
            const std::size_t frames = both.shape(1), width = both.shape(2) / 2;
            x = Tensor3<T>::from_shape({1, frames, width});
            for (std::size_t f = 0; f < frames; ++f)
                for (std::size_t i = 0; i < width; ++i) {
                    const T* const row = both.data() + f * 2 * width;
                    x.data()[f * width + i] = static_cast<T>(
                        static_cast<double>(row[i]) * sigmoid(static_cast<double>(row[width + i])));
                }
        }
        return x;
    }

    SoundAdapter spec_;
};

class ReplacedToken final : public HiddenStage {
public:
    ReplacedToken(std::uint64_t id, Parameter vector) : id_(id), vector_(std::move(vector)) {}

    Tensor3<float> run(const Compute&, const std::vector<std::uint64_t>& ids,
                       Tensor3<float> x) const override {
        return run_as(ids, std::move(x));
    }
    Tensor3<double> run(const Compute&, const std::vector<std::uint64_t>& ids,
                        Tensor3<double> x) const override {
        return run_as(ids, std::move(x));
    }

private:
    template <class T>
    Tensor3<T> run_as(const std::vector<std::uint64_t>& ids, Tensor3<T> x) const {
        const std::size_t width = x.shape(2);
        if (vector_->size() != width)
            throw SettingError(ErrorKind::input, "model",
                               "the vector of a token has " + std::to_string(vector_->size()) +
                                   " elements; expected " + std::to_string(width));
        for (std::size_t t = 0; t < ids.size(); ++t)
            if (ids[t] == id_) vector_->read(0, width, x.data() + t * width);
        return x;
    }

    std::uint64_t id_;
    Parameter vector_;
};

}  // namespace

std::shared_ptr<const InputStage> sound_input(SoundSpec spec) {
    return std::make_shared<const SoundInput>(std::move(spec));
}
std::shared_ptr<const HiddenStage> sound_adapter(SoundAdapter spec) {
    return std::make_shared<const Adapter>(std::move(spec));
}
std::shared_ptr<const HiddenStage> replaced_token(std::uint64_t id, Parameter vector) {
    return std::make_shared<const ReplacedToken>(id, std::move(vector));
}

}  // namespace attn
