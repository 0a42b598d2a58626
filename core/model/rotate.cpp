// The rotary embedding of heads by the positions of their tokens.
#include <cmath>

#include "core/base/error.hpp"
#include "core/model/run_block.hpp"

namespace attn {
namespace {

/// Fills in cosine and sine of each pair at a position.
void angles_at(const Rotation& rotation, double position, std::vector<double>& cosine,
               std::vector<double>& sine) {
    const std::size_t pairs = rotation.frequencies.size();
    const std::vector<double>* const table = rotation.table.get();
    if (table != nullptr) {
        const auto row = static_cast<std::size_t>(position);
        if ((row + 1) * pairs * 2 > table->size())
            throw SettingError(ErrorKind::input, "position_ids", "position ", row,
                               " is outside the model's table of angles (0 to ",
                               table->size() / (2 * pairs) - 1, ")");
        for (std::size_t i = 0; i < pairs; ++i) {
            cosine[i] = (*table)[(row * pairs + i) * 2];
            sine[i] = (*table)[(row * pairs + i) * 2 + 1];
        }
        return;
    }
    for (std::size_t i = 0; i < pairs; ++i) {
        const double angle = position * rotation.position_step * rotation.frequencies[i];
        cosine[i] = std::cos(angle) * rotation.factor;
        sine[i] = std::sin(angle) * rotation.factor;
    }
}

}  // namespace

void rotate(const Rotation& rotation, const std::vector<double>& positions, States& x,
            bool backwards) {
    const std::size_t pairs = rotation.frequencies.size(), tokens = x.rows(), d = x.columns();
    if (rotation.first + 2 * pairs > d)
        throw Error(ErrorKind::input, "model", "the rotary embedding rotates ", 2 * pairs,
                    " columns; expected at most ", d, ", the width of a head");
    std::vector<double> cosine(pairs), sine(pairs);
    numbers_of(x)([&]<class T>(T* values) {
        for (std::size_t t = 0; t < tokens; ++t) {
            angles_at(rotation, positions[t], cosine, sine);
            if (backwards)
                for (double& turn : sine) turn = -turn;
            for (std::size_t h = 0; h < x.depth(); ++h)
                rotate_row<T>(values + (h * tokens + t) * d + rotation.first, rotation.rope.pairs,
                              cosine, sine, x.dtype());
        }
    });
}

}  // namespace attn
