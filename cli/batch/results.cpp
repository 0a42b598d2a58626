#include <utility>

#include "cli/batch/batch.hpp"
#include "io/file/output.hpp"

namespace attn::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t most_bytes_ahead = std::size_t{1} << 26;
constexpr std::uint64_t most_records_ahead = std::uint64_t{1} << 14;

/// Ready answers are written at this size or age, or as soon as the batch is idle.
constexpr std::size_t ready_bytes = std::size_t{1} << 16;
constexpr auto ready_time = 20ms;

std::size_t bytes_of(const std::vector<RecordOutcome>& answers) {
    std::size_t bytes = 0;
    for (const RecordOutcome& answer : answers) bytes += answer.size();
    return bytes;
}

}  // namespace

void BatchResults::put(std::uint64_t first, std::vector<RecordOutcome> answers) {
    std::unique_lock lock(mutex_);
    // A signal handler cannot notify a condition variable, so the wait polls.
    while (!room_.wait_for(lock, 50ms, [&] { return has_room(first) || stop_.wanted(); })) {
    }
    if (first != next_) {
        bytes_ahead_ += bytes_of(answers);
        ahead_[first] = std::move(answers);
        return;
    }
    append(answers);
    for (auto found = ahead_.begin(); found != ahead_.end() && found->first == next_;
         found = ahead_.erase(found)) {
        bytes_ahead_ -= bytes_of(found->second);
        append(found->second);
    }
    room_.notify_all();
    const auto now = std::chrono::steady_clock::now();
    if (idle_ || ready_.size() >= ready_bytes || now - last_write_ >= ready_time) write_ready();
}

bool BatchResults::has_room(std::uint64_t first) const {
    if (first == next_) return true;
    return bytes_ahead_ < most_bytes_ahead && first - next_ < most_records_ahead;
}

void BatchResults::append(std::vector<RecordOutcome>& answers) {
    for (RecordOutcome& answer : answers) {
        if (ended_) return;
        if (answer.end) {
            end_ = answer.end;
            ended_ = true;
            stop_.want();
            return;
        }
        // If this throws, the record is not counted, and nothing after it is written.
        if (parts_ != nullptr)
            add_to_parts(answer);
        else if (answer.line.size() < ready_bytes)
            ready_ += answer.line.text();
        else
            write_large(answer.line);
        ++next_;
        ++count_.records;
        if (answer.problem.empty()) continue;
        if (count_.failed++ == 0) count_.first_problem = std::move(answer.problem);
        if (max_failures_ && count_.failed >= *max_failures_) {
            ended_ = true;
            stop_.want();
        }
    }
}

/// After an error nothing more is written, as in write().
void BatchResults::add_to_parts(RecordOutcome& answer) {
    if (is_broken_) return;
    is_broken_ = true;
    parts_->add({.line = std::move(answer.line), .packed = std::move(answer.packed)});
    is_broken_ = false;
    progress_.show(count_.records - before_);
}

/// Writes without a copy.
void BatchResults::write_large(io::TextBuffer& line) {
    write_ready();
    write(line.text());
    line = {};
}

void BatchResults::write_ready() {
    write(ready_);
    if (!is_broken_) ready_.clear();
}

/// After a failed write nothing more is written, so that the output remains a prefix of the whole.
/// A closed reader of a pipe ends the batch and is not an error.
void BatchResults::write(std::string_view lines) {
    if (is_broken_ || lines.empty()) return;
    is_broken_ = true;
    try {
        out_ << lines;
    } catch (const io::ClosedPipe&) {
        return stop_.want();
    } catch (const io::GivenUp&) {
        return;
    }
    is_broken_ = false;
    last_write_ = std::chrono::steady_clock::now();
    progress_.show(count_.records - before_);
}

void BatchResults::set_idle(bool idle) {
    const std::lock_guard lock(mutex_);
    idle_ = idle;
    if (idle) write_ready();
}

void BatchResults::finish() {
    const std::lock_guard lock(mutex_);
    write_ready();
    if (parts_ != nullptr && !is_broken_) {
        is_broken_ = true;
        parts_->finish();
        is_broken_ = false;
    }
    if (end_) std::rethrow_exception(end_);
}

BatchCount BatchResults::count() const {
    const std::lock_guard lock(mutex_);
    return count_;
}

}  // namespace attn::cli
