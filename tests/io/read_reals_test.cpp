// Numbers of binary files in the type in which they are computed, against what was stored.
#include "io/file/zip.hpp"
#include "io/read/array_file.hpp"
#include "io/read/input_formats.hpp"
#include "tests/support/support.hpp"

namespace read_reals_test {
namespace {

using namespace attn;
using namespace attn::io;
using namespace attn::test;

using Shape = std::vector<std::size_t>;

/// The row-major position of the element at `at` in column-major order.
std::size_t turned(std::size_t at, const Shape& shape) {
    Shape index(shape.size());
    for (std::size_t axis = 0; axis < shape.size(); at /= shape[axis++])
        index[axis] = at % shape[axis];
    std::size_t place = 0;
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
        place = place * shape[axis] + index[axis];
    return place;
}

/// The type names of a file.
struct Form {
    const char* descr;  ///< without the byte order
    bool big_endian, fortran, zipped;
};

template <class Stored>
ArrayFile file_of(const Form& form, const Shape& shape, const std::vector<Stored>& elements) {
    std::string header = npy_header((form.big_endian ? ">" : "<") + std::string(form.descr), shape);
    if (form.fortran) header.replace(header.find("False"), 5, "True ");
    std::string bytes;
    bytes.reserve(elements.size() * sizeof(Stored));
    for (const Stored& element : elements) {
        char raw[sizeof(Stored)];
        std::memcpy(raw, &element, sizeof raw);
        if (form.big_endian) std::reverse(std::begin(raw), std::end(raw));
        bytes.append(raw, sizeof raw);
    }
    if (!form.zipped) return open_npy(Bytes::of("a", header + bytes));
    TextOutput sink;
    ZipWriter zip(sink);
    zip.begin("a.npy", header.size() + bytes.size());
    zip.write(header);
    zip.write(bytes);
    zip.end();
    zip.finish();
    return open_npz(Bytes::of("a", sink.text()));
}

ArrayRules rules_of(NumberType dtype, bool nonfinite) {
    ArrayRules rules;
    rules.dtype = dtype;
    rules.nonfinite = nonfinite;
    rules.lowest_rank = 1;
    rules.highest_rank = 4;
    return rules;
}

/// What the elements are as T, in row-major order.
template <class T, class Stored, class Value>
std::vector<T> truth_of(const Form& form, const Shape& shape, const std::vector<Stored>& elements,
                        const Value& value) {
    std::vector<T> truth(elements.size());
    for (std::size_t i = 0; i < elements.size(); ++i)
        truth[form.fortran ? turned(i, shape) : i] = static_cast<T>(value(elements[i]));
    return truth;
}

/// Reads random elements in both types, alone and by workers.
template <class Stored, class Value>
void check(Form form, const Value& value) {
    std::mt19937_64 random(sizeof(Stored));
    ThreadPool three(3);
    test::Sample sample;
    for (const Shape& shape : {Shape{1}, Shape{5}, Shape{2, 3}, Shape{3, 1, 4}, Shape{2, 3, 2, 5},
                               Shape{131, 523}, Shape{70000}}) {
        std::vector<Stored> elements(Array<char>::from_shape(shape).size());
        for (Stored& element : elements) {
            do {
                const std::uint64_t bits = random();
                std::memcpy(&element, &bits, sizeof element);
            } while (!std::isfinite(static_cast<float>(value(element))));
        }
        for (int ways = 0; ways < 8; ++ways) {
            if (!sample.takes()) continue;
            form.big_endian = (ways & 1) != 0;
            form.fortran = (ways & 2) != 0;
            form.zipped = (ways & 4) != 0;
            CAPTURE(form.descr);
            CAPTURE(ways);
            CAPTURE(shape_text(shape));
            const ArrayFile file = file_of(form, shape, elements);
            for (ThreadPool* workers : {static_cast<ThreadPool*>(nullptr), &three}) {
                const auto read = [&](NumberType dtype) {
                    return read_reals(file.arrays[0], rules_of(dtype, false), workers);
                };
                const RealArray narrow = read(NumberType::float32),
                                wide = read(NumberType::float64);
                CHECK(narrow.shape() == shape);
                CHECK(std::ranges::equal(narrow.in<float>(),
                                         truth_of<float>(form, shape, elements, value)));
                CHECK(std::ranges::equal(wide.in<double>(),
                                         truth_of<double>(form, shape, elements, value)));
            }
        }
    }
}

template <class Number>
Number as_it_is(Number number) {
    return number;
}

double of_half(std::uint16_t bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    if (exponent == 31) return std::numeric_limits<double>::infinity();
    const double size =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    return (bits & 0x8000) != 0 ? -size : size;
}

/// The first element, in row-major order, that the rules refuse, and how the error calls it.
std::string refusal_of(const Form& form, const Shape& shape, const std::vector<double>& elements,
                       const ArrayRules& rules) {
    const std::vector<double> values = truth_of<double>(form, shape, elements, as_it_is<double>);
    const bool narrows = rules.dtype == NumberType::float32 && form.descr == std::string("f8");
    for (std::size_t i = 0; i < values.size(); ++i) {
        const bool overflows = narrows && std::abs(values[i]) == 1e39;
        if (std::isfinite(values[i]) ? !overflows : rules.nonfinite) continue;
        const std::string row = std::to_string(i / shape[1]), column = std::to_string(i % shape[1]);
        return "element [" + row + ", " + column + "] is " +
               (overflows               ? "1e+39"
                : std::isnan(values[i]) ? "NaN"
                                        : "infinite");
    }
    return "";
}

TEST_CASE("read_reals: every type, order, shape and container gives the stored numbers") {
    check<std::int8_t>({"i1", {}, {}, {}}, as_it_is<std::int8_t>);
    check<std::uint16_t>({"u2", {}, {}, {}}, as_it_is<std::uint16_t>);
    check<std::int64_t>({"i8", {}, {}, {}}, as_it_is<std::int64_t>);
    check<std::uint64_t>({"u8", {}, {}, {}}, as_it_is<std::uint64_t>);
    check<std::uint16_t>({"f2", {}, {}, {}}, of_half);
    check<float>({"f4", {}, {}, {}}, as_it_is<float>);
    check<double>({"f8", {}, {}, {}}, as_it_is<double>);
}

TEST_CASE("read_reals: what is refused is the first such number, whoever reads it") {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const Shape shape{200, 401};
    std::mt19937_64 random(7);
    ThreadPool three(3);
    test::Sample sample;
    for (int round = 0; round < 6; ++round) {
        std::vector<double> elements(shape[0] * shape[1], 0.5);
        for (double bad : {std::nan(""), infinity, -infinity, 1e39})
            if (random() % 2 != 0) elements[random() % elements.size()] = bad;
        for (int ways = 0; ways < 32; ++ways) {
            if (!sample.takes()) continue;
            const bool is_double = (ways & 1) != 0;
            const Form form{is_double ? "f8" : "f4", false, (ways & 2) != 0, (ways & 4) != 0};
            const ArrayRules rules = rules_of(
                (ways & 8) != 0 ? NumberType::float32 : NumberType::float64, (ways & 16) != 0);
            std::vector<float> narrow;
            for (double element : elements)
                narrow.push_back(element == 1e39 ? 1.0f : static_cast<float>(element));
            const ArrayFile file =
                is_double ? file_of(form, shape, elements) : file_of(form, shape, narrow);
            const std::string refusal = refusal_of(
                form, shape,
                is_double ? elements : std::vector<double>(narrow.begin(), narrow.end()), rules);
            const std::string error =
                error_of([&] { read_reals(file.arrays[0], rules, round % 2 ? &three : nullptr); });
            CAPTURE(ways);
            CAPTURE(error);
            CHECK(error.empty() == refusal.empty());
            CHECK(error.find(refusal) != std::string::npos);
        }
    }
}

TEST_CASE("element types: files' names are those of the table, and no type of computation else") {
    for (const NumberTypeRow& row : number_types) {
        CAPTURE(row.name);
        const auto known = [&](std::string_view name) {
            return name.empty() ? std::nullopt : std::optional(row.type);
        };
        CHECK(type_of_safetensors(row.safetensors) == known(row.safetensors));
        CHECK(type_of_descr(row.descr) == known(row.descr));
        CHECK(type_of_descr(row.name) == known(row.descr));
        if (!row.descr.empty())
            CHECK(descr_of(row.type) == (row.size == 1 ? "|" : "<") + std::string(row.descr));
    }
}

}  // namespace
}  // namespace read_reals_test
