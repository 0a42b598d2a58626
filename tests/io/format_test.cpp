// Every output format by every type, rank and way an array is made: what another program reads is
// what the array holds, to the bit. tests/fuzz reads files of attn by attn.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "io/write/output_formats.hpp"
#include "tests/support/awkward_values.hpp"
#include "tests/support/decode.hpp"
#include "tests/support/row_stream.hpp"
#include "tests/support/support.hpp"

namespace format_test {

using namespace attn;
using namespace attn::io;
using attn::test::Decoded;
using attn::test::DecodedFile;

namespace {

using Shape = std::vector<std::size_t>;

const std::vector<Shape> shapes{{1}, {70}, {1, 1}, {7, 66}, {40, 1}, {3, 2, 5}, {2, 3, 4, 5}};
constexpr std::array<std::string_view, 4> axes{"batch", "heads", "q_len", "kv_len"};

template <class T>
NamedArray kept(std::string name, const Array<T>& values) {
    const std::size_t rank = values.dimension();
    return {std::move(name), values, {axes.end() - static_cast<std::ptrdiff_t>(rank), axes.end()}};
}

/// The same as a stream that makes a few rows at a time.
template <class T>
NamedArray streamed(std::string name, const Array<T>& values, std::size_t rows) {
    NamedArray array = kept(std::move(name), values);
    array.values = Array<float>();
    array.stream = attn::test::row_stream(values, rows);
    return array;
}

Report report_of(std::vector<NamedArray> arrays, ThreadPool* workers = nullptr) {
    Report report;
    report.head = {{"schema", R"("attn.result/1")"},
                   {"tokens", R"(["[1]","a\"]"])"},
                   {"config", R"({"scale":-0.0,"list":[1,[2]]})"}};
    report.arrays = std::move(arrays);
    report.workers = workers;
    return report;
}

std::string text_of(Writer write, const Report& report, const NumberStyle& style = {}) {
    return test::written([&](Output& out) { write(out, report, style); });
}

template <class T>
std::string bytes_of(const Array<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <class T>
std::string type_of() {
    return std::is_same_v<T, float> ? "f4" : std::is_same_v<T, double> ? "f8" : "i8";
}

template <class T>
bool same_bits(T a, T b) {
    return std::memcmp(&a, &b, sizeof a) == 0;
}

/// What `printf` shows of a number, as a second opinion on decimals.
template <class T>
std::string printed(char notation, int decimals, T value) {
    char text[512];
    const auto number = static_cast<double>(value);
    if (notation == 'e')
        std::snprintf(text, sizeof text, "%.*e", decimals, number);
    else
        std::snprintf(text, sizeof text, "%.*f", decimals, number);
    return text;
}

std::string word_of(double value, const char* nan, const char* inf) {
    return std::isnan(value) ? nan : (value < 0 ? "-" : "") + std::string(inf);
}

/// Words of a format that readers take for JSON or for Python's float().
template <class T>
void check_words(const Decoded& read, const Array<T>& values, const NumberStyle& style,
                 bool is_json) {
    CHECK(read.shape == Shape(values.shape().begin(), values.shape().end()));
    REQUIRE(read.words.size() == values.size());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const T value = values.data()[i];
        const std::string& word = read.words[i];
        std::string expected;
        if constexpr (std::is_floating_point_v<T>) {
            if (!std::isfinite(value)) {
                expected =
                    is_json ? word_of(value, "NaN", "Infinity") : word_of(value, "nan", "inf");
                if (is_json && style.nonfinite == Nonfinite::string)
                    expected = '"' + expected + '"';
                if (is_json && style.nonfinite == Nonfinite::null) expected = "null";
                wrong += word == expected ? 0U : 1U;
                continue;
            }
            if (style.decimals) {
                expected = printed('f', *style.decimals, value);
                // JSON may add a point to what it would read as another integer.
                const double shown = std::strtod(expected.c_str(), nullptr);
                const bool same = is_json ? same_bits(test::json_number<double>(word), shown) &&
                                                word.starts_with(expected)
                                          : word == expected;
                wrong += same ? 0U : 1U;
                continue;
            }
        }
        if (is_json) {
            wrong += same_bits(test::json_number<T>(word), value) ? 0U : 1U;
        } else if constexpr (std::is_floating_point_v<T>) {
            T parsed;
            if constexpr (std::is_same_v<T, float>)
                parsed = std::strtof(word.c_str(), nullptr);
            else
                parsed = std::strtod(word.c_str(), nullptr);
            wrong += same_bits(parsed, value) ? 0U : 1U;
        } else {
            wrong += word == std::to_string(value) ? 0U : 1U;
        }
    }
    CHECK(wrong == 0);
}

/// What people read: the digits that printf has, and the sign of zero.
template <class T>
void check_shown(const Decoded& read, const Array<T>& values, bool is_torch) {
    REQUIRE(read.words.size() == values.size());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const T value = values.data()[i];
        const std::string& word = read.words[i];
        if constexpr (!std::is_floating_point_v<T>) {
            // PyTorch's own formatter shows integers of up to 53 bits through float64 as well.
            wrong += is_torch || word == std::to_string(value) ? 0U : 1U;
        } else if (!std::isfinite(value)) {
            wrong += word == word_of(value, "nan", "inf") ? 0U : 1U;
        } else if (!is_torch && std::abs(static_cast<double>(value)) >= 1e10) {
            wrong += word == printed('e', 1, value) ? 0U : 1U;
        } else {
            const bool good = word == printed('f', 4, value) ||
                              (is_torch && (word == printed('e', 4, value) ||
                                            word == printed('f', 0, value) + "."));
            wrong += good ? 0U : 1U;
        }
    }
    CHECK(wrong == 0);
}

