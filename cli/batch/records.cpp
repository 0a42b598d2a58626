#include "cli/batch/records.hpp"

#include <unistd.h>

#include <cerrno>
#include <new>

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/plan/settings.hpp"
#include "io/file/access.hpp"
#include "io/file/bytes.hpp"
#include "io/file/path.hpp"
#include "io/read/input_formats.hpp"
#include "io/read/json_document.hpp"
#include "io/text/json_text.hpp"
#include "io/text/text.hpp"

namespace attn::cli {
namespace {

constexpr io::Access regular_only{.regular_only = true};

/// A JSON file is one record, unless its first line is a complete record.
bool holds_lines(const std::string& path) {
    constexpr std::size_t enough = std::size_t{1} << 16;
    return io::looks_like_ndjson(io::Bytes::start_of(path, regular_only, enough));
}

/// Whether the file is one input, by its name and for JSON its contents; otherwise it holds lines
/// of requests.
bool is_one_record(const BatchInput& input) {
    if (input.is_record) return true;
    if (input.path == "-") return false;
    try {
        const io::DataPath path = io::split_data_path(input.path);
        if (path.raw) return true;
        const io::InputFormat* format = io::format_of_name(path.file);
        if (format == nullptr || format == io::ndjson_input) return false;
        return format != io::json_input || !path.array.empty() || !holds_lines(path.file);
    } catch (const io::WrittenFile&) {
        throw;
    } catch (const Error&) {
        return io::path_exists(input.path);  // the answer to an unreadable file gives the reason
    }
}

/// Checks files of lines at the start, not when their turn comes after hours.
void check_lines(const std::string& path) {
    if (io::is_folder(path))
        throw Error(ErrorKind::io, path,
                    "is a folder; expected files, as in " + io::path_in(path, "*.json"));
    if (mode_named(path) != nullptr && !io::path_exists(path))
        throw Error(ErrorKind::usage, path, "is not a file; expected --mode " + path);
    if (!is_one_record({path, false}) && ::access(path.c_str(), R_OK) != 0)
        io::fail_to_read(path, errno);
}

/// Refuses lines that are too long, and text that has requests but not one per line.
void check_line(const Record& record) {
    if (record.text.size() < record.size)
        throw Error(ErrorKind::input, record.location(),
                    "a line of " + std::to_string(record.size) +
                        " bytes; expected text of at most " +
                        std::to_string(io::LineReader::longest_line) +
                        ", words of at most 1 MiB, and memory for it");
    std::string_view text = record.text;
    text.remove_prefix(text.find_first_not_of(" \t"));
    text.remove_suffix(text.size() - 1 - text.find_last_not_of(" \t\r"));
    if (text == "{" || text == "[")
        throw Error(
            ErrorKind::input, record.location(),
            "'" + std::string(text) +
                "' begins a request of several lines; expected each request on one line, as "
                "jq -c writes them");
    if (text.starts_with("[{"))
        throw Error(ErrorKind::input, record.location(),
                    "a list of requests; expected one request a line, as jq -c '.[]' writes them");
}

bool is_utf8(std::string_view text) {
    return io::find_invalid_utf8(text) == std::string_view::npos;
}

/// What `read` makes of a member of the record, whose text may be invalid after it; empty if it
/// cannot be read, which the record's answer reports.
template <class Read>
std::string read_member(const Record& record, std::string_view key, const Read& read) {
    try {
        const io::Source source = record.line == 0
                                      ? io::read_source(record.file, regular_only)
                                      : io::Source{record.file, record.text, nullptr, record.line};
        const io::JsonDocument document = io::JsonDocument::as_far_as_it_reads(source);
        const io::JsonMember* const member = document.find(std::string(key));
        return member == nullptr ? std::string() : read(document, *member);
    } catch (const Error&) {
        return {};
    }
}

}  // namespace

Shard shard_in(const Args& args) {
    const std::optional<std::string> text = args.text("shard");
    if (!text) return {};
    const auto numbers = two_numbers(*text, '/');
    if (!numbers || numbers->first < 1 || numbers->first > numbers->second) args.fail("shard");
    return {numbers->first, numbers->second};
}

std::string output_in(const Args& args) {
    const bool resumes = args.has("resume");
    std::string output = args.text(resumes ? "resume" : "output").value_or("-");
    if (output.empty() || (resumes && output == "-"))
        throw Error(ErrorKind::usage, resumes ? "--resume" : "--output",
                    "no name of a file; expected one");
    return output;
}

std::string Record::location() const {
    return io::line_location(file, line);
}

std::optional<io::InputFile> Record::open_line() const {
    if (line == 0) return {};
    check_line(*this);
    return io::input_file_of_line(io::source_of_line(file, text, line));
}

const std::string& Record::own_id() const {
    if (!own_id_)
        own_id_ = read_member(*this, "id", [](const auto& document, const auto& member) {
            const nlohmann::json id = document.read_value(member);
            const bool is_id = id.is_number_integer() ||
                               (id.is_string() && is_utf8(id.template get<std::string>()));
            return is_id ? io::json_text(id) : std::string();
        });
    return *own_id_;
}

std::string Record::meta() const {
    return read_member(*this, io::passed_on_key, [](const auto& document, const auto& member) {
        std::string meta = document.copied(member);
        return is_utf8(meta) ? meta : std::string();
    });
}

bool is_regular_file(const BatchInput& input) {
    return input.path != "-" && io::file_id(input.path).has_value();
}

RecordReader::RecordReader(std::vector<BatchInput> inputs, const Shard& shard, const Stop& stop)
    : inputs_(std::move(inputs)), shard_(shard), stop_(stop) {
    for (const BatchInput& input : inputs_)
        if (!input.is_record && input.path != "-") check_lines(input.path);
}

io::Next RecordReader::next(Record& record, bool may_wait) {
    while (!stop_.wanted()) {
        if (put_back_) {
            record = *std::exchange(put_back_, std::nullopt);
            return io::Next::found;
        }
        const io::Next next = next_of_any_shard(record, may_wait);
        if (next != io::Next::found) return next;
        record.number = given_++;
        if (record.number % shard_.shards != shard_.shard - 1) continue;
        record.forget();
        if (ids_) require_new_id(record);
        return next;
    }
    return io::Next::end;
}

void RecordReader::require_new_id(const Record& record) {
    if (files_.empty() || files_.back() != record.file) files_.push_back(record.file);
    const auto [found, is_new] =
        ids_->try_emplace(record.id(), Location{files_.size() - 1, record.line});
    if (is_new) return;
    const Location& other = found->second;
    throw Error(
        ErrorKind::input, record.location(),
        std::string(!record.own_id().empty() ? ""
                                             : "has no \"id\" that can be read; its default ") +
            "id " + io::shortened(record.id()) + " is also the id of " +
            io::line_location(files_[other.file], other.line) +
            "; --resume expects a different \"id\" for each record");
}

io::Next RecordReader::next_of_any_shard(Record& record, bool may_wait) {
    for (; !at_end(); ++input_) {
        const BatchInput& input = inputs_[input_];
        if (lines_ == nullptr && is_one_record(input)) {
            record.file = input.path;
            record.default_id = io::value_text(io::one_line(input.path));
            record.line = 0;
            ++input_;
            return io::Next::found;
        }
        is_damaged_ = true;  // unless reading succeeds
        if (lines_ == nullptr) lines_ = std::make_unique<io::LineReader>(input.path, stop_.file());
        const io::Next next = next_line(record, may_wait);
        is_damaged_ = false;
        if (next != io::Next::end || stop_.wanted()) return next;
        lines_.reset();
    }
    return io::Next::end;
}

io::Next RecordReader::next_line(Record& record, bool may_wait) {
    io::Line line;
    for (;;) {
        const io::Next next = lines_->next(line, may_wait);
        if (next != io::Next::found) return next;
        const bool too_long = line.text.size() < line.size;
        if (!too_long && io::after_blanks(line.text).empty()) continue;
        record.file = lines_->name();
        record.line = line.number;
        record.size = line.size;
        try {
            record.text = line.text;
        } catch (const std::bad_alloc&) {
            record.text.clear();  // treated like a line that is too long
        }
        record.default_id = inputs_.size() > 1 ? io::value_text(io::one_line(record.location()))
                                               : std::to_string(line.number);
        return next;
    }
}

std::optional<double> RecordReader::part() const {
    const std::optional<double> of_lines = lines_ == nullptr ? 0 : lines_->part();
    if (!of_lines) return std::nullopt;
    return (static_cast<double>(input_) + *of_lines) / static_cast<double>(inputs_.size());
}

}  // namespace attn::cli
