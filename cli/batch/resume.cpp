#include "cli/batch/resume.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/base/memory.hpp"
#include "core/operator/arrays.hpp"
#include "io/file/bytes.hpp"
#include "io/file/path.hpp"
#include "io/file/source.hpp"
#include "io/read/json_document.hpp"
#include "io/text/json_text.hpp"

namespace attn::cli {
namespace {

struct AnswerHead {
    std::string id;                    ///< as JSON
    std::string problem;               ///< of an error record, else empty
    std::optional<IndexLine> indexed;  ///< of a good answer in an index
};

[[noreturn]] void fail(const std::string& path, std::size_t line, const std::string& what) {
    throw Error(
        ErrorKind::input, path + ":" + std::to_string(line),
        what + "; expected the flags of the run that began this file, or another file to resume");
}

/// The first member of a model's bare answer after its id and meta.
constexpr std::string_view of_model = "layer_numbers";

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
        agree(line, bare + '"' + std::string(of_model) + "\":["))
        return true;
    if (is_index) return agree(line, bare + '"' + std::string(record_key) + "\":");
    return std::any_of(emitted_arrays.begin(), emitted_arrays.end(), [&](const ArrayRow& array) {
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

/// Reads the next line with all of its text; false at the end.
bool read_answer(io::LineReader& lines, io::Line& line) {
    if (lines.next(line) != io::Next::found) return false;
    if (line.text.size() < line.size)
        fail(lines.name(), line.number,
             "a line of " + std::to_string(line.size) + " bytes, for which there is no memory");
    return true;
}

bool starts_with_id(std::string_view line) {
    return line.starts_with("{\"id\":");
}

/// Whether nothing but arrays follows the id and the meta, as --bare writes them.
bool is_bare(const io::JsonDocument& document) {
    std::span<const io::JsonMember> members = document.members();
    members = members.subspan(document.find(std::string(io::passed_on_key)) == nullptr ? 1 : 2);
    if (members.empty()) return false;
    if (members.front().key == of_model) return true;
    return std::all_of(members.begin(), members.end(), [](const io::JsonMember& member) {
        return find_array(member.key).has_value();
    });
}

/// The head of a complete line, which must have the form that this program writes.
AnswerHead head_of(const std::string& path, const io::Line& line, bool is_index) {
    const bool is_whole = line.text.starts_with(is_index ? "{\"schema\":\"attn.index/"
                                                         : "{\"schema\":\"attn.result/");
    if (!(is_whole || starts_with_id(line.text)) || !line.text.ends_with('}'))
        fail(path, line.number, no_answer);
    const io::Source source = io::source_of_line(path, line.text, line.number);
    const io::JsonDocument document(source);
    const io::JsonMember* id = document.find("id");
    const io::JsonMember* error = document.find("error");
    if (id == nullptr || (!is_whole && error == nullptr && !is_index && !is_bare(document)))
        fail(path, line.number, no_answer);
    AnswerHead head{io::json_text(document.read_value(*id)), {}, {}};
    if (is_whole || error == nullptr) {
        if (!is_index) return head;
        head.indexed = read_index_line(document, source);
        if (!head.indexed) fail(path, line.number, no_answer);
        return head;
    }
    const nlohmann::json what = document.read_value(*error);
    const auto text = [&](const char* key) {
        if (!what.is_object() || !what.contains(key) || !what[key].is_string())
            fail(path, line.number, no_answer);
        return what[key].get<std::string>();
    };
    head.problem = text("where") + ": " + text("message");
    return head;
}

/// The answer must have the settings that its record has now. A default id is a line number, which
/// belongs to another record after lines above it were added or removed. Such an answer, and one
/// without its settings, must equal the one that the record gives now.
void check_last(const std::string& path, const LastGood& last, Answerer& answerer) {
    if (last.line.empty()) return;
    if (!last.line.starts_with(answerer.beginning(last.record)))
        fail(path, last.number,
             "the answer's settings are not those that " + last.record.place() +
                 " has in this batch");
    const bool has_own_id = last.record.line == 0 || given_id(last.record);
    if (has_own_id && !starts_with_id(last.line)) return;
    try {
        const RecordOutcome now = answerer.answer(last.record);
        if (now.end || answerer.is_answer(now, last.line)) return;
    } catch (const BeyondShare&) {
        return;  // not enough memory to answer it again
    }
    fail(path, last.number,
         "the answer is not the one that " + last.record.place() +
             (has_own_id ? "" : ", a record without an id,") + " has in this batch");
}

}  // namespace

Answered skip_answered(RecordReader& records, const std::string& path, Answerer& answerer,
                       ResumedParts* parts) {
    check_start(path);
    const bool is_index = parts != nullptr;
    Answered answered;
    io::LineReader lines(path, -1, io::LineReader::any_length);
    io::Line line;
    Record record;
    LastGood last;
    while (read_answer(lines, line)) {
        if (!line.is_whole && without_zeros(line.text).empty()) break;
        if (records.next(record) != io::Next::found) {
            if (!records.at_end()) return answered;  // a stop was requested
            fail(path, line.number, "an answer more than there are records");
        }
        if (!line.is_whole) {
            if (!is_torn_answer(line.text, record, is_index)) fail(path, line.number, no_answer);
            records.put_back(std::move(record));
            break;
        }
        AnswerHead head = head_of(path, line, is_index);
        const std::string wanted = id_of(record);
        if (head.id != wanted)
            fail(path, line.number,
                 "the answer has id " + io::shortened(head.id) + ", but " + record.place() +
                     " has id " + io::shortened(wanted));
        ++answered.count.records;
        const std::uint64_t begin = std::exchange(answered.bytes, lines.position());
        if (is_index) {
            IndexedAnswer indexed;
            if (head.indexed)
                indexed.line = std::move(*head.indexed);
            else
                indexed.failed = std::string(line.text) + "\n";
            const std::string problem = parts->pass(std::move(indexed), begin);
            if (!problem.empty()) fail(path, line.number, problem);
        }
        if (head.problem.empty()) {
            last.line = std::string(line.text) + "\n";
            last.number = line.number;
            std::swap(last.record, record);
        } else if (answered.count.failed++ == 0) {
            answered.count.first_problem = head.problem;
        }
    }
    check_last(path, last, answerer);
    return answered;
}

GoodAnswers::GoodAnswers(const std::string& path, bool is_index)
    : path_(path), is_index_(is_index), lines_(path, -1, io::LineReader::any_length) {
    check_start(path);
    find_next();
}

void GoodAnswers::find_next() {
    io::Line line;
    line_.clear();
    while (line_.empty() && read_answer(lines_, line)) {
        number_ = line.number;
        if (!line.is_whole) {
            torn_ = without_zeros(line.text);
            return;
        }
        AnswerHead head = head_of(path_, line, is_index_);
        if (!head.problem.empty()) {
            failed_ids_.insert(std::move(head.id));
            continue;
        }
        line_ = std::string(line.text) + "\n";
        id_ = std::move(head.id);
    }
}

std::optional<std::string> GoodAnswers::take(const Record& record) {
    ++records_;
    if (line_.empty() && !torn_.empty() && is_torn_answer(torn_, record, is_index_)) torn_.clear();
    if (line_.empty() || id_of(record) != id_) return std::nullopt;
    if (number_ != records_) moved_.emplace_back(id_, number_);
    last_ = {record, std::move(line_), number_};
    last_.record.answer.reset();  // left over from an earlier record in the same buffer
    find_next();
    return last_.line;
}

void GoodAnswers::check_end(Answerer& answerer) {
    if (!line_.empty())
        fail(path_, number_,
             "an answer with id " + io::shortened(id_) +
                 " that belongs to no record, or is out of order");
    if (!torn_.empty()) fail(path_, number_, no_answer);
    for (const auto& [id, line] : moved_)
        if (failed_ids_.contains(id))
            fail(path_, line,
                 "the answer has id " + io::shortened(id) +
                     ", as has a failed answer, and not the place of the record with this id");
    check_last(path_, last_, answerer);
}

}  // namespace attn::cli
