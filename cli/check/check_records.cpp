// `attn check REQUESTS.ndjson --against RESULTS.ndjson`: a verdict for each request.
#include <map>
#include <utility>

#include "cli/check/check.hpp"
#include "cli/request/errors.hpp"
#include "cli/request/request_builder.hpp"
#include "core/base/error.hpp"
#include "io/file/output.hpp"
#include "io/file/source.hpp"
#include "io/read/input_formats.hpp"
#include "io/text/json_text.hpp"
#include "io/text/text.hpp"

namespace attn::cli {
namespace {

struct ResultLine {
    io::Source text;
    std::string id;         ///< as JSON; or empty
    bool is_taken = false;  ///< by a request
};

/// The lines of a file of results, by their ids.
class ResultLines {
public:
    /// Errors: kind input if two lines have the same id.
    explicit ResultLines(const io::InputFile& file) {
        io::for_each_line(*file.source, [&](io::Source line) {
            line.memory = file.source->memory;
            std::string id;
            try {
                const io::JsonDocument document(line);
                const io::JsonMember* const member =
                    document.is_array() ? nullptr : document.find("id");
                if (member != nullptr) id = id_in(document, *member);
            } catch (const Error&) {  // reported when the line is read for its request
                if (!unreadable_) unreadable_ = lines_.size();
            }
            if (!id.empty() && !by_id_.emplace(id, lines_.size()).second)
                throw Error(ErrorKind::input, io::input_file_of_line(line).location, "id ", id,
                            " is given twice; expected one result for each request");
            lines_.push_back({std::move(line), std::move(id)});
        });
    }

    /// Errors: kind input if there is none.
    const io::Source& of(const std::string& id, std::size_t index, const std::string& location) {
        const auto found = by_id_.find(id);
        // The line that is not valid may be the result; reading it says what is wrong.
        const std::size_t at = found != by_id_.end() ? found->second
                               : by_id_.empty()      ? index
                                                     : unreadable_.value_or(lines_.size());
        if (at >= lines_.size())
            throw Error(ErrorKind::input, location,
                        "no result for this request; expected one with id ", id);
        lines_[at].is_taken = true;
        return lines_[at].text;
    }

    const std::vector<ResultLine>& all() const { return lines_; }

private:
    std::vector<ResultLine> lines_;
    std::map<std::string, std::size_t> by_id_;
    std::optional<std::size_t> unreadable_;  ///< the first line that is not valid JSON
};

std::string id_of_request(const io::InputFile& line, std::size_t number) {
    const io::JsonMember* const member = line.holds_object() ? line.document->find("id") : nullptr;
    const std::string id = member == nullptr ? "" : id_in(*line.document, *member);
    return id.empty() ? std::to_string(number) : id;
}

}  // namespace

bool holds_requests(const io::InputFile& file) {
    if (!file.source || file.format != io::ndjson_input) return false;
    if (is_result(file)) return false;
    return io::after_blanks(file.source->text).starts_with('{');
}

bool check_records(const io::InputFile& file, const CheckRequest& request) {
    if (request.against.size() != 1)
        throw Error(ErrorKind::usage, "--against " + request.against[1],
                    "requests of several lines are checked by one file; expected one --against");
    check_standard_input(request);
    const io::InputFile theirs = io::open_input_file(request.against[0], io::ndjson_input,
                                                     {.expected = "a result on each line"});
    ResultLines results(theirs);
    ThreadPool pool;
    io::LoadedModels models;
    IndexedResults indexed;
    bool all_right = true;
    JUnitReport junit(file.name);
    const auto failed = [&](const std::string& id) {
        all_right = false;
        const ErrorReport failure = current_error(true);
        junit.add(id, "error", failure.location + ": " + failure.message);
        return error_line("{\"id\":" + id, failure);
    };
    const auto check_record = [&](const io::Source& source, std::size_t index) -> std::string {
        std::string id = std::to_string(source.first_line);
        try {
            io::InputFile line = io::input_file_of_line(source);
            id = id_of_request(line, source.first_line);
            const io::InputFile result =
                io::input_file_of_line(results.of(id, index, line.location));
            if (result.holds_object() && result.document->find("error") != nullptr)
                throw Error(ErrorKind::input, result.location,
                            "a record that failed in its batch; expected a result");
            CheckedQuestion question(open_request(request.flags, std::move(line)), request,
                                     {pool, models});
            ProgramJudgement judgement = question.judge(indexed.result_of(result));
            judgement.id = id;
            all_right = all_right && judgement.verdict != Verdict::wrong;
            junit.add(judgement);
            return check_json({std::move(judgement)});
        } catch (const io::WrittenFile&) {
            throw;
        } catch (const Error&) {
            return failed(id);
        }
    };
    const auto refuse = [&](const ResultLine& line) {
        try {
            throw Error(ErrorKind::input, io::input_file_of_line(line.text).location,
                        "a result of no request; expected the id of a request");
        } catch (const Error&) {
            return failed(line.id.empty() ? std::to_string(line.text.first_line) : line.id);
        }
    };
    const auto write = [&](io::Output& to) {
        std::size_t index = 0;
        io::for_each_line(*file.source,
                          [&](const io::Source& line) { to << check_record(line, index++); });
        for (const ResultLine& line : results.all())
            if (!line.is_taken) to << refuse(line);
    };
    write_verdicts(request, write, junit);
    return all_right;
}

}  // namespace attn::cli
