#include "io/file/access.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "core/base/did_you_mean.hpp"
#include "io/file/path.hpp"
#include "io/file/source.hpp"

namespace attn::io {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_entries = 10000;

/// The visible entries of a folder: files, and folders, which may hold models; both sorted by name.
struct Entries {
    std::vector<std::string> files, folders;
};

Entries entries_of(const fs::path& folder) {
    Entries entries;
    std::error_code error;
    fs::directory_iterator entry(folder, error);
    for (std::size_t i = 0; !error && entry != fs::directory_iterator() && i < max_entries; ++i) {
        const std::string name = entry->path().filename().string();
        std::error_code unknown;
        if (!name.starts_with('.') && entry->is_regular_file(unknown))
            entries.files.push_back(name);
        if (!name.starts_with('.') && entry->is_directory(unknown)) entries.folders.push_back(name);
        entry.increment(error);
    }
    std::ranges::sort(entries.files);
    std::ranges::sort(entries.folders);
    return entries;
}

/// An untrusted name, as errors show it.
std::string shown(const std::string& name) {
    constexpr std::size_t longest = 80;
    return one_line(shortened(name, longest));
}

/// The path of the file or folder that was probably meant; empty if none is near.
std::string nearest_entry(const std::string& path) {
    const fs::path folder = fs::path(path).parent_path();
    const auto [names, folders] = entries_of(folder.empty() ? "." : folder);
    const std::string wanted = fs::path(path).filename().string();
    const std::string stem = fs::path(wanted).stem().string();
    // Suffixes are not compared, since many files have the same one.
    std::vector<std::string> known = names;
    if (stem != wanted)
        for (std::string& name : known) name = fs::path(name).stem().string();
    const std::string meant = did_you_mean(stem, known);
    // Of several with that name, the one with the nearest suffix.
    std::vector<std::string> alike;
    for (std::size_t i = 0; i < names.size() && !meant.empty(); ++i)
        if (known[i] == meant) alike.push_back(names[i]);
    const std::string nearest = did_you_mean(wanted, alike);
    const std::string near = meant.empty()     ? did_you_mean(wanted, folders)
                             : nearest.empty() ? alike.front()
                                               : nearest;
    return near.empty() ? near : (folder / near).string();
}

/// "gpt2" or "openai-community/gpt2", not a path of a file.
bool is_public_name(const std::string& path) {
    const fs::path name = path, owner = name.parent_path();
    const bool has_owner = !owner.empty();
    if (path.find_first_not_of(
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./") !=
            std::string::npos ||
        !name.has_filename() || path.starts_with('.') || path.starts_with('/'))
        return false;
    if (has_owner && (owner.has_parent_path() || is_folder(owner.string()))) return false;
    // A suffix of a model's name is a part of its version or size: Qwen2.5-0.5B.
    const std::string suffix = name.extension().string();
    return suffix.empty() || suffix.find_first_of("0123456789") != std::string::npos;
}

}  // namespace

std::string about_missing_file(const std::string& path) {
    if (path.starts_with('[') || path.starts_with('{'))
        return "file not found; a string is a path: expected an array in a request without quotes, "
               "or JSON on standard input, as -";
    if (path.find("://") != std::string::npos)
        return "file not found; expected the name of a file; download an address first";
    if (path.find(' ') != std::string::npos && path.find_first_of("./") == std::string::npos)
        return "file not found; expected a path; attn self and other modes take words as --text";
    const fs::path folder = fs::path(path).parent_path();
    if (!folder.empty() && !is_folder(folder.string()))
        return "file not found: folder " + shown(folder.string()) + " does not exist";
    const std::string near = nearest_entry(path);
    if (!near.empty()) return "file not found; did you mean " + shown(near) + "?";
    return "file not found";
}

std::string about_missing_model(const std::string& path) {
    if (!is_public_name(path) || !nearest_entry(path).empty()) return about_missing_file(path);
    const std::string name = shown(path), folder = shown(last_part(path));
    return "file not found, and attn downloads nothing; expected a model's folder, as from hf "
           "download " +
           name + " --local-dir " + folder;
}

}  // namespace attn::io
