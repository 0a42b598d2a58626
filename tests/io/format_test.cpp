// Every output format by every type, rank and way an array is made: what another program reads is
// what the array holds, to the bit, or rounded to the stored type. tests/fuzz reads files of attn
// by attn. Tables: cli/masked_test.cpp; PyTorch's print: torch_writer_test.cpp.
#include "io/write/output_formats.hpp"
#include "tests/support/awkward_values.hpp"
#include "tests/support/decode.hpp"
#include "tests/support/row_stream.hpp"

namespace format_test {
namespace {

using namespace attn;
using namespace attn::io;
using attn::test::Decoded;
using attn::test::DecodedFile;
using attn::test::same_bits;

using Shape = std::vector<std::size_t>;

const std::vector<Shape> shapes{{1}, {70}, {1, 1}, {7, 66}, {40, 1}, {3, 2, 5}, {2, 3, 4, 5}};
constexpr std::array<std::string_view, 4> axes{"batch", "heads", "q_len", "kv_len"};

/// An array, or a stream that makes `rows` of its rows at a time.
template <class T>
NamedArray named(const Array<T>& values, std::size_t rows = 0, std::string name = "x.7") {
    const auto rank = static_cast<std::ptrdiff_t>(values.dimension());
    NamedArray array{std::move(name), values, {axes.end() - rank, axes.end()}};
    if constexpr (std::is_floating_point_v<T>)
        if (rows != 0) {
            array.values = Array<float>();
            array.stream = test::row_stream(values, rows);
        }
    return array;
}

Report report_of(std::vector<NamedArray> arrays) {
    Report report;
    report.head = {{"schema", R"("attn.result/1")"},
                   {"tokens", R"(["[1]","a\"]"])"},
                   {"config", R"({"scale":-0.0,"list":[1,[2]]})"}};
    report.command = "attn self '*/ /* \n \\'";
    report.file = "a-b.h";
    report.arrays = std::move(arrays);
    return report;
}

std::string text_of(Writer write, const Report& report, const NumberStyle& style = {}) {
    return test::written([&](Output& out) { write(out, report, style); });
}

DecodedFile decoded(std::string_view format, const std::string& text) {
    if (format.ends_with("json")) return test::decode_json(text);
    if (format == "npz") return test::decode_npz(text);
    if (format == "safetensors") return test::decode_safetensors(text);
    const Decoded one = format == "npy"        ? test::decode_npy(text)
                        : format == "csv-long" ? test::decode_long(text)
                        : format == "c"        ? test::decode_c(text)
                        : format == "memh"
                            ? test::decode_memh(text)
                            : test::decode_separated(text, format == "csv" ? ',' : '\t');
    return {{"x.7", one}};
}

/// What the C library makes of a word.
template <class T>
T parsed(const std::string& word) {
    if constexpr (std::is_same_v<T, float>) return std::strtof(word.c_str(), nullptr);
    if constexpr (std::is_same_v<T, double>) return std::strtod(word.c_str(), nullptr);
    // The least integer has no literal in C.
    return word == "(-9223372036854775807 - 1)"
               ? std::numeric_limits<T>::min()
               : static_cast<T>(std::strtoll(word.c_str(), nullptr, 0));
}

/// Whether a word is the number.
template <class T>
bool is_right(const std::string& word, T value, const OutputFormat& format,
              const NumberStyle& style) {
    if (format.name == "memh") {
        using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
        const auto bits = static_cast<Bits>(std::strtoull(word.c_str(), nullptr, 16));
        return word.size() == 2 * sizeof(T) && same_bits(std::bit_cast<T>(bits), value);
    }
    if constexpr (std::is_floating_point_v<T>) {
        if (!std::isfinite(value)) {
            if (format.json && style.nonfinite == Nonfinite::null) return word == "null";
            const bool is_c = format.name == "c", is_quoted = style.nonfinite == Nonfinite::string;
            const std::string sign = value < 0 ? "-" : "",
                              quote = format.json && is_quoted ? "\"" : "";
            const std::string nan = format.json || format.lists_elements ? "NaN"
                                    : is_c                               ? "NAN"
                                                                         : "nan",
                              infinity = format.json ? "Infinity"
                                         : is_c      ? "INFINITY"
                                                     : "inf";
            return word == quote + (std::isnan(value) ? nan : sign + infinity) + quote;
        }
        if (style.decimals && format.decimals) {
            char shown[512];
            std::snprintf(shown, sizeof shown, "%.*f", *style.decimals, static_cast<double>(value));
            // JSON may add a point to what it would read as another integer.
            return format.json
                       ? word.starts_with(shown) &&
                             same_bits(test::json_number<double>(word), parsed<double>(shown))
                       : word == shown;
        }
        // Otherwise it would be an integer, or a double.
        if (format.name == "c" && (word.find_first_of(".e") == std::string::npos ||
                                   (word.back() == 'f') != std::is_same_v<T, float>))
            return false;
    }
    return same_bits(format.json ? test::json_number<T>(word) : parsed<T>(word), value);
}

template <class T>
void check_array(const Decoded& read, const Array<T>& values, const OutputFormat& format,
                 const NumberStyle& style) {
    const Shape shape(values.shape().begin(), values.shape().end());
    constexpr bool is_float = std::is_same_v<T, float>, is_double = std::is_same_v<T, double>;
    if (format.binary) {
        CHECK(read.type == (is_float ? "f4" : is_double ? "f8" : "i8"));
        CHECK((read.bytes == std::string(reinterpret_cast<const char*>(values.data()),
                                         values.size() * sizeof(T))));
    } else {
        REQUIRE(read.words.size() == values.size());
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < values.size(); ++i)
            wrong += is_right(read.words[i], values.data()[i], format, style) ? 0U : 1U;
        CHECK(wrong == 0);
    }
    if (format.name == "c") {
        std::string declared = std::string("static const ") +
                               (is_float    ? "float"
                                : is_double ? "double"
                                            : "int64_t") +
                               " x_7";
        for (const std::size_t length : shape) declared += "[" + std::to_string(length) + "]";
        CHECK(read.type == declared);
    } else if (format.name != "memh") {
        CHECK(read.shape == shape);
    }
}