/// Of "kept_3" or "streamed_3".
std::size_t place_of(const std::string& name) {
    return std::stoul(name.substr(name.find('_') + 1));
}

/// The arrays of one report: integers, stored and streamed arrays of every rank.
template <class T>
struct Arrays {
    Array<std::int64_t> ids;
    std::vector<Array<T>> values;

    template <class Check>
    void with(const std::string& name, const Check& check) const {
        name == "token_ids" ? check(ids) : check(values[place_of(name)]);
    }

    std::vector<NamedArray> named(std::size_t rows) const {
        std::vector<NamedArray> all{{"token_ids", ids, {"tokens"}}};
        for (std::size_t i = 0; i < values.size(); ++i) {
            all.push_back(kept("kept_" + std::to_string(i), values[i]));
            if (rows != 0)
                all.push_back(streamed("streamed_" + std::to_string(i), values[i], rows));
        }
        return all;
    }
};

template <class T>
Arrays<T> make_arrays(std::mt19937_64& random) {
    Arrays<T> arrays{test::awkward_values<std::int64_t>({9}, random), {}};
    for (const Shape& shape : shapes)
        arrays.values.push_back(test::awkward_values<T>(shape, random));
    return arrays;
}

/// Calls `check` with each array and what was read of it, kept and streamed.
template <class T, class Check>
void for_each_read(const DecodedFile& read, const Arrays<T>& arrays, std::size_t rows,
                   const Check& check) {
    check(read.at("token_ids"), arrays.ids);
    for (std::size_t i = 0; i < arrays.values.size(); ++i) {
        check(read.at("kept_" + std::to_string(i)), arrays.values[i]);
        if (rows != 0) check(read.at("streamed_" + std::to_string(i)), arrays.values[i]);
    }
}

const auto check_bytes = []<class T>(const Decoded& read, const Array<T>& values) {
    CHECK(read.type == type_of<T>());
    CHECK(read.shape == Shape(values.shape().begin(), values.shape().end()));
    CHECK((read.bytes == bytes_of(values)));
};

std::vector<NumberStyle> styles() {
    std::vector<NumberStyle> all;
    for (const std::optional<int> decimals : {std::optional<int>(), {0}, {1}, {6}, {20}})
        for (const auto& [nonfinite, name] : nonfinite_names)
            for (bool pretty : {false, true}) all.push_back({decimals, nonfinite, pretty});
    return all;
}

