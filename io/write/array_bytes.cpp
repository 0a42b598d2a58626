#include "io/write/array_bytes.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <future>
#include <type_traits>

#include "core/base/error.hpp"
#include "core/base/threads.hpp"
#include "io/read/array_file.hpp"
#include "io/text/number_text.hpp"
#include "io/text/text.hpp"
#include "io/write/report.hpp"
#include "io/write/row_text.hpp"

namespace attn::io {

std::uint64_t ArrayBytes::size() const {
    return elements_of(shape, row_of(element).size).value();
}

namespace {

NumberType type_of(const NamedArray& array, const std::optional<StoredArrays>& stored) {
    if (stored && is_real(array)) return stored->type.element();
    if (array.type) return *array.type;
    if (array.stream)
        return std::visit([]<class T>(const RowStream<T>&) { return dtype_of<T>; }, *array.stream);
    return std::visit([]<class T>(const Array<T>&) { return dtype_of<T>; }, array.values);
}

template <class T>
std::string_view bytes_of(const Array<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// On another thread, or on this one if there is none.
template <class T>
void write_in_background(const RowStream<T>& stream, FunctionRef<void(std::string_view)> take) {
    for (Array<T> made = stream.next(); made.size() != 0;) {
        [[maybe_unused]] const SmallStacks stacks;
        std::future<void> writing =
            std::async(std::launch::async | std::launch::deferred, [&] { take(bytes_of(made)); });
        Array<T> next = stream.next();
        writing.get();
        made = std::move(next);
    }
}

StoredType word_type(const NamedArray& array, const std::optional<StoredArrays>& stored) {
    return stored && is_real(array) ? stored->type : StoredType{.kind = type_of(array, {})};
}

/// Words, a part at a time: the low bytes of each.
template <class T>
void write_stored(const Array<T>& values, const StoredType& type,
                  FunctionRef<void(std::string_view)> take) {
    const std::size_t size = row_of(type.element()).size, part = 4096;
    std::array<char, part * sizeof(std::int64_t)> bytes;
    for (std::size_t begin = 0; begin < values.size(); begin += part) {
        const std::size_t count = std::min(part, values.size() - begin);
        for (std::size_t i = 0; i < count; ++i) {
            const std::int64_t word =
                attn::stored(static_cast<double>(values.data()[begin + i]), type).word;
            std::memcpy(bytes.data() + i * size, &word, size);
        }
        take({bytes.data(), count * size});
    }
}

template <class T>
std::uint64_t count_saturated(const std::string& name, const Array<T>& values,
                              const StoredType& type) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const auto number = static_cast<double>(values.data()[i]);
        if (type.is_integer() && std::isnan(number))
            throw SettingError(ErrorKind::input, "store", name, index_text(i, values.shape()),
                               " is NaN, which no integer holds; expected float16 or "
                               "bfloat16, or --emit with other arrays");
        if (type.wraps && std::isinf(number))
            throw SettingError(ErrorKind::input, "store", name, index_text(i, values.shape()),
                               " is infinite, which does not wrap; expected the type without "
                               "WRAP, or --emit with other arrays");
        if (stored(number, type).saturated) ++count;
    }
    return count;
}

}  // namespace

ArrayBytes describe(const NamedArray& array, const std::optional<StoredArrays>& stored) {
    return {type_of(array, stored), shape_of(array)};
}

void write_bytes(const NamedArray& array, const std::optional<StoredArrays>& stored,
                 const ThreadPool* workers, FunctionRef<void(std::string_view)> take) {
    if ((stored && is_real(array)) || array.type)
        return for_each_piece(array, [&](const auto& values) {
            write_stored(values, word_type(array, stored), take);
        });
    if (array.stream && workers != nullptr && workers->threads() > 1)
        return std::visit([&](const auto& stream) { write_in_background(stream, take); },
                          *array.stream);
    for_each_piece(array, [&](const auto& values) { take(bytes_of(values)); });
}

std::vector<StoredType> word_types(const Report& report) {
    std::vector<StoredType> types;
    for (const NamedArray& array : report.arrays) types.push_back(word_type(array, report.stored));
    return types;
}

std::string about(const Report& report, std::size_t index) {
    const NamedArray& array = report.arrays[index];
    std::string text =
        " (" + comma_list(array.axes) + "): " + meaning_of(word_type(array, report.stored));
    if (report.stored && report.stored->saturated[index] != 0)
        text += "; " + saturation_text(*report.stored, index);
    return text;
}

char* write_hex(char* at, std::int64_t word, int bits) {
    constexpr int of_digit = 4;
    auto rest = static_cast<std::uint64_t>(word);
    if (bits < 64) rest &= (std::uint64_t{1} << bits) - 1;
    char* const end = at + (bits + of_digit - 1) / of_digit;
    for (char* digit = end; digit != at; rest >>= of_digit)
        *--digit = "0123456789abcdef"[rest & 15];
    return end;
}

StoredArrays stored_arrays(const std::vector<NamedArray>& arrays, const StoredType& type) {
    StoredArrays made{type, {}, {}};
    for (const NamedArray& array : arrays) {
        made.saturated.push_back(std::visit(
            [&]<class T>(const Array<T>& values) -> std::uint64_t {
                if constexpr (std::is_same_v<T, std::int64_t>) return 0;
                return count_saturated(array.name, values, type);
            },
            array.values));
        made.sizes.push_back(
            std::visit([](const auto& values) { return values.size(); }, array.values));
    }
    return made;
}

std::string saturation_text(const StoredArrays& arrays, std::size_t index) {
    const StoredType& type = arrays.type;
    std::string text = std::to_string(arrays.saturated[index]) + " of " +
                       std::to_string(arrays.sizes[index]) + " numbers ";
    const std::string_view largest = row_of(type.kind).largest_text;
    if (type.saturates) return concat(text, "saturated at -", largest, " or ", largest);
    if (!type.is_integer())
        return concat(text, "beyond ", largest,
                      type.kind == NumberType::float8_e4m3 ? " are NaN" : " are infinite");
    return concat(text, type.wraps ? "wrapped around beyond " : "saturated at ",
                  quantised(-HUGE_VAL, type.width()).word, " or ",
                  quantised(HUGE_VAL, type.width()).word);
}

bool is_real(const NamedArray& array) {
    return array.stream || !std::holds_alternative<Array<std::int64_t>>(array.values);
}

}  // namespace attn::io
