// `attn batch`: flags of its own, and every flag of the modes as a default for its records.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <thread>
#include <utility>

#include "cli/args/commands.hpp"
#include "cli/batch/answer.hpp"
#include "cli/request/output.hpp"
#include "core/base/did_you_mean.hpp"
#include "core/base/error.hpp"
#include "core/layer/result.hpp"
#include "io/file/source.hpp"
#include "io/read/input_file.hpp"

namespace attn::cli {
namespace {

constexpr std::uint64_t most_jobs = 1024;
constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

/// What would be written once for all records, or over and over.
bool is_default(const Option& option) {
    const bool of_one = option.name == "output" || option.name == "pretty" ||
                        option.name == "save-weights" || option.name == "save-family" ||
                        option.group == "Pictures";
    return option.is_flag && !of_one;
}

/// "3/8": the third of eight.
std::optional<Shard> shard_of(const std::string& text) {
    Shard shard;
    const char* const end = text.data() + text.size();
    const auto [slash, first] = std::from_chars(text.data(), end, shard.shard);
    if (first != std::errc{} || slash == end || *slash != '/') return {};
    const auto [stop, second] = std::from_chars(slash + 1, end, shard.shards);
    const bool fits =
        second == std::errc{} && stop == end && shard.shard >= 1 && shard.shard <= shard.shards;
    return fits ? std::optional(shard) : std::nullopt;
}

constexpr Names<io::Format, 2> line_format_names{
    {{io::Format::ndjson, "ndjson"}, {io::Format::json, "json"}}};

/// A name that promises another format.
void check_output(const BatchRequest& batch) {
    const io::OutputName name{
        batch.output, (batch.resume ? "--resume " : "--output ") + batch.output,
        "answers of a batch are lines of JSON", ", or --format ndjson beside it"};
    if (batch.defaults.has("format"))
        check_promise(batch.defaults, name);
    else
        io::named_format(line_format_names, name);
}

/// Settings that no record of a batch can have.
void refuse_defaults(const Request& defaults) {
    check_answer_format(defaults);
    // Of a name that no mode knows every record would say so.
    for (const std::string& name : defaults.settings.emit)
        if (name != "all" &&
            std::find(array_names.begin(), array_names.end(), name) == array_names.end())
            throw Error(ErrorKind::usage, place_of(defaults, "emit"),
                        "unknown array \"" + io::shortened(name) + "\"; the nearest is " +
                            did_you_mean(name, {array_names.begin(), array_names.end()}));
    if (defaults.has_mode) check_defaults(defaults);
    for (const auto& [key, path] : defaults.operand_files)
        if (io::split_data_path(path).file == "-")
            throw Error(ErrorKind::usage, place_of(defaults, key),
                        "standard input, which every record would read anew; expected a file");
}

}  // namespace

BatchCommand::BatchCommand(CLI::App& program, bool is_named)
    : Command(program, "batch", "many requests, one a line; one answer a line, in their order"),
      own_(app_) {
    if (!is_named) return;
    own_.add_switch("each", "each of REQUESTS is one input, whatever its name (default off)");
    own_.add("mode", "self|causal|multihead|cross|sdpa",
             "of records that do not say it (no default)");
    own_.add("jobs", "N",
             "records answered at the same time (default: the processors that there "
             "are); the bytes are the same");
    own_.add("shard", "I/N", "answer every N-th record, from the I-th on (default 1/1)");
    own_.add("output", "FILE", "write there, line by line (default -, standard output)");
    own_.add("resume", "FILE", "the same, after the answers that the file holds already");
    own_.add_switch("retry-failed",
                    "with --resume: answer anew what has no good answer, in its place (default "
                    "off)");
    own_.add_switch("fail-fast", "end with the first record that fails (default off)");
    own_.add("max-failures", "N", "end with the N-th record that fails (default none)");
    own_.add_switch("dry-run", "costs of each record instead of its answer (default off)");
    for (const Option& option : options()) {
        if (!is_default(option)) continue;
        Option hidden = option;
        hidden.group = "";
        defaults_.add(app_, hidden, false);
    }
}

std::string BatchCommand::help() const {
    app_.description("");
    return help_text(
               app_,
               "  attn batch requests.ndjson -o results.ndjson\n"
               "  attn batch requests.ndjson --resume results.ndjson --jobs 4\n"
               "  attn batch --mode causal --d-out 2 --each tokens.csv tokens.json\n",
               "attn batch: many requests, one a line; one answer a line, in their order",
               "[REQUESTS...]\n\nREQUESTS are files of requests, one a line; or inputs, one a "
               "file, "
               "as json, csv, npy, npz or\nsafetensors; - or nothing: lines of standard input.") +
           "\nEvery flag of a mode may stand here too: a default for records that do not say it\n"
           "themselves. See attn self --help.\n";
}

void BatchCommand::take_mode(Request& defaults) const {
    const std::optional<std::string> mode = own_.text("mode");
    defaults.has_mode = mode.has_value();
    if (!mode) return;
    const std::optional<Mode> known = value_named(mode_names, *mode);
    if (!known) own_.fail("mode", "self, causal, multihead, cross or sdpa");
    defaults.settings.mode = *known;
}

void BatchCommand::take_inputs(std::vector<BatchInput>& inputs) const {
    for (const std::string& word : words_of(app_, {&own_.by_name(), &defaults_.by_name()})) {
        if (word.empty() || (word == "-" && own_.has("each")))
            throw Error(ErrorKind::usage, "REQUESTS '" + word + "'",
                        "is no name of a file; expected one");
        inputs.push_back({word, own_.has("each")});
    }
    const auto is_standard = [](const BatchInput& input) { return input.path == "-"; };
    if (std::count_if(inputs.begin(), inputs.end(), is_standard) > 1)
        throw Error(ErrorKind::usage, "-", "standard input named twice; expected it once");
    if (inputs.empty() && own_.has("each"))
        throw Error(ErrorKind::usage, "--each", "has no files; expected at least one");
}

CommandLine BatchCommand::read() const {
    BatchRequest batch;
    batch.defaults.of_batch = true;
    take_mode(batch.defaults);
    defaults_.store(batch.defaults);
    refuse_defaults(batch.defaults);
    take_inputs(batch.inputs);
    batch.jobs = own_.whole("jobs", 1, most_jobs, "a whole number from 1 to 1024")
                     .value_or(std::max(1u, std::thread::hardware_concurrency()));
    batch.max_failures = own_.whole("max-failures", 1, most, "a whole number from 1");
    if (own_.has("fail-fast")) {
        if (batch.max_failures)
            throw Error(ErrorKind::usage, "--fail-fast",
                        "contradicts --max-failures; expected one of them");
        batch.max_failures = 1;
    }
    if (const auto text = own_.text("shard")) {
        const std::optional<Shard> shard = shard_of(*text);
        if (!shard) own_.fail("shard", "I/N with I from 1 to N, as 1/8");
        batch.shard = *shard;
    }
    batch.resume = own_.has("resume");
    batch.dry_run = own_.has("dry-run");
    batch.retry_failed = own_.has("retry-failed");
    if (batch.retry_failed && !batch.resume)
        throw Error(ErrorKind::usage, "--retry-failed",
                    "there is nothing to try again; expected --resume FILE beside it");
    if (batch.resume && (own_.has("output") || batch.dry_run))
        throw Error(ErrorKind::usage, batch.dry_run ? "--dry-run" : "--output",
                    "contradicts --resume, which writes answers to its own file; expected one of "
                    "them");
    batch.output = own_.text(batch.resume ? "resume" : "output").value_or("-");
    if (batch.output.empty() || (batch.resume && batch.output == "-"))
        throw Error(ErrorKind::usage, batch.resume ? "--resume" : "--output",
                    "no name of a file; expected one");
    check_output(batch);
    if (batch.inputs.empty()) {
        if (::isatty(STDIN_FILENO) != 0) return message_only(help(), 2);
        batch.inputs.push_back({"-", false});
    }
    CommandLine line;
    line.batch = std::move(batch);
    return line;
}

}  // namespace attn::cli
