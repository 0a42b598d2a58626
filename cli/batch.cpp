// `attn batch`; see batch.hpp. Every job takes the next records, answers them and hands the answers
// over; there is no thread that only reads or only writes.
#include "cli/batch.hpp"

#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "cli/batch_answer.hpp"
#include "cli/batch_results.hpp"
#include "cli/batch_resume.hpp"
#include "cli/progress.hpp"
#include "cli/stop.hpp"
#include "core/error.hpp"
#include "io/line_output.hpp"

namespace attn::cli {
namespace {

using namespace std::chrono_literals;

/// Records that follow one another, answered by one job. Quick ones are taken by many, so that
/// jobs seldom wait for each other; slow ones one by one.
struct Run {
    std::uint64_t first = 0;  // its number among all that are taken
    std::vector<Record> records;
    std::size_t count = 0;  // of `records`, which keep their memory
};

constexpr std::size_t longest_run = 64;
constexpr auto quick_run = 500us;

class Batch {
public:
    Batch(const BatchRequest& request, RecordReader& records, BatchResults& results,
          Progress& progress, Stop& stop)
        : request_(request), records_(records), results_(results), progress_(progress),
          stop_(stop) {}

    /// All jobs until the end. An exception of any of them ends all and comes out here.
    void run() {
        std::vector<std::thread> others;
        for (std::size_t job = 1; job < request_.jobs; ++job) {
            try {
                others.emplace_back([this] { work(); });
            } catch (const std::system_error&) {
                break;  // the machine gives no more threads: fewer do the same work
            }
        }
        work();
        for (std::thread& other : others) other.join();
        results_.flush();
        if (fault_) std::rethrow_exception(fault_);
    }

private:
    void work() {
        try {
            answer_runs();
        } catch (...) {
            stop_.want();  // also ends the wait of the job that holds the lock
            const std::lock_guard lock(taking_);
            if (!fault_) fault_ = std::current_exception();
        }
    }

    void answer_runs() {
        const std::size_t processors = std::max(1u, std::thread::hardware_concurrency());
        Answerer answerer(request_.defaults, request_.dry_run,
                          std::max<std::size_t>(1, processors / request_.jobs), models_);
        Run run;
        for (std::size_t length = 1; take(run, length);) {
            const auto begin = std::chrono::steady_clock::now();
            std::vector<Answer> answers;
            for (std::size_t i = 0; i < run.count && (i == 0 || !stop_.wanted()); ++i)
                answers.push_back(answerer.answer(run.records[i]));
            const bool quick = std::chrono::steady_clock::now() - begin < quick_run;
            length =
                quick ? std::min(2 * length, longest_run) : std::max<std::size_t>(1, length / 2);
            results_.put(run.first, std::move(answers));
        }
    }

    /// The next records, up to `length` of those that are there already; false where there are
    /// none. While it waits for a record, answers that are ready are not kept back.
    bool take(Run& run, std::size_t length) {
        const std::lock_guard lock(taking_);
        run.first = taken_;
        run.count = 0;
        run.records.resize(length);
        while (run.count < length && !stop_.wanted()) {
            const bool waits = !records_.is_ready();
            if (waits && run.count != 0) break;
            if (waits) results_.set_idle(true);
            const bool found = records_.next(run.records[run.count]);
            if (waits) results_.set_idle(false);
            if (!found) break;
            ++run.count;
        }
        taken_ += run.count;
        progress_.set_part(records_.part());
        return run.count != 0;
    }

    const BatchRequest& request_;
    RecordReader& records_;
    BatchResults& results_;
    Progress& progress_;
    Stop& stop_;
    ModelFiles models_;

    std::mutex taking_;
    std::uint64_t taken_ = 0;
    std::exception_ptr fault_;
};

void check_output(const BatchRequest& request) {
    std::error_code ignored;
    for (const BatchInput& input : request.inputs)
        if (input.path != "-" && std::filesystem::equivalent(input.path, request.output, ignored))
            throw Error(ErrorKind::usage, request.output,
                        "is read and written; expected another file for the answers");
}

void report(const std::string& text) {
    std::fprintf(stderr, "attn: %s\n", io::one_line(text).c_str());
}

}  // namespace

bool run_batch(const BatchRequest& request) {
    check_output(request);
    Stop stop;
    RecordReader records(request.inputs, request.shard, stop);
    io::LineOutput out(request.output);
    Answered answered;
    if (request.resume) answered = skip_answered(records, request.output);
    BatchCount count = answered.count;
    const auto has_too_many_failures = [&] {
        return request.max_failures && count.failed >= *request.max_failures;
    };
    if (!stop.wanted() && !has_too_many_failures()) {
        out.start_at(answered.bytes);
        Progress progress;
        BatchResults results(out, count, request.max_failures, progress, stop);
        Batch(request, records, results, progress, stop).run();
        count = results.count();
    }
    if (count.failed != 0)
        report(std::to_string(count.failed) + " of " + std::to_string(count.records) +
               " records failed" + (has_too_many_failures() ? ", and the batch ended there" : "") +
               "; the first: " + count.first_problem);
    if (const int signal = stop.signal(); signal != 0) {
        report("ended by a signal after " + std::to_string(count.records) + " records" +
               (request.output == "-" ? "" : "; --resume " + request.output + " goes on"));
        Stop::end_by(signal);
    }
    return count.failed == 0;
}

}  // namespace attn::cli
