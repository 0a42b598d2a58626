// Files through the real binary: names that specify a format, and results too large for memory.
#include <cctype>

#include "tests/support/answers.hpp"
#include "tests/support/decode.hpp"
#include "tests/support/planned.hpp"

namespace output_files_test {
namespace {

using namespace attn::test;
using attn::Array;

/// The format of each suffix, listed independently; other suffixes mean no format of attn.
const std::map<std::string, std::string> named_formats{
    {"json", "json"},        {"ndjson", "ndjson"},
    {"jsonl", "ndjson"},     {"csv", "csv"},
    {"tsv", "tsv"},          {"npy", "npy"},
    {"npz", "npz"},          {"safetensors", "safetensors"},
    {"torch", "torch"},      {"table", "table"},
    {"svg", "svg"},          {"png", "png"},
    {"html", "html"},        {"htm", "html"},
    {"txt", "text"},         {"md", "markdown"},
    {"markdown", "markdown"}};
const Words strangers{"yaml", "npy.gz",  "pdf",        "log",  "jsn",  "pt",
                      "h5",   "parquet", "safetensor", "none", "text", "7z"};
const Words no_suffix{"plain",   "part.1", "run.v2",   "run.2024-05-31",
                      ".hidden", "dots.",  "a.b/plain"};

/// What a file holds, by its first bytes.
std::string content_of(const std::string& path) {
    const std::string text = read_text(path);
    const auto starts = [&](std::string_view with) { return text.starts_with(with); };
    if (starts("\x93NUMPY")) return "npy";
    if (starts("PK\3\4")) return "npz";
    if (starts("\x89PNG")) return "png";
    if (starts("<svg") || starts("<?xml")) return "svg";
    if (starts("<!doctype html") || starts("<!DOCTYPE html")) return "html";
    if (text.size() > 8 && text[8] == '{' && text[7] == '\0') return "safetensors";
    if (starts("{")) return text.find('\n') + 1 == text.size() ? "ndjson" : "json";
    if (starts("# ") && !starts("# shape")) return "markdown";
    if (contains(text, "tensor(")) return "torch";
    if (starts("context_vectors (")) return "table";
    if (starts("r.json: right")) return "text";
    if (contains(text, "-----") || contains(text, "=====")) return "text";
    return text.find('\t') != std::string::npos ? "tsv" : "csv";
}

struct Writer {
    Words words;            ///< the name follows
    Words formats;          ///< that it writes
    std::string otherwise;  ///< by a name without a suffix; empty: refused
};

std::vector<Writer> writers() {
    const std::string input = data_path("journey.csv");
    write_text("r.json", run_attn({"self", input}).out);
    write_text("q.ndjson", R"({"mode": "self", "inputs": [[1, 2]]})"
                           "\n");
    return {
        {{"self", input, "--emit", "context_vectors", "-o"},
         {"json", "ndjson", "csv", "tsv", "npy", "npz", "safetensors", "torch", "table"},
         "json"},
        {{"self", input, "--format", "none", "--save-weights"}, {"safetensors", "npz", "json"}, ""},
        {{"self", input, "--format", "none", "--plot"}, {"svg", "png", "html"}, ""},
        {{"plot", "r.json", "-o"}, {"svg", "png", "html"}, ""},
        {{"explain", "self", input, "-o"}, {"text", "markdown", "html"}, "text"},
        {{"check", "self", input, "--against", "r.json", "-o"}, {"text", "json", "ndjson"}, "text"},
        {{"batch", "q.ndjson", "-o"}, {"ndjson", "json"}, "ndjson"},
        {{"batch", "q.ndjson", "--resume"}, {"ndjson", "json"}, "ndjson"}};
}

bool is_one_of(const Words& words, const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

/// One-line JSON may have both names.
bool agree(const std::string& named, const std::string& found) {
    return named == found || (named == "json" && found == "ndjson");
}

void check_refused(const Outcome& outcome, const std::string& path, const std::string& part) {
    CHECK(outcome.code == 2);
    CHECK(outcome.out == "");
    CHECK(contains(outcome.err, part));
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
    CHECK_FALSE(std::filesystem::exists(path));
}

std::string in_case(std::string text, int kind) {
    for (std::size_t i = 0; i < text.size(); ++i)
        if (kind == 2 || (kind == 1 && i == 0))
            text[i] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[i])));
    return text;
}

