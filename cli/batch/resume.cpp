// Goes on where an earlier run ended; see resume.hpp.
#include "cli/batch/resume.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "io/file/source.hpp"
#include "io/read/json_document.hpp"

namespace attn::cli {
namespace {

/// An answer was in memory when it was written.
constexpr std::size_t any_length = std::numeric_limits<std::size_t>::max();

struct AnswerHead {
    std::string id;       ///< as JSON
    std::string problem;  ///< of an error record, else empty
};

AnswerHead head_of(const std::string& path, const io::Line& line) {
    const io::Source source = io::source_of_line(path, line.text, line.number);
    const io::JsonDocument document(source);
    const io::JsonMember* id = document.find("id");
    const io::JsonMember* error = document.find("error");
    if (id == nullptr || (error == nullptr && document.find("schema") == nullptr))
        throw Error(ErrorKind::input, source.place(0),
                    "no answer of a batch; expected a line with an id, or another file to resume");
    AnswerHead head{document.read_value(*id).dump(), {}};
    if (error == nullptr) return head;
    const nlohmann::json what = document.read_value(*error);
    const auto text = [&](const char* key) {
        return what.is_object() && what.contains(key) && what[key].is_string()
                   ? what[key].get<std::string>()
                   : std::string("?");
    };
    head.problem = text("where") + ": " + text("message");
    return head;
}

[[noreturn]] void fail(const std::string& path, std::size_t line, const std::string& what) {
    throw Error(ErrorKind::input, path + ":" + std::to_string(line),
                what + "; expected what this file was begun with, or another file to resume");
}

/// A last line without its break is what is left of an answer, not of anything else.
void check_torn(const std::string& path, const io::Line& line) {
    const auto may_start = [&](std::string_view beginning) {
        const std::size_t length = std::min(beginning.size(), line.text.size());
        return line.text.substr(0, length) == beginning.substr(0, length);
    };
    // Some file systems leave zeros after a power cut.
    if (!may_start("{\"schema\":\"attn.") && !may_start("{\"id\":") && line.text.front() != '\0')
        fail(path, line.number, "no answer of a batch");
}

}  // namespace

Answered skip_answered(RecordReader& records, const std::string& path, Answerer& answerer) {
    Answered answered;
    io::LineReader lines(path, -1, any_length);
    io::Line line;
    Record record, last;
    std::string last_line;
    std::size_t last_number = 0;
    while (lines.next(line) == io::Next::found) {
        if (!line.is_whole) {
            check_torn(path, line);
            break;
        }
        if (records.next(record) != io::Next::found) {
            if (!records.at_end()) return answered;  // stopped
            fail(path, line.number, "an answer more than there are records");
        }
        AnswerHead head = head_of(path, line);
        const std::string wanted = id_of(record);
        if (head.id != wanted)
            fail(path, line.number,
                 "the answer has id " + io::shortened(head.id) + ", but " + record.place() +
                     " has id " + io::shortened(wanted));
        ++answered.count.records;
        answered.bytes = lines.position();
        if (head.problem.empty()) {
            last_line = line.text;
            last_number = line.number;
            std::swap(last, record);
        } else if (answered.count.failed++ == 0) {
            answered.count.first_problem = head.problem;
        }
    }
    if (!last_line.empty() && !last_line.starts_with(answerer.beginning(last)))
        fail(path, last_number,
             "the answer's settings are not those that " + last.place() + " has in this batch");
    return answered;
}

GoodAnswers::GoodAnswers(const std::string& path) : path_(path), lines_(path, -1, any_length) {
    find_next();
}

void GoodAnswers::find_next() {
    io::Line line;
    line_.clear();
    while (line_.empty() && lines_.next(line) == io::Next::found) {
        if (!line.is_whole) return check_torn(path_, line);
        AnswerHead head = head_of(path_, line);
        if (!head.problem.empty()) continue;
        line_ = std::string(line.text) + "\n";
        number_ = line.number;
        id_ = std::move(head.id);
    }
}

std::optional<std::string> GoodAnswers::take(const Record& record) {
    if (line_.empty() || id_of(record) != id_) return std::nullopt;
    std::string line = std::move(line_);
    find_next();
    return line;
}

void GoodAnswers::check_end() {
    if (!line_.empty())
        fail(path_, number_,
             "an answer with id " + io::shortened(id_) +
                 " that goes with no record, or stands in another order");
}

}  // namespace attn::cli
