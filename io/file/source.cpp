#include "io/file/source.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "io/text/utf8.hpp"

namespace attn::io {

namespace {

constexpr std::size_t largest_text = std::size_t{1} << 30;

/// Whether the first characters are ASCII in units of `width` bytes, of which the last or first one
/// is not zero.
bool begins_with_units(std::string_view text, std::size_t width, bool little) {
    if (text.size() < 4) return false;
    for (std::size_t i = 0; i < std::min<std::size_t>(text.size() / 4 * 4, 16); ++i)
        if ((text[i] == '\0') != (i % width != (little ? 0 : width - 1))) return false;
    return true;
}

/// The encoding of a text with a zero byte; empty if it is none.
std::string encoding_of(std::string_view text) {
    using namespace std::string_view_literals;
    if (text.starts_with("\xff\xfe\0\0"sv) || text.starts_with("\0\0\xfe\xff"sv)) return "UTF-32";
    if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) return "UTF-16";
    for (const std::size_t width : {2u, 4u})
        for (const bool little : {true, false})
            if (begins_with_units(text, width, little))
                return "UTF-" + std::to_string(8 * width) + (little ? "LE" : "BE");
    return "";
}

/// The source, after its text is checked.
Source checked(Source source, const char* expected) {
    if (source.first_line == 1) source.text = without_byte_order_mark(source.text);
    if (source.text.find_first_not_of(" \t\r\n") == std::string_view::npos)
        throw Error(ErrorKind::input, source.name, "is empty; expected ", expected);
    const std::size_t bad = find_invalid_utf8(source.text);
    if (bad != std::string_view::npos)
        throw Error(ErrorKind::input, source.location(bad), "not UTF-8; expected UTF-8 text");
    return source;
}

/// Bytes of plain ASCII at the start, rounded down to a multiple of 64.
std::size_t ascii_prefix(std::string_view text) {
    constexpr std::size_t block = 64;
    std::size_t at = 0;
    for (; text.size() - at >= block; at += block) {
        std::array<std::uint64_t, block / 8> words{};
        std::memcpy(words.data(), text.data() + at, block);
        std::uint64_t all = 0;
        for (std::uint64_t word : words) all |= word;
        if ((all & 0x8080808080808080u) != 0) break;
    }
    return at;
}

constexpr std::size_t bytes_at_once = std::size_t{1} << 17;

/// A blocking open of a pipe without a writer cannot be interrupted. Only on Linux does polling
/// also wait for the first writer; elsewhere the pipe would seem to be at its end.
#ifdef __linux__
constexpr int wait_later = O_NONBLOCK;
#else
constexpr int wait_later = 0;
#endif

/// What check_text() refuses; empty if there is nothing.
std::string fault_of_text(std::string_view text, std::size_t from) {
    if (std::memchr(text.data() + from, '\0', text.size() - from) != nullptr) {
        const std::string encoding = encoding_of(text);
        if (encoding.empty()) return "holds a zero byte; expected text (json, ndjson or csv)";
        return "is " + encoding + "; expected UTF-8 text, as iconv -f " + encoding +
               " -t UTF-8 writes it";
    }
    // Every word of twice the size fills a piece.
    for (std::size_t at = from / text_piece * text_piece; at + text_piece <= text.size();
         at += text_piece)
        if (text.substr(at, text_piece).find_first_of(" \t\r\n,;|:[]{}\"") ==
            std::string_view::npos)
            return "a word or number of more than 1 MiB; expected blanks, commas or line breaks "
                   "between shorter ones";
    return "";
}

}  // namespace

std::string_view without_byte_order_mark(std::string_view text) {
    return text.substr(text.starts_with("\xef\xbb\xbf") ? 3 : 0);
}

std::string Source::location(std::size_t offset) const {
    const std::string_view before = text.substr(0, std::min(offset, text.size()));
    const std::size_t line = std::max<std::size_t>(
        1, first_line + static_cast<std::size_t>(std::ranges::count(before, '\n')));
    const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
    const std::string_view line_before = before.substr(line_start);
    const auto column = 1 + std::ranges::count_if(line_before, [](char c) {
                            return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
                        });
    return line_location(name, line) + ":" + std::to_string(column);
}

