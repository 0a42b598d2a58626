#include "cli/batch/parts.hpp"

#include <string_view>

#include "io/file/durable_file.hpp"
#include "io/file/path.hpp"
#include "io/write/array_archive.hpp"

namespace attn::cli {

void Parts::add(RecordOutcome outcome) {
    if (!has_more_) take_so_far();
    has_more_ = true;
    take(std::move(outcome));
}

void Parts::take_so_far() {
    for (const IndexedAnswer& answer : so_far_.answers) {
        if (answer.failed.empty())
            take(load_answer(layout_.folder, answer.line));
        else
            take({io::TextBuffer(answer.failed), {}});
    }
    so_far_.answers.clear();
}

void Parts::take(RecordOutcome outcome) {
    Held held;
    held.answer.line.record = layout_.record_number(next_++);
    std::string text(outcome.line.text());
    if (outcome.packed) {
        count_.add(text.size(), &outcome.packed->arrays);
        held.answer.line.head = std::move(text);
        held.answer.line.arrays = std::move(outcome.packed->arrays);
        held.bytes = std::move(outcome.packed->bytes);
    } else {
        count_.add(text.size(), nullptr);
        held.answer.failed = std::move(text);
    }
    held_.push_back(std::move(held));
    if (!count_.is_complete()) return;
    write_part();
    held_.clear();
    count_.begin_next();
}

void Parts::finish() {
    if (has_more_ && !held_.empty()) write_part();
}

void Parts::write_part() {
    const std::string name = layout_.part_name({count_.number(), generation_});
    std::vector<io::ArchiveEntry> entries;
    bool has_good = false;
    for (const Held& held : held_) {
        has_good = has_good || held.answer.failed.empty();
        std::string_view rest = held.bytes.text();
        for (const PackedArray& array : held.answer.line.arrays) {
            const auto size = static_cast<std::size_t>(array.type.size());
            entries.push_back({entry_name(held.answer.line.record, array.name), array.type,
                               rest.substr(0, size)});
            rest.remove_prefix(size);
        }
    }
    if (has_good)
        io::write_durably(
            io::path_in(layout_.folder, name),
            [&](io::Output& out) { layout_.format->write_archive(out, entries); }, before_file_);
    else
        before_file_();
    std::string lines;
    auto entry = entries.begin();
    for (Held& held : held_) {
        IndexLine& line = held.answer.line;
        if (!held.answer.failed.empty()) {
            lines += held.answer.failed;
            continue;
        }
        line.file = name;
        line.offsets.clear();
        for (std::size_t i = 0; i < line.arrays.size(); ++i)
            line.offsets.push_back((entry++)->offset);
        lines += text_of(line);
    }
    index_ << lines;
}

}  // namespace attn::cli
