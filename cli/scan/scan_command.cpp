// `attn scan`: its flags.
#include <algorithm>
#include <array>
#include <string_view>

#include "cli/output/output.hpp"
#include "cli/request/field.hpp"
#include "cli/request/request_builder.hpp"
#include "cli/scan/scan.hpp"
#include "core/base/error.hpp"
#include "core/base/threads.hpp"
#include "core/scan/head_statistics.hpp"
#include "io/file/source.hpp"

namespace attn::cli {
namespace {

/// Indices in head_statistics(), ascending; all by default. Errors: kind usage.
std::vector<std::size_t> statistics_of(const Args& args) {
    const auto all = head_statistics();
    std::vector<std::size_t> indices;
    if (const auto list = args.text("stats"); list && *list != "all") {
        for (const std::string& word : split_list(*list)) {
            const auto row = std::ranges::find(all, word, &HeadStatistic::name);
            if (row == all.end()) args.fail("stats");
            indices.push_back(static_cast<std::size_t>(row - all.begin()));
        }
        std::ranges::sort(indices);
        indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
    } else {
        for (std::size_t index = 0; index < all.size(); ++index) indices.push_back(index);
    }
    return indices;
}

std::vector<BatchInput> corpus_of(const std::vector<std::string>& words) {
    if (words.empty())
        throw Error(ErrorKind::usage, "attn scan",
                    "no model; expected its folder or file, then the corpus, as in attn scan DIR "
                    "corpus.txt");
    if (words.size() == 1)
        throw Error(ErrorKind::usage, "attn scan",
                    "no corpus; expected files of texts after the model, one text a line, as in "
                    "attn scan DIR corpus.txt");
    std::vector<BatchInput> inputs;
    for (std::size_t i = 1; i < words.size(); ++i) inputs.push_back({words[i], false});
    io::require_one_standard_input(words);
    return inputs;
}

Request defaults_of_texts(const Args& args, const std::string& layers) {
    Request defaults;
    defaults.of_batch = true;
    defaults = with_flags(std::move(defaults), args);
    apply_environment(defaults);
    refuse_dtype_of_models(defaults);
    defaults.access.regular_only = true;
    defaults.settings.emit = {"attention_weights"};
    defaults.locations["emit"] = Location("attn scan");
    defaults.locations["layers"] = Location("--layers " + layers);
    return defaults;
}

int run_scan_command(const Args& args) {
    ScanRequest request;
    request.program = args.program;
    request.inputs = corpus_of(args.names());
    request.model = args.names().front();
    request.statistics = statistics_of(args);
    request.skips_special = args.has("skip_special");
    request.truncate = args.whole("truncate");
    request.layers = args.text("layers").value_or("all");
    request.jobs = args.whole("jobs").value_or(processors());
    request.shard = shard_in(args);
    if (request.shard.shards > HeldShards::most) args.fail("shard");
    request.resume = args.has("resume");
    if (request.resume && args.has("output"))
        throw Error(ErrorKind::usage, "--output",
                    "contradicts --resume, which writes to its own file; expected one of them");
    request.output = output_in(args);
    constexpr std::array<NamedFormat, 1> formats{{{"json", {".json", ".ndjson"}}}};
    if (request.output != "-")
        format_of_name(
            formats, {request.output, (request.resume ? "--resume " : "--output ") + request.output,
                      "statistics are written as JSON"});
    request.defaults = defaults_of_texts(args, request.layers);
    return run_scan(request) ? 0 : exit_differs;
}

constexpr Option scan_options[] = {
    {.key = "stats",
     .limits = {.expected = "a list of entropy, sink, previous_token, induction, duplicate_token, "
                            "distance or key_mass"},
     .argument = "LIST",
     .help = "statistics to compute, as entropy,sink (default all)"},
    {.key = "skip_special",
     .field = no_value,
     .help = "leave out queries and keys that are the tokenizer's special tokens (default off)"},
    {.key = "truncate",
     .limits = {.lowest = 1, .expected = "an integer from 1"},
     .argument = "N",
     .help = "keep N tokens of longer texts, the special ones among them (default all)"},
    {.key = "layers",
     .limits = {.expected = "all, or numbers from 0; negative numbers count from the end"},
     .argument = "LIST",
     .help = "layers to scan, as in 0,5,-1 (default all)"},
    {.key = "jobs",
     .limits = {1, 1024, "an integer from 1 to 1024"},
     .argument = "N",
     .help = "texts scanned at the same time (default: the processors it may use); the bytes are "
             "the same",
     .letter = 'j'},
    {.key = "shard",
     .limits = {.expected = "I/N with I from 1 to N and N up to 1000000, as 1/8"},
     .argument = "I/N",
     .help = "scan every N-th record, from the I-th on (default 1/1)"},
    whole_output,
    {.key = "resume",
     .argument = "FILE",
     .help = "write to FILE, saved every 10 seconds, and go on after the records that it has"},
};

constexpr HelpOverride scan_flags[] = {
    {"stats", "statistics to compute (default all)"},
    {"skip_special", "leave out special tokens"},
    {"layers", "layers to scan, as in 0,5,-1 (default all)"},
    {"jobs", "texts scanned at the same time"},
    {"shard", "scan every N-th record, from the I-th on"},
    {"output", "write there, whole or not at all"},
    {"resume", "write to FILE; go on after what it has"},
};

}  // namespace

constexpr CommandRow scan_command{
    .name = "scan",
    .summary = "statistics of a model's heads over the texts of a corpus",
    .note = "; exit code 1 where records failed",
    .examples =
        "  attn scan DIR corpus.txt -o stats.json\n"
        "  attn scan DIR texts.ndjson --stats induction,sink --shard 3/8 --resume stats-3.json\n"
        "  attn plot stats.json --array induction\n",
    .usage =
        "MODEL CORPUS...\n\nMODEL is as of attn model. A line of CORPUS is a text. Where the "
        "first line begins with {, and in *.ndjson,\na line is a record: {\"text\": \"Life is "
        "short\"} or {\"token_ids\": [3, 1, 4]}. - is standard input.",
    .common_flags = scan_flags,
    .takes = in_scan,
    .own = scan_options,
    .run = run_scan_command};

}  // namespace attn::cli
