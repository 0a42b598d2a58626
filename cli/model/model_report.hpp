// The result of `attn model`, in the form that the writers take.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/model/model_question.hpp"
#include "io/transformer/model.hpp"
#include "io/write/report.hpp"

namespace attn::cli {

/// Of tokens; or empty.
using Labels = std::vector<std::string>;

/// The members of a result before its layers: schema, id, meta, mode, tokens and config. The config
/// is a request that gives the same result, but for arrays of the input.
std::vector<std::pair<std::string, std::string>> head_of_model(const Request& request,
                                                               const std::string& path,
                                                               const io::OpenModel& model,
                                                               const ModelQuestion& question,
                                                               const Labels& decoder_tokens);

/// Arrays are grouped by name and ordered by layer. In JSON, arrays of layers form a list under
/// their name, with null for a layer without the array. In other formats, names end with the
/// layer's number.
io::Report make_model_report(const Request& request, const std::string& path,
                             std::vector<std::pair<std::string, std::string>> head,
                             const ModelQuestion& question, const Labels& decoder_tokens,
                             ModelResult result, std::optional<std::string> generated_text,
                             ThreadPool& workers);

}  // namespace attn::cli
