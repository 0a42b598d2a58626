// Small models whose tensors are drawn from their names; see tests/make_model_cases.py.
#pragma once

#include "tests/support/support.hpp"

namespace attn::test {

/// float32 numbers with this mean and deviation, as bytes.
std::string drawn(const std::string& name, std::size_t count, double mean, double deviation);

/// The number of elements of a shape.
std::size_t count_of(const nlohmann::json& shape);

/// An npy file of float32 numbers.
std::string npy_of(const nlohmann::json& shape, const std::string& bytes,
                   const std::string& descr = "<f4", bool is_fortran = false);

struct StoredTensor {
    std::string name, dtype;  ///< "F32"
    nlohmann::json shape;
    std::string bytes;
};

/// A file of safetensors.
std::string safetensors_of(const std::vector<StoredTensor>& tensors);

/// Writes the config and the tensors of a case into a folder of the scratch folder.
void write_model(const nlohmann::json& c, const std::string& folder);

/// "3,1,4"
std::string list_of(const nlohmann::json& numbers);

/// The largest difference from the expected array, as a part of its largest number or of 1.
double difference_of(const nlohmann::json& found, const nlohmann::json& expected);

}  // namespace attn::test
