#include "io/write/array_bytes.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <thread>
#include <type_traits>

#include "core/base/error.hpp"
#include "core/base/low_precision.hpp"
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
    if (stored && is_real(array)) return stored->type.kind;
    if (array.stream)
        return std::visit([]<class T>(const RowStream<T>&) { return dtype_of<T>; }, *array.stream);
    return std::visit([]<class T>(const Array<T>&) { return dtype_of<T>; }, array.values);
}

template <class T>
std::string_view bytes_of(const Array<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// Work for another thread, or for the caller if there is none.
class BackgroundWork {
public:
    explicit BackgroundWork(FunctionRef<void()> work)
        : work_(work), thread_(start_threads(1, [this](std::size_t) { run(); })) {}
    BackgroundWork(const BackgroundWork&) = delete;
    BackgroundWork& operator=(const BackgroundWork&) = delete;
    ~BackgroundWork() { join(); }

    /// Errors: those of the work.
    void wait() {
        if (thread_.empty()) run();
        join();
        if (failure_) std::rethrow_exception(failure_);
    }

private:
    void run() {
        try {
            work_();
        } catch (...) {
            failure_ = std::current_exception();
        }
    }

    void join() {
        for (std::thread& thread : thread_) thread.join();
        thread_.clear();
    }

    FunctionRef<void()> work_;
    std::exception_ptr failure_;
    std::vector<std::thread> thread_;  // last: it uses all of the above
};

template <class T>
void write_in_background(const RowStream<T>& stream, FunctionRef<void(std::string_view)> take) {
    for (Array<T> made = stream.next(); made.size() != 0;) {
        const auto write = [&] { take(bytes_of(made)); };
        BackgroundWork writing(write);
        Array<T> next = stream.next();
        writing.wait();
        made = std::move(next);
    }
}

/// Words of 16 bits, a part at a time.
template <class T>
void write_stored(const Array<T>& values, const StoredType& type,
                  FunctionRef<void(std::string_view)> take) {
    std::array<std::uint16_t, 4096> words;
    for (std::size_t begin = 0; begin < values.size(); begin += words.size()) {
        const std::size_t count = std::min(words.size(), values.size() - begin);
        for (std::size_t i = 0; i < count; ++i)
            words[i] = static_cast<std::uint16_t>(
                io::stored(static_cast<double>(values.data()[begin + i]), type).word);
        take({reinterpret_cast<const char*>(words.data()), count * sizeof words[0]});
    }
}

WordType word_type(const NamedArray& array, const std::optional<StoredArrays>& stored) {
    if (stored && is_real(array)) {
        const StoredType& type = stored->type;
        return {type.width(), false, !type.is_integer(), type};
    }
    const NumberType type = describe(array, {}).element;
    return {8 * static_cast<int>(row_of(type).size), is_float(type), false, {}};
}

std::string meaning_of(const WordType& words) {
    const std::string width = std::to_string(words.width);
    if (!words.stored) return (words.is_float ? "float" : "int") + width;
    const StoredType& type = *words.stored;
    if (words.is_bits) return "bits of " + text_of(type);
    if (type.kind == NumberType::int8) return "int8, number = word * " + number_text(type.scale);
    return "two's complement of " + width + " bits, number = word * 2^" +
           std::to_string(-type.fraction);
}

constexpr double least_scale = 1e-300, largest_scale = 1e300;
constexpr int bit_limit = 64, fraction_limit = 1022;

constexpr const char* expected_types =
    "not a type of stored numbers; expected float16, bfloat16, int8:SCALE or fixed:BITS,FRACTION";

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
    if (stored && is_real(array))
        return for_each_piece(
            array, [&](const auto& values) { write_stored(values, stored->type, take); });
    if (array.stream && workers != nullptr && workers->threads() > 1)
        return std::visit([&](const auto& stream) { write_in_background(stream, take); },
                          *array.stream);
    for_each_piece(array, [&](const auto& values) { take(bytes_of(values)); });
}

std::vector<WordType> word_types(const Report& report) {
    std::vector<WordType> types;
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

StoredWord stored(double number, const StoredType& type) {
    const auto of_float = [number](std::uint16_t bits, std::uint16_t infinity) {
        return StoredWord{bits, std::isfinite(number) && (bits & 0x7fff) == infinity};
    };
    const auto of_integer = [](const Quantised& made) {
        return StoredWord{made.integer, made.saturated};
    };
    switch (type.kind) {
        case NumberType::float16: return of_float(half_of_double(number), 0x7c00);
        case NumberType::bfloat16: return of_float(bfloat16_of_double(number), 0x7f80);
        case NumberType::int8: return of_integer(int8_of_double(number, type.scale));
        default: return of_integer(fixed_of_double(number, type.bits, type.fraction));
    }
}

std::string parse_stored_type(std::string_view text, StoredType& type) {
    const std::size_t colon = std::min(text.find(':'), text.size());
    const auto* const named = find_row(
        stored_types, &std::pair<NumberType, std::string_view>::second, text.substr(0, colon));
    if (named == nullptr) return expected_types;
    StoredType made;
    made.kind = named->first;
    const std::string_view rest = text.substr(std::min(colon + 1, text.size()));
    if (!made.is_integer()) {
        if (colon != text.size()) return expected_types;
    } else if (made.kind == NumberType::int8) {
        const std::optional<double> scale = number_of_text<double>(rest);
        if (!scale || !(*scale >= least_scale && *scale <= largest_scale))
            return "not a scale; expected a number from 1e-300 to 1e300, as in int8:0.05";
        made.scale = *scale;
    } else {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        const std::optional<int> bits = number_of_text<int>(rest.substr(0, comma));
        const std::optional<int> fraction =
            number_of_text<int>(rest.substr(std::min(comma + 1, rest.size())));
        if (!bits || !fraction || *bits < 1 || *bits > bit_limit || *fraction < -fraction_limit ||
            *fraction > fraction_limit)
            return "not fixed point; expected 1 to 64 bits, and -1022 to 1022 of them after the "
                   "point, as in fixed:16,8";
        made.bits = *bits;
        made.fraction = *fraction;
    }
    type = made;
    return {};
}

std::string text_of(const StoredType& type) {
    std::string text(row_of(type.kind).name);
    if (type.kind == NumberType::int8) text += ":" + number_text(type.scale);
    if (type.kind == NumberType::fixed)
        text += ":" + std::to_string(type.bits) + "," + std::to_string(type.fraction);
    return text;
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
    if (!type.is_integer())
        return concat(text, "beyond ", row_of(type.kind).largest_text, " are infinite");
    return text + "saturated at " + std::to_string(quantised(-HUGE_VAL, type.width()).integer) +
           " or " + std::to_string(quantised(HUGE_VAL, type.width()).integer);
}

bool is_real(const NamedArray& array) {
    return array.stream || !std::holds_alternative<Array<std::int64_t>>(array.values);
}

}  // namespace attn::io
