// attn compare: integers of every type next to every other type, shapes with axes of length 1, and
// what it prints.
#include "io/file/bytes.hpp"
#include "tests/support/answers.hpp"
#include "tests/support/drawn_model.hpp"

namespace compare_test {
namespace {

using namespace attn::test;
using nlohmann::json;

__extension__ using Exact = __int128;

struct Type {
    const char* name;  ///< npy's descr without byte order, or the suffix of a text file
    unsigned size;     ///< of an element; 0: text
    bool floats;
    Exact lowest, highest;
};

constexpr Exact two_to(int n) {
    return Exact{1} << n;
}

constexpr Type types[]{
    {"b1", 1, false, 0, 1},
    {"i1", 1, false, -two_to(7), two_to(7) - 1},
    {"i2", 2, false, -two_to(15), two_to(15) - 1},
    {"i4", 4, false, -two_to(31), two_to(31) - 1},
    {"i8", 8, false, -two_to(63), two_to(63) - 1},
    {"u1", 1, false, 0, two_to(8) - 1},
    {"u2", 2, false, 0, two_to(16) - 1},
    {"u4", 4, false, 0, two_to(32) - 1},
    {"u8", 8, false, 0, two_to(64) - 1},
    {"f2", 2, true, -2048, 2048},
    {"f4", 4, true, -two_to(64), two_to(64)},
    {"f8", 8, true, -two_to(64), two_to(64)},
    {"json", 0, false, -two_to(63), two_to(64) - 1},
    {"csv", 0, false, -two_to(63), two_to(64) - 1},
};

/// The nearest number that the type has.
Exact nearest(const Type& type, Exact value) {
    value = std::clamp(value, type.lowest, type.highest);
    const std::string name = type.name;
    if (name == "f4") return static_cast<Exact>(static_cast<float>(value));
    return name == "f8" ? static_cast<Exact>(static_cast<double>(value)) : value;
}

/// Bits of an integer up to 2048 as float16.
std::uint16_t half_bits(Exact value) {
    if (value == 0) return 0;
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    return static_cast<std::uint16_t>((bits >> 16 & 0x8000u) +
                                      (((bits >> 23 & 0xffu) - 112) << 10) + (bits >> 13 & 0x3ffu));
}

std::string bytes_of(const Type& type, Exact value, bool big_endian) {
    auto bits = static_cast<std::uint64_t>(value);
    if (type.floats)
        bits = type.size == 2   ? half_bits(value)
               : type.size == 4 ? std::bit_cast<std::uint32_t>(static_cast<float>(value))
                                : std::bit_cast<std::uint64_t>(static_cast<double>(value));
    std::string bytes = attn::io::bytes_of_number(bits, type.size);
    if (big_endian) std::reverse(bytes.begin(), bytes.end());
    return bytes;
}

/// Of a number whose magnitude fits 64 bits.
std::string decimal(Exact value) {
    const auto magnitude = static_cast<std::uint64_t>(value < 0 ? -value : value);
    return (value < 0 ? "-" : "") + std::to_string(magnitude);
}

/// Writes the numbers, two in a row, and returns the file's name.
std::string write_side(const std::string& stem, const Type& type, const std::vector<Exact>& values,
                       unsigned style) {
    std::string text;
    const std::size_t rows = values.size() / 2;
    if (type.size == 0) {
        const bool is_json = std::string(type.name) == "json";
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (is_json && i % 2 == 0) text += i == 0 ? "[[" : "], [";
            // A blank or a comment in some files, which other readers than the fast ones take.
            text += (i % 2 == 1 ? "," : "") + std::string(is_json && style % 2 ? " " : "") +
                    decimal(values[i]);
            if (!is_json && i % 2 == 1) text += "\n";
        }
        text += is_json ? "]]" : style % 2 ? "\n" : "";
        write_text(stem + "." + type.name, text);
        return stem + "." + type.name;
    }
    const bool big_endian = style % 2 == 1;
    for (Exact value : values) text += bytes_of(type, value, big_endian);
    const std::string order = type.size == 1 ? "|" : big_endian ? ">" : "<";
    write_text(stem + ".npy", npy_of({rows, 2}, text, order + type.name));
    return stem + ".npy";
}

/// What a side's number means next to the other type: text next to floats is the nearest float.
Exact meant(const Type& type, Exact value, const Type& other) {
    if (type.size != 0 || !other.floats) return value;
    const auto nearest_double = static_cast<double>(value);
    const auto nearest_float = static_cast<float>(nearest_double);
    return static_cast<Exact>(other.size == 4 ? nearest_float : nearest_double);
}

struct Compared {
    bool equal;
    std::string err;
    json row;
};

Compared compared(const std::string& a, const std::string& b, const Words& more = {}) {
    const Outcome outcome = run_attn(Words{"compare", a, b, "--format", "json"} + more);
    CAPTURE(outcome.err);
    REQUIRE((outcome.code == 0 || outcome.code == 1));
    return {outcome.code == 0, outcome.err, json::parse(outcome.out)["arrays"][0]};
}

TEST_CASE("compare: generated integers of every type next to every type are compared exactly") {
    std::mt19937_64 random(1);
    constexpr int exponents[]{0, 3, 7, 8, 11, 15, 24, 31, 32, 52, 53, 54, 60, 62, 63, 64};
    Sample sample;
    std::size_t equal_count = 0;
    for (const Type& a_type : types)
        for (const Type& b_type : types)
            for (unsigned time = 0; time < 6; ++time) {
                if (!sample.takes()) continue;
                std::vector<Exact> a, b;
                const unsigned style = static_cast<unsigned>(random());
                for (int i = 0; i < 6; ++i) {
                    Exact value = two_to(exponents[random() % std::size(exponents)]) +
                                  static_cast<int>(random() % 7) - 3;
                    if (random() % 3 == 0) value = -value;
                    if (i == 0) value = 100;  // a first row 0, 1 may be a header of CSV
                    a.push_back(nearest(a_type, value));
                    const Exact steps[]{0, 0, 1, -1, 2, two_to(40)};
                    // The first times differ by nothing where both types have the number.
                    const bool is_same = time < 2 || i == 0;
                    const Exact step = is_same ? Exact{0} : steps[random() % std::size(steps)];
                    b.push_back(nearest(b_type, a.back() + step));
                    if (time < 2) a.back() = nearest(a_type, b.back());
                }
                const std::string left = write_side("a", a_type, a, style),
                                  right = write_side("b", b_type, b, style >> 1);
                Exact largest = 0;
                double sum = 0;
                std::size_t differing = 0, beyond_one = 0;
                for (std::size_t i = 0; i < a.size(); ++i) {
                    Exact apart = meant(a_type, a[i], b_type) - meant(b_type, b[i], a_type);
                    if (apart < 0) apart = -apart;
                    largest = std::max(largest, apart);
                    sum += static_cast<double>(apart);
                    differing += apart != 0 ? 1 : 0;
                    beyond_one += apart > 1 ? 1 : 0;
                }
                CAPTURE(std::string(a_type.name));
                CAPTURE(std::string(b_type.name));
                CAPTURE(time);
                const Compared found = compared(left, right);
                const json& row = found.row;
                CAPTURE(row.dump());
                REQUIRE(found.err == "");
                REQUIRE(found.equal == (differing == 0));
                REQUIRE(row["outside"] == differing);
                REQUIRE(row["max_abs"] == static_cast<double>(largest));
                REQUIRE(row["mean_abs"].get<double>() == doctest::Approx(sum / 6));
                const Compared tolerant = compared(left, right, {"--atol", "1"});
                REQUIRE(tolerant.row["outside"] == beyond_one);
                REQUIRE(tolerant.equal == (beyond_one == 0));
                equal_count += differing == 0 ? 1 : 0;
            }
    if (one_in == 1) CHECK(equal_count > 200);  // a small sample may have any share of them
}

TEST_CASE("compare: leading axes of length 1 may differ, with a note") {
    std::vector<std::vector<int>> shapes{{}};
    for (std::size_t i = 0; i < shapes.size(); ++i)
        for (int length = 1; length <= 2 && shapes[i].size() < 4; ++length) {
            shapes.push_back(shapes[i]);
            shapes.back().push_back(length);
        }
    REQUIRE(shapes.size() == 31);
    const auto without_ones = [](std::vector<int> shape) {
        while (!shape.empty() && shape[0] == 1) shape.erase(shape.begin());
        return shape;
    };
    for (std::size_t i = 0; i < shapes.size(); ++i) {
        std::string data;
        int elements = 1;
        for (int length : shapes[i]) elements *= length;
        for (int element = 0; element < elements; ++element)
            data += bytes_of(types[11], element, false);
        write_text(std::to_string(i) + ".npy", npy_of(shapes[i], data, "<f8"));
    }
    Sample sample;
    for (std::size_t i = 0; i < shapes.size(); ++i)
        for (std::size_t j = 0; j < shapes.size(); ++j) {
            if (!sample.takes()) continue;
            CAPTURE(i);
            CAPTURE(j);
            const auto [equal, err, row] =
                compared(std::to_string(i) + ".npy", std::to_string(j) + ".npy");
            const bool comparable = without_ones(shapes[i]) == without_ones(shapes[j]);
            REQUIRE(equal == comparable);
            REQUIRE(row.contains("max_abs") == comparable);
            REQUIRE(row["shape_a"] == shapes[i]);
            REQUIRE(row["shape_b"] == shapes[j]);
            REQUIRE((err.find("attn: note: ") == 0) == (comparable && i != j));
            if (comparable) REQUIRE(row["worst"].size() == shapes[i].size());
        }
}

TEST_CASE("compare: a narrow table has the contents of the wide one, and fits 80 columns") {
    const Words sides{"a.npz", "b.json", "c.npz", "d.json"};
    run_attn({"multihead", "--example", "pair", "--heads", "2", "--d-out", "4", "-o", sides[0]});
    run_attn({"multihead", "--example", "pair", "--heads", "2", "--d-out", "4", "--seed", "3", "-o",
              sides[1], "--emit", "all"});
    run_attn({"self", "--example", "journey", "--dtype", "float64", "-o", sides[2]});
    write_text(sides[3], R"({"context_vectors": [[1, NaN]], "a\n\u001b[31mb": [[1e-300, 1e300]]})");
    const auto words_of = [](const std::string& text) {
        Words words = words_in(text);
        std::sort(words.begin(), words.end());
        return words;
    };
    for (const std::string& a : sides)
        for (const std::string& b : sides) {
            const auto table = [&](int columns) {
                return run_shell("COLUMNS=" + std::to_string(columns) + " attn compare " + a + " " +
                                 b)
                    .out;
            };
            const std::string wide = table(1000);
            for (int columns : {1, 20, 60, 80, 100, 130}) {
                const std::string text = table(columns);
                CHECK(words_of(text) == words_of(wide));
                for (const std::string& line : lines_of(text))
                    if (columns >= 80) CHECK(line.size() <= static_cast<std::size_t>(columns));
                CHECK(text.find('\x1b') == std::string::npos);
            }
        }
}

TEST_CASE("compare: units of half types count the numbers of that type") {
    const auto write_half = [](const std::string& path, const std::string& type,
                               const std::vector<std::uint16_t>& bits) {
        std::string bytes;
        for (const std::uint16_t word : bits) bytes += attn::io::bytes_of_number(word, 2);
        write_text(path, safetensors_of({{"x", type, {bits.size()}, bytes}}));
    };
    for (const auto& [type, name] : {std::pair("F16", "float16"), {"BF16", "bfloat16"}})
        for (const std::uint16_t start :
             std::vector<std::uint16_t>{0x0001, 0x03ff, 0x3bff, 0x3c00, 0x7000})
            for (const std::uint16_t step : std::vector<std::uint16_t>{1, 2, 100}) {
                const auto next = static_cast<std::uint16_t>(start + step);
                write_half("a.safetensors", type, {start, 0x3c00});
                write_half("b.safetensors", type, {next, 0x3c00});
                const Words sides = words_in("compare a.safetensors b.safetensors --format json");
                const json found = answer(sides, "", 1);
                CHECK_EQ(found["dtype"], name);
                CHECK_EQ(found["arrays"][0]["max_ulp"], step);
                answer(sides + Words{"--ulp", std::to_string(step)});
            }
}

}  // namespace
}  // namespace compare_test
