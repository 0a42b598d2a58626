// The result of `attn model`, in the form that the writers take.
#pragma once

#include "cli/model/model_question.hpp"
#include "io/transformer/model.hpp"
#include "io/write/report.hpp"

namespace attn::cli {

/// Arrays are grouped by name and ordered by layer. In JSON, arrays of layers form a list under
/// their name, with null for a layer without the array. In other formats, names end with the
/// layer's number.
io::Report make_model_report(const Request& request, const std::string& path,
                             const io::OpenModel& model, const ModelQuestion& question,
                             ModelResult result, ThreadPool& workers);

}  // namespace attn::cli
