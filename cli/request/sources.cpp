// Whether what a request reads from can be meant together; see sources.hpp.
#include "cli/request/sources.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "core/base/error.hpp"
#include "io/file/path.hpp"

namespace attn::cli {
namespace {

/// One matrix is not enough for a mode without projections; a layer's result may hold all three.
std::string about_operator_input(const Request& request, const io::InputFile& input,
                                 const DocumentArrays& arrays) {
    const auto holds = [&](const char* name) {
        return input.arrays ? input.arrays->find(name) != nullptr
                            : input.holds_object() && input.document->find(name);
    };
    const std::string file = input.name == "<stdin>" ? "FILE" : input.name;
    std::string flags;
    std::size_t found = 0;
    for (const auto& [flag, names] : {std::pair(" --query ", std::array{"queries", "queries"}),
                                      {" --key ", {"present_key", "keys"}},
                                      {" --value ", {"present_value", "values"}}}) {
        const auto name = std::find_if(names.begin(), names.end(), holds);
        if (name == names.end()) continue;
        flags += flag + file + ":" + *name;
        ++found;
    }
    if (request.document && arrays.members.contains("inputs"))
        return "a matrix of inputs; sdpa has no projections, expected query, key and value";
    if (found == 3) return "a layer's result, no request; expected" + flags;
    return "one matrix, and sdpa takes three; expected --query, --key and --value, or a request "
           "with them (attn self takes one matrix)";
}

}  // namespace

void check_standard_input(const Request& request) {
    std::size_t from_stdin = io::split_data_path(request.input).file == "-" ? 1 : 0;
    for (const auto& [key, path] : request.operand_files)
        if (io::split_data_path(path).file == "-") ++from_stdin;
    if (from_stdin > 1)
        throw Error(ErrorKind::usage, "-", "standard input named twice; expected it once");
}

bool reads_input(const Request& request) {
    return !request.input.empty() || !request.names_input();
}

void check_sources(const Request& request, const ModeRow& mode, const io::InputFile* input,
                   const DocumentArrays& arrays) {
    const char* source = nullptr;
    for (const char* key : {"inputs", "example", "text", "token_ids"}) {
        if (!request.has(key)) continue;
        if (source != nullptr)
            throw Error(ErrorKind::usage, place_of(request, key),
                        "a second input beside " + place_of(request, source) + "; expected one");
        source = key;
    }
    if (!mode.projects && request.has("inputs"))
        throw Error(ErrorKind::usage, place_of(request, "inputs"),
                    about_operator_input(request, *input, arrays));
    const bool reads_tokens = reads_input(request) || mode.context;
    for (const char* key : {"input_format", "csv_header", "csv_labels", "csv_comments"})
        if (request.has(key) && !reads_tokens)
            throw Error(ErrorKind::usage, place_of(request, key),
                        "no file of tokens is read; expected INPUT beside it");
    const bool text = request.text || request.example == "sentence";
    for (const char* key : {"vocab_size", "embed_dim", "embed_seed"})
        if (request.has(key) && !text)
            throw Error(ErrorKind::usage, place_of(request, key),
                        "there is no text to embed; expected --text beside it");
}

}  // namespace attn::cli
