#include "io/model/find_layer.hpp"

#include <algorithm>
#include <memory>

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

class TransposedDequantiser : public Dequantiser {
public:
    explicit TransposedDequantiser(StoredArray matrix) : matrix_(std::move(matrix)) {}

    /// Rows of the result are columns of the matrix: of each of its rows a short run is read.
    void read(std::size_t first, std::size_t count, float* to) const override {
        if (count == 0) return;
        const std::size_t rows = matrix_.shape[0], columns = matrix_.shape[1];
        const std::size_t begin = first / rows, end = (first + count - 1) / rows + 1;
        std::vector<float> run(end - begin);
        for (std::size_t row = 0; row < rows; ++row) {
            read_floats(matrix_, row * columns + begin, run.size(), run.data());
            for (std::size_t i = 0; i < run.size(); ++i) {
                const std::size_t at = (begin + i) * rows + row;
                if (at >= first && at < first + count) to[at - first] = run[i];
            }
        }
    }

private:
    const StoredArray matrix_;
};

/// The array with these elements; without them if a part cannot be read, so that reading it names
/// the type.
template <class Make>
StoredArray with_dequantiser(std::string name, std::vector<std::size_t> shape,
                             const std::vector<const StoredArray*>& parts, const Make& make) {
    StoredArray array = *parts.front();
    array.name = std::move(name);
    array.shape = std::move(shape);
    array.dequantiser = nullptr;
    for (const StoredArray* part : parts) {
        if (part->type) continue;
        array.type.reset();
        array.type_name = part->type_name;
        return array;
    }
    array.type = NumberType::float32;
    array.dequantiser = make();
    return array;
}

}  // namespace

void read_floats(const StoredArray& array, std::size_t first, std::size_t count, float* to) {
    if (array.dequantiser != nullptr) return array.dequantiser->read(first, count, to);
    read_elements(array, first, count, to);
}

StoredArray rearranged(std::string name, std::vector<std::size_t> shape, Rearrangement parts) {
    std::vector<const StoredArray*> arrays;
    for (const StoredArray& array : parts.arrays) arrays.push_back(&array);
    const std::size_t width = shape.empty() ? 1 : shape.back();
    const std::size_t rows =
        width == 0 ? 0 : static_cast<std::size_t>(elements_of(shape).value_or(0)) / width;
    return with_dequantiser(std::move(name), std::move(shape), arrays, [&] {
        return std::make_shared<const RowDequantiser>(parts, rows, width);
    });
}

StoredArray part_of(std::string name, const StoredArray& array, std::size_t index) {
    StoredArray part = array;
    part.name = std::move(name);
    part.shape.erase(part.shape.begin());
    part.size = array.size / array.shape.front();
    const std::size_t elements = part.elements();
    if (array.dequantiser == nullptr && array.strides.empty()) {
        part.offset += index * part.size;
        return part;
    }
    const std::size_t width = part.shape.empty() ? 1 : part.shape.back(),
                      rows = width == 0 ? 0 : elements / width;
    const std::uint64_t size = part.size;
    part = rearranged(part.name, part.shape, {{array}, [rows, index](std::size_t row) {
                                                  return RowSource{0, index * rows + row};
                                              }});
    part.size = size;
    return part;
}

StoredArray transposed(std::string name, const StoredArray& matrix) {
    return with_dequantiser(std::move(name), {matrix.shape[1], matrix.shape[0]}, {&matrix},
                            [&] { return std::make_shared<const TransposedDequantiser>(matrix); });
}

StoredArray by_turns(std::string name, std::vector<std::size_t> shape, const StoredArray& first,
                     const StoredArray& second, std::size_t run) {
    StoredArray array = rearranged(
        std::move(name), {static_cast<std::size_t>(elements_of(shape).value_or(0)) / run, run},
        {{first, second}, [](std::size_t row) {
             return RowSource{row % 2, row / 2};
         }});
    array.shape = std::move(shape);
    array.size = first.size + second.size;
    return array;
}

}  // namespace attn::io
