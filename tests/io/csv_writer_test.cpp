// Results as CSV. Rows of text in pieces: output_files_test.cpp, threads_test.cpp.
#include "io/read/csv.hpp"
#include "io/write/output_formats.hpp"
#include "tests/support/support.hpp"

namespace csv_writer_test {
namespace {

using namespace attn;
using namespace attn::io;

Report report_of(AnyArray values) {
    Report report;
    report.arrays = {{"scores", std::move(values), {"q_len", "kv_len"}}};
    return report;
}

Array<float> counting(const std::vector<std::size_t>& shape) {
    Array<float> array = Array<float>::from_shape(shape);
    for (std::size_t i = 0; i < array.size(); ++i)
        array.data()[i] = 0.1f * static_cast<float>(i) - 1;
    return array;
}

TEST_CASE("csv writer: labels of any kind are read back, whatever the numbers look like") {
    const std::vector<std::string> nasty{
        "Your", "",      "7",     "0",  "nan",  "0.5x", " a",      "a ",     "a,b",   "a;b",
        "a\tb", "\"",    "\"a\"", "#x", "sep=", "0,43", "\ufeffx", "\u9053", "x1",    "a\nb",
        "-inf", "token", "id",    "NA", ".",    "1st",  "1 000",   "50%",    "##ing", "$3"};
    const auto as_read = [](const std::string& label) {
        return label == "a\nb" ? std::string("a\\x0ab") : label;
    };
    for (std::size_t ways = 0; ways < 108 * nasty.size(); ++ways) {
        const Writer write = ways % 2 == 0 ? write_csv : write_tsv;
        const bool has_keys = ways / 2 % 2 != 0;
        const std::size_t rows = std::array{1u, 2u, 5u}[ways / 4 % 3], columns = 1 + ways / 12 % 3;
        const auto counts_from = static_cast<int>(ways / 36 % 3) - 1;
        const auto pick = [&](std::size_t i) { return nasty[(ways / 108 + i) % nasty.size()]; };
        Report report = report_of(counting({rows, columns}));
        auto& values = std::get<Array<float>>(report.arrays[0].values);
        for (std::size_t i = 0; i < columns && counts_from >= 0; ++i)
            values(0, i) = static_cast<float>(counts_from) + static_cast<float>(i);
        for (std::size_t i = 0; i < rows; ++i) report.query_labels.push_back(pick(i));
        for (std::size_t i = 0; i < columns && has_keys; ++i)
            report.key_labels.push_back(pick(i + 1));
        const std::string text = test::written([&](Output& out) { write(out, report, {}); });
        CAPTURE(text);
        const LabelledMatrix read = read_csv(test::make_source("f.csv", text), {});
        REQUIRE(read.labels.size() == rows);
        for (std::size_t i = 0; i < rows; ++i) CHECK(read.labels[i] == as_read(pick(i)));
        REQUIRE(read.matrix.shape() == std::vector{rows, columns});
        for (std::size_t i = 0; i < values.size(); ++i)
            CHECK(static_cast<float>(read.matrix.values.data()[i]) == values.data()[i]);
        const bool has_name = pick(0).empty() || pick(0) == "token" || pick(0) == "id";
        // "0,43" alone could be a number.
        const bool has_names = has_keys && !(columns == 1 && report.key_labels[0] == "0,43");
        const bool may_be_numbers = rows == 1 && pick(0) == "0,43";
        const bool has_header = has_names || counts_from == 0 || has_name || may_be_numbers;
        REQUIRE(read.header.size() == (has_header ? columns + 1 : 0));
        for (std::size_t i = 0; i < columns && has_names; ++i)
            CHECK(read.header[i + 1] == as_read(report.key_labels[i]));
    }
}

TEST_CASE("csv writer: a label with U+0000 is refused before anything is written") {
    Report report = report_of(counting({2, 2}));
    report.query_labels = {"a", std::string("b\0c", 3)};
    for (const Writer write : {write_csv, write_tsv}) {
        std::string text, error;
        text = test::written(
            [&](Output& out) { error = test::error_of([&] { write(out, report, {}); }); });
        CHECK(text.empty());
        CHECK(error ==
              "label 1: 'b\\x00c' holds U+0000, which text may not; expected another label or "
              "format");
    }
}

}  // namespace
}  // namespace csv_writer_test
