// Each row of the tables of formats has the stated properties.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "io/file/path.hpp"
#include "io/plot/picture_formats.hpp"
#include "io/read/input_formats.hpp"
#include "io/write/output_formats.hpp"
#include "tests/support/decode.hpp"
#include "tests/support/support.hpp"

namespace format_tables_test {

using namespace attn;
using namespace attn::io;

namespace {

const std::vector<std::size_t> shape{2, 3};
const std::vector<float> numbers{0.5F, -1.25F, 3, 0.1F, 2e-7F, 40};

Report some_report(float last = numbers.back()) {
    Array<float> values = Array<float>::from_shape(shape);
    std::copy(numbers.begin(), numbers.end(), values.begin());
    values.data()[numbers.size() - 1] = last;
    Report report;
    report.head = {{"schema", R"("attn.result/1")"}};
    report.arrays.push_back({"scores", values, {"q_len", "kv_len"}});
    return report;
}

std::string text_of(const OutputFormat& format, const NumberStyle& style = {},
                    const Report& report = some_report()) {
    return test::written([&](Output& out) { format.write(out, report, style); });
}

/// How other programs read each format; a new one needs its own.
const std::map<std::string_view, test::Decoded (*)(std::string_view)> decoders{
    {"json", [](std::string_view file) { return test::decode_json(file).at("scores"); }},
    {"ndjson", [](std::string_view file) { return test::decode_json(file).at("scores"); }},
    {"csv", [](std::string_view file) { return test::decode_separated(file, ','); }},
    {"tsv", [](std::string_view file) { return test::decode_separated(file, '\t'); }},
    {"npy", [](std::string_view file) { return test::decode_npy(file); }},
    {"npz", [](std::string_view file) { return test::decode_npz(file).at("scores"); }},
    {"safetensors",
     [](std::string_view file) { return test::decode_safetensors(file).at("scores"); }},
    {"torch", [](std::string_view file) { return test::decode_torch(file).at("scores"); }},
    {"table", [](std::string_view file) { return test::decode_table(file).at("scores"); }},
    {"c", test::decode_c},
    {"memh", test::decode_memh}};

template <class Rows>
void check_names(const Rows& rows) {
    std::set<std::string_view> names, suffixes;
    for (const auto& row : rows) {
        CHECK(names.insert(row.name).second);
        for (const std::string_view suffix : row.suffixes)
            if (!suffix.empty()) {
                CHECK(suffixes.insert(suffix).second);
                CHECK(suffix_of_name("a.1/b" + std::string(suffix)) == suffix);
            }
    }
}

}  // namespace

TEST_CASE("formats: names and suffixes are each those of one row") {
    check_names(output_formats);
    check_names(input_formats);
    check_names(picture_formats);
}

TEST_CASE("formats: output has the properties of its row") {
    for (const OutputFormat& format : output_formats) {
        if (format.write == nullptr) continue;
        CAPTURE(format.name);
        const std::string plain = text_of(format);
        REQUIRE(decoders.contains(format.name));
        const test::Decoded read = decoders.at(format.name)(plain);
        if (format.binary)
            CHECK(read.bytes == std::string(reinterpret_cast<const char*>(numbers.data()),
                                            numbers.size() * sizeof(float)));
        else
            CHECK(read.words.size() == numbers.size());
        CHECK(format.binary == (plain.find('\0') != std::string::npos));

        NumberStyle one_digit;
        one_digit.decimals = 1;
        CHECK(format.decimals == (text_of(format, one_digit) != plain));
        NumberStyle pretty;
        pretty.pretty = true;
        if (format.breaks_lines) CHECK(text_of(format, pretty) != plain);
        NumberStyle null;
        null.nonfinite = Nonfinite::null;
        const Report infinite = some_report(std::numeric_limits<float>::infinity());
        CHECK(format.json == (text_of(format, null, infinite) != text_of(format, {}, infinite)));
        Report two = some_report();
        two.arrays.push_back(two.arrays.front());
        two.arrays.back().name = "mask";
        CHECK(format.one_array == (text_of(format, {}, two) == plain));
        if (format.holds_weights) CHECK(!format.one_array);
    }
}

TEST_CASE("formats: a file that is written is read by its suffix, and by its bytes alone") {
    for (const InputFormat& format : input_formats)
        for (const std::string_view suffix : format.suffixes) {
            if (suffix.empty()) continue;
            CAPTURE(suffix);
            const std::string name = "format_tables" + std::string(suffix);
            for (const OutputFormat& written : output_formats)
                if (std::find(written.suffixes.begin(), written.suffixes.end(), suffix) !=
                    written.suffixes.end()) {
                    const std::string path = test::scratch_folder() + "/" + name;
                    test::write_text(path, text_of(written));
                    CHECK(format_of_name(path) == &format);
                    const bool is_named =
                        split_data_path("missing_" + name + ":scores").array == "scores";
                    CHECK(is_named == format.named);
                    const InputFile file = open_input_file(path + (format.named ? ":scores" : ""));
                    CHECK(file.format == &format);
                    const NumberArray read = read_one_array(file, {}, nullptr);
                    CHECK(read.shape() == shape);
                    for (std::size_t i = 0; i < numbers.size(); ++i)
                        CHECK(static_cast<float>(read.values.data()[i]) == numbers[i]);

                    // One line of ndjson is a JSON document as well.
                    if (format.name == "ndjson") continue;
                    test::write_text("format_tables_bytes", text_of(written));
                    CHECK(open_input_file("format_tables_bytes").format == &format);
                }
        }
    test::write_text("format_tables_bytes", "[1,2]\n[3,4]\n");
    CHECK(open_input_file("format_tables_bytes").format == ndjson_input);
}

}  // namespace format_tables_test
