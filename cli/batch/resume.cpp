#include <algorithm>
#include <span>

#include <nlohmann/json.hpp>

#include "cli/batch/batch.hpp"
#include "core/base/error.hpp"
#include "core/operator/arrays.hpp"
#include "io/file/bytes.hpp"
#include "io/file/path.hpp"
#include "io/text/json_text.hpp"

namespace attn::cli {
namespace {

[[noreturn]] void fail(const std::string& path, std::size_t line, const std::string& what) {
    throw Error(
        ErrorKind::input, io::line_location(path, line),
        what + "; expected the flags of the run that began this file, or another file to resume");
}

/// The first member of a model's bare answer after its id and meta.
constexpr std::string_view layers_key = "layer_numbers";

constexpr const char* no_answer = "no answer of a batch";

/// Whether one is a prefix of the other.
bool agree(std::string_view a, std::string_view b) {
    const std::size_t length = std::min(a.size(), b.size());
    return a.substr(0, length) == b.substr(0, length);
}

std::string_view without_zeros(std::string_view text) {
    return text.substr(0, text.find_last_not_of('\0') + 1);  // npos + 1 is 0
}

/// Whether the line may be an incomplete answer to this record.
bool is_torn_answer(std::string_view line, const Record& record, bool is_index) {
    line = without_zeros(line);
    const std::string bare = start_of_bare(record) + ',';
    if (agree(line, start_of_result(record, is_index)) || agree(line, bare + "\"error\":{") ||
        agree(line, bare + '"' + std::string(layers_key) + "\":["))
        return true;
    if (is_index) return agree(line, bare + '"' + std::string(record_key) + "\":");
    return std::ranges::any_of(emitted_arrays, [&](const ArrayRow& array) {
        return agree(line, bare + '"' + std::string(array.name) + "\":[");
    });
}

/// Called before lines are read: an unrelated file may not have any lines.
void check_start(const std::string& path) {
    if (io::is_empty_or_special(path)) return;
    constexpr std::size_t enough = 16;
    const auto bytes = io::Bytes::open(path, {.regular_only = true, .is_own_output = true});
    const std::string start =
        bytes->read(0, static_cast<std::size_t>(std::min<std::uint64_t>(bytes->size(), enough)));
    const std::string_view text = without_zeros(start);
    if (!agree(text, "{\"schema\":\"attn.") && !agree(text, "{\"id\":")) fail(path, 1, no_answer);
}

bool starts_with_id(std::string_view line) {
    return line.starts_with("{\"id\":");
}

/// Whether nothing but arrays follows the id and the meta, as --bare writes them.
bool is_bare(const io::JsonDocument& document) {
    std::span<const io::JsonMember> members = document.members();
    members = members.subspan(document.find(std::string(io::passed_on_key)) == nullptr ? 1 : 2);
    if (members.empty()) return false;
    if (members.front().key == layers_key) return true;
    return std::ranges::all_of(
        members, [](const io::JsonMember& member) { return find_array(member.key).has_value(); });
}

/// The answer must have the settings that its record has now. A default id is a line number, which
/// belongs to another record after lines above it were added or removed. Such an answer, and one
/// without its settings, must equal the one that the record gives now.
void check_last(const BatchRequest& batch, const LastGood& last, Answerer& answerer) {
    const auto& [record, line] = last;
    if (line.text.empty()) return;
    if (!line.text.starts_with(answerer.beginning(record)))
        fail(
            batch.output, line.number,
            "the answer's settings are not those that " + record.location() + " has in this batch");
    const bool has_own_id = record.line == 0 || !record.own_id().empty();
    if (has_own_id && !starts_with_id(line.text)) return;
    try {
        const RecordOutcome now = answerer.answer(record);
        if (now.end) return;
        if (!line.indexed && !now.packed && now.line.text() == line.text) return;
        if (line.indexed && now.packed && now.line.text() == line.indexed->head &&
            holds(*batch.parts, *line.indexed, *now.packed))
            return;
    } catch (const BeyondShare&) {
        return;  // not enough memory to answer it again
    }
    fail(batch.output, line.number,
         "the answer is not the one that " + record.location() +
             (has_own_id ? "" : ", a record without an id,") + " has in this batch");
}

void check_parts(const BatchRequest& batch, const AnswerLine& line, std::uint64_t n) {
    if (!line.indexed) return;
    const std::string problem = problem_of(*batch.parts, *line.indexed, n);
    if (!problem.empty()) fail(batch.output, line.number, problem);
}

}  // namespace

AnswerReader::AnswerReader(const std::string& path, bool is_index)
    : path_(path), is_index_(is_index), lines_(path, -1, io::LineReader::any_length) {
    check_start(path);
}

bool AnswerReader::next(AnswerLine& answer) {
    io::Line line;
    if (lines_.next(line) != io::Next::found) return false;
    if (line.text.size() < line.size)
        fail(path_, line.number,
             "a line of " + std::to_string(line.size) + " bytes, for which there is no memory");
    answer.text = line.is_whole ? line.text : without_zeros(line.text);
    answer.number = line.number;
    answer.is_whole = line.is_whole;
    if (!line.is_whole) return !answer.text.empty();
    read_head(answer);
    answer.text += '\n';
    return true;
}

/// Of a complete line, which must have the form that this program writes.
void AnswerReader::read_head(AnswerLine& answer) const {
    const bool is_whole = answer.text.starts_with(is_index_ ? "{\"schema\":\"attn.index/"
                                                            : "{\"schema\":\"attn.result/");
    if (!(is_whole || starts_with_id(answer.text)) || !answer.text.ends_with('}'))
        fail(path_, answer.number, no_answer);
    const io::Source source = io::source_of_line(path_, answer.text, answer.number);
    const io::JsonDocument document(source);
    const io::JsonMember* id = document.find("id");
    const io::JsonMember* error = document.find("error");
    if (id == nullptr || (!is_whole && error == nullptr && !is_index_ && !is_bare(document)))
        fail(path_, answer.number, no_answer);
    answer.id = io::json_text(document.read_value(*id));
    answer.problem.clear();
    answer.indexed.reset();
    if (is_whole || error == nullptr) {
        if (is_index_ && !(answer.indexed = read_index_line(document, source)))
            fail(path_, answer.number, no_answer);
        return;
    }
    const nlohmann::json what = document.read_value(*error);
    const auto text = [&](const char* key) {
        if (!what.is_object() || !what.contains(key) || !what[key].is_string())
            fail(path_, answer.number, no_answer);
        return what[key].get<std::string>();
    };
    answer.problem = text("where") + ": " + text("message");
}

BatchCount skip_answered(RecordReader& records, const BatchRequest& batch, Answerer& answerer) {
    const std::string& path = batch.output;
    BatchCount answered;
    AnswerReader answers(path, batch.parts.has_value());
    AnswerLine line;
    Record record;
    LastGood last;
    while (answers.next(line)) {
        if (records.next(record) != io::Next::found) {
            if (!records.at_end()) return answered;  // a stop was requested
            fail(path, line.number, "an answer more than there are records");
        }
        if (!line.is_whole) {
            if (!is_torn_answer(line.text, record, batch.parts.has_value()))
                fail(path, line.number, no_answer);
            records.put_back(std::move(record));
            break;
        }
        if (line.id != record.id())
            fail(path, line.number,
                 "the answer has id " + io::shortened(line.id) + ", but " + record.location() +
                     " has id " + io::shortened(record.id()));
        check_parts(batch, line, answered.records);
        ++answered.records;
        answered.bytes = answers.position();
        if (line.problem.empty()) {
            std::swap(last.line, line);
            std::swap(last.record, record);
        } else if (answered.failed++ == 0) {
            answered.first_problem = line.problem;
        }
    }
    check_last(batch, last, answerer);
    return answered;
}

GoodAnswers::GoodAnswers(const BatchRequest& batch)
    : batch_(batch), answers_(batch.output, batch.parts.has_value()) {
    find_next();
}

void GoodAnswers::find_next() {
    line_ = {};
    while (answers_.next(line_)) {
        if (!line_.is_whole || line_.problem.empty()) return;
        failed_ids_.insert(std::move(line_.id));
    }
    line_ = {};
}

std::optional<std::string> GoodAnswers::take(const Record& record) {
    const std::size_t n = records_++;
    if (!line_.is_whole && is_torn_answer(line_.text, record, batch_.parts.has_value())) line_ = {};
    if (line_.text.empty() || !line_.is_whole || record.id() != line_.id) return std::nullopt;
    if (line_.number != records_) moved_.emplace_back(line_.id, line_.number);
    // The names of arrays in a part have the number of the record.
    const bool is_there = !line_.indexed || line_.indexed->record == batch_.parts->record_number(n);
    if (is_there) check_parts(batch_, line_, n);
    last_ = {record, std::move(line_)};
    find_next();
    return is_there ? std::optional(last_.line.text) : std::nullopt;
}

void GoodAnswers::check_end(Answerer& answerer) {
    const std::string& path = batch_.output;
    if (!line_.is_whole) fail(path, line_.number, no_answer);
    if (!line_.text.empty())
        fail(path, line_.number,
             "an answer with id " + io::shortened(line_.id) +
                 " that belongs to no record, or is out of order");
    for (const auto& [id, line] : moved_)
        if (failed_ids_.contains(id))
            fail(path, line,
                 "the answer has id " + io::shortened(id) +
                     ", as has a failed answer, and not the place of the record with this id");
    check_last(batch_, last_, answerer);
}

}  // namespace attn::cli
