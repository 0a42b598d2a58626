#include "io/file/path.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>
#include <vector>

#include "io/file/source.hpp"
#include "io/text/number_text.hpp"

namespace attn::io {

namespace {

namespace fs = std::filesystem;

/// "1", "v2", "2024-05-31".
bool is_version(std::string_view text) {
    if (text.starts_with('v')) text.remove_prefix(1);
    return std::ranges::all_of(text, [](char c) { return is_digit(c) || c == '-'; });
}

std::string snapshot_of(const std::string& folder) {
    const std::string snapshots = path_in(folder, "snapshots"),
                      named = path_in(path_in(folder, "refs"), "main");
    if (!is_folder(snapshots)) return folder;
    if (path_exists(named)) {
        const Source source = read_source(named);
        const std::string revision(source.text.substr(0, source.text.find_first_of(" \r\n")));
        const bool is_name = !revision.empty() && revision.find('/') == revision.npos;
        if (std::string snapshot = path_in(snapshots, revision); is_name && is_folder(snapshot))
            return snapshot;
    }
    std::vector<std::string> found;
    std::error_code error;
    for (std::filesystem::directory_iterator it(snapshots, error), end; !error && it != end;
         it.increment(error))
        if (is_folder(it->path().string())) found.push_back(it->path().string());
    if (found.size() == 1) return found.front();
    throw Error(ErrorKind::io, folder, "has ", found.size(),
                " snapshots; expected one, or the path of one of them");
}

}  // namespace

std::string suffix_of_name(const std::string& path) {
    if (path.ends_with('/')) return "/";
    constexpr std::string_view csv_long = ".long.csv", tsv_long = ".long.tsv";
    std::string small = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
    for (char& c : small) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    std::string_view name = small;
    // A leading dot hides a file and does not start a suffix.
    for (std::size_t dot; (dot = name.rfind('.')) != 0 && dot != std::string_view::npos;) {
        if (name.size() > csv_long.size() && (name.ends_with(csv_long) || name.ends_with(tsv_long)))
            return std::string(name.substr(name.size() - csv_long.size()));
        if (!is_version(name.substr(dot + 1))) return std::string(name.substr(dot));
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

bool is_same_file(const std::string& a, const std::string& b) {
    std::error_code ignored;
    const auto resolved = [&](const std::string& path) {
        return fs::weakly_canonical(fs::absolute(path, ignored), ignored);
    };
    // Empty if the system does not report it.
    return a == b || (resolved(a) == resolved(b) && !resolved(a).empty());
}

std::string file_of_model(const std::string& folder, std::span<const std::string_view> names) {
    for (const std::string& in : {folder, snapshot_of(folder)})
        for (const std::string_view name : names)
            if (std::string file = path_in(in, std::string(name)); path_exists(file)) return file;
    return "";
}

}  // namespace attn::io
