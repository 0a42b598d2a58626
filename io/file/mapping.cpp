#include "io/file/mapping.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "io/file/temporary.hpp"

namespace attn::io {
namespace {

/// What the signal handler can read: a begin of null is a free place.
struct Listed {
    std::atomic<const char*> begin, end, name;
};

// Pages of files beyond this number end the program with the signal alone.
std::array<Listed, 64> listed{};
std::atomic<int> exit_code{1};

std::size_t list_mapping(const char* begin, std::size_t size, const char* name) {
    for (std::size_t place = 0; place < listed.size(); ++place) {
        const char* nothing = nullptr;
        if (!listed[place].begin.compare_exchange_strong(nothing, begin)) continue;
        listed[place].name = name;
        listed[place].end = begin + size;
        return place;
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

Mapping::Mapping(int descriptor, std::uint64_t size, const std::string& name)
    : size_(static_cast<std::size_t>(size)), place_(listed.size()) {
    void* const data = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor, 0);
    if (data == MAP_FAILED) return;
    data_ = static_cast<char*>(data);
    place_ = list_mapping(data_, size_, name.c_str());
}

Mapping::~Mapping() {
    if (data_ == nullptr) return;
    ::munmap(data_, size_);
    if (place_ == listed.size()) return;
    listed[place_].end = nullptr;
    listed[place_].begin = nullptr;
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