template <class T>
void check_binary(std::mt19937_64& random, ThreadPool* workers) {
    const Arrays<T> arrays = make_arrays<T>(random);
    for (std::size_t rows : {0u, 1u, 3u, 1000u}) {
        const Report report = report_of(arrays.named(rows), workers);
        const DecodedFile npz = test::decode_npz(text_of(write_npz, report));
        for_each_read(npz, arrays, rows, check_bytes);
        CHECK(npz.at("__metadata__").bytes == head_text(report));
        const Report again = report_of(arrays.named(rows), workers);
        for_each_read(test::decode_safetensors(text_of(write_safetensors, again)), arrays, rows,
                      check_bytes);
        for (const NamedArray& array : arrays.named(rows)) {
            const Decoded npy = test::decode_npy(text_of(write_npy, report_of({array})));
            arrays.with(array.name, [&](const auto& values) { check_bytes(npy, values); });
        }
    }
}

template <class T>
void check_json(std::mt19937_64& random, ThreadPool* workers) {
    const Arrays<T> arrays = make_arrays<T>(random);
    for (const NumberStyle& style : styles()) {
        const std::size_t rows = random() % 4;
        const std::string text = text_of(write_json, report_of(arrays.named(rows), workers), style);
        if (!style.pretty) CHECK(text.find('\n') == text.size() - 1);
        for_each_read(test::decode_json(text), arrays, rows,
                      [&](const Decoded& read, const auto& values) {
                          check_words(read, values, style, true);
                      });
    }
}

template <class T>
void check_separated(std::mt19937_64& random, ThreadPool* workers) {
    const Arrays<T> arrays = make_arrays<T>(random);
    for (const NumberStyle& style : styles()) {
        if (style.nonfinite != Nonfinite::string || style.pretty) continue;
        const std::size_t rows = random() % 4;
        for (const auto& [format, separator] : {std::pair(&write_csv, ','), {&write_tsv, '\t'}})
            for (const NamedArray& array : arrays.named(rows)) {
                const std::string text = text_of(format, report_of({array}, workers), style);
                const Decoded read = test::decode_separated(text, separator);
                arrays.with(array.name,
                            [&](const auto& values) { check_words(read, values, style, false); });
            }
    }
}

template <class T>
void check_for_people(std::mt19937_64& random) {
    const Arrays<T> arrays = make_arrays<T>(random);
    const Report report = report_of(arrays.named(0));
    for_each_read(
        test::decode_table(text_of(write_table, report)), arrays, 0,
        [](const Decoded& read, const auto& values) { check_shown(read, values, false); });
    for_each_read(test::decode_torch(text_of(write_torch, report)), arrays, 0,
                  [](const Decoded& read, const auto& values) {
                      check_shown(read, values, true);
                      using V = typename std::decay_t<decltype(values)>::value_type;
                      CHECK(read.type == (std::is_same_v<V, double> ? "dtype=torch.float64" : ""));
                  });
}

/// Both types, several draws, alone and with workers.
template <class Check>
void for_types(const Check& check) {
    std::mt19937_64 random(7);
    ThreadPool workers(3);
    for (int draw = 0; draw < 6; ++draw) {
        ThreadPool* const helpers = draw % 2 == 0 ? nullptr : &workers;
        check(float{}, random, helpers);
        check(double{}, random, helpers);
    }
}

}  // namespace

TEST_CASE(
    "formats: npy, npz and safetensors hold each array's own type and bytes, streamed or not") {
    for_types([]<class T>(T, std::mt19937_64& random, ThreadPool* workers) {
        check_binary<T>(random, workers);
    });
}

TEST_CASE("formats: a reader of JSON gets every bit back, under every style") {
    for_types([]<class T>(T, std::mt19937_64& random, ThreadPool* workers) {
        check_json<T>(random, workers);
    });
}

TEST_CASE("formats: csv and tsv give every bit back") {
    for_types([]<class T>(T, std::mt19937_64& random, ThreadPool* workers) {
        check_separated<T>(random, workers);
    });
}

TEST_CASE("formats: tables and PyTorch's print show each number as printf rounds it") {
    for_types(
        []<class T>(T, std::mt19937_64& random, ThreadPool*) { check_for_people<T>(random); });
}

}  // namespace format_test
