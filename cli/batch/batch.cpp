// Every job takes the next records, answers them and passes the answers on. No thread only reads or
// only writes.
#include "cli/batch/batch.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "core/base/error.hpp"
#include "core/base/threads.hpp"
#include "io/file/access.hpp"

namespace attn::cli {
namespace {

using namespace std::chrono_literals;

/// Consecutive records that one job answers. Quick records are taken many at a time, so that jobs
/// seldom wait for each other; slow records one by one.
struct Run {
    std::uint64_t first = 0;  // index of the first record among all taken ones
    std::vector<Record> records;
    std::size_t count = 0;  // used entries of `records`, which keep their memory
};

constexpr std::size_t longest_run = 64;
constexpr auto quick_run = 500us;

class Batch {
public:
    /// `known` holds answers that need not be computed; null: none.
    Batch(const BatchRequest& request, io::LoadedModels& models, RecordReader& records,
          GoodAnswers* known, BatchResults& results, Progress& progress, Stop& stop)
        : request_(request), models_(models), records_(records), known_(known), results_(results),
          progress_(progress), stop_(stop), memory_(request.jobs) {}

    /// Runs all jobs to the end. An exception in one job ends all jobs and is rethrown here.
    /// Returns the error instead of the record after the last answered one, if reading ended with
    /// one.
    std::exception_ptr run() {
        std::vector<std::thread> others =
            start_threads(request_.jobs - 1, [this](std::size_t) { work(); });
        work();
        for (std::thread& other : others) other.join();
        results_.finish();
        if (fault_) std::rethrow_exception(fault_);
        return unread_;
    }

private:
    void work() {
        try {
            answer_runs();
        } catch (...) {
            stop_.want();  // also interrupts the wait of the job that holds the lock
            const std::lock_guard lock(taking_);
            if (!fault_) fault_ = std::current_exception();
        }
    }

    void answer_runs() {
        Answerer answerer(request_, models_);
        Run run;
        for (std::size_t length = 1; take(run, length);) {
            const auto begin = std::chrono::steady_clock::now();
            std::vector<RecordOutcome> answers;
            for (std::size_t i = 0; i < run.count && (i == 0 || !stop_.wanted()); ++i)
                answers.push_back(memory_.run([&] { return answerer.answer(run.records[i]); }));
            const bool quick = std::chrono::steady_clock::now() - begin < quick_run;
            length =
                quick ? std::min(2 * length, longest_run) : std::max<std::size_t>(1, length / 2);
            results_.put(run.first, std::move(answers));
        }
    }

    /// Takes the next records, at most `length` of those already available; false if there are
    /// none. Answers that are ready are written while it waits for a record.
    bool take(Run& run, std::size_t length) {
        const std::lock_guard lock(taking_);
        run.first = taken_;
        run.count = 0;
        run.records.resize(length);
        while (run.count < length && !stop_.wanted()) {
            Record& record = run.records[run.count];
            if (unread_ || next_record(record, run.count == 0) != io::Next::found) break;
            ++run.count;
            if (known_ != nullptr) record.answer = known_->take(record);
        }
        taken_ += run.count;
        progress_.set_part(records_.part());
        return run.count != 0;
    }

    /// An error ends the records, and not the batch: every record before it is answered.
    io::Next next_record(Record& record, bool is_first) {
        try {
            io::Next next = records_.next(record, false);
            if (next == io::Next::none_yet && is_first) {
                results_.set_idle(true);
                next = records_.next(record);
                results_.set_idle(false);
            }
            return next;
        } catch (...) {
            unread_ = std::current_exception();
            return io::Next::end;
        }
    }

    const BatchRequest& request_;
    io::LoadedModels& models_;
    RecordReader& records_;
    GoodAnswers* known_;
    BatchResults& results_;
    Progress& progress_;
    Stop& stop_;

