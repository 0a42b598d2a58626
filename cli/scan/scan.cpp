#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>

#include "cli/request/digest.hpp"
#include "cli/request/errors.hpp"
#include "cli/request/field.hpp"
#include "cli/scan/scan.hpp"
#include "core/base/error.hpp"
#include "core/base/memory.hpp"
#include "core/base/threads.hpp"
#include "core/scan/head_statistics.hpp"
#include "io/file/bytes.hpp"
#include "io/file/output.hpp"
#include "io/file/path.hpp"
#include "io/file/source.hpp"
#include "io/file/temporary.hpp"
#include "io/read/array_file.hpp"
#include "io/read/input_formats.hpp"
#include "io/text/json_text.hpp"

namespace attn::cli {
namespace {

using namespace std::chrono_literals;
using ScanClock = std::chrono::steady_clock;

/// Records that are scanned together: their sums are added to those of earlier ones only if all
/// are complete, so that the sums are always of the first records.
constexpr std::size_t longest_chunk = 4096;
constexpr auto short_chunk = 1s;
/// With --resume the sums so far are written this often, and after the first chunk.
constexpr auto saving_interval = 10s;

void add_elements(Digest& digest, const io::StoredArray& array) {
    // Instead of the bytes, which may be compressed.
    if (array.zip != nullptr) return digest.add(std::uint64_t{array.zip->crc32});
    if (const char* const mapped = array.bytes->mapped(); mapped != nullptr)
        return digest.add(
            std::string_view(mapped + array.offset, static_cast<std::size_t>(array.size)));
    const std::string bytes = array.bytes->read(array.offset, static_cast<std::size_t>(array.size));
    digest.add(bytes);
}

void add_tokenizer(Digest& digest, const io::ModelFolder& files) {
    if (!files.tokenizer_metadata.empty())
        return digest.add(io::json_text(files.tokenizer_metadata));
    std::string path;
    try {
        path = io::tokenizer_file(files.folder.empty() ? "." : files.folder);
    } catch (const Error&) {
        return;  // token ids need none
    }
    const auto bytes = io::Bytes::open(path);
    digest.add(bytes->read(0, static_cast<std::size_t>(bytes->size())));
}

/// A number that tells models apart: of the config, of the names, types, shapes and bytes of all
/// tensors, and of the tokenizer if there is one. It does not depend on how the tensors are divided
/// into files. Errors: kind io.
std::uint64_t digest_of_model(const io::OpenModel& model) {
    const io::ModelFolder& files = model.files();
    Digest digest;
    digest.add(io::json_text(files.config));
    std::vector<const io::StoredArray*> arrays;
    for (const io::StoredArray& array : files.tensors->arrays) arrays.push_back(&array);
    std::ranges::sort(arrays, {}, &io::StoredArray::name);
    for (const io::StoredArray* array : arrays) {
        digest.add(array->name);
        digest.add(array->type_name);
        for (const std::size_t size : array->shape) digest.add(std::uint64_t{size});
        add_elements(digest, *array);
    }
    for (const auto& bytes : files.tensors->parts()) bytes->release();
    add_tokenizer(digest, files);
    return digest.value();
}

/// What a file of statistics states of the model and the settings.
std::string config_of(const ScanRequest& request, const io::OpenModel& model) {
    std::vector<std::string_view> names;
    for (const std::size_t index : request.statistics)
        names.push_back(head_statistics()[index].name);
    const Settings& settings = request.defaults.settings;
    std::string config = "{";
    io::append_member(config, "model_type", model.type());
    io::append_member(config, "model_digest", hex_of(digest_of_model(model)));
    io::append_member(config, "dtype", row_of(settings.dtype).name);
    io::append_member(config, "kernel", settings.kernel);
    io::append_member(config, "layers", request.layers);
    io::append_member(config, "skip_special", request.skips_special);
    if (request.truncate) io::append_member(config, "truncate", *request.truncate);
    io::append_member(config, "stats", names);
    // What a model without a config.json does not state.
    append_settings(config, request.defaults, [&](const Option& option) {
        return request.defaults.has(option.key) &&
               std::ranges::find(model_settings, option.key) != model_settings.end();
    });
    return config += '}';
}

/// Whether a file holds texts, one a line: its name is not that of JSON, and its first line that is
/// not blank does not begin with a brace.
bool holds_texts(const Record& first) {
    if (first.line == 0) return false;
    const io::InputFormat* const format = io::format_of_name(first.file);
    if (format == io::json_input || format == io::ndjson_input) return false;
    const std::string_view text =
        first.line == 1 ? io::without_byte_order_mark(first.text) : std::string_view(first.text);
    return !text.substr(std::min(text.find_first_not_of(" \t"), text.size())).starts_with('{');
}

/// Makes a line of text a record. What is not text, or too long, is refused as a record.
void make_record(Record& line) {
    std::string_view text = line.text;
    if (text.size() < line.size || text.find('\0') != text.npos ||
        io::find_invalid_utf8(text) != text.npos)
        return;
    if (line.line == 1) text = io::without_byte_order_mark(text);
    if (text.ends_with('\r')) text.remove_suffix(1);
    std::string record = "{";
    io::append_member(record, "text", text);
    line.text = record += '}';
    line.size = line.text.size();
}

struct ScannedText {
    Record record;
    std::uint64_t number = 0;  ///< in the whole corpus, from 1
    std::uint64_t digest = 0;
};

/// The records of the corpus that this process scans.
class ScannedRecords {
public:
    ScannedRecords(const ScanRequest& request, const Stop& stop)
        : shard_(request.shard), reader_(request.inputs, {}, stop) {}

