#include "cli/batch/resumed_parts.hpp"

#include <filesystem>
#include <system_error>
#include <utility>

#include "core/base/error.hpp"
#include "io/file/line_reader.hpp"
#include "io/file/path.hpp"
#include "io/file/source.hpp"

namespace attn::cli {

std::string ResumedParts::pass(IndexedAnswer answer, std::uint64_t begin) {
    const bool is_good = answer.failed.empty();
    if (is_good)
        if (std::string problem = check(answer.line); !problem.empty()) return problem;
    if (so_far_.answers.empty()) begin_ = begin;
    if (is_good)
        so_far_.count.add(answer.line.head.size(), &answer.line.arrays);
    else
        so_far_.count.add(answer.failed.size(), nullptr);
    so_far_.answers.push_back(std::move(answer));
    ++passed_;
    if (!so_far_.count.is_complete()) return {};
    so_far_.count.begin_next();
    so_far_.answers.clear();
    so_far_.records = passed_;
    return {};
}

PartsSoFar ResumedParts::so_far() const {
    PartsSoFar so_far = so_far_;
    so_far.count.begin_again();
    return so_far;
}

void ResumedParts::remove_others() const {
    remove_other_parts(layout_, so_far_.generation,
                       so_far_.count.number() + (so_far_.answers.empty() ? 0 : 1));
}

std::string ResumedParts::check(const IndexLine& line) {
    const std::optional<PartId> part = layout_.part_named(line.file);
    if (part && !std::exchange(has_file_, true)) so_far_.generation = part->generation;
    const PartId wanted{so_far_.count.number(), so_far_.generation};
    const std::uint64_t number = layout_.record_number(passed_);
    if (part != wanted || line.record != number)
        return "record " + std::to_string(line.record) + " in " + io::shortened(line.file) +
               ", where this batch has record " + std::to_string(number) + " in " +
               layout_.part_name(wanted);
    const std::string path = io::path_in(layout_.folder, line.file);
    if (line.file != file_) {
        std::error_code error;
        size_ = std::filesystem::file_size(path, error);
        if (error) return path + " is missing";
        file_ = line.file;
    }
    for (std::size_t i = 0; i < line.arrays.size(); ++i)
        if (line.offsets[i] > size_ || line.arrays[i].type.size() > size_ - line.offsets[i])
            return path + " ends before " + entry_name(line.record, line.arrays[i].name);
    return {};
}

std::uint64_t generation_of(const PartLayout& layout) {
    io::LineReader lines(layout.index(), -1, io::LineReader::any_length);
    io::Line line;
    while (lines.next(line) == io::Next::found) {
        try {
            const io::Source source = io::source_of_line(layout.index(), line.text, line.number);
            const auto read = read_index_line(io::JsonDocument(source), source);
            const auto part = read ? layout.part_named(read->file) : std::nullopt;
            if (part) return part->generation;
        } catch (const Error&) {  // not an index, which the caller finds too
            return 0;
        }
    }
    return 0;
}

}  // namespace attn::cli
