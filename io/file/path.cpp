#include "io/file/path.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string_view>

namespace attn::io {
namespace {

namespace fs = std::filesystem;

/// "1", "v2", "2024-05-31".
bool is_version(std::string_view text) {
    if (text.starts_with('v')) text.remove_prefix(1);
    return std::all_of(text.begin(), text.end(),
                       [](char c) { return (c >= '0' && c <= '9') || c == '-'; });
}

}  // namespace

std::string suffix_of_name(const std::string& path) {
    std::string_view name = path;
    name.remove_prefix(name.rfind('/') + 1);  // npos + 1 is 0
    // A leading dot hides a file and does not start a suffix.
    for (std::size_t dot; (dot = name.rfind('.')) != 0 && dot != std::string_view::npos;) {
        std::string suffix(name.substr(dot));
        for (char& c : suffix) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        if (!is_version(std::string_view(suffix).substr(1))) return suffix;
        name = name.substr(0, dot);
    }
    return "";
}

std::string last_part(const std::string& path) {
    const fs::path parts = path;
    return (parts.has_filename() ? parts : parts.parent_path()).filename().string();
}

std::string path_in(const std::string& folder, const std::string& name) {
    return (fs::path(folder) / name).string();
}

std::string path_beside(const std::string& file, const std::string& name) {
    return (fs::path(file).parent_path() / name).string();
}

bool path_exists(const std::string& path) {
    std::error_code error;
    if (fs::exists(path, error)) return true;
    // Other errors (of a disk, a server) are left to opening the file.
    return error && error != std::errc::filename_too_long &&
           error != std::errc::too_many_symbolic_link_levels &&
           error != std::errc::permission_denied;
}

bool is_folder(const std::string& path) {
    std::error_code ignored;
    return fs::is_directory(path, ignored);
}

bool is_empty_or_special(const std::string& path) {
    std::error_code ignored;
    const bool is_filled = fs::is_regular_file(path, ignored) && !fs::is_empty(path, ignored);
    return fs::exists(path, ignored) && !is_filled;
}

bool is_same_place(const std::string& a, const std::string& b) {
    std::error_code ignored;
    const auto place = [&](const std::string& path) {
        return fs::weakly_canonical(fs::absolute(path, ignored), ignored);
    };
    // Empty if the system does not report it.
    return a == b || (place(a) == place(b) && !place(a).empty());
}

}  // namespace attn::io