    SharedMemory memory_;
    std::mutex taking_;
    std::uint64_t taken_ = 0;
    std::exception_ptr unread_;  // the error instead of the next record, for all jobs
    std::exception_ptr fault_;
};

/// Whether the output has contents that could be lost.
bool holds_something(const BatchRequest& request) {
    struct stat status {};
    const int failed = request.output == "-" ? ::fstat(STDOUT_FILENO, &status)
                                             : ::stat(request.output.c_str(), &status);
    return failed == 0 && S_ISREG(status.st_mode) && status.st_size != 0;
}

bool all_regular(const BatchRequest& request) {
    return std::ranges::all_of(request.inputs, is_regular_file);
}

/// Answers must not overwrite the requests, or the files that flags name. Reading the output later
/// ends the batch.
void check_output(const BatchRequest& request) {
    for (const BatchInput& input : request.inputs) io::guard_read(input.path);
    for (const std::string& file : request.flag_files) io::guard_read(file);
    for (const auto& [key, path] : request.defaults.operand_files)
        io::guard_read(io::split_data_path(path).file);
    for (const FlagValue& flag : request.model_flags)
        if (names_file(*flag.option)) io::guard_read(io::split_data_path(flag.text).file);
    if (request.defaults.model_config) io::guard_read(*request.defaults.model_config);
    io::require_unread(request.output);
    struct stat status {};
    const bool holds_answers = request.resume && ::stat(request.output.c_str(), &status) == 0;
    if (holds_answers && S_ISDIR(status.st_mode))
        throw Error(ErrorKind::io, request.output,
                    "is a folder; expected a file of answers, or --out-dir " + request.output +
                        " --resume");
    if (holds_answers && !S_ISREG(status.st_mode))
        throw Error(ErrorKind::io, request.output,
                    "is not a regular file; expected a file of answers, or a new one");
}

/// A resumed batch finds answers by id. Repeated ids in regular files are found before anything is
/// written, others when they arrive. Each shard has its own file of answers. The records before
/// damage are answered.
void check_ids(const BatchRequest& request, RecordReader& records, const Stop& stop) {
    if (!request.resume) return;
    if (!all_regular(request)) return records.require_unique_ids();
    RecordReader ahead(request.inputs, request.shard, stop);
    ahead.require_unique_ids();
    try {
        for (Record record; ahead.next(record) == io::Next::found;) {
        }
    } catch (const Error&) {
        if (!ahead.is_damaged()) throw;
    }
}

void report_failures(const BatchRequest& request, const BatchCount& count, std::uint64_t before) {
    if (count.failed == 0) return;
    const std::string of_before =
        before == 0 ? "" : ", " + std::to_string(before) + " of them in an earlier run";
    const bool ended = request.max_failures && count.failed >= *request.max_failures;
    report(std::to_string(count.failed) + " of " + std::to_string(count.records) +
           " records failed" + of_before + (ended ? ", and the batch ended there" : "") +
           "; the first: " + count.first_problem +
           (before == 0 ? "" : " (--retry-failed answers them again)"));
}

void end_by_signal(const BatchRequest& request, const Stop& stop, std::uint64_t records) {
    const bool may_go_on = request.output != "-" && !request.defaults.format->lists_elements;
    stop.end_by_signal(records, !may_go_on      ? ""
                                : request.parts ? "; --resume goes on"
                                                : "; --resume " + request.output + " goes on");
}

/// Removes new parts of --out-dir that no index names.
struct NewParts {
    const PartLayout* layout;  // null: none
    std::uint64_t first = layout == nullptr ? 0 : parts_in_index(*layout);
    bool is_kept = false;

