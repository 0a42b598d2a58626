// A request of `attn model`, read and checked: what is run, on what, and its result.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "cli/model/layer_progress.hpp"
#include "cli/model/model_asked.hpp"
#include "cli/model/model_files.hpp"
#include "cli/model/model_question.hpp"
#include "core/base/thread_pool.hpp"
#include "core/model/model.hpp"
#include "io/write/report.hpp"

namespace attn::cli {

class ModelPlan {
public:
    /// Reads the input and checks the request against the model, whose files must outlive the
    /// plan. Errors: kinds usage, input and io.
    ModelPlan(const ModelAsked& asked, ModelFiles& files);
    ModelPlan(const ModelPlan&) = delete;
    ModelPlan& operator=(const ModelPlan&) = delete;

    const Request& request() const { return request_; }
    const ModelQuestion& question() const { return question_; }

    /// The head of a result up to its layers: schema, id, meta, mode, tokens and config.
    std::vector<std::pair<std::string, std::string>> head() const;

    /// Runs the model. Errors: those of run_model; kind usage if no layer has an array of the
    /// request.
    io::Report run(ThreadPool& pool, LayerProgress* progress) const;

private:
    void check_question(const ModelAsked& asked) const;
    void choose_layers(const Args& args);
    void check_emit() const;
    void check_parameters() const;
    const ModelSpec& last() const { return decoder_ ? *decoder_ : spec_; }
    ModelResult result(const Compute& compute, const ModelRequest& of_encoder,
                       const ModelRequest& asked) const;

    Request request_;
    std::string path_;
    const io::OpenModel& model_;
    ModelQuestion question_;
    ModelSpec spec_;                    // of the model, or of its encoder
    std::optional<ModelSpec> decoder_;  // of an encoder-decoder model
    ModelRequest of_encoder_, asked_;
};

}  // namespace attn::cli
