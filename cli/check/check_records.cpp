// `attn check REQUESTS.ndjson --against RESULTS.ndjson`: a verdict for each request.
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/check/check.hpp"
#include "cli/request/errors.hpp"
#include "cli/request/request_builder.hpp"
#include "core/base/error.hpp"
#include "io/file/output.hpp"
#include "io/file/source.hpp"
#include "io/read/input_formats.hpp"
#include "io/text/json_text.hpp"

namespace attn::cli {
namespace {

/// The lines of a file, each with the id in it as JSON, or empty.
class ResultLines {
public:
    /// Errors: kind input if two lines have the same id.
    explicit ResultLines(const io::InputFile& file) {
        io::for_each_line(*file.source, [&](io::Source line) {
            line.memory = file.source->memory;
            std::string id = id_of_line(line);
            if (!id.empty() && !by_id_.emplace(id, lines_.size()).second)
                throw Error(ErrorKind::input, io::input_file_of_line(line).place,
                            "id " + id + " is given twice; expected one result for each request");
            lines_.push_back(std::move(line));
            is_taken_.push_back(false);
        });
    }

    /// Errors: kind input if there is none.
    const io::Source& of(const std::string& id, std::size_t index, const std::string& place) {
        const auto found = by_id_.find(id);
        if (found != by_id_.end()) return taken(found->second);
        // It may be the result that is missing; reading it says what is wrong.
        if (!by_id_.empty() && unreadable_) return taken(*unreadable_);
        if (!by_id_.empty() || index >= lines_.size())
            throw Error(ErrorKind::input, place,
                        "no result for this request; expected one with id " + id);
        return taken(index);
    }

    /// Calls use(id, line) for each line that no request took, in order.
    template <class Use>
    void for_each_left(const Use& use) const {
        std::vector<const std::string*> ids(lines_.size());
        for (const auto& [id, at] : by_id_) ids[at] = &id;
        for (std::size_t at = 0; at < lines_.size(); ++at)
            if (!is_taken_[at])
                use(ids[at] != nullptr ? *ids[at] : std::to_string(lines_[at].first_line),
                    lines_[at]);
    }

private:
    const io::Source& taken(std::size_t at) {
        is_taken_[at] = true;
        return lines_[at];
    }

    std::string id_of_line(const io::Source& line) {
        try {
            const io::JsonDocument document(line);
            const io::JsonMember* const member =
                document.is_array() ? nullptr : document.find("id");
            return member == nullptr ? "" : id_in(document, *member);
        } catch (const Error&) {
            if (!unreadable_) unreadable_ = lines_.size();
            return {};  // reported when the line is read for its request
        }
    }

    std::vector<io::Source> lines_;
    std::vector<bool> is_taken_;  ///< by a request; as long as lines_
    std::map<std::string, std::size_t> by_id_;
    std::optional<std::size_t> unreadable_;  ///< the first line that is not valid JSON
};

std::string id_of_request(const io::InputFile& line, std::size_t number) {
    const io::JsonMember* const member = line.holds_object() ? line.document->find("id") : nullptr;
    const std::string id = member == nullptr ? "" : id_in(*line.document, *member);
    return id.empty() ? std::to_string(number) : id;
}

std::string failed_line(const std::string& id, const ErrorReport& failure) {
    std::string line = "{";
    io::append_member(line, "id", io::JsonText{id});
    line += ",\"error\":{";
    io::append_member(line, "kind", failure.kind);
    io::append_member(line, "where", io::one_line(failure.where));
    io::append_member(line, "message", io::one_line(failure.message));
    return line + "}}\n";
}

class RecordChecker {
public:
    RecordChecker(const CheckRequest& request, ResultLines& results)
        : request_(request), results_(results) {}

    /// A line of the report.
    std::string check(const io::Source& source, std::size_t index) {
        std::string id = std::to_string(source.first_line);
        try {
            io::InputFile line = io::input_file_of_line(source);
            id = id_of_request(line, source.first_line);
            const io::Source& result = results_.of(id, index, line.place);
            const io::InputFile theirs = io::input_file_of_line(result);
            if (theirs.holds_object() && theirs.document->find("error") != nullptr)
                throw Error(ErrorKind::input, theirs.place,
                            "a record that failed in its batch; expected a result");
            CheckedQuestion question(open_request(request_.flags, std::move(line)), request_,
                                     {pool_, models_});
            ProgramJudgement judgement = question.judge(indexed_.result_of(theirs));
            judgement.id = id;
            all_right_ = all_right_ && judgement.verdict != Verdict::wrong;
            std::vector<ProgramJudgement> one;
            one.push_back(std::move(judgement));
            return check_json(one);
        } catch (const io::WrittenFile&) {
            throw;
        } catch (const Error&) {
            all_right_ = false;
            return failed_line(id, current_error(true));
        }
    }

    /// A line of the report for a result that is of no request.
    std::string refuse(const std::string& id, const io::Source& line) {
        all_right_ = false;
        try {
            const std::string place = io::input_file_of_line(line).place;
            throw Error(ErrorKind::input, place,
                        "a result of no request; expected the id of a request");
        } catch (const Error&) {
            return failed_line(id, current_error(true));
        }
    }

    bool all_right() const { return all_right_; }

private:
    const CheckRequest& request_;
    ResultLines& results_;
    ThreadPool pool_;
    io::LoadedModels models_;
    IndexedResults indexed_;
    bool all_right_ = true;
};

}  // namespace

bool holds_requests(const io::InputFile& file) {
    if (!file.source || file.format != io::ndjson_input) return false;
    if (is_result(file)) return false;
    const std::size_t first = file.source->text.find_first_not_of(" \t\r\n");
    return first != std::string_view::npos && file.source->text[first] == '{';
}

bool check_records(const io::InputFile& file, const CheckRequest& request) {
    if (request.against.size() != 1)
        throw Error(ErrorKind::usage, "--against " + request.against[1],
                    "requests of several lines are checked by one file; expected one --against");
    check_standard_input(request);
    const io::InputFile theirs = io::open_input_file(request.against[0], io::ndjson_input);
    ResultLines results(theirs);
    RecordChecker checker(request, results);
    io::OutputFile out(request.flags.output);
    out.fill([&](io::Output& to) {
        std::size_t index = 0;
        io::for_each_line(*file.source,
                          [&](const io::Source& line) { to << checker.check(line, index++); });
        results.for_each_left(
            [&](const std::string& id, const io::Source& line) { to << checker.refuse(id, line); });
    });
    out.commit();
    return checker.all_right();
}

}  // namespace attn::cli
