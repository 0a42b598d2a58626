// Files of one result, or of a batch's, one per line.
#include "core/base/error.hpp"
#include "io/read/input_formats.hpp"
#include "io/read/result_view.hpp"
#include "io/text/text.hpp"

namespace attn::io {
namespace {

constexpr std::size_t max_results = 4096;

/// Whether the file has one object per line, as `attn batch` writes it; checks only the first.
bool holds_lines(const InputFile& file) {
    if (!file.source || file.document) return false;
    return file.format == ndjson_input && after_blanks(file.source->text).starts_with('{');
}

}  // namespace

ResultFile::ResultFile(const std::string& path)
    : file_(open_input_file(path, nullptr, {.expected = "a result of attn, or arrays"})),
      holds_lines_(holds_lines(file_)) {
    if (holds_lines_)
        for_each_line(*file_.source, [&](const Source& line) {
            lines_.push_back({line.text, line.first_line});
        });
}

InputFile ResultFile::at(std::size_t index) const {
    if (!holds_lines_) return file_;
    Source line = source_of_line(file_.source->name, lines_[index].text, lines_[index].number);
    line.memory = file_.source->memory;
    InputFile result = input_file_of_line(std::move(line));
    result.array = file_.array;
    return result;
}

std::vector<InputFile> open_results(const std::string& path) {
    const ResultFile file(path);
    if (file.size() > max_results)
        throw Error(ErrorKind::input, file.name(), "holds more than ", max_results,
                    " results; expected fewer, as head -n takes them");
    std::vector<InputFile> results;
    for (std::size_t i = 0; i < file.size(); ++i) {
        results.push_back(file.at(i));
        const InputFile& result = results.back();
        if (file.size() > 1 && result.document->find("error") != nullptr)
            throw Error(ErrorKind::input, result.location,
                        "a record that failed in its batch; expected a result on every line");
    }
    return results;
}

InputFile open_result(const std::string& path) {
    std::vector<InputFile> results = open_results(path);
    if (results.size() == 1) return std::move(results[0]);
    refuse_several(results.empty() ? path : results[0].name, results.size());
}

void refuse_several(const std::string& name, std::size_t results) {
    throw Error(ErrorKind::input, name, "holds ", results,
                " results; expected one, as jq or sed -n 2p takes it from the others");
}

}  // namespace attn::io