TEST_CASE("names: each command writes what a suffix names, in any case, or nothing") {
    std::filesystem::create_directories("a.b");
    Sample is_taken;
    for (const Writer& writer : writers()) {
        CAPTURE(writer.words.front() + " " + writer.words.back());
        for (const auto& [suffix, format] : named_formats)
            for (int kind : {0, 1, 2}) {
                if (!is_taken.takes()) continue;
                const std::string path = "out." + in_case(suffix, kind);
                CAPTURE(path);
                const Outcome outcome = run_attn(writer.words + Words{path});
                if (!is_one_of(writer.formats, format)) {
                    check_refused(outcome, path, "expected a name that ends in .");
                    continue;
                }
                CHECK(outcome.code == 0);
                CHECK(agree(format, content_of(path)));
                std::filesystem::remove(path);
            }
        for (const std::string& suffix : strangers)
            check_refused(run_attn(writer.words + Words{"out." + suffix}), "out." + suffix,
                          "expected a name that ends in .");
        for (const std::string& path : no_suffix) {
            CAPTURE(path);
            const Outcome outcome = run_attn(writer.words + Words{path});
            if (writer.otherwise.empty()) {
                check_refused(outcome, path, "expected a name that ends in .");
                continue;
            }
            CHECK(outcome.code == 0);
            CHECK(agree(writer.otherwise, content_of(path)));
            std::filesystem::remove(path);
        }
    }
}

TEST_CASE("names: a format that was given is written under any name that names no other") {
    const std::string input = data_path("journey.csv");
    const Words formats = writers().front().formats;
    Sample is_taken;
    for (const std::string& given : formats)
        for (const auto& [suffix, named] : named_formats) {
            if (!is_taken.takes()) continue;
            const std::string path = "out." + suffix;
            CAPTURE(given + " " + path);
            const Outcome outcome = run_attn(
                {"self", input, "--emit", "context_vectors", "--format", given, "-o", path});
            const bool both_json = given.ends_with("json") && named.ends_with("json");
            if (is_one_of(formats, named) && named != given && !both_json) {
                check_refused(outcome, path,
                              "--format " + given + ": contradicts --output " + path);
                continue;
            }
            CHECK(outcome.code == 0);
            CHECK(agree(given, content_of(path)));
            std::filesystem::remove(path);
        }
    for (const std::string path : {"x.log", "x.npy.gz", "x", "x.2024-05-31", ".hidden", "dots."}) {
        CAPTURE(path);
        CHECK(run_attn({"self", input, "--format", "json", "-o", path}).code == 0);
        CHECK(run_attn({"batch", "q.ndjson", "--format", "ndjson", "-o", path}).code == 0);
        CHECK(run_attn({"explain", "self", input, "--format", "text", "-o", path}).code == 0);
        std::filesystem::remove(path);
    }
}

constexpr std::size_t queries = 64, keys = 140000;  // whose weights are above 64 MiB in float64

void check_array(const Decoded& read, const Array<double>& values) {
    CHECK(read.type == "f8");
    CHECK(read.shape == std::vector<std::size_t>(values.shape().begin(), values.shape().end()));
    REQUIRE(read.bytes.size() == values.size() * sizeof(double));
    CHECK(std::memcmp(read.bytes.data(), values.data(), read.bytes.size()) == 0);
}

TEST_CASE("files: streamed weights and scores are those of memory, to the bit") {
    std::map<std::string, Array<double>> operands;
    for (const auto& [name, rows] : {std::pair("query", queries), {"key", keys}}) {
        Array<double>& values = operands[name] = Array<double>::from_shape({rows, 2});
        std::string text;
        for (std::size_t i = 0; i < values.size(); ++i) {
            values.data()[i] = static_cast<double>(static_cast<int>(i * 37 % 101) - 50) / 64;
            text += std::to_string(values.data()[i]) + (i % 2 == 0 ? "," : "\n");
        }
        write_text(std::string(name) + ".csv", text);
    }
    // A fused kernel adds up the context in another order where it keeps weights.
    std::map<std::string, Array<double>> expected;
    for (const Words& emit : {Words{"scores", "attention_weights"}, {"context_vectors"}}) {
        attn::Settings settings;
        settings.mode = attn::Mode::sdpa;
        settings.dtype = attn::NumberType::float64;
        settings.emit = emit;
        attn::Operands copies;
        copies["query"] = operands["query"];
        copies["key"] = copies["value"] = operands["key"];
        for (attn::NamedArray& array : answer_of(settings, std::move(copies), 0).arrays)
            expected[array.name] = std::get<Array<double>>(std::move(array.values));
    }
    const auto write = [&](const std::string& emit, const std::string& path) {
        const Outcome outcome =
            run_attn({"sdpa", "--query", "query.csv", "--key", "key.csv", "--value", "key.csv",
                      "--dtype", "float64", "--emit", emit, "-o", path});
        CHECK(outcome.err == "");
        REQUIRE(outcome.code == 0);
        std::string text = read_text(path);
        std::filesystem::remove(path);
        return text;
    };
    check_array(decode_npy(write("attention_weights", "w.npy")), expected["attention_weights"]);
    const std::string all = "scores,attention_weights,context_vectors";
    for (const DecodedFile& file :
         {decode_npz(write(all, "w.npz")), decode_safetensors(write(all, "w.safetensors"))})
        for (const auto& [name, values] : expected) check_array(file.at(name), values);
}

}  // namespace
}  // namespace output_files_test
