// Where the answers of a batch go: to the output in their order, or to the parts of --out-dir and
// their index.
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include <nlohmann/json.hpp>

#include "cli/batch/batch.hpp"
#include "core/base/error.hpp"
#include "io/file/bytes.hpp"
#include "io/file/path.hpp"
#include "io/file/temporary.hpp"
#include "io/text/json_text.hpp"

namespace attn::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t most_bytes_ahead = std::size_t{1} << 26;
constexpr std::uint64_t most_records_ahead = std::uint64_t{1} << 14;

/// Ready answers are written at this size or age, or as soon as the batch is idle.
constexpr std::size_t ready_bytes = std::size_t{1} << 16;
constexpr auto ready_time = 20ms;

std::size_t bytes_of(const std::vector<RecordOutcome>& answers) {
    std::size_t bytes = 0;
    for (const RecordOutcome& answer : answers) bytes += answer.size();
    return bytes;
}

}  // namespace

void BatchResults::put(std::uint64_t first, std::vector<RecordOutcome> answers) {
    std::unique_lock lock(mutex_);
    // A signal handler cannot notify a condition variable, so the wait polls.
    const auto has_room = [&] {
        const bool is_near = bytes_ahead_ < most_bytes_ahead && first - next_ < most_records_ahead;
        return first == next_ || is_near || stop_.wanted();
    };
    while (!room_.wait_for(lock, 50ms, has_room)) {
    }
    if (first != next_) {
        bytes_ahead_ += bytes_of(answers);
        ahead_[first] = std::move(answers);
        return;
    }
    append(answers);
    for (auto found = ahead_.begin(); found != ahead_.end() && found->first == next_;
         found = ahead_.erase(found)) {
        bytes_ahead_ -= bytes_of(found->second);
        append(found->second);
    }
    room_.notify_all();
    const auto now = std::chrono::steady_clock::now();
    if (idle_ || ready_.size() >= ready_bytes || now - last_write_ >= ready_time) write_ready();
}

void BatchResults::append(std::vector<RecordOutcome>& answers) {
    for (RecordOutcome& answer : answers) {
        if (ended_) return;
        if (answer.end) {
            end_ = answer.end;
            ended_ = true;
            stop_.want();
            return;
        }
        // If this throws, the record is not counted, and nothing after it is written.
        const std::string_view lines = lines_of(answer);
        if (parts_ != nullptr) {
            add_to_parts(answer);
        } else if (lines.size() < ready_bytes) {
            ready_ += lines;
        } else {
            write_ready();
            write(lines);  // without a copy
        }
        if (parts_ == nullptr) answer.line = {};
        ++next_;
        ++count_.records;
        if (answer.problem.empty()) continue;
        if (count_.failed++ == 0) count_.first_problem = std::move(answer.problem);
        if (max_failures_ && count_.failed >= *max_failures_) {
            ended_ = true;
            stop_.want();
        }
    }
}

/// What an answer adds to the output. Of a table that is one header, of the first good answer, and
/// nothing of a record that fails, which is reported.
std::string_view BatchResults::lines_of(RecordOutcome& answer) {
    std::string_view lines = answer.line.text();
    if (!is_table_) return lines;
    const std::size_t end = lines.find('\n') + 1;
    const std::string_view header = lines.substr(0, end);
    if (answer.problem.empty() && header_.empty()) {
        header_ = header;
        return lines;
    }
    if (answer.problem.empty() && header != header_)
        answer.problem = "record " + std::to_string(count_.records) + ": has the columns " +
                         std::string(header.substr(0, end - 1)) + "; expected " +
                         header_.substr(0, header_.size() - 1) +
                         ", as of the records before it; or another batch for it";
    if (answer.problem.empty()) return lines.substr(end);
    report(answer.problem);
    return {};
}

/// After an error nothing more is written, as in write().
void BatchResults::add_to_parts(RecordOutcome& answer) {
    if (is_broken_) return;
    is_broken_ = true;
    parts_->add({.line = std::move(answer.line), .packed = std::move(answer.packed)});
    is_broken_ = false;
    progress_.show(count_.records - before_);
}

void BatchResults::write_ready() {
    write(ready_);
    if (!is_broken_) ready_.clear();
}

/// After a failed write nothing more is written, so that the output remains a prefix of the whole.
/// A closed reader of a pipe ends the batch and is not an error.
void BatchResults::write(std::string_view lines) {
    if (is_broken_ || lines.empty()) return;
    is_broken_ = true;
    try {
        out_ << lines;
    } catch (const io::ClosedPipe&) {
        return stop_.want();
    } catch (const io::GivenUp&) {
        return;
    }
    is_broken_ = false;
    last_write_ = std::chrono::steady_clock::now();
    progress_.show(count_.records - before_);
}

void BatchResults::set_idle(bool idle) {
    const std::lock_guard lock(mutex_);
    idle_ = idle;
    if (idle) write_ready();
}

