#include "io/file/line_reader.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <new>
#include <span>
#include <utility>

#include "core/base/error.hpp"
#include "io/file/access.hpp"
#include "io/file/descriptor.hpp"
#include "io/file/source.hpp"

namespace attn::io {
namespace {

constexpr std::size_t bytes_at_once = std::size_t{1} << 17;

/// A blocking open of a pipe without a writer cannot be interrupted. Only on Linux does polling
/// also wait for the first writer; elsewhere the pipe would seem to be at its end.
#ifdef __linux__
constexpr int wait_later = O_NONBLOCK;
#else
constexpr int wait_later = 0;
#endif

}  // namespace

LineReader::LineReader(const std::string& path, int wake, std::size_t longest)
    : name_(path == "-" ? "<stdin>" : path), wake_(wake), longest_(longest) {
    fd_ = path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | wait_later);
    struct stat status {};
    if (fd_ < 0 || ::fstat(fd_, &status) != 0) fail_to_read(name_, errno);
    if (S_ISDIR(status.st_mode)) {
        ::close(std::exchange(fd_, -1));
        throw Error(ErrorKind::io, name_, "is a folder; expected a file");
    }
    if (longest_ != any_length) guard_read(path, file_id(status));
    is_regular_ = S_ISREG(status.st_mode);
    if (is_regular_) size_ = static_cast<std::uint64_t>(status.st_size);
}

LineReader::~LineReader() {
    if (fd_ > STDIN_FILENO) ::close(fd_);
}

Next LineReader::next(Line& line, bool may_wait) {
    std::size_t end;
    while ((end = buffer_.find('\n', searched_)) == std::string::npos && !at_end_) {
        searched_ = buffer_.size();
        const Next more = read_more(may_wait);
        if (more != Next::found) return more;
    }
    line.is_whole = end != std::string::npos;
    if (!line.is_whole) end = buffer_.size();
    line.size = skipped_ + (end - begin_);
    if (!line.is_whole && line.size == 0) return Next::end;
    line.number = ++number_;
    line.text =
        skipped_ == 0 ? std::string_view(buffer_).substr(begin_, end - begin_) : std::string_view();
    position_ += line.size + (line.is_whole ? 1 : 0);
    begin_ = searched_ = line.is_whole ? end + 1 : end;
    skipped_ = 0;
    return Next::found;
}

/// Checks the bytes of an incomplete line that arrived since the last check.
bool LineReader::is_no_text() {
    if (longest_ == any_length || buffer_.size() - looked_at_ < text_piece) return false;
    return fault_of_text(buffer_, std::exchange(looked_at_, buffer_.size())) != nullptr;
}

/// Reads more of the file after the buffered text.
Next LineReader::read_more(bool may_wait) {
    if (begin_ != 0) looked_at_ = 0;
    buffer_.erase(0, std::exchange(begin_, 0));
    searched_ = buffer_.size();
    if (skipped_ != 0 || buffer_.size() > longest_ || is_no_text()) {
        // A device of zeros never ends.
        if ((!is_regular_ || gunzip_ != nullptr) && buffer_.find('\0') != std::string::npos)
            throw Error(ErrorKind::input, name_ + ":" + std::to_string(number_ + 1),
                        "holds a zero byte; expected text");
        skipped_ += buffer_.size();
        buffer_.clear();
        searched_ = looked_at_ = 0;
    }
    if (gunzip_ != nullptr) return read_compressed(may_wait);
    const Next more = read_bytes(buffer_, at_end_, may_wait);
    find_gzip();
    return more;
}

/// Gives a gzip file's first bytes to its reader.
void LineReader::find_gzip() {
    if (!is_start_ || (buffer_.size() < 2 && !at_end_)) return;
    is_start_ = false;
    if (longest_ == any_length || !Inflater::starts_as_gzip(buffer_)) return;
    gunzip_ = std::make_unique<Inflater>(Inflater::Form::gzip);
    compressed_ = std::exchange(buffer_, {});
    compressed_at_end_ = std::exchange(at_end_, false);
    looked_at_ = 0;
}

std::optional<double> LineReader::part() const {
    const std::uint64_t read = gunzip_ == nullptr ? position_ : gunzip_->consumed();
    // The end of a file that grows while it is read is unknown.
    if (read >= size_) return std::nullopt;
    return static_cast<double>(read) / static_cast<double>(size_);
}

/// Decompresses a piece to the buffered text. Lines before damage are returned first.
Next LineReader::read_compressed(bool may_wait) {
    const bool needs_input = compressed_.empty() && !gunzip_->has_more();
    if (needs_input && !compressed_at_end_ && !is_damaged_) {
        const Next more = read_bytes(compressed_, compressed_at_end_, may_wait);
        if (more != Next::found) return more;
    } else if (wait(false) == Next::end) {
        return Next::end;
    }
    const bool is_over = compressed_at_end_ && compressed_.empty() && !gunzip_->has_more();
    if (is_damaged_ || is_over) {
        const std::string fault = gunzip_->fault();
        if (!fault.empty())
            throw Error(ErrorKind::input, name_ + ":" + std::to_string(number_ + 1), fault);
        at_end_ = true;
        return Next::found;
    }
    const std::size_t before = extend_buffer();
    std::span<char> to(buffer_.data() + before, bytes_at_once);
    std::string_view input = compressed_;
    is_damaged_ = !gunzip_->inflate(input, to);
    compressed_.erase(0, compressed_.size() - input.size());
    buffer_.resize(buffer_.size() - to.size());
    return Next::found;
}

/// Extends the buffered text by a piece; returns its previous size.
std::size_t LineReader::extend_buffer() {
    try {
        buffer_.resize(buffer_.size() + bytes_at_once);
    } catch (const std::bad_alloc&) {  // then the line is too long for the memory
        skipped_ += std::exchange(buffer_, {}).size();
        looked_at_ = 0;
        buffer_.resize(bytes_at_once);
    }
    return buffer_.size() - bytes_at_once;
}

/// Appends what the file has to `to`.
Next LineReader::read_bytes(std::string& to, bool& at_end, bool may_wait) {
    if (const Next ready = wait(may_wait); ready != Next::found) return ready;
    if (&to == &buffer_)
        extend_buffer();
    else
        to.resize(to.size() + bytes_at_once);
    const std::size_t before = to.size() - bytes_at_once;
    ssize_t count;
    do {
        count = ::read(fd_, to.data() + before, bytes_at_once);
    } while (count < 0 && errno == EINTR && wait(true) == Next::found);
    const int error = errno;
    to.resize(before + (count < 0 ? 0 : static_cast<std::size_t>(count)));
    if (count < 0 && error == EINTR) return Next::end;
    if (count < 0 && is_later(error)) return may_wait ? Next::found : Next::none_yet;
    if (count < 0) fail_to_read(name_, error);
    at_end = count == 0;
    return Next::found;
}

/// Waits for data or the end of the file; `end` if `wake` ended the wait.
Next LineReader::wait(bool may_wait) const {
    std::array<pollfd, 2> files{{{fd_, POLLIN, 0}, {wake_, POLLIN, 0}}};
    int ready;
    do {
        ready = ::poll(files.data(), files.size(), may_wait ? -1 : 0);
    } while (ready < 0 && errno == EINTR);
    if ((files[1].revents & POLLIN) != 0) return Next::end;
    return ready == 0 ? Next::none_yet : Next::found;  // if polling fails, reading reports why
}

}  // namespace attn::io
