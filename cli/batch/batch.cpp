// Every job takes the next records, answers them and passes the answers on. No thread only reads or
// only writes.
#include "cli/batch/batch.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <thread>
#include <utility>

#include "cli/batch/answer.hpp"
#include "cli/batch/overwritten.hpp"
#include "cli/batch/parts.hpp"
#include "cli/batch/progress.hpp"
#include "cli/batch/results.hpp"
#include "cli/batch/resume.hpp"
#include "cli/batch/resumed_parts.hpp"
#include "cli/batch/stop.hpp"
#include "core/base/error.hpp"
#include "core/base/memory.hpp"
#include "core/base/threads.hpp"
#include "io/file/durable_file.hpp"
#include "io/file/line_output.hpp"
#include "io/file/output_file.hpp"
#include "io/file/path.hpp"
#include "io/file/temporary.hpp"

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

/// Jobs share the processors; a single job may use all of them.
Answerer make_answerer(const BatchRequest& request, io::LoadedModels& models) {
    return {request.defaults, *request.program,
            request.dry_run,  std::max<std::size_t>(1, processors() / request.jobs),
            models,           request.parts ? request.parts->folder : std::string()};
}

class Batch {
public:
    /// `known` holds answers that need not be computed; null: none.
    Batch(const BatchRequest& request, io::LoadedModels& models, RecordReader& records,
          GoodAnswers* known, BatchResults& results, Progress& progress, Stop& stop)
        : request_(request), models_(models), records_(records), known_(known), results_(results),
          progress_(progress), stop_(stop) {}

    /// Runs all jobs to the end. An exception in one job ends all jobs and is rethrown here.
    void run() {
        std::vector<std::thread> others =
            start_threads(request_.jobs - 1, [this](std::size_t) { work(); });
        work();
        for (std::thread& other : others) other.join();
        results_.finish();
        if (fault_) std::rethrow_exception(fault_);
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
        Answerer answerer = make_answerer(request_, models_);
        Run run;
        for (std::size_t length = 1; take(run, length);) {
            const auto begin = std::chrono::steady_clock::now();
            std::vector<RecordOutcome> answers;
            for (std::size_t i = 0; i < run.count && (i == 0 || !stop_.wanted()); ++i)
                answers.push_back(answer(answerer, run.records[i]));
            const bool quick = std::chrono::steady_clock::now() - begin < quick_run;
            length =
                quick ? std::min(2 * length, longest_run) : std::max<std::size_t>(1, length / 2);
            results_.put(run.first, std::move(answers));
        }
    }

    /// Jobs have equal shares of the memory. A record that needs more waits until it is the only
    /// one.
    RecordOutcome answer(Answerer& answerer, const Record& record) {
        try {
            const std::shared_lock beside_others(large_record_);
            const MemoryShare share(request_.jobs);
            return answerer.answer(record);
        } catch (const BeyondShare&) {
            const std::unique_lock alone(large_record_);
            return answerer.answer(record);
        }
    }

    /// Takes the next records, at most `length` of those already available; false if there are
    /// none. Answers that are ready are written while it waits for a record.
    bool take(Run& run, std::size_t length) {
        const std::lock_guard lock(taking_);
        try {
            return take_records(run, length);
        } catch (...) {
            stop_.want();  // before another job reads past the error
            throw;
        }
    }

    bool take_records(Run& run, std::size_t length) {
        run.first = taken_;
        run.count = 0;
        run.records.resize(length);
        while (run.count < length && !stop_.wanted()) {
            Record& record = run.records[run.count];
            if (next_record(record, run.count == 0) != io::Next::found) break;
            ++run.count;
            if (known_ != nullptr) record.answer = known_->take(record);
        }
        taken_ += run.count;
        progress_.set_part(records_.part());
        return run.count != 0;
    }

