// Verdicts as JUnit's XML, for servers of continuous integration: the elements and attributes that
// Jenkins, GitLab and Ant have in common.
#include <nlohmann/json.hpp>

#include "cli/check/check.hpp"
#include "core/base/error.hpp"
#include "io/text/json_text.hpp"
#include "io/text/number_text.hpp"
#include "io/text/text.hpp"
#include "io/text/utf8.hpp"

namespace attn::cli {
namespace {

/// XML has no way to write most control characters.
std::string attribute(std::string_view name, std::string_view text) {
    return concat(" ", name, "=\"",
                  io::replaced(io::printable(text),
                               {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}}),
                  "\"");
}

std::string time_attribute(std::chrono::duration<double> time) {
    return attribute("time", io::fixed_text(time.count(), 6));
}

}  // namespace

void JUnitReport::add(const std::string& id, std::string_view kind, const std::string& problem) {
    const auto now = std::chrono::steady_clock::now();
    const nlohmann::json name = nlohmann::json::parse(id);
    ++tests_;
    if (!problem.empty()) ++(kind == "error" ? errors_ : failures_);
    cases_ += "  <testcase classname=\"attn.check\"" +
              attribute("name", name.is_string() ? name.get<std::string>() : id) +
              time_attribute(now - last_) + ">" +
              (problem.empty() ? "" : concat("<", kind, attribute("message", problem), "/>")) +
              "</testcase>\n";
    last_ = now;
}

void JUnitReport::add(const ProgramJudgement& program) {
    add(program.id.empty() ? io::value_text(program.path) : program.id, "failure",
        program.verdict == Verdict::wrong ? line_of_verdict(program) : "");
}

std::string JUnitReport::text() const {
    const std::string counts =
        concat(" tests=\"", tests_, "\" failures=\"", failures_, "\" errors=\"", errors_, "\"") +
        time_attribute(last_ - begin_);
    return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" + counts + ">\n <testsuite" +
           attribute("name", suite_) + counts + ">\n" + cases_ + " </testsuite>\n</testsuites>\n";
}

}  // namespace attn::cli
