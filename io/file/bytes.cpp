#include "io/file/bytes.hpp"

#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "io/file/temporary.hpp"

namespace attn::io {

namespace {

constexpr std::uint64_t largest_pipe = std::uint64_t{1} << 30;

/// Twice the capacity, of which the first `size` bytes are used, or `smallest`; returns it.
std::size_t grow(AlignedArray<char>& memory, std::size_t size, std::size_t smallest) {
    AlignedArray<char> larger;
    const std::size_t capacity = std::max(smallest, 2 * size);
    larger.reserve(capacity);
    if (size != 0) std::memcpy(larger.data(), memory.data(), size);
    memory.swap(larger);
    return capacity;
}

/// What the signal handler can read: a begin of null is a free entry.
struct Listed {
    std::atomic<const char*> begin, end, name;
};

// Pages of files beyond this number end the program with the signal alone.
std::array<Listed, 64> listed{};
std::atomic<int> exit_code{1};

std::size_t list_mapping(const char* begin, std::size_t size, const char* name) {
    for (std::size_t index = 0; index < listed.size(); ++index) {
        const char* nothing = nullptr;
        if (!listed[index].begin.compare_exchange_strong(nothing, begin)) continue;
        listed[index].name = name;
        listed[index].end = begin + size;
        return index;
    }
    return listed.size();
}

void say(const char* text) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
}

void handle_lost_page(int signal, siginfo_t* info, void*) {
    const char* const at = static_cast<const char*>(info->si_addr);
    for (const Listed& mapping : listed) {
        const char* const begin = mapping.begin;
        if (begin == nullptr || at < begin || at >= mapping.end) continue;
        remove_temporaries();
        say("attn: error: ");
        say(mapping.name);
        say(": became shorter while it was read; expected a file at rest\n");
        std::_Exit(exit_code);
    }
    end_by_signal(signal);
}

}  // namespace

std::shared_ptr<const Bytes> Bytes::open(const std::string& path, const Access& access, Check check,
                                         std::optional<std::uint64_t> wanted) {
    std::shared_ptr<Bytes> bytes(new Bytes);
    const bool standard = path == "-";
    bytes->name_ = standard ? "<stdin>" : path;
    bytes->access_ = access;
    const std::uint64_t most = std::min(wanted.value_or(largest_pipe), largest_pipe);
    bytes->fd_ = standard ? STDIN_FILENO : open_to_read(path, access);
    struct stat status {};
    if (::fstat(bytes->fd_, &status) != 0) fail_to_read(bytes->name_, errno);
    if (S_ISDIR(status.st_mode))
        throw Error(ErrorKind::io, bytes->name_, "is a folder; expected a file");
    if (standard) guard_read("-", file_id(status));
    // Standard input may be a file that another program has read in part; some system files report
    // a size of 0.
    if (S_ISREG(status.st_mode) && !standard && status.st_size != 0) {
        bytes->size_ = static_cast<std::uint64_t>(status.st_size);
    } else {
        bytes->read_to_end(check, most);
    }
    if (Inflater::starts_as_gzip(bytes->read(0, std::min<std::uint64_t>(bytes->size_, 2))))
        bytes->decompress(check, most);
    if (bytes->size_ == 0 && access.expected != nullptr)
        throw Error(ErrorKind::input, bytes->name_, "is empty; expected ", access.expected);
    return bytes;
}

void Bytes::read_to_end(Check check, std::uint64_t most) {
    constexpr std::size_t smallest = 65536, largest_read = std::size_t{1} << 20;
    std::size_t capacity = 0, size = 0;
    for (;;) {
        if (size == capacity) capacity = grow(memory_, size, smallest);
        // In a gzip file, a byte takes less than 32 and a part of the head.
        const bool is_gzip = Inflater::starts_as_gzip({memory_.data(), size});
        const auto limit = is_gzip ? std::min(largest_pipe, 32 * most + smallest) : most;
        const std::size_t space = std::min<std::uint64_t>(capacity, limit + 1) - size;
        const ssize_t got = ::read(fd_, memory_.data() + size, std::min(space, largest_read));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && is_later(errno) && !access_.regular_only) {
            wait_for(fd_, POLLIN);
            continue;
        }
        if (got < 0) fail_to_read(name_, errno);
        if (got == 0) break;
        size += static_cast<std::size_t>(got);
        if (check != nullptr && !Inflater::starts_as_gzip({memory_.data(), size}))
            check(name_, {memory_.data(), size}, size - static_cast<std::size_t>(got));
        if (size > largest_pipe)
            throw Error(ErrorKind::input, name_,
                        "gives more than 1 GiB; expected less, or a file by its name");
    }
    size_ = size;
    if (fd_ > STDIN_FILENO) ::close(fd_);
    fd_ = -1;
}

/// Decompresses from the compressed byte `at` on; returns the number of bytes, 0 at the end.
std::size_t Bytes::decompress_to(char* to, std::size_t capacity, Inflater& gunzip,
                                 std::uint64_t& at) const {
    constexpr std::size_t piece = std::size_t{1} << 16;
    std::span<char> rest(to, capacity);
    while (!rest.empty() && (at < size_ || gunzip.has_more())) {
        const std::string bytes = read(at, std::min<std::uint64_t>(size_ - at, piece));
        std::string_view input = bytes;
        const bool is_good = gunzip.inflate(input, rest);
        at += bytes.size() - input.size();
        if (!is_good) break;
    }
    return capacity - rest.size();
}