std::vector<NumberStyle> styles_of(const OutputFormat& format) {
    if (!format.decimals) return {{}};
    std::vector<NumberStyle> all;
    for (const std::optional<int> decimals : {std::optional<int>(), {0}, {1}, {6}, {20}})
        for (const auto& [nonfinite, name] : nonfinite_names)
            for (bool pretty : {false, true})
                if (format.json || (nonfinite == Nonfinite::string && !pretty))
                    all.push_back({decimals, nonfinite, pretty});
    return all;
}

/// Arrays of all shapes, stored and streamed, in one file or, if it holds one, each in its own.
template <class T>
void check_type(const OutputFormat& format, std::mt19937_64& random, ThreadPool* workers) {
    std::vector<Array<T>> values;
    for (const Shape& shape : shapes) values.push_back(test::awkward_values<T>(shape, random));
    const bool holds_many = format.has_head;
    for (const NumberStyle& style : styles_of(format))
        for (const std::size_t rows : {0u, 1u, 3u, 1000u}) {
            std::vector<NamedArray> many;
            for (std::size_t i = 0; i < values.size(); ++i) {
                if (holds_many) {
                    many.push_back(named(values[i], 0, "kept." + std::to_string(i)));
                    many.push_back(named(values[i], rows, "made." + std::to_string(i)));
                    continue;
                }
                Report report = report_of({named(values[i], rows)});
                report.workers = workers;
                const std::string text = text_of(format.write, report, style);
                check_array(decoded(format.name, text).at("x.7"), values[i], format, style);
            }
            if (!holds_many) continue;
            Report report = report_of(std::move(many));
            report.workers = workers;
            const std::string text = text_of(format.write, report, style);
            if (format.json && !style.pretty) CHECK(text.find('\n') == text.size() - 1);
            const DecodedFile read = decoded(format.name, text);
            if (format.name == "npz") CHECK(read.at("__metadata__").bytes == head_text(report));
            for (std::size_t i = 0; i < values.size(); ++i)
                for (const char* way : {"kept.", "made."})
                    check_array(read.at(way + std::to_string(i)), values[i], format, style);
        }
}