void check_text(const std::string& name, std::string_view text, std::size_t from) {
    const std::string fault = fault_of_text(text, from);
    if (!fault.empty()) throw Error(ErrorKind::input, name, fault);
}

Source read_source(const std::string& path, const Access& access) {
    return read_source(Bytes::open(path, access, check_text));
}

Source read_source(const std::shared_ptr<const Bytes>& bytes) {
    if (bytes->size() > largest_text)
        throw Error(ErrorKind::input, bytes->name(), "is longer than 1 GiB; expected less text");
    const std::size_t size = static_cast<std::size_t>(bytes->size());
    const char* const expected = bytes->access().expected;
    if (bytes->memory() != nullptr) {
        const std::string_view text(bytes->memory(), size);
        check_text(bytes->name(), text, 0);
        return checked({bytes->name(), text, bytes}, expected);
    }
    const auto memory = std::make_shared<AlignedArray<char>>();
    memory->reserve(size);
    for (std::size_t at = 0; at < size; at += text_piece) {
        const std::size_t count = std::min(text_piece, size - at);
        bytes->read(at, count, memory->data() + at);
        check_text(bytes->name(), {memory->data(), at + count}, at);
    }
    return checked({bytes->name(), {memory->data(), size}, memory}, expected);
}

Source source_of_line(std::string name, std::string_view text, std::size_t line) {
    const std::string fault = fault_of_text(text, 0);
    if (!fault.empty()) throw Error(ErrorKind::input, line_location(name, line), fault);
    return checked({std::move(name), text, nullptr, line}, "a request");
}

std::size_t find_invalid_utf8(std::string_view text) {
    for (std::size_t i = 0; i < text.size();) {
        if (static_cast<unsigned char>(text[i]) < 0x80) {
            i += std::max<std::size_t>(1, ascii_prefix(text.substr(i)));
            continue;
        }
        const std::size_t length = character_size(text.substr(i));
        if (length == 0) return i;
        i += length;
    }
    return std::string_view::npos;
}

std::string one_line(std::string_view text) {
    return printable(text);
}

std::string quoted_name(std::string_view name, std::size_t longest) {
    return "\"" + one_line(shortened(name, longest)) + "\"";
}

std::string shortened(std::string_view text, std::size_t longest) {
    if (text.size() <= longest) return std::string(text);
    std::size_t cut = longest;
    while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) --cut;
    return std::string(text.substr(0, cut)) + "...";
}

std::string excerpt(std::string_view text, std::size_t offset) {
    constexpr std::size_t longest = 24;
    if (offset >= text.size()) return "the end of the text";
    std::string piece;
    std::string_view rest = text.substr(offset);
    while (!rest.empty() && piece.size() < longest) {
        const auto c = static_cast<unsigned char>(rest.front());
        if (c < 0x20 || c == 0x7f) break;
        const bool breaks = std::strchr(" ,:[]{}\"", static_cast<char>(c)) != nullptr;
        if (breaks && !piece.empty()) break;
        const std::size_t length = std::max<std::size_t>(character_size(rest), 1);
        piece += rest.substr(0, length);
        rest.remove_prefix(length);
        if (breaks) break;
    }
    return piece.empty() ? "a line break or control character" : "'" + piece + "'";
}

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
    return !fault_of_text(buffer_, std::exchange(looked_at_, buffer_.size())).empty();
}

/// Reads more of the file after the buffered text.
Next LineReader::read_more(bool may_wait) {
    if (begin_ != 0) looked_at_ = 0;
    buffer_.erase(0, std::exchange(begin_, 0));
    searched_ = buffer_.size();
    if (skipped_ != 0 || buffer_.size() > longest_ || is_no_text()) {
        // A device of zeros never ends.
        if ((!is_regular_ || gunzip_ != nullptr) && buffer_.find('\0') != std::string::npos)
            throw Error(ErrorKind::input, line_location(name_, number_ + 1),
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
        if (!fault.empty()) throw Error(ErrorKind::input, line_location(name_, number_ + 1), fault);
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