void Bytes::decompress(Check check, std::uint64_t most) {
    constexpr std::size_t smallest = std::size_t{1} << 18;
    Inflater gunzip(Inflater::Form::gzip);
    AlignedArray<char> text;
    std::size_t capacity = 0, size = 0;
    std::uint64_t at = 0;
    for (std::size_t count = 1; count != 0; size += count) {
        if (size > largest_pipe)
            throw Error(ErrorKind::input, name_,
                        "is a gzip file of more than 1 GiB; expected less, or the file inside");
        if (size == capacity) capacity = grow(text, size, smallest);
        const std::size_t space = std::min<std::uint64_t>(capacity, most + 1) - size;
        count = decompress_to(text.data() + size, space, gunzip, at);
        if (check != nullptr && count != 0) check(name_, {text.data(), size + count}, size);
    }
    if (const std::string fault = gunzip.fault(); size <= most && !fault.empty()) {
        const std::string_view so_far(text.data(), size);
        const bool has_lines = so_far.find('\0') == so_far.npos;  // unlike npz, npy, safetensors
        const auto line = has_lines ? 1 + std::ranges::count(so_far, '\n') : 0;
        throw Error(ErrorKind::input, line_location(name_, static_cast<std::size_t>(line)), fault);
    }
    if (fd_ > STDIN_FILENO) ::close(fd_);
    fd_ = -1;
    memory_.swap(text);
    size_ = size;
}

std::string Bytes::start_of(const std::string& path, const Access& access, std::size_t count) {
    Bytes bytes;
    bytes.name_ = path;
    bytes.fd_ = open_to_read(path, access);
    struct stat status {};
    if (::fstat(bytes.fd_, &status) != 0) fail_to_read(path, errno);
    bytes.size_ = static_cast<std::uint64_t>(status.st_size);
    const auto at_most = [&](std::size_t n) {
        return static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size_, n));
    };
    if (!Inflater::starts_as_gzip(bytes.read(0, at_most(2)))) return bytes.read(0, at_most(count));
    Inflater gunzip(Inflater::Form::gzip);
    std::uint64_t at = 0;
    std::string start(count, '\0');
    start.resize(bytes.decompress_to(start.data(), count, gunzip, at));
    return start;
}

std::shared_ptr<const Bytes> Bytes::of(std::string name, std::string_view bytes) {
    std::shared_ptr<Bytes> made(new Bytes);
    made->name_ = std::move(name);
    made->size_ = bytes.size();
    made->memory_.reserve(bytes.size() + 1);
    std::ranges::copy(bytes, made->memory_.data());
    return made;
}

Bytes::~Bytes() {
    if (fd_ > STDIN_FILENO) ::close(fd_);
}

void Bytes::read(std::uint64_t offset, std::size_t count, char* to) const {
    if (fd_ < 0) {
        std::memcpy(to, memory_.data() + offset, count);
        return;
    }
    while (count != 0) {
        const ssize_t got = ::pread(fd_, to, count, static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) fail_to_read(name_, errno);
        if (got == 0)
            throw Error(ErrorKind::io, name_,
                        "became shorter while it was read; expected a file at rest");
        offset += static_cast<std::uint64_t>(got);
        count -= static_cast<std::size_t>(got);
        to += got;
    }
}

std::string Bytes::read(std::uint64_t offset, std::size_t count) const {
    std::string bytes(count, '\0');
    read(offset, count, bytes.data());
    return bytes;
}

const char* Bytes::mapped() const {
    if (fd_ < 0) return memory_.data();
    std::call_once(is_mapped_, [&] { mapping_.emplace(fd_, size_, name_); });
    return mapping_->data();
}

void Bytes::release() const {
    if (fd_ >= 0 && mapped() != nullptr) mapping_->release();
}

std::uint64_t number_at(std::string_view bytes, std::size_t offset, std::size_t size) {
    std::uint64_t number = 0;
    for (std::size_t i = size; i-- > 0;)
        number = number << 8 | static_cast<unsigned char>(bytes[offset + i]);
    return number;
}

std::string line_location(const std::string& name, std::size_t line) {
    return line == 0 ? name : name + ":" + std::to_string(line);
}

std::string bytes_of_number(std::uint64_t number, std::size_t size) {
    std::string bytes;
    for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(number >> (8 * i) & 255);
    return bytes;
}

Mapping::Mapping(int descriptor, std::uint64_t size, const std::string& name)
    : size_(static_cast<std::size_t>(size)), index_(listed.size()) {
    void* const data = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor, 0);
    if (data == MAP_FAILED) return;
    data_ = static_cast<char*>(data);
    index_ = list_mapping(data_, size_, name.c_str());
}

Mapping::~Mapping() {
    if (data_ == nullptr) return;
    ::munmap(data_, size_);
    if (index_ == listed.size()) return;
    listed[index_].end = nullptr;
    listed[index_].begin = nullptr;
}

void Mapping::release() const {
    if (data_ != nullptr) ::madvise(data_, size_, MADV_DONTNEED);
}

void end_at_lost_pages(int code) {
    exit_code = code;
    struct sigaction action {};
    action.sa_sigaction = handle_lost_page;
    action.sa_flags = SA_SIGINFO;
    sigfillset(&action.sa_mask);
    ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace attn::io
