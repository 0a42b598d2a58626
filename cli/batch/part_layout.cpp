#include "cli/batch/part_layout.hpp"

#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/base/error.hpp"
#include "io/file/durable_file.hpp"
#include "io/file/path.hpp"

namespace attn::cli {
namespace {

/// Takes a number from the front of the text; empty if there is none.
std::optional<std::uint64_t> take_number(std::string_view& text) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{}) return {};
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return number;
}

}  // namespace

std::string PartLayout::shard_text() const {
    if (shard.shards == 1) return "";
    return "-" + std::to_string(shard.shard) + "-of-" + std::to_string(shard.shards);
}

std::string PartLayout::index() const {
    return io::path_in(folder, "index" + shard_text() + ".ndjson");
}

std::string PartLayout::part_name(const PartId& part) const {
    std::array<char, 24> number{};
    std::snprintf(number.data(), number.size(), "%05llu",
                  static_cast<unsigned long long>(part.number));
    const std::string generation =
        part.generation == 0 ? "" : "." + std::to_string(part.generation);
    return "part" + shard_text() + "-" + number.data() + generation +
           std::string(format->suffixes.front());
}

std::optional<PartId> PartLayout::part_named(const std::string& name) const {
    const std::string start = "part" + shard_text() + "-";
    if (!name.starts_with(start)) return {};
    std::string_view rest = std::string_view(name).substr(start.size());
    PartId part;
    const std::optional<std::uint64_t> number = take_number(rest);
    if (!number) return {};
    part.number = *number;
    if (rest.starts_with('.')) {
        std::string_view after = rest.substr(1);
        if (const auto generation = take_number(after)) part.generation = *generation;
    }
    return part_name(part) == name ? std::optional(part) : std::nullopt;
}

void PartCount::add(std::size_t head, const std::vector<PackedArray>* arrays) {
    constexpr std::size_t of_entry = 256;  // its name and form in the part and in the index
    ++records_;
    bytes_ += head;
    if (arrays == nullptr) return;
    for (const PackedArray& array : *arrays)
        bytes_ += static_cast<std::size_t>(array.type.size()) + of_entry;
}

void PartCount::begin_next() {
    ++number_;
    begin_again();
}

void PartCount::begin_again() {
    records_ = bytes_ = 0;
}

void make_folder(const std::string& folder) {
    std::error_code error;
    std::filesystem::create_directory(folder, error);
    if (error || !io::is_folder(folder))
        throw Error(ErrorKind::io, folder,
                    (error ? "cannot be made (" + error.message() + ")" : "is not a folder") +
                        "; expected a folder, or the name of a new one in an existing folder");
}

void require_no_parts(const PartLayout& layout) {
    std::error_code error;
    for (std::filesystem::directory_iterator entry(layout.folder, error), end;
         !error && entry != end; entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        if (layout.part_named(name))
            throw Error(ErrorKind::io, entry->path().string(),
                        "would be replaced, and the folder has no index of it; expected another "
                        "--out-dir");
    }
}

void remove_other_parts(const PartLayout& layout, std::uint64_t generation, std::uint64_t parts) {
    std::error_code error;
    std::vector<std::string> found;
    for (std::filesystem::directory_iterator entry(layout.folder, error), end;
         !error && entry != end; entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        const std::string unfinished = io::unfinished_name("");
        const bool is_unfinished = name.starts_with(unfinished);
        const std::optional<PartId> part =
            layout.part_named(is_unfinished ? name.substr(unfinished.size()) : name);
        if (!part) continue;
        if (is_unfinished || part->generation != generation || part->number >= parts)
            found.push_back(entry->path().string());
    }
    for (const std::string& path : found) ::unlink(path.c_str());
}

}  // namespace attn::cli