    bool next(ScannedText& text) {
        Record& record = text.record;
        do {
            if (reader_.next(record) != io::Next::found) return false;
            ++number_;
            if (record.file != file_ || record.line <= line_) {
                file_ = record.file;
                has_texts_ = holds_texts(record);
            }
            line_ = record.line;
        } while ((number_ - 1) % shard_.shards != shard_.shard - 1);
        if (has_texts_) make_record(record);
        Digest digest;
        digest.add(number_);
        digest.add(record.line == 0 ? record.file : record.text);
        text.number = number_;
        text.digest = digest.value();
        return true;
    }

    std::optional<double> part() const { return reader_.part(); }

private:
    Shard shard_;
    RecordReader reader_;
    std::uint64_t number_ = 0;
    // The file of the record before, and its line in it.
    std::string file_;
    std::size_t line_ = 0;
    bool has_texts_ = false;
};

/// The layers that are asked for must be there, in the deeper stack of two. Models of images and
/// audio depend on each input.
void check_layers(const ScanRequest& request, const io::OpenModel& model) {
    if (!model.row().inputs.empty()) return;
    at_locations(request.defaults, [&] {
        std::size_t layers = model.specify(1).layers;
        if (model.decoder() != nullptr)
            layers = std::max(layers, model.decoder()->specify(1).layers);
        layers_named(request.layers, layers);
    });
}

/// Scans chunks of records with several jobs.
class ChunkScanner {
public:
    ChunkScanner(const ScanRequest& request, const Stop& stop)
        : request_(request), stop_(stop), pool_(request.jobs), scanners_(request.jobs),
          memory_(request.jobs) {}

    /// Adds the records to the statistics; false, and they are unchanged, if a stop was requested.
    bool scan(const std::vector<ScannedText>& chunk, ScanStats& stats) {
        ScanStats added;
        std::vector<TextSums> sums(request_.jobs);
        pool_.run(chunk.size(), [&](std::size_t item, std::size_t job) {
            if (!stop_.wanted()) scan(chunk[item], job, sums[job], added.failed);
        });
        if (stop_.wanted()) return false;
        for (const TextSums& of_job : sums)
            stats.sums.add(of_job, stats.statistics, chunk.back().record.location());
        for (const ScannedText& text : chunk) stats.digest += text.digest;
        stats.records += chunk.size();
        stats.failed.add(added.failed);
        return true;
    }

private:
    void scan(const ScannedText& text, std::size_t job, TextSums& sums, FailedRecords& failed) {
        keep_memory_aside();
        TextSums own;
        try {
            const auto threads =
                static_cast<std::size_t>(request_.defaults.threads.value_or(processors()));
            if (scanners_[job] == nullptr)
                scanners_[job] = std::make_unique<TextScanner>(
                    request_, std::max<std::size_t>(1, threads / request_.jobs));
            own = memory_.run([&] { return scanners_[job]->scan(text.record); });
        } catch (...) {
            const ErrorReport failure = current_error(true);
            FailedRecord problem{text.number, text.record.id(), io::one_line(failure.location),
                                 io::one_line(failure.message)};
            const std::lock_guard lock(failing_);
            return failed.add(std::move(problem));
        }
        sums.add(own, request_.statistics, text.record.location());
    }

