// `attn batch`: its own flags, and every flag of the modes as a default for records.
#include <algorithm>
#include <iterator>

#include "cli/batch/batch.hpp"
#include "cli/model/model_options.hpp"
#include "cli/output/output.hpp"
#include "cli/request/request_builder.hpp"
#include "core/base/error.hpp"
#include "core/base/threads.hpp"
#include "core/operator/arrays.hpp"

namespace attn::cli {
namespace {

/// Takes the format of the output's name, and refuses a suffix that implies another one.
void take_output_name(BatchRequest& batch) {
    const OutputName name{batch.output, (batch.resume ? "--resume " : "--output ") + batch.output,
                          "answers of a batch are lines of JSON", ", or --format ndjson as well"};
    Request& defaults = batch.defaults;
    if (defaults.has("format"))
        check_format_of_name(defaults, name);
    else if (const io::OutputFormat* const named =
                 format_of_name(io::output_formats, name, false, &io::OutputFormat::of_batch);
             named != nullptr && named->lists_elements)
        defaults.format = named;
    const bool is_table = defaults.format->lists_elements;
    if (is_table) check_style_and_store(defaults);
    if (is_table && batch.resume)
        throw Error(ErrorKind::usage, name.location,
                    "conflicts with csv-long, whose lines do not tell which records are complete; "
                    "expected lines of JSON, or --output");
    if (is_table && batch.dry_run)
        throw Error(ErrorKind::usage, "--dry-run", "writes JSON; expected json or ndjson");
}

void refuse_standard_input(const std::string& path, const std::string& location) {
    if (io::is_standard_input(path))
        throw Error(ErrorKind::usage, location,
                    "standard input, which every record would read again; expected a file");
}

/// Refuses settings that no record of a batch can have.
void refuse_defaults(Request defaults, const io::OutputFormat* packed) {
    check_answer_format(defaults, packed);
    // Otherwise every record would report the same unknown name.
    std::vector<std::string> names = defaults.settings.emit;
    std::erase_if(names, is_model_array);
    at_locations(defaults, [&] { check_array_names(names); });
    if (defaults.has_mode) check_defaults(defaults);
    for (const auto& [key, path] : defaults.operand_files)
        refuse_standard_input(path, location_of(defaults, key));
}

/// The flags that records of mode model take from their own table.
std::vector<FlagValue> model_flags_of(const Args& args) {
    std::vector<FlagValue> flags;
    for (FlagValue flag : args.flags) {
        flag.option = find_option(model_options, flag.option->key);
        if (flag.option == nullptr) continue;
        if (names_file(*flag.option)) refuse_standard_input(flag.text, location_of(flag));
        flags.push_back(std::move(flag));
    }
    return flags;
}

/// The format of --out-dir: npz unless one is given.
const io::OutputFormat* packed_format(const Request& defaults) {
    if (!defaults.has("format"))
        return std::ranges::find(io::output_formats, "npz", &io::OutputFormat::name);
    if (defaults.format->packs()) return defaults.format;
    std::vector<std::string_view> names;
    for (const io::OutputFormat& format : io::output_formats)
        if (format.packs()) names.push_back(format.name);
    throw setting_error(defaults, "format",
                        "is not a format of --out-dir; expected " + listed(names));
}

Request defaults_of(const Args& args) {
    Request defaults;
    defaults.of_batch = true;
    const std::optional<std::size_t> mode = args.choice("mode");
    defaults.has_mode = mode.has_value();
    if (mode) defaults.settings.mode = mode_rows[*mode].mode;
    defaults = with_flags(std::move(defaults), args);
    const bool is_packed = args.has("out_dir");
    if (is_packed) defaults.format = packed_format(defaults);
    refuse_defaults(defaults, is_packed ? defaults.format : nullptr);
    return defaults;
}

/// Where --out-dir writes; empty without it.
std::optional<PartLayout> parts_of(const Args& args, const BatchRequest& batch) {
    const std::optional<std::string> folder = args.text("out_dir");
    if (!folder) {
        if (args.has("records_per_file"))
            throw Error(ErrorKind::usage, "--records-per-file", "requires --out-dir DIR");
        return {};
    }
    if (folder->empty() || *folder == "-")
        throw Error(ErrorKind::usage, "--out-dir", "no name of a folder; expected one");
    if (args.has("output") || batch.defaults.dry_run)
        throw Error(ErrorKind::usage, args.has("output") ? "--output" : "--dry-run",
                    "conflicts with --out-dir; expected one of them");
    if (const auto resumed = args.text("resume"); resumed && *resumed != *folder)
        throw Error(ErrorKind::usage, "--resume " + *resumed,
                    "is not the folder of --out-dir; expected --resume " + *folder +
                        ", or --resume as the last word");
    PartLayout parts;
    parts.folder = *folder;
    parts.format = batch.defaults.format;
    parts.shard = batch.shard;
    const auto records = args.whole("records_per_file");
    if (!parts.holds_many()) {
        if (records.value_or(1) != 1)
            throw Error(ErrorKind::usage, "--records-per-file " + std::to_string(*records),
                        "a file of format ", parts.format->name,
                        " holds one record; expected 1, or --format npz or safetensors");
        parts.records_per_file = 1;
    } else if (records) {
        parts.records_per_file = static_cast<std::size_t>(*records);
    }
    return parts;
}

std::vector<BatchInput> inputs_of(const Args& args) {
    const bool each = args.has("each");
    std::vector<BatchInput> inputs;
    for (const std::string& word : args.names()) {
        if (word.empty() || (word == "-" && each))
            throw Error(ErrorKind::usage, "REQUESTS '" + word + "'", "is not the name of a file");
        inputs.push_back({word, each});
    }
    io::require_one_standard_input(args.names());
    if (inputs.empty() && each)
        throw Error(ErrorKind::usage, "--each", "has no files; expected at least one");
    return inputs;
}

BatchRequest batch_of(const Args& args) {
    BatchRequest batch;
    batch.program = args.program;
    batch.defaults = defaults_of(args);
    batch.flag_files = args.flag_files;
    batch.model_flags = model_flags_of(args);
    batch.defaults.no_files = args.has("no_files");
    batch.inputs = inputs_of(args);
    batch.jobs = args.whole("jobs").value_or(processors());
    batch.max_failures = args.whole("max_failures");
    if (args.has("fail_fast")) {
        if (batch.max_failures)
            throw Error(ErrorKind::usage, "--fail-fast",
                        "contradicts --max-failures; expected one of them");
        batch.max_failures = 1;
    }
    batch.shard = shard_in(args);
    batch.resume = args.has("resume");
    batch.dry_run = batch.defaults.dry_run;
    batch.retry_failed = args.has("retry_failed");
    if (batch.retry_failed && !batch.resume)
        throw Error(ErrorKind::usage, "--retry-failed", "requires --resume ",
                    args.text("out_dir").value_or("FILE"));
    if (batch.resume && !args.has("out_dir") && (args.has("output") || batch.dry_run))
        throw Error(ErrorKind::usage, batch.dry_run ? "--dry-run" : "--output",
                    "contradicts --resume, which writes answers to its own file; expected one of "
                    "them");
    if ((batch.parts = parts_of(args, batch))) {
        batch.output = batch.parts->index();
        return batch;
    }
    batch.output = output_in(args);
    take_output_name(batch);
    return batch;
}

int run_batch_command(const Args& args) {
    BatchRequest batch = batch_of(args);
    if (batch.inputs.empty()) {
        refuse_keyboard(
            "attn batch",
            "no requests; expected files of requests, one per line, or such lines piped in");
        batch.inputs.push_back({"-", false});
    }
    return run_batch(batch) ? 0 : exit_differs;
}

constexpr Field any_mode{.kind = FieldKind::choice, .name = [](std::size_t i) {
                             return i < mode_rows.size() ? mode_rows[i].name : std::string_view();
                         }};

constexpr Option batch_options[] = {
    {.key = "each", .field = no_value, .help = "each of REQUESTS is one input (default off)"},
    {.key = "mode",
     .field = any_mode,
     .help = "the mode of records that have no mode key (no default)"},
    {.key = "jobs",
     .limits = {1, 1024, "an integer from 1 to 1024"},
     .argument = "N",
     .help = "records answered at the same time (default: the processors it may use); the "
             "bytes are the same",
     .letter = 'j'},
    {.key = "shard",
     .limits = {.expected = "I/N with I from 1 to N, as 1/8"},
     .argument = "I/N",
     .help = "answer every N-th record, from the I-th on (default 1/1)"},
    {.key = "output",
     .argument = "FILE",
     .help = "write there, line by line (default -, standard output)",
     .letter = 'o'},
    {.key = "out_dir",
     .argument = "DIR",
     .help = "write the arrays to files in DIR, and a line for each record to DIR/index.ndjson "
             "(default: arrays as text)"},
    {.key = "records_per_file",
     .limits = {1, 1e6, "an integer from 1 to 1000000"},
     .argument = "N",
     .help = "with --out-dir: records of one file, fewer above 64 MiB (default 1000, or 1 of npy, "
             "c and memh)"},
    {.key = "resume",
     .argument = "FILE",
     .help = "continue FILE: skip the records that it answers; with --out-dir, --resume alone "
             "continues DIR",
     .value_of = "out_dir"},
    {.key = "retry_failed",
     .field = no_value,
     .help = "with --resume: answer failed and missing records again, in place (default off)"},
    {.key = "fail_fast",
     .field = no_value,
     .help = "end with the first record that fails (default off)"},
    {.key = "max_failures",
     .limits = {.lowest = 1, .expected = "an integer from 1"},
     .argument = "N",
     .help = "end with the N-th record that fails (default none)"},
    {.key = "no_files",
     .field = no_value,
     .help = "a record that names a file fails (default off)"},
};

/// With those of mode model, but for those that modes have too.
constexpr auto all_options = [] {
    constexpr std::array<std::string_view, 4> shared{"text", "text_file", "truncate",
                                                     "position_ids"};
    std::array<Option, std::size(batch_options) + std::size(model_options) - shared.size()> all{};
    auto end = std::ranges::copy(batch_options, all.begin()).out;
    for (const Option& option : model_options)
        if (std::ranges::find(shared, option.key) == shared.end()) {
            *end = option;
            (end++)->group = "Records of mode model";
        }
    return all;
}();

constexpr HelpOverride batch_flags[] = {
    {"mode", "the mode of records that have no mode key"},
    {"each", "each of REQUESTS is one input"},
    {"jobs", "records answered at the same time"},
    {"shard", "answer every N-th record, from the I-th on"},
    {"output", "write answers there, line by line"},
    {"out_dir", "write arrays to files in DIR, with an index"},
    {"resume", "continue FILE; with --out-dir, alone: continue DIR"},
    {"retry_failed", "with --resume: answer failed records again"},
    {"max_failures", "end with the N-th record that fails"},
    {"no_files", "a record that names a file fails"},
    {"dry_run", "costs of each record instead of its answer"},
};

}  // namespace

constexpr CommandRow batch_command{
    .name = "batch",
    .summary = "many requests, one per line; one answer per line, in their order",
    .examples =
        "  attn batch requests.ndjson -o results.ndjson\n"
        "  attn batch requests.ndjson --resume results.ndjson --jobs 4\n"
        "  attn batch --mode causal --d-out 2 --each tokens.csv tokens.json\n",
    .usage =
        "[REQUESTS...]\n\nREQUESTS are files of requests, one per line; or inputs, one per file, "
        "as json, csv, npy, npz or\nsafetensors; - or nothing: lines of standard input.",
    .ending =
        "\nEvery flag of a mode is accepted: a default for records that do not set it "
        "themselves.\nSee attn self --help.\n",
    .common_flags = batch_flags,
    .takes = in_batch,
    .own = all_options,
    .run = run_batch_command};

}  // namespace attn::cli
