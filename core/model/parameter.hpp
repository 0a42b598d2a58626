// The parameters of a model: tensors that are decoded when they are used.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/number_type.hpp"

namespace attn {

/// A tensor in a model's file. Reading is thread-safe.
class ParameterSource {
public:
    ParameterSource() = default;
    ParameterSource(const ParameterSource&) = delete;
    ParameterSource& operator=(const ParameterSource&) = delete;
    virtual ~ParameterSource() = default;

    virtual const std::vector<std::size_t>& shape() const = 0;

    /// Elements [first, first + count) in row-major order. Errors: kind input for damaged files.
    virtual void read(std::size_t first, std::size_t count, float* out) const = 0;
    virtual void read(std::size_t first, std::size_t count, double* out) const = 0;

    /// All elements, if memory holds them in this type; or null. The argument selects the type.
    virtual const float* in_place(float) const { return nullptr; }
    virtual const double* in_place(double) const { return nullptr; }

    /// The file and the tensor, for errors; empty if it was computed.
    virtual std::string location() const { return {}; }

    std::size_t size() const {
        std::size_t size = 1;
        for (const std::size_t length : shape()) size *= length;
        return size;
    }
};

/// Null: the model has no such tensor.
using Parameter = std::shared_ptr<const ParameterSource>;

/// A tensor that was computed from others.
class ComputedParameter final : public ParameterSource {
public:
    ComputedParameter(std::vector<double> elements, std::vector<std::size_t> shape)
        : elements_(std::move(elements)), shape_(std::move(shape)) {}

    const std::vector<std::size_t>& shape() const override { return shape_; }
    void read(std::size_t first, std::size_t count, float* out) const override {
        for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(elements_[first + i]);
    }
    void read(std::size_t first, std::size_t count, double* out) const override {
        for (std::size_t i = 0; i < count; ++i) out[i] = elements_[first + i];
    }

private:
    std::vector<double> elements_;
    std::vector<std::size_t> shape_;
};

/// A tensor rounded to a dtype.
class RoundedParameter final : public ParameterSource {
public:
    RoundedParameter(std::shared_ptr<const ParameterSource> from, NumberType dtype)
        : from_(std::move(from)), dtype_(dtype) {}

    const std::vector<std::size_t>& shape() const override { return from_->shape(); }
    void read(std::size_t first, std::size_t count, float* out) const override {
        from_->read(first, count, out);
        round_all(std::span(out, count), dtype_);
    }
    void read(std::size_t first, std::size_t count, double* out) const override {
        from_->read(first, count, out);
        round_all(std::span(out, count), dtype_);
    }
    std::string location() const override { return from_->location(); }

private:
    std::shared_ptr<const ParameterSource> from_;
    NumberType dtype_;
};

/// The tensor as a computation in the dtype has it; null if it is absent.
inline Parameter in_dtype(const Parameter& parameter, NumberType dtype) {
    if (parameter == nullptr || !is_rounded(dtype)) return parameter;
    return std::make_shared<const RoundedParameter>(parameter, dtype);
}

/// All elements; none if the tensor is absent.
inline std::vector<double> elements_of(const Parameter& parameter) {
    if (parameter == nullptr) return {};
    std::vector<double> elements(parameter->size());
    if (!elements.empty()) parameter->read(0, elements.size(), elements.data());
    return elements;
}

/// x W^T + b. The weight may be a range of a tensor, such as one expert of a stack.
struct LinearMap {
    Parameter weight = nullptr;  ///< null: the map is absent
    Parameter bias = nullptr;    ///< null: no bias
    std::size_t d_in = 0, d_out = 0;
    bool in_out = false;         ///< stored as (d_in, d_out), else (d_out, d_in)
    std::size_t first = 0;       ///< the map's first element in `weight`
    std::size_t first_bias = 0;  ///< first element in `bias`
    std::size_t d_head = 0;  ///< if not 0, of an attention layer, stored as (heads, d_in, d_head)

    explicit operator bool() const { return weight != nullptr; }
};

/// (x - mean) / sqrt(variance + eps) * (weight + offset) + bias; RMS norm: without the mean.
struct NormSpec {
    Parameter weight = nullptr, bias = nullptr;  ///< null: 1 and 0
    double eps = 0;
    bool is_rms = true;
    double weight_offset = 0;  ///< 1 if the file stores weight - 1
    double weight_factor = 1;
};

}  // namespace attn
