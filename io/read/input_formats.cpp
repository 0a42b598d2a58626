#include "io/read/input_formats.hpp"

#include <utility>

#include "core/base/did_you_mean.hpp"
#include "io/file/path.hpp"
#include "io/read/result_view.hpp"
#include "io/text/number_text.hpp"
#include "io/text/text.hpp"

namespace attn::io {
namespace {

constexpr std::size_t max_start_length = 65536;

/// A format that is recognised but not supported.
struct UnreadFormat {
    std::string_view what;
    std::array<std::string_view, 5> suffixes;
    std::string_view start;  ///< its first bytes; empty if they are not specific
    std::string_view way;    ///< conversion to a supported format
};

constexpr std::string_view unpacked = "the file inside, unpacked";
/// '@' in a way becomes the file's path.
constexpr std::array<UnreadFormat, 18> unread_formats{{
    {"a pickle of Python",
     {".pkl", ".pickle"},
     "",
     "csv, as written by python3 -c 'import pandas; "
     "pandas.DataFrame(pandas.read_pickle(\"@\")).to_csv(\"@.csv\")'"},
    {"an ONNX file",
     {".onnx"},
     "",
     "npz, as written by python3 -c 'import numpy, onnx; numpy.savez(\"@.npz\", **{t.name: "
     "onnx.numpy_helper.to_array(t) for t in onnx.load(\"@\").graph.initializer})'"},
    {"an HDF5 file",
     {".h5", ".hdf5", ".keras"},
     "\x89HDF",
     "npz, as written by python3 -c 'import h5py, io, numpy, zipfile; z = "
     "zipfile.is_zipfile(\"@\"); f = h5py.File(io.BytesIO(zipfile.ZipFile(\"@\").read("
     "\"model.weights.h5\")) if z else \"@\"); n = []; f.visit_links(n.append); "
     "numpy.savez(\"@.npz\", **{k: f[k][()] for k in n if hasattr(f[k], \"dtype\")})'"},
    {"a Parquet file",
     {".parquet"},
     "PAR1",
     "csv, as written by python3 -c 'import pandas; pandas.read_parquet(\"@\").to_csv(\"@.csv\", "
     "index=False)', or jsonl of lists, by to_json(\"@.jsonl\", orient=\"records\", lines=True)"},
    {"an Arrow file",
     {".arrow", ".feather"},
     "ARROW1",
     "csv, as written by python3 -c 'import pandas; pandas.read_feather(\"@\").to_csv(\"@.csv\", "
     "index=False)', or jsonl of lists, by to_json(\"@.jsonl\", orient=\"records\", lines=True)"},
    {"an Arrow stream",
     {".arrows"},
     "\xff\xff\xff\xff",
     "csv, as written by python3 -c 'import pyarrow; "
     "pyarrow.ipc.open_stream(\"@\").read_pandas().to_csv(\"@.csv\", index=False)', or jsonl of "
     "lists, by to_json(\"@.jsonl\", orient=\"records\", lines=True)"},
    {"a MATLAB file",
     {".mat"},
     "MATLAB 5",
     "npz, as written by python3 -c 'import numpy, scipy.io; numpy.savez(\"@.npz\", **{k: v for k, "
     "v in scipy.io.loadmat(\"@\").items() if k[0] != \"_\"})'"},
    {"a MATLAB file of version 7.3",
     {},
     "MATLAB 7",
     "npz, as written by python3 -c 'import h5py, numpy; numpy.savez(\"@.npz\", **{k: v[()].T for "
     "k, v in h5py.File(\"@\").items() if hasattr(v, \"dtype\")})'"},
    {"a SentencePiece model",
     {},
     "\n\x0e\n\x05<",
     "tokenizer.json, as written in the folder of tokenizer.model by python3 -c 'from transformers "
     "import AutoTokenizer; AutoTokenizer.from_pretrained(\".\").save_pretrained(\".\")'"},
    {"a workbook", {".xlsx", ".xls", ".ods"}, "", "its sheet as csv"},
    {"an archive", {".tgz", ".tar"}, "", unpacked},
    {"a zstd file", {".zst"}, "\x28\xb5\x2f\xfd", unpacked},
    {"an xz file", {".xz"}, "\xfd\x37zXZ", unpacked},
    {"a picture", {".png"}, "\x89PNG", "numbers"},
    {"a picture", {".jpg", ".jpeg"}, "\xff\xd8\xff", "numbers"},
    {"a picture", {".svg"}, "<svg", "numbers"},
    {"a page", {".html", ".htm"}, "<!DOCTYPE", "numbers"},
    {"a document", {".pdf"}, "%PDF-", "numbers"},
}};

/// The suffix of the file in a gzip file.
std::string suffix_inside(const std::string& path) {
    constexpr std::string_view gzip = ".gz";
    const std::string suffix = suffix_of_name(path);
    return suffix == gzip ? suffix_of_name(path.substr(0, path.size() - gzip.size())) : suffix;
}

[[noreturn]] void refuse(const UnreadFormat& row, ErrorKind kind, const std::string& name) {
    const bool is_path = name[0] != '<' && name.find_first_of("'\"\\") == name.npos;
    throw Error(kind, name, "is ", row.what, ", which attn cannot read; expected ",
                replaced(row.way, {{'@', is_path ? one_line(name) : "FILE"}}));
}

const UnreadFormat* unread_format_of(const std::string& path) {
    const std::string suffix = suffix_inside(path);
    for (const UnreadFormat& row : unread_formats)
        if (!suffix.empty() && std::ranges::count(row.suffixes, suffix) != 0) return &row;
    return nullptr;
}

const InputFormat* format_of_suffix(const std::string& suffix) {
    const auto has = [&](const InputFormat& row) {
        return std::ranges::find(row.suffixes, suffix) != row.suffixes.end();
    };
    const auto found = std::ranges::find_if(input_formats, has);
    return suffix.empty() || found == input_formats.end() ? nullptr : &*found;
}

/// A bracket first, after any number of blanks within the start.
bool starts_with_bracket(std::string_view text) {
    text = after_blanks(text.substr(0, max_start_length));
    return text.starts_with('[') || text.starts_with('{');
}

[[noreturn]] void fail_to_choose(const std::string& location, const std::string& list) {
    throw Error(ErrorKind::input, location, "several arrays: ", list,
                "; expected one, named as in ", location, ":NAME");
}

[[noreturn]] void refuse_name(const InputFile& file) {
    throw Error(ErrorKind::input, file.name,
                "holds one array without a name; expected no \":", one_line(shortened(file.array)),
                "\"");
}

NumberArray read_member(const InputFile& file, const ArrayRules& rules, ThreadPool* workers) {
    const JsonDocument& document = *file.document;
    const JsonMember* member = file.array.empty() ? nullptr : document.find(file.array);
    if (member != nullptr && document.holds_array(*member))
        return document.read_array(*member, rules, workers);
    if (const auto entry = layer_member(document, file.array))
        return document.read_array(*entry, rules, workers);
    std::string list;
    for (const JsonMember& other : document.members())
        if (document.holds_array(other) && !is_label_key(other.key) && other.key != passed_on_key)
            list += (list.empty() ? "" : ", ") + shortened(other.key);
    constexpr std::size_t max_names_length = 400;
    list = shortened(list, max_names_length);
    throw Error(ErrorKind::input, file.name,
                !file.array.empty() ? "has no array \"" + shortened(file.array) + "\"; there are " +
                                          (list.empty() ? "none" : list)
                : list.empty()
                    ? "an object without arrays; expected a matrix [[...], ...]"
                    : "an object that holds " + list +
                          "; expected a matrix [[...], ...], or one of them, named as in " +
                          file.name + ":NAME");
}

/// Errors: kind input for a line per element, as write_csv_long gives it.
void refuse_csv_long(const Source& source) {
    constexpr std::string_view first =
        "|record|array|layer|batch|head|position|query|key|d_in|d_k|d_v|d_out|";
    const std::string line(source.text.substr(0, source.text.find('\n')));
    const std::string name = "|" + line.substr(0, line.find(',')) + "|";
    if (line.ends_with(",value") && std::ranges::count(line, ',') > 1 &&
        first.find(name) != first.npos)
        throw Error(ErrorKind::input, source.name,
                    "one element a line, as --format csv-long writes them, which attn does not "
                    "read; expected the result as json, npz or csv");
}

/// A header 0, 1, 2, ... has no words, and the field above the column of labels is not a label.
std::vector<std::string> column_labels(const LabelledMatrix& read) {
    std::vector<std::string> words = read.header;
    const std::size_t columns = read.matrix.values.shape().back();
    if (words.size() == columns + 1) words.erase(words.begin());
    std::size_t number = 0;
    const bool counts = std::ranges::all_of(
        words, [&](const std::string& word) { return word == std::to_string(number++); });
    return counts || words.size() != columns ? std::vector<std::string>{} : words;
}

}  // namespace

const StoredArray& stored_array(const InputFile& file) {
    const ArrayFile& all = *file.arrays;
    if (all.arrays.empty())
        throw Error(ErrorKind::input, file.name, "holds no array; expected at least one");
    if (!file.array.empty()) {
        if (const StoredArray* found = all.find(file.array)) return *found;
        if (!file.format->named) refuse_name(file);
        std::vector<std::string> names;
        for (const StoredArray& array : all.arrays) names.push_back(array.name);
        const std::string near = did_you_mean(file.array, names);
        throw Error(ErrorKind::input, file.name, "has no array ", quoted_name(file.array), "; ",
                    near.empty() ? "there are " + list_of(all.arrays)
                                 : "did you mean " + one_line(shortened(near)) + "?");
    }
    if (all.arrays.size() > 1) fail_to_choose(file.name, list_of(all.arrays));
    return all.arrays.front();
}

NumberArray read_one_array(const InputFile& file, const ArrayRules& rules, ThreadPool* workers,
                           const CsvStyle& style, MatrixLabels* labels) {
    if (!file.arrays && !file.holds_object() && !file.array.empty()) refuse_name(file);
    if (file.format == csv_input) {
        refuse_csv_long(*file.source);
        CsvStyle noted = style;
        noted.is_noted = labels != nullptr;
        LabelledMatrix read = read_csv(*file.source, rules, noted, workers);
        if (labels != nullptr) {
            *labels = {{},          column_labels(read),
                       read.header, left_out(read, *file.source, style),
                       read.counts, read.counts || !read.doubt.empty()};
            labels->rows = std::move(read.labels);
        }
        return std::move(read.matrix);
    }
    if (!file.arrays && !file.document) {  // lines of requests or results
        JsonCursor cursor(*file.source);
        cursor.peek();
        cursor.fail("a list on each line", ", or attn batch for requests");
    }
    NumberArray read = file.arrays           ? read_numbers(stored_array(file), rules, workers)
                       : file.holds_object() ? read_member(file, rules, workers)
                                             : file.document->read_array(rules, workers);
    if (labels != nullptr) labels->rows = row_labels(file, read.shape());
    return read;
}

RealArray read_reals(const InputFile& file, const ArrayRules& rules, ThreadPool* workers,
                     const CsvStyle& style, MatrixLabels* labels) {
    if (!file.arrays)
        return as_reals(read_one_array(file, rules, workers, style, labels).values, rules.dtype);
    const StoredArray& array = stored_array(file);
    if (labels != nullptr) labels->rows = row_labels(file, array.shape);
    return read_reals(array, rules, workers);
}

const InputFormat* format_of_name(const std::string& path) {
    if (path.ends_with(safetensors_index)) return format_of_suffix(".safetensors");
    if (path.ends_with(torch_index)) return torch_input;
    if (const UnreadFormat* row = unread_format_of(path))
        refuse(*row, ErrorKind::unsupported, path);
    return format_of_suffix(suffix_inside(path));
}

bool is_unread_name(const std::string& path) {
    return unread_format_of(path) != nullptr;
}

bool may_hold_names(const std::string& path) {
    const InputFormat* format = format_of_suffix(suffix_inside(path));
    return (format != nullptr && format->named) || !manifest_in(path).empty();
}

const InputFormat* format_of_start(std::string_view start) {
    for (const InputFormat& row : input_formats)
        if (row.starts != nullptr && row.starts(start)) return &row;
    return nullptr;
}

const InputFormat* format_of_contents(const InputFormat* named, const Bytes& bytes,
                                      std::string_view start) {
    const InputFormat* const found = format_of_start(start);
    const InputFormat* const format =
        found != nullptr && (named == nullptr || named == torch_input) ? found : named;
    return format == npz_input && starts_as_npz(start) && is_torch_zip(bytes) ? torch_input
                                                                              : format;
}

void refuse_unread(const std::string& name, std::string_view start, ErrorKind kind) {
    for (const UnreadFormat& row : unread_formats)
        if (!row.start.empty() && start.starts_with(row.start)) refuse(row, kind, name);
}

void refuse_printed(const std::string& name, std::string_view text) {
    const std::string_view start = after_blanks(text.substr(0, max_start_length)),
                           line = trimmed(start.substr(0, start.find('\n')));
    const bool is_of_r = line.starts_with("[,1]") || line.starts_with("[1] ") ||
                         line.starts_with("[1,] ") || start.find("\n[1,] ") != start.npos;
    const bool is_named =
        !line.empty() && is_letter(line[0]) &&
        (line.ends_with(" =") || line.find("= [") != line.npos || line.find("= {") != line.npos);
    if (is_of_r || is_named || line.starts_with("{{"))
        throw Error(ErrorKind::input, name, "is an array as ",
                    is_of_r ? "R prints it; expected csv, as write.csv(x, \"x.csv\") writes it"
                            : "MATLAB, Octave or Mathematica prints it; expected csv, as "
                              "writematrix(x, \"x.csv\") or Export[\"x.csv\", x] writes it");
}

const InputFormat& format_of_text(std::string_view text) {
    if (starts_with_bracket(text)) return looks_like_ndjson(text) ? *ndjson_input : *json_input;
    for (const InputFormat& row : input_formats)
        if ((row.parse == parse_c && starts_as_c(text)) ||
            (row.parse == parse_memh && starts_as_memh(text)))
            return row;
    return *csv_input;  // any text may be
}

}  // namespace attn::io