    /// Records before an error are answered: it is thrown when no other record comes first.
    io::Next next_record(Record& record, bool is_first) {
        try {
            if (unread_) std::rethrow_exception(unread_);
            io::Next next = records_.next(record, false);
            if (next == io::Next::none_yet && is_first) {
                results_.set_idle(true);
                next = records_.next(record);
                results_.set_idle(false);
            }
            return next;
        } catch (...) {
            if (is_first) throw;
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

    std::shared_mutex large_record_;  // exclusive for a large record, shared for the others
    std::mutex taking_;
    std::uint64_t taken_ = 0;
    std::exception_ptr unread_;  // the error in place of the next record
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
    return std::all_of(request.inputs.begin(), request.inputs.end(), is_regular_file);
}

/// Answers must not overwrite the requests, or the files that flags and requests name. Only files
/// known in advance are checked here. Reading the output later ends the batch.
void check_output(const BatchRequest& request, io::LoadedModels& models) {
    for (const BatchInput& input : request.inputs) io::guard_read(input.path);
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
    check_flags(request, models);
}

/// A resumed batch finds answers by id. Repeated ids in regular files are found before anything is
/// written, others when they arrive. Each shard has its own file of answers.
void check_ids(const BatchRequest& request, RecordReader& records, const Stop& stop) {
    if (!request.resume) return;
    if (!all_regular(request)) return records.require_unique_ids();
    RecordReader ahead(request.inputs, request.shard, stop);
    ahead.require_unique_ids();
    for (Record record; ahead.next(record) == io::Next::found;) {
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
    const int signal = stop.signal();
    if (signal == 0) return;
    report("ended by a signal after " + std::to_string(records) + " records" +
           (request.output == "-" ? ""
            : request.parts       ? "; --resume goes on"
                                  : "; --resume " + request.output + " goes on"));
    io::end_by_signal(signal);
}

/// The parts that --retry-failed writes: they replace the old ones, or are removed.
class NewGeneration {
public:
    explicit NewGeneration(const PartLayout& layout)
        : layout_(layout), old_(generation_of(layout)) {}
    NewGeneration(const NewGeneration&) = delete;
    NewGeneration& operator=(const NewGeneration&) = delete;
    ~NewGeneration() {
        remove_other_parts(layout_, is_whole_ ? old_ + 1 : old_,
                           std::numeric_limits<std::uint64_t>::max());
    }

    PartsSoFar parts() const {
        PartsSoFar none(layout_.records_per_file);
        none.generation = old_ + 1;
        return none;
    }

    /// To be called when the new index has replaced the old one.
    void replaces_old() {
        io::sync_folder(layout_.folder);
        is_whole_ = true;
    }

private:
    const PartLayout& layout_;
    std::uint64_t old_;
    bool is_whole_ = false;
};

/// Answers the records without a successful answer, in order. The output is replaced once all
/// answers are complete.
BatchCount retry_failed(const BatchRequest& request, io::LoadedModels& models,
                        RecordReader& records, Stop& stop) {
    GoodAnswers good(request.output, request.parts.has_value());
    std::optional<NewGeneration> made;
    if (request.parts) made.emplace(*request.parts);
    io::OutputFile out(request.output);
    BatchCount count;
    out.fill([&](io::Output& answers) {
        Progress progress;
        std::optional<Parts> parts;
        if (made) parts.emplace(*request.parts, made->parts(), answers, [] {});
        BatchResults results(answers, parts ? &*parts : nullptr, {}, request.max_failures, progress,
                             stop);
        Batch(request, models, records, &good, results, progress, stop).run();
        count = results.count();
    });
    if (!stop.wanted()) {
        Answerer answerer = make_answerer(request, models);
        good.check_end(answerer);
        out.commit();
        if (made) made->replaces_old();
    }
    return count;
}

/// Appends answers to those that the output already holds.
BatchCount go_on(const BatchRequest& request, io::LoadedModels& models, RecordReader& records,
                 io::LineOutput& out, const Answered& answered, const ResumedParts* resumed,
                 Stop& stop) {
    const bool has_failed = request.max_failures && answered.count.failed >= *request.max_failures;
    if (stop.wanted() || has_failed) return answered.count;
    out.start_at(answered.bytes);
    // Truncates the output now, unless records come through a pipe: the first of those may still
    // read the output unchanged.
    if (all_regular(request)) out << "";
    Progress progress;
    std::optional<Parts> parts;
    bool is_cut = false;
    // A longer part may replace one whose answers the index has.
    const auto before_file = [&] {
        if (std::exchange(is_cut, true)) return;
        out.start_at(resumed->begin(answered.bytes));
        out << "";
        out.sync();
    };
    if (resumed != nullptr) parts.emplace(*request.parts, resumed->so_far(), out, before_file);
    BatchResults results(out, parts ? &*parts : nullptr, answered.count, request.max_failures,
                         progress, stop);
    Batch(request, models, records, nullptr, results, progress, stop).run();
    out << "";  // truncates the output even if there was no answer
    out.finish();
    return results.count();
}

}  // namespace

bool run_batch(BatchRequest request) {
    io::LoadedModels models;
    request.defaults.access.regular_only = true;
    check_output(request, models);
    Stop stop;
    RecordReader records(request.inputs, request.shard, stop);
    if (request.parts) {  // of inputs that can be read
        make_folder(request.parts->folder);
        if (!io::path_exists(request.parts->index())) require_no_parts(*request.parts);
    }
    if (holds_something(request)) check_records(request, models, stop);
    check_ids(request, records, stop);
    std::optional<io::LineOutput> opened;
    try {
        opened.emplace(request.output, stop.signal_file());
    } catch (const Error&) {
        end_by_signal(request, stop, 0);  // if the signal ended the wait for a pipe's reader
        throw;
    }
    io::LineOutput& out = *opened;
    if (request.resume && out.is_inherited())
        throw Error(ErrorKind::io, request.output,
                    "is open already, and answers are appended to it; expected the name of "
                    "a file, or --output in place of --resume");
    if (request.parts && !request.resume && holds_something(request))
        throw Error(ErrorKind::io, request.output,
                    "has answers of an earlier run; expected --resume as well, which goes on, or "
                    "another --out-dir");
    BatchCount count;
    std::uint64_t failed_before = 0;
    if (request.retry_failed) {
        count = retry_failed(request, models, records, stop);
    } else {
        Answered answered;
        std::optional<ResumedParts> resumed;
        if (request.parts) resumed.emplace(*request.parts);
        ResumedParts* const of_index = resumed ? &*resumed : nullptr;
        if (request.resume) {
            Answerer answerer = make_answerer(request, models);
            answered = skip_answered(records, request.output, answerer, of_index);
        }
        // A stop may have ended the reading of the index early.
        if (of_index != nullptr && !stop.wanted()) of_index->remove_others();
        failed_before = answered.count.failed;
        count = go_on(request, models, records, out, answered, of_index, stop);
    }
    report_failures(request, count, failed_before);
    end_by_signal(request, stop, count.records);
    return count.failed == 0;
}

}  // namespace attn::cli
