// What reads attn's own files: a batch that goes on, and the commands that look at results.
#include "cli/batch/batch.hpp"
#include "cli/commands.hpp"
#include "cli/compare/compare.hpp"
#include "cli/inspect/inspect.hpp"
#include "cli/plot/plot.hpp"
#include "io/text/json_text.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/support/requests.hpp"

namespace attn::fuzz {
namespace {

using namespace attn::cli;

constexpr std::string_view requests = R"({"mode": "self", "inputs": [[1, 2], [3, 4]]}
{"id": "b", "mode": "self", "inputs": [[1, 2], [3]]}

{"id": 3, "mode": "causal", "inputs": [[1, 2], [3, 4]], "emit": ["scores"]}
{"id": "d", "mode": "none"}
{"id": "e", "mode": "sdpa", "query": [[1]], "key": [[2]], "value": [[3]]}
)";

void answer(const std::string& output, bool resume, bool retry_failed, std::size_t jobs) {
    BatchRequest batch;
    batch.program = &attn_program();
    batch.defaults.of_batch = true;
    batch.defaults.has_mode = false;
    batch.inputs = {{"requests", false}};
    batch.jobs = jobs;
    batch.output = output;
    batch.resume = resume;
    batch.retry_failed = retry_failed;
    const Silence silence;
    run_batch(batch);
}

/// What an undisturbed run answers.
const std::string& all_answers() {
    static const std::string answers = [] {
        file_of(requests, "requests");
        answer("answers", false, false, 1);
        return test::read_text("answers");
    }();
    return answers;
}

/// The answers with a few changes, or any bytes.
std::string left_behind(Draw& draw) {
    if (draw.size(0, 3) == 0) return std::string(draw.rest());
    std::string text = all_answers();
    text.resize(text.size() - draw.size(0, text.size()));
    for (std::size_t left = draw.size(0, 3); left != 0; --left) {
        const std::size_t at = draw.size(0, text.size());
        const std::size_t length = std::min(draw.size(0, 40), text.size() - at);
        const std::string_view rest = draw.rest();
        text.replace(at, length, rest.substr(0, draw.size(0, 20)));
    }
    return text;
}

}  // namespace

void resume_batch(std::string_view bytes) {
    const std::string& whole = all_answers();
    Draw draw(bytes);
    const bool retry_failed = draw.flag();
    const std::size_t jobs = draw.size(1, 2);
    const std::string before = left_behind(draw);
    test::write_text("resumed", before);
    const std::string error = error_of([&] { answer("resumed", true, retry_failed, jobs); });
    const std::string after = test::read_text("resumed");
    if (!error.empty()) return require(after == before, "a file that is refused stays as it was");

    const auto good = test::lines_of(whole), kept = test::lines_of(before);
    const auto lines = test::lines_of(after);
    require(after.ends_with('\n') && lines.size() == good.size(), "every record has its answer");
    for (std::size_t i = 0; i < lines.size(); ++i)
        require(lines[i] == good[i] || std::find(kept.begin(), kept.end(), lines[i]) != kept.end(),
                "an answer is that of its record, or was there");
    const std::size_t last_break = before.rfind('\n');
    const std::size_t whole_lines = last_break == std::string::npos ? 0 : last_break + 1;
    require(retry_failed || after.starts_with(before.substr(0, whole_lines)),
            "whole lines that were there stay");
}

void look_at_result(std::string_view bytes) {
    static constexpr std::string_view suffixes[] = {"",     ".json", ".ndjson",     ".csv",
                                                    ".npy", ".npz",  ".safetensors"};
    static constexpr std::string_view pictures[] = {".svg", ".png", ".html", ""};
    Draw draw(bytes);
    const std::string path = "result" + std::string(draw.among(suffixes));
    const std::string_view picture = draw.among(pictures);
    const auto scale = draw.among(io::color_scale_names).first;
    file_of(draw.rest(), path);
    error_of([&] {
        const nlohmann::ordered_json found = inspect({path, {}, {}});
        const std::string text = io::json_text(found);
        require(!nlohmann::json::parse(text, nullptr, false).is_discarded(),
                "an inspection is JSON: " + text);
        require(!inspection_page(found, 80).empty(), "an inspection has a page");
    });
    const Silence silence;
    CompareRequest request;
    request.a = request.b = path;
    request.tolerance.equal_nan = true;
    for (bool as_json : {false, true}) {
        request.json = as_json;
        std::vector<std::string> compare_notes;
        error_of([&] { require(compare(request, compare_notes), "a file is equal to itself"); });
    }
    const std::string drawn = picture.empty() ? "" : "picture" + std::string(picture);
    PlotRequest picture_request;
    picture_request.results = {path};
    picture_request.output = drawn;
    picture_request.scale = scale;
    error_of([&] { plot(picture_request); });
}

}  // namespace attn::fuzz
