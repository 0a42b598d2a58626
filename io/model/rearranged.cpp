#include "io/model/rearranged.hpp"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

namespace attn::io {
namespace {

class RowDequantiser : public Dequantiser {
public:
    RowDequantiser(Rearrangement parts, std::size_t rows, std::size_t width)
        : parts_(std::move(parts)), rows_(rows), width_(width) {}

    void read(std::size_t first, std::size_t count, float* to) const override {
        std::vector<float> row(parts_.columns.size());
        for (std::size_t done = 0; done < count;) {
            const std::size_t at = (first + done) / width_, column = (first + done) % width_;
            const RowSource source = parts_.source ? parts_.source(at) : RowSource{0, at};
            const StoredArray& array = parts_.arrays[source.array];
            std::size_t now = count - done;
            if (parts_.columns.empty()) {
                now = std::min(now, adjacent_rows(at, source, column + now) * width_ - column);
                read_floats(array, source.row * width_ + column, now, to + done);
            } else {
                now = std::min(now, width_ - column);
                read_floats(array, source.row * width_, width_, row.data());
                for (std::size_t i = 0; i < now; ++i)
                    to[done + i] = row[parts_.columns[column + i]];
            }
            done += now;
        }
        if (parts_.value != nullptr) std::transform(to, to + count, to, parts_.value);
    }

private:
    /// Rows from `row` on that are adjacent in their array, too, and so can be read together; at
    /// least one, and not many more than `elements` need.
    std::size_t adjacent_rows(std::size_t row, const RowSource& first, std::size_t elements) const {
        const std::size_t most = elements / width_ + 1;
        if (!parts_.source) return most;
        std::size_t rows = 1;
        for (; rows < most && row + rows < rows_; ++rows) {
            const RowSource next = parts_.source(row + rows);
            if (next.array != first.array || next.row != first.row + rows) break;
        }
        return rows;
    }

    const Rearrangement parts_;
    const std::size_t rows_, width_;
};

}  // namespace

void read_floats(const StoredArray& array, std::size_t first, std::size_t count, float* to) {
    if (array.dequantiser != nullptr) return array.dequantiser->read(first, count, to);
    read_elements<float>(array, first, count, [&](std::size_t done, std::span<const float> piece) {
        std::copy(piece.begin(), piece.end(), to + done);
    });
}

StoredArray rearranged(std::string name, std::vector<std::size_t> shape, Rearrangement parts) {
    StoredArray array = parts.arrays.front();
    array.name = std::move(name);
    array.shape = std::move(shape);
    const bool all_readable =
        std::all_of(parts.arrays.begin(), parts.arrays.end(),
                    [](const StoredArray& part) { return part.type.has_value(); });
    if (!all_readable) {  // reading it names the type
        array.type.reset();
        array.dequantiser = nullptr;
        return array;
    }
    array.type = ElementType::float32;
    const std::size_t width = array.shape.empty() ? 1 : array.shape.back();
    array.dequantiser = std::make_shared<const RowDequantiser>(
        std::move(parts), array.elements() / std::max<std::size_t>(1, width), width);
    return array;
}

}  // namespace attn::io