void BatchResults::finish() {
    const std::lock_guard lock(mutex_);
    write_ready();
    if (parts_ != nullptr && !is_broken_) {
        is_broken_ = true;
        parts_->finish();
        is_broken_ = false;
    }
    if (end_) std::rethrow_exception(end_);
}

BatchCount BatchResults::count() const {
    const std::lock_guard lock(mutex_);
    return count_;
}

namespace {

/// An array's name in its part: "r17.context_vectors". Ids may be any strings, and repeat.
std::string entry_name(std::uint64_t record, const std::string& array) {
    return "r" + std::to_string(record) + "." + array;
}

/// The line with its line break.
std::string index_line_text(const IndexLine& line) {
    std::string text = line.head;
    io::append_member(text, record_key, line.record);
    io::append_member(text, "file", line.file);
    std::string arrays = "[";
    for (const PackedArray& array : line.arrays) {
        arrays += arrays.back() == '[' ? "{" : ",{";
        io::append_member(arrays, "name", array.name);
        io::append_member(arrays, "entry", array.entry);
        io::append_member(arrays, "dtype", row_of(array.type.element).name);
        io::append_member(arrays, "shape", array.type.shape);
        if (!array.store.empty()) io::append_member(arrays, "store", array.store);
        if (array.offset) {
            io::append_member(arrays, "offset", *array.offset);
            io::append_member(arrays, "bytes", array.type.size());
        }
        if (array.saturated != 0) io::append_member(arrays, "saturated", array.saturated);
        arrays += '}';
    }
    io::append_member(text, "arrays", io::JsonText{arrays += ']'});
    return text + "}\n";
}

/// Calls take(name) for each file of the folder.
template <class Take>
void each_file(const std::string& folder, const Take& take) {
    std::error_code error;
    for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error))
        take(entry->path().filename().string());
}

}  // namespace

std::string PartLayout::shard_text() const {
    if (shard.shards == 1) return "";
    return "-" + std::to_string(shard.shard) + "-of-" + std::to_string(shard.shards);
}

std::string PartLayout::index() const {
    return io::path_in(folder, "index" + shard_text() + ".ndjson");
}

std::string PartLayout::part_name(std::uint64_t part) const {
    std::array<char, 24> number{};
    std::snprintf(number.data(), number.size(), "%05llu", static_cast<unsigned long long>(part));
    return "part" + shard_text() + "-" + number.data() + std::string(format->suffixes.front());
}

std::optional<std::uint64_t> PartLayout::part_named(const std::string& name) const {
    const std::size_t start = ("part" + shard_text() + "-").size();
    std::uint64_t part = 0;
    if (name.size() > start) std::from_chars(name.data() + start, name.data() + name.size(), part);
    return part_name(part) == name ? std::optional(part) : std::nullopt;
}

std::optional<IndexLine> read_index_line(const io::JsonDocument& document,
                                         const io::Source& source) {
    const io::JsonMember* const record = document.find(std::string(record_key));
    const io::JsonMember* const file = document.find("file");
    const io::JsonMember* const arrays = document.find("arrays");
    if (record == nullptr || file == nullptr || arrays == nullptr || record->key_offset == 0)
        return {};
    IndexLine line;
    line.head = source.text.substr(0, record->key_offset - 1);  // without the comma
    try {
        line.record = document.read_value(*record).get<std::uint64_t>();
        line.file = document.read_value(*file).get<std::string>();
        for (const nlohmann::json& array : document.read_value(*arrays)) {
            const auto type = io::type_of_descr(array.at("dtype").get<std::string>());
            if (!type) return {};
            line.arrays.push_back({array.at("name").get<std::string>(),
                                   {*type, array.at("shape").get<std::vector<std::size_t>>()},
                                   array.value("saturated", std::uint64_t{0}),
                                   array.value("store", std::string()),
                                   array.at("entry").get<std::string>()});
            if (array.contains("offset"))
                line.arrays.back().offset = array["offset"].get<std::uint64_t>();
        }
    } catch (const nlohmann::json::exception&) {
        return {};
    }
    // Whatever another program has changed is not ours to go on with.
    return index_line_text(line) == std::string(source.text) + "\n" ? std::optional(std::move(line))
                                                                    : std::nullopt;
}

std::string problem_of(const PartLayout& layout, const IndexLine& line, std::uint64_t n) {
    const std::uint64_t number = layout.record_number(n);
    if (line.record != number || !layout.part_named(line.file))
        return "record " + std::to_string(line.record) + " in " + io::shortened(line.file) +
               ", where this batch has record " + std::to_string(number) + " in a file as " +
               layout.part_name(0);
    const std::string path = io::path_in(layout.folder, line.file);
    std::error_code error;
    const std::uint64_t size = std::filesystem::file_size(path, error);
    if (error) return path + " is missing";
    for (const PackedArray& array : line.arrays)
        if (layout.holds_many() &&
            (!array.offset || *array.offset > size || array.type.size() > size - *array.offset))
            return path + " ends before " + array.entry;
    return {};
}