    explicit NewParts(const BatchRequest& request)
        : layout(request.parts ? &*request.parts : nullptr) {
        remove();
    }
    NewParts(const NewParts&) = delete;
    NewParts& operator=(const NewParts&) = delete;
    ~NewParts() {
        if (!is_kept) remove();
    }
    void remove() const {
        if (layout != nullptr) remove_parts(*layout, first);
    }
};

/// Writes the answers, new or known, to a file that replaces the output at the end. So a record may
/// not lose a file by naming the output, and a repair that ends early changes nothing. Other
/// answers that fit on the disk are kept.
BatchCount replace_output(const BatchRequest& request, io::LoadedModels& models,
                          RecordReader& records, Stop& stop) {
    std::optional<GoodAnswers> good;
    if (request.retry_failed) good.emplace(request);
    NewParts made(request);
    io::OutputFile out(request.output);
    BatchCount count;
    std::exception_ptr fault;
    try {
        out.fill([&](io::Output& answers) {
            Progress progress;
            std::optional<Parts> parts;
            if (made.layout != nullptr) parts.emplace(*made.layout, made.first, 0, answers);
            BatchResults results(answers, parts ? &*parts : nullptr, {}, request, progress, stop);
            // The answers before damaged requests are kept.
            fault =
                Batch(request, models, records, good ? &*good : nullptr, results, progress, stop)
                    .run();
            if (good && fault) std::rethrow_exception(fault);
            count = results.count();
        });
    } catch (const Error& error) {
        if (good || request.defaults.format->lists_elements || !out.keep_lines()) throw;
        fault = std::make_exception_ptr(Error(error.kind(), error.location(), error.what(),
                                              "; the answers until then are kept, and --resume ",
                                              request.output, " goes on"));
    }
    if (good && stop.wanted()) return count;
    if (good) {
        Answerer answerer(request, models);
        good->check_end(answerer);
    }
    out.commit();
    made.is_kept = true;
    if (fault) std::rethrow_exception(fault);
    return count;
}

/// Appends answers to those that the output already holds.
BatchCount go_on(const BatchRequest& request, io::LoadedModels& models, RecordReader& records,
                 io::LineOutput& out, const BatchCount& answered, Stop& stop) {
    const bool has_failed = request.max_failures && answered.failed >= *request.max_failures;
    if (stop.wanted() || has_failed) return answered;
    NewParts made(request);
    made.is_kept = true;
    std::optional<Parts> parts;
    if (request.parts) parts.emplace(*request.parts, made.first, answered.records, out);
    out.start_at(answered.bytes);
    // Truncates the output now, unless records come through a pipe: the first of those may still
    // read the output unchanged.
    if (all_regular(request)) out << "";
    Progress progress;
    BatchResults results(out, parts ? &*parts : nullptr, answered, request, progress, stop);
    const std::exception_ptr fault =
        Batch(request, models, records, nullptr, results, progress, stop).run();
    out << "";  // truncates the output even if there was no answer
    out.finish();
    if (fault) std::rethrow_exception(fault);
    return results.count();
}

}  // namespace

bool run_batch(BatchRequest request) {
    io::LoadedModels models;
    request.defaults.access.regular_only = true;
    check_output(request);
    Stop stop;
    RecordReader records(request.inputs, request.shard, stop);
    if (request.parts) make_folder(*request.parts);  // of inputs that can be read
    check_ids(request, records, stop);
    const bool has_answers = holds_something(request);
    std::optional<io::LineOutput> out;
    try {
        out.emplace(request.output, stop.signal_file());
    } catch (const Error&) {
        end_by_signal(request, stop, 0);  // if the signal ended the wait for a pipe's reader
        throw;
    }
    if (request.resume && out->is_inherited())
        throw Error(ErrorKind::io, request.output,
                    "is open already, and answers are appended to it; expected the name of "
                    "a file, or --output in place of --resume");
    if (request.parts && !request.resume && has_answers)
        throw Error(ErrorKind::io, request.output,
                    "has answers of an earlier run; expected --resume as well, which goes on, or "
                    "another --out-dir");
    const bool replaces =
        !request.resume && has_answers && !out->is_inherited() && all_regular(request);
    BatchCount count, answered;
    if (request.retry_failed || replaces) {
        count = replace_output(request, models, records, stop);
    } else {
        if (request.resume) {
            Answerer answerer(request, models);
            answered = skip_answered(records, request, answerer);
        }
        count = go_on(request, models, records, *out, answered, stop);
    }
    report_failures(request, count, answered.failed);
    end_by_signal(request, stop, count.records);
    return count.failed == 0;
}

}  // namespace attn::cli
