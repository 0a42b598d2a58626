// Writers: any array in any format is read back to the bit, by attn's reader and by a plain
// decoder.
#include "io/file/zip.hpp"
#include "io/read/input_file.hpp"
#include "io/write/output_formats.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/support/decode.hpp"
#include "tests/support/row_stream.hpp"
#include "tests/support/support.hpp"

namespace attn::fuzz {
namespace {

template <class T>
Array<T> draw_array(Draw& draw) {
    std::vector<std::size_t> shape(draw.size(1, 4));
    for (std::size_t& length : shape) length = draw.size(1, 6);
    Array<T> values = Array<T>::from_shape(shape);
    const bool counts = draw.size(0, 7) == 0;  // a first row that looks like pandas' header
    for (std::size_t i = 0; i < values.size(); ++i)
        values.data()[i] = counts ? static_cast<T>(i) : draw.bits<T>();
    return values;
}

template <class T>
void check(Draw& draw) {
    const io::OutputFormat& format = draw.among(io::output_formats);
    if (format.write == nullptr || format.name == "ndjson") return;
    io::NumberStyle style;
    if (format.json && draw.flag()) style.nonfinite = io::Nonfinite::literal;
    style.pretty = format.breaks_lines && draw.flag();
    const std::size_t rows = draw.size(0, 3);
    const Array<T> values = draw_array<T>(draw);
    io::Report report;
    report.arrays = {{"array", values, {}}};
    report.arrays[0].axes.resize(values.dimension());
    if (rows != 0 && format.streams) report.arrays[0].stream = test::row_stream(values, rows);
    const std::string text =
        test::written([&](io::Output& out) { format.write(out, report, style); });
    if (!format.streams || format.name == "c" || format.name == "memh") return;  // not read

    const std::string path = file_of(text, "written" + std::string(format.suffixes[0]));
    const std::string array = format.name == "json" ? path + ":array" : path;
    const io::ArrayRules rules{dtype_of<T>,       true, false, false, values.dimension(),
                               values.dimension()};
    Array<double> read;
    const std::string error = error_of(
        [&] { read = io::read_one_array(io::open_input_file(array), rules, nullptr).values; });
    require(error.empty(), "what is written is read: " + error);
    require(read.shape() == values.shape(), "an array has its shape");
    for (std::size_t i = 0; i < values.size(); ++i)
        require(test::same_bits(static_cast<T>(read.data()[i]), values.data()[i]),
                "a number in " + std::string(format.name) + " is read back");
    if (!format.binary) return;
    const test::Decoded plain = format.name == "npy"   ? test::decode_npy(text)
                                : format.name == "npz" ? test::decode_npz(text).at("array")
                                                       : test::decode_safetensors(text).at("array");
    const std::string_view bytes(reinterpret_cast<const char*>(values.data()),
                                 values.size() * sizeof(T));
    require(plain.shape == values.shape() && plain.bytes == bytes,
            "a plain decoder reads the same bytes");
}

}  // namespace

void write_and_read(std::string_view bytes) {
    Draw draw(bytes);
    if (draw.flag())
        check<float>(draw);
    else
        check<double>(draw);
}

void read_zip(std::string_view bytes) {
    const auto file = io::Bytes::of("zip", bytes);
    error_of([&] {
        for (const io::ZipEntry& entry : io::read_zip_directory(*file)) {
            if (entry.size > 1 << 24) continue;
            std::string whole(entry.size, '\0'), pieces = whole;
            const std::string error = error_of(
                [&] { io::ZipStream(file, entry, "entry").read(whole.size(), whole.data()); });
            const std::string in_pieces = error_of([&] {
                io::ZipStream stream(file, entry, "entry");
                const std::size_t piece = 1 + bytes.size() % 7 + entry.size / 64;
                for (std::size_t at = 0; at < pieces.size(); at += piece)
                    stream.read(std::min(piece, pieces.size() - at), pieces.data() + at);
                if (pieces.empty()) stream.read(0, pieces.data());
            });
            require(error == in_pieces, "an entry read in pieces says " + in_pieces);
            require(!error.empty() || whole == pieces, "an entry is read in pieces as at once");
        }
    });
    // The same bytes as entries, written and read.
    Draw draw(bytes);
    std::vector<std::pair<std::string, std::string_view>> entries;
    for (std::size_t left = draw.size(0, 3); left != 0; --left) {
        const std::string_view rest = draw.rest();
        entries.emplace_back("entry" + std::to_string(left), rest.substr(0, draw.size(0, 255)));
    }
    io::TextOutput out;
    io::ZipWriter writer(out);
    for (const auto& [name, content] : entries) {
        writer.begin(name, content.size());
        writer.write(content.substr(0, content.size() / 2));
        writer.write(content.substr(content.size() / 2));
        writer.end();
    }
    writer.finish();
    const auto written = io::Bytes::of("written", out.text());
    const std::vector<io::ZipEntry> read = io::read_zip_directory(*written);
    require(read.size() == entries.size(), "all entries are there");
    for (std::size_t i = 0; i < read.size(); ++i) {
        std::string content(read[i].size, '\0');
        io::ZipStream(written, read[i], "entry").read(content.size(), content.data());
        require(read[i].name == entries[i].first && content == entries[i].second,
                "an entry is what was written");
    }
}

}  // namespace attn::fuzz
