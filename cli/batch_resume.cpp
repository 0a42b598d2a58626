// Goes on where an earlier run ended; see batch_resume.hpp.
#include "cli/batch_resume.hpp"

#include "core/error.hpp"
#include "io/json_document.hpp"
#include "io/line_reader.hpp"
#include "io/source.hpp"

namespace attn::cli {
namespace {

struct AnswerHead {
    nlohmann::json id;
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
    AnswerHead head{document.read_value(*id), {}};
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

[[noreturn]] void fail(const std::string& path, const io::Line& line, const std::string& what) {
    throw Error(ErrorKind::input, path + ":" + std::to_string(line.number),
                what +
                    "; expected the requests and the shard that this file was begun with, or "
                    "another file");
}

}  // namespace

Answered skip_answered(RecordReader& records, const std::string& path) {
    Answered answered;
    io::LineReader lines(path);
    io::Line line;
    Record record;
    while (lines.next(line) && line.is_whole) {
        const bool has_text = line.text.size() == line.size;
        if (!records.next(record)) {
            if (!records.at_end()) break;  // stopped
            fail(path, line, "an answer more than there are records");
        }
        if (has_text) {  // else it is a large answer, which none but a whole one is
            AnswerHead head = head_of(path, line);
            const nlohmann::json wanted = id_of(record);
            if (head.id != wanted)
                fail(path, line,
                     "the answer has id " + io::shortened(head.id.dump()) + ", but " +
                         record.place() + " has id " + io::shortened(wanted.dump()));
            if (!head.problem.empty() && answered.count.failed++ == 0)
                answered.count.first_problem = head.problem;
        }
        ++answered.count.records;
        answered.bytes = lines.position();
    }
    return answered;
}

}  // namespace attn::cli
