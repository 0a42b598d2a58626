// The result of `attn model` as the writers take it.
#pragma once

#include "cli/model/model_question.hpp"
#include "io/transformer/model.hpp"
#include "io/write/report.hpp"

namespace attn::cli {

/// Arrays are sorted by name and layer. In JSON those of layers form a list under their name, with
/// null where a layer has none; in other formats their names carry the layer's number.
io::Report make_model_report(const Request& request, const std::string& path,
                             const io::OpenModel& model, const ModelQuestion& question,
                             ModelResult result, ThreadPool& workers);

}  // namespace attn::cli