    const ScanRequest& request_;
    const Stop& stop_;
    ThreadPool pool_;
    std::vector<std::unique_ptr<TextScanner>> scanners_;  // one per job
    SharedMemory memory_;
    std::mutex failing_;
};

void write_stats(io::OutputFile& out, const ScanStats& stats) {
    out.fill([&](io::Output& to) { to << stats_text(stats); });
    out.commit();
}

[[noreturn]] void fail_to_resume(const std::string& path, const std::string& what) {
    throw Error(ErrorKind::input, path, what,
                "; expected the flags and the corpus of the scan that began this file, or "
                "another file to resume");
}

/// Continues the statistics of the file, if there is one, after the records that it has.
void go_on_from(const ScanRequest& request, ScannedRecords& records, const Stop& stop,
                ScanStats& stats) {
    if (!io::path_exists(request.output)) return;
    ScanStats before = read_stats(io::open_input_file(
        request.output, nullptr, {.is_own_output = true, .expected = "statistics of attn scan"}));
    if (before.config != stats.config) fail_to_resume(request.output, "has other settings");
    if (!(before.shards == stats.shards)) fail_to_resume(request.output, "has another shard");
    std::uint64_t digest = 0;
    ScannedText text;
    for (std::uint64_t i = 0; i < before.records; ++i) {
        if (!records.next(text)) {
            if (stop.wanted()) return;
            fail_to_resume(request.output, "has more records than the corpus");
        }
        digest += text.digest;
    }
    if (digest != before.digest)
        fail_to_resume(request.output, "has other records than the corpus begins with");
    stats = std::move(before);
    stats.is_complete = false;
}

/// Scans all records; a stop ends it between chunks. With --resume, saves the sums so far.
void scan_records(const ScanRequest& request, ScannedRecords& records, const Stop& stop,
                  ScanStats& stats) {
    Progress progress;
    ChunkScanner scanner(request, stop);
    std::optional<ScanClock::time_point> saved;
    std::size_t length = request.jobs;
    for (bool has_more = true; has_more;) {
        std::vector<ScannedText> chunk;
        ScannedText text;
        while (chunk.size() < length && (has_more = records.next(text))) chunk.push_back(text);
        if (stop.wanted()) return;
        if (chunk.empty()) break;
        const auto begin = ScanClock::now();
        if (!scanner.scan(chunk, stats)) return;
        const auto end = ScanClock::now();
        length = end - begin < short_chunk ? std::min(2 * length, longest_chunk)
                                           : std::max(request.jobs, length / 2);
        progress.set_part(records.part());
        progress.show(stats.records);
        if (request.resume && (!saved || end - *saved >= saving_interval)) {
            io::OutputFile out(request.output);
            write_stats(out, stats);
            saved = ScanClock::now();
        }
    }
    stats.is_complete = true;
}

}  // namespace

bool run_scan(const ScanRequest& request) {
    Stop stop;
    ScannedRecords records(request, stop);
    ScanStats stats;
    stats.statistics = request.statistics;
    stats.shards = {request.shard.shards, {request.shard.shard}};
    {
        ModelFiles files(request.defaults, request.model);
        check_layers(request, files.model());
        if (request.skips_special) files.tokenizer();
        stats.config = config_of(request, files.model());
    }
    // Another file must be writable before hours of work.
    std::optional<io::OutputFile> out;
    if (request.resume)
        go_on_from(request, records, stop, stats);
    else
        out.emplace(request.output);
    scan_records(request, records, stop, stats);
    if (stats.is_complete || (request.resume && stats.records != 0)) {
        if (!out) out.emplace(request.output);
        write_stats(*out, stats);
    }
    out.reset();
    if (stats.sums.truncated_texts != 0)
        show_notes({concat(stats.sums.truncated_texts, " of ", stats.records - stats.failed.count,
                           " texts are truncated")});
    stop.end_by_signal(stats.records,
                       request.resume ? "; --resume " + request.output + " goes on" : "");
    if (stats.failed.count == 0) return true;
    const FailedRecord& first = stats.failed.first.front();
    report(std::to_string(stats.failed.count) + " of " + std::to_string(stats.records) +
           " records failed; the first, record " + std::to_string(first.number) + ": " +
           first.location + ": " + first.message);
    return false;
}

}  // namespace attn::cli