TEST_CASE("formats: a reader of any format that streams gets every bit back, under every style") {
    std::mt19937_64 random(7);
    ThreadPool three(3);
    for (const OutputFormat& format : output_formats)
        for (ThreadPool* const workers : {static_cast<ThreadPool*>(nullptr), &three}) {
            if (!format.streams || format.write == nullptr || format.name == "ndjson" ||
                format.is_folder)
                continue;
            CAPTURE(format.name);
            for (int draw = 0; draw < 2; ++draw) {
                check_type<float>(format, random, workers);
                check_type<double>(format, random, workers);
            }
            check_type<std::int64_t>(format, random, workers);
        }
}

TEST_CASE("formats: stored types have the words of the rounded numbers") {
    std::mt19937_64 random(8);
    for (const char* name : {"float16", "bfloat16", "float8_e4m3fn", "float8_e4m3fn:SAT",
                             "float8_e5m2", "float8_e5m2:SAT", "int8:0.05", "fixed:1,0",
                             "fixed:12,8", "fixed:16,20", "fixed:31,-3", "fixed:64,40"})
        for (const Shape& shape : shapes) {
            CAPTURE(name);
            StoredType type;
            REQUIRE(parse_stored_type(name, type) == "");
            CHECK(attn::io::text_of(type) == name);
            auto values = test::awkward_values<double>(shape, random);
            if (type.is_integer())
                for (double& value : values) value = std::isnan(value) ? 0.25 : value;
            Report report = report_of({named(values)});
            report.stored = stored_arrays(report.arrays, type);
            const std::string header = text_of(write_c, report),
                              words = text_of(write_memh, report);
            const Decoded c = test::decode_c(header), memh = test::decode_memh(words);
            const int width = type.width();
            const std::string kind = type.is_float8()     ? "uint8_t"
                                     : !type.is_integer() ? "uint16_t"
                                     : width <= 8         ? "int8_t"
                                     : width <= 16        ? "int16_t"
                                     : width <= 32        ? "int32_t"
                                                          : "int64_t";
            CHECK(c.type.starts_with("static const " + kind + " x_7["));
            REQUIRE(c.words.size() == values.size());
            REQUIRE(memh.words.size() == values.size());
            std::uint64_t saturated = 0;
            int wrong = 0;
            for (std::size_t i = 0; i < values.size(); ++i) {
                const StoredWord expected = stored(values.data()[i], type);
                saturated += expected.saturated ? 1U : 0U;
                wrong += parsed<std::int64_t>(c.words[i]) == expected.word ? 0 : 1;
                const std::string& digits = memh.words[i];
                const std::uint64_t bits =
                    static_cast<std::uint64_t>(expected.word) << (64 - width) >> (64 - width);
                wrong += std::strtoull(digits.c_str(), nullptr, 16) == bits ? 0 : 1;
                wrong += digits.size() == static_cast<std::size_t>((width + 3) / 4) ? 0 : 1;
            }
            CHECK(wrong == 0);
            CHECK(report.stored->saturated[0] == saturated);
            const std::string said =
                std::to_string(saturated) + " of " + std::to_string(values.size()) + " numbers";
            CHECK((header.find(said) != std::string::npos) == (saturated != 0));
            CHECK((words.find(said) != std::string::npos) == (saturated != 0));
        }
}

TEST_CASE(
    "formats: integer types refuse NaN, and arrays of one file have words of the same width") {
    StoredType type;
    REQUIRE(parse_stored_type("fixed:8,4", type) == "");
    auto with_nan = Array<double>::from_shape({2, 2});
    with_nan.data()[3] = std::nan("");
    CHECK_THROWS_WITH(stored_arrays(report_of({named(with_nan)}).arrays, type),
                      doctest::Contains("x.7[1, 1] is NaN, which no integer holds"));
    const NamedArray five = named(Array<float>::from_shape({4, 5}));
    CHECK_THROWS_WITH(text_of(write_memh, report_of({five, named(with_nan, 0, "n")})),
                      doctest::Contains("x.7 has words of 32 bits and n of 64"));
    const std::string text =
        text_of(write_memh, report_of({five, named(Array<float>::from_shape({2}), 0, "y")}));
    CHECK(text.find("\n@0\n") != std::string::npos);
    CHECK(text.find("\n@14\n") != std::string::npos);
}

}  // namespace
}  // namespace format_test
