// The built-in inputs; data/README.md lists their sources.
#include "io/read/examples.hpp"

#include <stdexcept>

namespace attn::io {
namespace {

// (6, 3): "Your journey starts with one step", one row per word.
const std::vector<double> journey{
    // clang-format off
    0.43, 0.15, 0.89,
    0.55, 0.87, 0.66,
    0.57, 0.85, 0.64,
    0.22, 0.58, 0.33,
    0.77, 0.25, 0.1,
    0.05, 0.8, 0.55
    // clang-format on
};

// (2, 11, 8): a batch of two sequences.
const std::vector<double> two_sequences{
    // clang-format off
    0.43, 0.15, 0.89, 0.12, 0.44, 0.65, 0.23, 0.9,
    0.55, 0.87, 0.66, 0.31, 0.48, 0.92, 0.76, 0.11,
    0.57, 0.85, 0.64, 0.29, 0.3, 0.73, 0.52, 0.19,
    0.22, 0.58, 0.33, 0.66, 0.91, 0.08, 0.42, 0.77,
    0.77, 0.25, 0.1, 0.95, 0.14, 0.38, 0.64, 0.33,
    0.05, 0.8, 0.55, 0.26, 0.7, 0.39, 0.48, 0.85,
    0.63, 0.12, 0.44, 0.18, 0.27, 0.5, 0.33, 0.71,
    0.34, 0.48, 0.91, 0.07, 0.36, 0.6, 0.29, 0.88,
    0.11, 0.9, 0.27, 0.59, 0.46, 0.41, 0.66, 0.22,
    0.16, 0.73, 0.31, 0.8, 0.53, 0.69, 0.19, 0.37,
    0.94, 0.2, 0.61, 0.17, 0.34, 0.78, 0.85, 0.04,

    0.12, 0.33, 0.71, 0.45, 0.62, 0.89, 0.24, 0.55,
    0.67, 0.21, 0.44, 0.58, 0.19, 0.73, 0.9, 0.37,
    0.81, 0.42, 0.6, 0.35, 0.88, 0.11, 0.76, 0.29,
    0.93, 0.08, 0.23, 0.77, 0.49, 0.64, 0.18, 0.31,
    0.39, 0.55, 0.17, 0.26, 0.91, 0.3, 0.63, 0.82,
    0.24, 0.7, 0.35, 0.14, 0.75, 0.48, 0.59, 0.66,
    0.53, 0.62, 0.19, 0.88, 0.27, 0.34, 0.41, 0.5,
    0.77, 0.13, 0.94, 0.61, 0.46, 0.12, 0.69, 0.38,
    0.3, 0.47, 0.79, 0.16, 0.22, 0.81, 0.33, 0.56,
    0.45, 0.96, 0.2, 0.52, 0.1, 0.36, 0.67, 0.15,
    0.84, 0.25, 0.5, 0.73, 0.04, 0.6, 0.92, 0.13
    // clang-format on
};

}  // namespace

Example find_example(std::string_view name) {
    const std::vector<std::string> words{"Your", "journey", "starts", "with", "one", "step"};
    if (name == "journey") return {{to_array(journey, {6, 3})}, words, ""};
    if (name == "journey-twice") {
        std::vector<double> twice = journey;
        twice.insert(twice.end(), journey.begin(), journey.end());
        return {{to_array(twice, {2, 6, 3})}, words, ""};
    }
    if (name == "pair") return {{to_array(two_sequences, {2, 11, 8})}, {}, ""};
    // One query of 1, so that the scores are the keys: five numbers whose softmax a notebook takes.
    if (name == "softmax")
        return {{},
                {},
                "",
                {to_array({1}, {1, 1})},
                {to_array({0.1, -0.2, 0.3, -0.2, 0.5}, {5, 1})},
                {to_array({0, 0, 0, 0, 0}, {5, 1})}};
    if (name == "sentence") return {{}, {}, "Life is short, eat dessert first"};
    throw std::logic_error("no such example");
}

}  // namespace attn::io