bool holds(const PartLayout& layout, const IndexLine& line, const PackedArrays& packed) {
    const auto is_same = [](const PackedArray& a, const PackedArray& b) {
        return a.name == b.name && a.type.element == b.type.element && a.type.shape == b.type.shape;
    };
    if (!std::ranges::equal(line.arrays, packed.arrays, is_same)) return false;
    if (line.arrays.empty()) return true;
    const auto bytes = io::Bytes::open(io::path_in(layout.folder, line.file),
                                       {.regular_only = true, .is_own_output = true});
    std::string stored;
    if (!layout.holds_many()) stored = bytes->read(0, static_cast<std::size_t>(bytes->size()));
    for (const PackedArray& array : line.arrays)
        if (layout.holds_many())
            stored += bytes->read(*array.offset, static_cast<std::size_t>(array.type.size()));
    return stored == packed.bytes.text();
}

std::uint64_t parts_in_index(const PartLayout& layout) {
    std::uint64_t parts = 0;
    io::LineReader lines(layout.index(), -1, io::LineReader::any_length);
    io::Line line;
    while (lines.next(line) == io::Next::found) {
        try {
            const io::Source source = io::source_of_line(layout.index(), line.text, line.number);
            const auto read = read_index_line(io::JsonDocument(source), source);
            const auto part = read ? layout.part_named(read->file) : std::nullopt;
            if (part) parts = std::max(parts, *part + 1);
        } catch (const Error&) {  // not an index, or its end, which the caller finds too
        }
    }
    return parts;
}

void make_folder(const PartLayout& layout) {
    std::error_code error;
    std::filesystem::create_directory(layout.folder, error);
    if (error || !io::is_folder(layout.folder))
        throw Error(ErrorKind::io, layout.folder,
                    (error ? "cannot be made (" + error.message() + ")" : "is not a folder") +
                        "; expected a folder, or the name of a new one in an existing folder");
    if (io::path_exists(layout.index())) return;
    each_file(layout.folder, [&](const std::string& name) {
        if (layout.part_named(name))
            throw Error(ErrorKind::io, io::path_in(layout.folder, name),
                        "would be replaced, and the folder has no index of it; expected another "
                        "--out-dir");
    });
}

void remove_parts(const PartLayout& layout, std::uint64_t first) {
    std::vector<std::string> found;
    const std::string unfinished = io::unfinished_name("");
    each_file(layout.folder, [&](const std::string& name) {
        const bool is_whole = !name.starts_with(unfinished);
        const auto part = layout.part_named(is_whole ? name : name.substr(unfinished.size()));
        if (part && !(is_whole && *part < first)) found.push_back(io::path_in(layout.folder, name));
    });
    for (const std::string& path : found) ::unlink(path.c_str());
}

void Parts::add(RecordOutcome outcome) {
    constexpr std::size_t of_entry = 256;  // its name and form in the part and in the index
    bytes_ += outcome.size() + (outcome.packed ? of_entry * outcome.packed->arrays.size() : 0);
    held_.push_back({layout_.record_number(record_++), std::move(outcome)});
    if (held_.size() >= layout_.records_per_file || bytes_ >= part_bytes) finish();
}

void Parts::finish() {
    const std::string name = layout_.part_name(part_);
    std::vector<io::ArchiveEntry> entries;
    bool has_good = false;
    for (Held& held : held_) {
        if (!held.outcome.packed) continue;
        has_good = true;
        std::string_view rest = held.outcome.packed->bytes.text();
        for (PackedArray& array : held.outcome.packed->arrays) {
            array.entry = layout_.holds_many() ? entry_name(held.record, array.name) : array.name;
            if (!layout_.holds_many()) continue;
            const auto size = static_cast<std::size_t>(array.type.size());
            entries.push_back({array.entry, array.type, rest.substr(0, size)});
            rest.remove_prefix(size);
        }
    }
    if (has_good) {
        io::write_durably(io::path_in(layout_.folder, name), [&](io::Output& out) {
            if (layout_.holds_many())
                layout_.format->write_archive(out, entries);
            else
                out << held_.front().outcome.packed->bytes.text();
        });
        ++part_;
    }
    std::string lines;
    auto entry = entries.begin();
    for (auto& [record, outcome] : held_) {
        if (!outcome.packed) {
            lines += outcome.line.text();
            continue;
        }
        if (layout_.holds_many())
            for (PackedArray& array : outcome.packed->arrays) array.offset = (entry++)->offset;
        lines += index_line_text(
            {std::string(outcome.line.text()), record, name, std::move(outcome.packed->arrays)});
    }
    if (!lines.empty()) index_ << lines;
    held_.clear();
    bytes_ = 0;
}

}  // namespace attn::cli
