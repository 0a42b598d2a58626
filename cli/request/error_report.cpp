#include "cli/request/errors.hpp"

#include <cstdio>
#include <exception>
#include <new>

#include "cli/request/request.hpp"
#include "core/base/error.hpp"
#include "io/file/missing_file.hpp"
#include "io/file/source.hpp"

namespace attn::cli {
namespace {

constexpr int bad_usage = 2, bad_input = 3, internal_fault = 70;

ErrorReport failure_of(const Error& error, std::string where) {
    switch (error.kind()) {
        case ErrorKind::usage: return {"usage", std::move(where), error.what(), bad_usage};
        case ErrorKind::unsupported:
            return {"unsupported", std::move(where), error.what(), bad_usage};
        case ErrorKind::input: return {"input", std::move(where), error.what(), bad_input};
        case ErrorKind::shape: return {"shape", std::move(where), error.what(), bad_input};
        case ErrorKind::io: return {"io", std::move(where), error.what(), bad_file};
    }
    return {"internal", std::move(where), error.what(), internal_fault};
}

}  // namespace

ErrorReport current_error(bool in_batch) {
    try {
        throw;
    } catch (const SettingError& error) {
        return failure_of(error, location_of({}, error.where()));
    } catch (const io::MissingFile& error) {
        ErrorReport failure = failure_of(error, error.where());
        const bool is_model = dynamic_cast<const io::MissingModel*>(&error) != nullptr;
        if (!in_batch)
            failure.message = is_model ? io::about_missing_model(error.where())
                                       : io::about_missing_file(error.where());
        return failure;
    } catch (const Error& error) {
        return failure_of(error, error.where());
    } catch (const std::bad_alloc&) {
        return {"memory", "memory", lack_of_memory, code_of_lack};
    } catch (const std::exception& fault) {
        return {"internal", "attn itself", fault.what(), internal_fault};
    }
}

int show_error(const ErrorReport& failure) {
    const std::string line = io::one_line(failure.where + ": " + failure.message);
    std::fprintf(stderr, "attn: error: %s\n", line.c_str());
    return failure.exit_code;
}

}  // namespace attn::cli
