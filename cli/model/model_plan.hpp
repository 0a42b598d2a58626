// A request of `attn model`, read and checked: what is run, on what, and its result.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/model/layer_progress.hpp"
#include "cli/model/model_asked.hpp"
#include "cli/model/model_files.hpp"
#include "cli/model/model_question.hpp"
#include "core/base/thread_pool.hpp"
#include "core/model/cost.hpp"
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

    /// The head of a result up to its layers: schema, id, meta, mode, tokens and config. Tokens are
    /// those of the input; a result has the generated ones too.
    std::vector<std::pair<std::string, std::string>> head() const;

    /// Notes on the input.
    std::vector<std::string> notes() const;

    /// What running the model costs. Errors: those of make_plan; kind unsupported for image and
    /// audio models.
    ModelCost cost() const;

    /// The answer of a dry run: sizes, operations and memory as a line of JSON. `with_text`: the
    /// text of the answer is in memory as well.
    std::string cost_line(bool with_text) const;

    /// Errors: kind input if the model needs more memory than there is.
    void require_memory(bool with_text) const;

    /// Runs the model. Errors: those of run_model; kind usage if no layer has an array of the
    /// request.
    io::Report run(ThreadPool& pool, LayerProgress* progress) const;

    /// From now on each array of a layer goes to `take` once the layer is complete: it counts as
    /// memory of that layer alone, and run_layers() is to be called instead of run().
    void pass_layers_on(std::function<void(NamedArray array)> take);
    /// Errors: those of run_model and of `take`.
    void run_layers(ThreadPool& pool) const;

    /// Whether a token of the input may be attended to, (tokens); empty: all.
    std::vector<bool> valid_tokens() const;

private:
    bool has_cost() const { return spec_.input == nullptr; }
    std::size_t tokens() const;
    void check_question(const ModelAsked& asked) const;
    void choose_layers(const Args& args);
    void check_emit() const;
    void check_parameters() const;
    const ModelSpec& last() const { return decoder_ ? *decoder_ : spec_; }
    ModelResult result(const Compute& compute, const ModelRequest& of_encoder,
                       const ModelRequest& asked) const;

    Request request_;
    std::string path_;
    ModelFiles& files_;
    const io::OpenModel& model_;
    ModelQuestion question_;
    ModelSpec spec_;                    // of the model, or of its encoder
    std::optional<ModelSpec> decoder_;  // of an encoder-decoder model
    ModelRequest of_encoder_, asked_;
};

}  // namespace attn::cli
