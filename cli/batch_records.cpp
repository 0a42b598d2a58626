// The requests of a batch; see batch_records.hpp.
#include "cli/batch_records.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/error.hpp"
#include "io/data_file.hpp"
#include "io/json_document.hpp"
#include "io/ndjson.hpp"
#include "io/source.hpp"

namespace attn::cli {
namespace {

/// A JSON file is one record, unless its first line is one by itself.
bool holds_lines(const std::string& path) {
    constexpr std::size_t enough = std::size_t{1} << 16;
    const std::shared_ptr<const io::Bytes> bytes = io::Bytes::open(path);
    const std::string start =
        bytes->read(0, static_cast<std::size_t>(std::min<std::uint64_t>(bytes->size(), enough)));
    return io::looks_like_ndjson(start);
}

/// By its name a file holds lines of requests, or is one input.
bool is_one_record(const BatchInput& input) {
    if (input.is_record) return true;
    if (input.path == "-") return false;
    try {
        const std::optional<io::DataFormat> format = io::format_of_name(input.path);
        if (!format || format == io::DataFormat::ndjson) return false;
        return format != io::DataFormat::json || !holds_lines(input.path);
    } catch (const Error&) {
        return true;  // one that cannot be read: its answer says why
    }
}

/// Now, not when its turn comes after hours.
void check_lines(const std::string& path) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored))
        throw Error(ErrorKind::io, path,
                    "is a folder; expected files, as in " +
                        (std::filesystem::path(path) / "*.json").string());
    const Names<Mode, 5>& modes = mode_names;
    const bool is_mode = std::any_of(modes.begin(), modes.end(),
                                     [&](const auto& mode) { return mode.second == path; });
    if (is_mode && !std::filesystem::exists(path, ignored))
        throw Error(ErrorKind::usage, path, "is no file; expected --mode " + path);
    if (::access(path.c_str(), R_OK) != 0 && !is_one_record({path, false}))
        throw Error(
            ErrorKind::io, path,
            std::string("cannot be read (") + std::strerror(errno) + "); expected a readable file");
}

bool is_blank(std::string_view line) {
    return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

std::string Record::place() const {
    return line == 0 ? file : file + ":" + std::to_string(line);
}

nlohmann::json id_of(const Record& record) {
    try {
        const io::DataFile file =
            record.line == 0
                ? io::open_data_file(record.file)
                : io::data_file_of_line(io::source_of_line(record.file, record.text, record.line));
        const io::JsonMember* member = file.holds_object() ? file.document->find("id") : nullptr;
        if (member == nullptr) return record.id;
        nlohmann::json id = file.document->read_value(*member);
        return id.is_string() || id.is_number_integer() ? id : record.id;
    } catch (const Error&) {
        return record.id;  // what is wrong with the record, its answer says
    }
}

RecordReader::RecordReader(std::vector<BatchInput> inputs, const Shard& shard, const Stop& stop)
    : inputs_(std::move(inputs)), shard_(shard), stop_(stop) {
    for (const BatchInput& input : inputs_)
        if (!input.is_record && input.path != "-") check_lines(input.path);
}

bool RecordReader::is_ready() const {
    if (lines_ != nullptr) return lines_->is_ready();
    return at_end() || inputs_[input_].path != "-";
}

bool RecordReader::next(Record& record) {
    while (!stop_.wanted() && next_of_any_shard(record))
        if (given_++ % shard_.shards == shard_.shard - 1) return true;
    return false;
}

bool RecordReader::next_of_any_shard(Record& record) {
    for (; !at_end(); ++input_) {
        const BatchInput& input = inputs_[input_];
        if (lines_ == nullptr && is_one_record(input)) {
            record.file = record.id = input.path;
            record.line = 0;
            ++input_;
            return true;
        }
        if (lines_ == nullptr) lines_ = std::make_unique<io::LineReader>(input.path, stop_.file());
        if (next_line(record)) return true;
        if (stop_.wanted()) return false;
        lines_.reset();
    }
    return false;
}

bool RecordReader::next_line(Record& record) {
    io::Line line;
    while (lines_->next(line)) {
        const bool too_long = line.text.size() < line.size;
        if (!too_long && is_blank(line.text)) continue;
        record.file = lines_->name();
        record.line = line.number;
        record.text = line.text;
        record.size = line.size;
        if (inputs_.size() == 1)
            record.id = line.number;
        else
            record.id = record.place();
        return true;
    }
    return false;
}

std::optional<double> RecordReader::part() const {
    if (lines_ != nullptr && lines_->size() == 0) return std::nullopt;
    const double of_input = lines_ == nullptr ? 0
                                              : static_cast<double>(lines_->position()) /
                                                    static_cast<double>(lines_->size());
    return (static_cast<double>(input_) + of_input) / static_cast<double>(inputs_.size());
}

}  // namespace attn::cli
