#include "cli/partial/partial.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "cli/request/digest.hpp"
#include "core/layer/norm.hpp"
#include "core/layer/weights.hpp"

namespace attn::cli {
namespace {

const RowsInFile* file_of(const OperandRows& rows, const RealOperandRow& operand) {
    const auto file = rows.files.find(operand.key);
    return file == rows.files.end() ? nullptr : &file->second;
}

template <class T>
std::string_view bytes_of_elements(const T* elements, std::size_t count) {
    return {reinterpret_cast<const char*>(elements), count * sizeof(T)};
}

template <class Numbers>
void add_array(Digest& digest, const Numbers& array) {
    for (const std::size_t length : array.shape()) digest.add(length);
    digest.add(bytes_of_elements(array.data(), array.size()));
}

/// As add_array() of the array in memory: pieces have whole words.
template <class T>
void add_array_in_file(Digest& digest, const io::StoredArray& array) {
    for (const std::size_t length : array.shape) digest.add(length);
    const std::size_t count = array.elements();
    digest.add(std::uint64_t{count * sizeof(T)});
    io::read_elements<T>(array, 0, count, [&](std::size_t, std::span<const T> piece) {
        digest.add_words(bytes_of_elements(piece.data(), piece.size()));
    });
}

void add_norm(Digest& digest, const std::optional<InputNorm>& norm) {
    if (!norm) return;
    for (const auto* numbers : {&norm->weight, &norm->bias})
        digest.add(bytes_of_elements(numbers->data(), numbers->size()));
}

template <class T>
void add_weights(Digest& digest, const LayerWeights<T>& weights) {
    for (const Projection<T>* projection :
         {&weights.query, &weights.key, &weights.value, weights.out ? &*weights.out : nullptr}) {
        if (projection == nullptr) continue;
        add_array(digest, projection->weight);
        add_array(digest, projection->bias);
    }
    add_norm(digest, weights.query_norm);
    add_norm(digest, weights.key_norm);
}

}  // namespace

std::string digest_of(const Operands& operands, const OperandRows& rows, Dtype dtype) {
    Digest digest;
    for (const RealOperandRow& operand : real_operand_rows) {
        const RealArray& reals = operands.*operand.reals;
        digest.add(reals.dimension());
        if (reals.dimension() == 0) continue;
        if (const RowsInFile* const file = file_of(rows, operand))
            for_dtype(dtype, [&]<class T>(T) { add_array_in_file<T>(digest, file->array); });
        else if (reals.holds<float>())
            add_array(digest, reals.in<float>());
        else
            add_array(digest, reals.in<double>());
    }
    for (const Array<double>* mask : {&operands.mask, &operands.key_padding_mask}) {
        digest.add(mask->dimension());
        if (mask->dimension() != 0) add_array(digest, *mask);
    }
    add_norm(digest, operands.norm);
    if (operands.weights)
        std::visit([&](const auto& weights) { add_weights(digest, *weights); }, *operands.weights);
    return hex_of(digest.value());
}

OperandShapes shapes_of_range(OperandShapes shapes, const OperandRows& rows,
                              const KeyRange& range) {
    for (const RealOperandRow& operand : real_operand_rows) {
        Shape& shape = shapes.*operand.shape;
        if (file_of(rows, operand) != nullptr) shape[shape.size() - 2] = range.end - range.first;
    }
    return shapes;
}

void read_range(Operands& operands, const OperandRows& rows, const KeyRange& range, Dtype dtype,
                ThreadPool& pool) {
    for (const RealOperandRow& operand : real_operand_rows) {
        const RowsInFile* const file = file_of(rows, operand);
        if (file == nullptr) continue;
        Shape shape = file->array.shape;
        std::size_t matrices = 1;
        for (std::size_t i = 0; i + 2 < shape.size(); ++i) matrices *= shape[i];
        const std::size_t count = range.end - range.first;
        shape[shape.size() - 2] = count;
        for_dtype(dtype, [&]<class T>(T) {
            Array<T> read = Array<T>::from_shape(shape);
            T* to = read.data();
            for (std::size_t matrix = 0; matrix < matrices; ++matrix)
                to = read_rows(*file, matrix, range.first, count, to, pool);
            operands.*operand.reals = std::move(read);
        });
    }
}

}  // namespace attn::cli
