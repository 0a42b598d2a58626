#include "cli/request/errors.hpp"

#if defined(__linux__)
#include <malloc.h>
#endif
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

#include "cli/request/request.hpp"
#include "io/file/temporary.hpp"
#include "io/text/json_text.hpp"

namespace attn::cli {
namespace {

constexpr int bad_usage = 2, bad_input = 3, internal_fault = 70;

constexpr char lack_of_memory[] = "this question needs more than there is; expected smaller sizes";

ErrorReport failure_of(const Error& error, std::string location) {
    constexpr std::pair<const char*, int> of_kinds[] = {{"usage", bad_usage},
                                                        {"input", bad_input},
                                                        {"shape", bad_input},
                                                        {"io", bad_file},
                                                        {"unsupported", bad_usage}};
    const auto& [kind, exit_code] = of_kinds[static_cast<std::size_t>(error.kind())];
    return {kind, std::move(location), error.what(), exit_code};
}

}  // namespace

ErrorReport current_error(bool in_batch) {
    try {
        throw;
    } catch (const SettingError& error) {
        return failure_of(error, location_of({}, error.location()));
    } catch (const io::MissingFile& error) {
        ErrorReport failure = failure_of(error, error.location());
        const bool is_model = dynamic_cast<const io::MissingModel*>(&error) != nullptr;
        if (!in_batch)
            failure.message = is_model ? io::about_missing_model(error.location())
                                       : io::about_missing_file(error.location());
        return failure;
    } catch (const Error& error) {
        return failure_of(error, error.location());
    } catch (const std::bad_alloc&) {
        return {"memory", "memory", lack_of_memory, bad_input};
    } catch (const std::exception& fault) {
        return {"internal", "attn itself", fault.what(), internal_fault};
    }
}

std::string error_line(std::string start, const ErrorReport& failure) {
    start += ",\"error\":{";
    io::append_member(start, "kind", failure.kind);
    io::append_member(start, "where", io::one_line(failure.location));
    io::append_member(start, "message", io::one_line(failure.message));
    return start + "}}\n";
}

int show_error(const ErrorReport& failure) {
    const std::string line = io::one_line(failure.location + ": " + failure.message);
    std::fprintf(stderr, "attn: error: %s\n", line.c_str());
    return failure.exit_code;
}

namespace {

/// Enough to format an error. The memory is never touched, so it costs only addresses.
constexpr std::size_t size_aside = std::size_t{1} << 20;
std::atomic<void*> aside{nullptr};
std::terminate_handler end_otherwise = nullptr;

void give_back() {
    void* const memory = aside.exchange(nullptr);
    if (memory == nullptr) throw std::bad_alloc();
    std::free(memory);
}

/// Some destructors allocate, such as those of nlohmann::json. The program cannot continue after
/// one of them fails.
void end_for_lack() {
    if (std::current_exception() != nullptr) {
        try {
            throw;
        } catch (const std::bad_alloc&) {
            io::remove_temporaries();
            ::_exit(report_out_of_memory());
        } catch (...) {
        }
    }
    end_otherwise();
}

}  // namespace

void prepare_for_out_of_memory() {
#if defined(M_MMAP_THRESHOLD)
    // By default, glibc keeps freed blocks of up to 32 MiB, and blocks of other sizes do not fit
    // into them. A batch would need twice the memory of its largest record.
    ::mallopt(M_MMAP_THRESHOLD, 1 << 22);
#endif
    keep_memory_aside();
    std::set_new_handler(give_back);
    end_otherwise = std::set_terminate(end_for_lack);
}

void keep_memory_aside() noexcept {
    if (aside.load(std::memory_order_relaxed) != nullptr) return;
    // Several jobs may do this at once; only one block remains.
    std::free(aside.exchange(std::malloc(size_aside)));
}

int report_out_of_memory() noexcept {
    constexpr std::string_view parts[] = {"attn: error: memory: ", lack_of_memory, "\n"};
    for (const std::string_view part : parts) {
        // If standard error cannot be written, the exit code still reports the error.
        [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, part.data(), part.size());
    }
    return bad_input;
}

}  // namespace attn::cli
