// `attn merge`: the files state what they are; a row of `kinds` joins those of one schema.

#include "cli/partial/partial.hpp"
#include "cli/request/request.hpp"
#include "cli/scan/stats.hpp"
#include "io/read/result_view.hpp"

namespace attn::cli {
namespace {

struct MergeKind {
    std::string_view schema;
    /// Joins at least one file, opened in the order of the command line, and writes --output.
    void (*merge)(const std::vector<io::InputFile>& files, const Args& args);
};

constexpr MergeKind merge_kinds[] = {{schemas::stats, merge_stats}, {schemas::part, merge_parts}};

const MergeKind& kind_of(const io::InputFile& file) {
    const std::string schema = io::schema_of(file);
    std::string expected;
    for (const MergeKind& kind : merge_kinds) {
        if (kind.schema == schema) return kind;
        expected += (expected.empty() ? "" : " or ") + std::string(kind.schema);
    }
    throw Error(ErrorKind::input, file.location,
                schema.empty() ? "states no schema" : "has the schema " + io::shortened(schema),
                "; expected ", expected);
}

int run_merge(const Args& args) {
    const std::vector<std::string>& words = args.names();
    if (words.empty())
        throw Error(ErrorKind::usage, "attn merge",
                    "no files; expected those to join, as in attn merge part*.json -o all.json");
    io::require_one_standard_input(words);
    std::vector<io::InputFile> files;
    const MergeKind* first = nullptr;
    for (const std::string& word : words) {
        files.push_back(io::open_input_file(word));
        const MergeKind& own = kind_of(files.back());
        if (first == nullptr) first = &own;
        if (&own != first)
            throw Error(ErrorKind::input, files.back().location, "has the schema ", own.schema,
                        ", and ", files.front().location, " ", first->schema,
                        "; expected files of one");
    }
    first->merge(files, args);
    return 0;
}

}  // namespace

constexpr CommandRow merge_command{
    .name = "merge",
    .summary = "files of parts of a computation, joined",
    .examples =
        "  attn merge stats-*.json -o stats.json\n"
        "  attn merge part-*.npz -o result.json\n",
    .usage =
        "FILE...\n\nEach FILE states what it is: statistics of attn scan, or parts of attn "
        "partial. Any order gives the\nsame bytes; any grouping gives those of statistics, and "
        "equal parts up to rounding.",
    .own = {&whole_output, 1},
    .run = run_merge};

}  // namespace attn::cli
