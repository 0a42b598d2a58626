// Readers of arrays: one question by every way there is to ask it, and the numbers that plain
// decoders and nlohmann_json find in the same bytes.
#include "io/file/zip.hpp"
#include "io/model/gguf_config.hpp"
#include "io/model/quantised.hpp"
#include "io/read/csv.hpp"
#include "io/read/input_file.hpp"
#include "io/read/input_formats.hpp"
#include "io/read/json_document.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/support/decode.hpp"

namespace attn::fuzz {
namespace {

using nlohmann::json;

/// The options of a reader, taken from the bytes, so that files need no additions.
struct Question {
    io::ArrayRules rules;
    io::CsvStyle style;
    std::size_t piece;  ///< of a text that several threads read

    explicit Question(std::string_view bytes) {
        unsigned sum = std::accumulate(bytes.begin(), bytes.end(), 7u, [](unsigned old, char c) {
            return old * 31 + static_cast<unsigned char>(c);
        });
        const auto take = [&](unsigned choices) {
            const unsigned choice = (sum >> 8) % choices;
            sum = sum * 1664525 + 1013904223;
            return choice;
        };
        rules.dtype = dtype_names[take(2)].first;
        rules.nonfinite = take(4) != 0;
        rules.boolean = take(4) != 0;
        rules.null_is_nan = take(2) != 0;
        rules.lowest_rank = 1 + take(2);
        rules.highest_rank = 2 + take(3);
        style.header = io::guess_names[take(8) < 5 ? 0 : take(3)].first;
        style.labels = io::guess_names[take(8) < 5 ? 0 : take(3)].first;
        if (const unsigned comments = take(4); comments < 2) style.comments = comments == 0;
        style.has_flags = take(4) != 0;
        piece = 1 + take(64);
    }
};

struct Read {
    io::NumberArray array;
    io::MatrixLabels labels;
    std::string error;  ///< else empty
};

/// Numbers to the bit, but that there is one NaN.
bool same(const Array<double>& a, const Array<double>& b) {
    return a.shape() == b.shape() &&
           std::equal(a.begin(), a.end(), b.begin(), test::same_bits<double>);
}

template <class Open>
Read read_of(const Question& question, const Open& open) {
    Read read;
    read.error = error_of([&] {
        const io::InputFile file = open();
        read.array =
            io::read_one_array(file, question.rules, nullptr, question.style, &read.labels);
    });
    return read;
}

void require_same(const Read& a, const Read& b, const std::string& way) {
    require(a.error == b.error, way + " says '" + b.error + "', not '" + a.error + "'");
    require(a.array.boolean == b.array.boolean && a.labels.rows == b.labels.rows &&
                a.labels.columns == b.labels.columns && same(a.array.values, b.array.values),
            way + " reads the same");
}

const io::InputFormat& format_of(std::string_view name) {
    return *std::find_if(io::input_formats.begin(), io::input_formats.end(),
                         [&](const io::InputFormat& row) { return row.name == name; });
}

/// From a file, and from a pipe; an error names the one as it names the other.
Read read_both(std::string_view bytes, const Question& question, std::string_view name) {
    const io::InputFormat& format = format_of(name);
    static const std::string path = test::scratch_folder() + "/input";
    test::write_text(path, std::string(bytes));
    Read file = read_of(question, [&] { return io::open_input_file(path, &format); });
    for (std::size_t at = 0; (at = file.error.find(path, at)) != std::string::npos;)
        file.error.replace(at, path.size(), "<stdin>");
    const PipedInput input(bytes);
    Read pipe = read_of(question, [&] { return io::open_input_file("-", &format); });
    // A command that converts a file has a name for what has none.
    constexpr std::string_view unnamed = "'FILE.pt";
    for (std::size_t at = 0; (at = pipe.error.find(unnamed, at)) != std::string::npos;)
        pipe.error.replace(at, unnamed.size(), "'<stdin>");
    require_same(file, pipe, "a pipe");
    return file;
}

/// Several threads that read pieces of a text give what one gives that reads number by number.
template <class ReadText, class ReadSlowly>
void require_pieces(const Question& question, const ReadText& read_text,
                    const ReadSlowly& read_slowly) {
    static ThreadPool workers(2);
    io::NumberArray slow, pieces;
    const std::string error = error_of([&] { slow = read_slowly(); });
    const std::string other = error_of([&] { pieces = read_text(&workers, question.piece); });
    require(error == other, "pieces of a text say '" + other + "', not '" + error + "'");
    require(same(slow.values, pieces.values) && slow.boolean == pieces.boolean,
            "pieces of a text are read");
}

/// All numbers of nested lists as nlohmann_json reads them; nothing where there is anything else.
std::optional<std::vector<double>> numbers_of(const json& value) {
    if (value.is_number()) return std::vector{value.get<double>()};
    if (!value.is_array()) return std::nullopt;
    std::vector<double> all;
    for (const json& item : value) {
        const auto more = numbers_of(item);
        if (!more) return std::nullopt;
        all.insert(all.end(), more->begin(), more->end());
    }
    return all;
}

/// nlohmann_json's -0 is an integer and has no sign.
void require_numbers(const Array<double>& values, const std::optional<std::vector<double>>& truth,
                     NumberType dtype) {
    if (!truth) return;
    require(std::equal(values.begin(), values.end(), truth->begin(), truth->end(),
                       [&](double x, double y) {
                           return row_of(dtype).round(x) == row_of(dtype).round(y) ||
                                  dtype == NumberType::float32;  // rounded once; see decimal
                       }),
            "numbers are nlohmann_json's");
}

/// JSON's own grammar, which has no NaN and Infinity.
bool has_words(std::string_view text) {
    return text.find("NaN") != std::string_view::npos ||
           text.find("Infinity") != std::string_view::npos;
}

void read_document(std::string_view bytes) {
    const io::Source source = test::make_source("text", bytes);
    const io::JsonDocument document(source);
    const json truth = json::parse(source.text, nullptr, false);
    if (document.is_array()) return;
    bool is_read = true;
    for (const io::JsonMember& member : document.members()) {
        json value;
        is_read &= error_of([&] { value = document.read_value(member); }).empty();
        error_of([&] { document.read_array(member, Question(bytes).rules); });
        if (is_read && !truth.is_discarded())
            require(value == truth[member.key], "a member is what nlohmann_json reads");
    }
    require(truth.is_discarded() || truth.size() == document.members().size(),
            "a document has the members that nlohmann_json finds");
    require(!truth.is_discarded() || !is_read || has_words(bytes), "what is read is JSON");
}

Array<double> as_numbers(const test::Decoded& array) {
    Array<double> values = Array<double>::from_shape(array.shape);
    const auto copy = [&]<class T>(T) {
        for (std::size_t i = 0; i < values.size(); ++i) {
            T number;
            std::memcpy(&number, array.bytes.data() + i * sizeof number, sizeof number);
            values.data()[i] = static_cast<double>(number);
        }
    };
    if (array.type == "f4") copy(float{});
    if (array.type == "f8") copy(double{});
    if (array.type == "i8") copy(std::int64_t{});
    if (array.type == "u1") copy(std::uint8_t{});
    return values;
}

/// Every array of a file, and what a plain decoder finds under the same name.
void read_stored(const io::ArrayFile& file, const test::DecodedFile& truth) {
    io::ArrayRules rules{NumberType::float64, true, true, true, 0, 64};
    for (const io::StoredArray& array : file.arrays) {
        Array<double> values;
        const std::string error = error_of([&] { values = io::read_array<double>(array, rules); });
        error_of([&] { io::read_array<float>(array, rules); });
        const auto plain = truth.find(array.name);
        if (!error.empty() || plain == truth.end()) continue;
        const Array<double> expected = as_numbers(plain->second);
        require(same(values, expected), "a plain decoder reads the same of " + array.location() +
                                            ' ' + shape_text(values.shape()) +
                                            shape_text(expected.shape()));
    }
}

template <class Decode>
test::DecodedFile decoded(const Decode& decode) {
    try {
        return decode();
    } catch (const std::exception&) {
        return {};  // it knows what attn writes, not all that may be read
    }
}

/// Each way to read the file, and its arrays by a plain decoder.
template <class Open, class Decode>
void read_arrays(std::string_view bytes, const std::string& format, const Open& open,
                 const Decode& decode) {
    read_both(bytes, Question(bytes), format);
    error_of([&] {
        read_stored(open(io::Bytes::of(format, bytes)), decoded([&] { return decode(bytes); }));
    });
}

}  // namespace

void read_json(std::string_view bytes) {
    const Question question(bytes);
    const Read read = read_both(bytes, question, "json");
    error_of([&] { read_document(bytes); });
    error_of([&] {
        const io::Source source = test::make_source("text", bytes);
        if (!source.text.starts_with('[')) return;
        const io::JsonDocument document(source);
        const auto read_pieces = [&](ThreadPool* workers, std::size_t piece) {
            return document.read_array(question.rules, workers, piece);
        };
        io::JsonCursor cursor(source);
        const bool is_whole =
            error_of([&] { cursor.take_value(); }).empty() && cursor.peek() == '\0';
        if (is_whole)
            require_pieces(question, read_pieces,
                           [&] { return io::read_json_array(source, 0, question.rules); });
        const json truth = json::parse(source.text, nullptr, false);
        if (read.error.empty())
            require_numbers(read.array.values, numbers_of(truth), question.rules.dtype);
        if (bytes.find('\n') != std::string_view::npos) return;
        const Read line = read_of(question, [&] {
            return io::input_file_of_line(io::source_of_line("<stdin>", source.text, 1));
        });
        require_same(read, line, "a line");
    });
}

void read_ndjson(std::string_view bytes) {
    const Question question(bytes);
    const Read read = read_both(bytes, question, "ndjson");
    if (!read.error.empty()) return;
    std::vector<double> all;
    for (std::size_t at = 0; at < bytes.size();) {
        const std::size_t end = std::min(bytes.find('\n', at), bytes.size());
        const json line = json::parse(bytes.substr(at, end - at), nullptr, false);
        const auto numbers = numbers_of(line);
        const bool is_blank =
            bytes.substr(at, end - at).find_first_not_of(" \t\r") == std::string_view::npos;
        if (!numbers && !is_blank) return;  // words, or an object
        if (numbers) all.insert(all.end(), numbers->begin(), numbers->end());
        at = end + 1;
    }
    require_numbers(read.array.values, all, question.rules.dtype);
}

void read_csv(std::string_view bytes) {
    const Question question(bytes);
    read_both(bytes, question, "csv");
    error_of([&] {
        const io::Source source = test::make_source("text", bytes);
        // A blank line at the end stops the reader of pieces, and nothing else.
        const std::string text = std::string(bytes) + "\n ";
        const io::Source slow = test::make_source("text", text);
        require_pieces(
            question,
            [&](ThreadPool* workers, std::size_t piece) {
                return io::read_csv(source, question.rules, question.style, workers, piece).matrix;
            },
            [&] { return io::read_csv(slow, question.rules, question.style).matrix; });
    });
}

void read_npy(std::string_view bytes) {
    read_arrays(bytes, "npy", io::open_npy, [](std::string_view file) {
        return test::DecodedFile{{"", test::decode_npy(file)}};
    });
}

void read_npz(std::string_view bytes) {
    read_arrays(bytes, "npz", io::open_npz, test::decode_npz);
}

void read_safetensors(std::string_view bytes) {
    read_arrays(bytes, "safetensors", io::open_safetensors, [](std::string_view file) {
        const bool has_escapes = file.find('\\') != std::string_view::npos;  // in names
        return has_escapes ? test::DecodedFile() : test::decode_safetensors(file);
    });
}

void read_gguf(std::string_view bytes) {
    read_arrays(bytes, "gguf", io::open_gguf, [](auto) { return test::DecodedFile(); });
    error_of([&] {
        read_stored(io::gguf_model(io::open_gguf(io::Bytes::of("gguf", bytes))).tensors, {});
    });
}

void read_torch(std::string_view bytes) {
    read_arrays(bytes, "pt", io::open_torch, [](auto) { return test::DecodedFile(); });
}

void read_flax(std::string_view bytes) {
    read_arrays(bytes, "msgpack", io::open_flax, [](auto) { return test::DecodedFile(); });
}

void read_tensor_proto(std::string_view bytes) {
    read_arrays(bytes, "pb", io::open_tensor_proto, [](auto) { return test::DecodedFile(); });
}

void read_c(std::string_view bytes) {
    read_both(bytes, Question(bytes), "c");
}

void read_memh_words(std::string_view bytes) {
    const auto numbers = io::split_raw_path("x.hex:bfloat16:2x3")->numbers;
    error_of([&] {
        read_stored({"hex", {raw_array(test::make_source("hex", bytes), numbers)}}, {});
    });
}

void read_printed(std::string_view bytes) {
    error_of([&] {
        const io::Source source = test::make_source("text", bytes);
        if (io::is_printed_array(source.text))
            read_document(io::json_of_printed_array(source)->text);
    });
}

/// Tensors of safetensors as a model's quantised weights.
void read_quantised(std::string_view bytes) {
    const json config = {{"quantization_config", {{"weight_block_size", {2, 3}}}}};
    error_of([&] {
        const io::ArrayFile file = io::open_safetensors(io::Bytes::of("safetensors", bytes));
        error_of([&] { read_stored(io::dequantised(file, config), {}); });
        read_stored(io::dequantised(file, json()), {});
    });
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
