// `attn model`: a request that is read, checked, measured and run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/args/args.hpp"
#include "cli/output/output.hpp"
#include "cli/request/request.hpp"
#include "core/base/thread_pool.hpp"
#include "core/model/model.hpp"
#include "io/read/input_file.hpp"
#include "io/tokenizer/tokenizer.hpp"
#include "io/transformer/model.hpp"
#include "io/write/report.hpp"

namespace attn::cli {

/// An array of the layers or the model that is not in `all_arrays`.
struct ModelArray {
    std::string_view name;
    bool of_layers;   ///< one array per layer
    bool is_default;  ///< written if --emit is absent
    std::string_view description;
};

/// --emit accepts these names and those of the attention arrays.
std::span<const ModelArray> model_arrays();

/// Whether --emit accepts this name for some model, and no mode does.
bool is_model_array(const std::string& name);

/// The names of arrays of one stack of an encoder-decoder model, as encoder_hidden_states.
std::vector<std::string> arrays_of_stacks();

/// The layers of a list, ascending: "all", or numbers; negative numbers count
/// from the end. Errors: kind usage.
std::vector<std::size_t> layers_named(const std::string& list, std::size_t count);

/// The settings of a model without a config.
inline constexpr std::array<std::string_view, 5> model_settings{"family", "heads", "norm_eps",
                                                                "rope_base", "rope_scaling"};

/// A model and its tokenizer, opened once for the requests that name it. Not thread-safe.
class ModelFiles {
public:
    /// Errors: those of open_model_folder and OpenModel; kind usage for settings
    /// that the config gives, and for a family that needs a config.
    ModelFiles(const Request& request, const std::string& path);

    const io::OpenModel& model() const { return model_; }

    /// From its GGUF file or the tokenizer.json of its folder. Errors: kind io if there is none.
    const io::Tokenizer& tokenizer();

    /// An estimate of the tokenizer's memory in bytes, which labels need; 0 if
    /// there is none. `with_text` adds what decoding tokens to text needs.
    double tokenizer_bytes(bool with_text) const;

    /// The strings of ids; none if the model has no tokenizer that can be read,
    /// since nothing but labels depends on it.
    std::vector<std::string> pieces_of(const std::vector<std::uint64_t>& ids);

    /// The text that ids add to the text of the ids before them, without special tokens; empty if
    /// the model has no tokenizer that can be read, or one of the ids is not in its vocabulary.
    std::optional<std::string> text_after(const std::vector<std::uint64_t>& before,
                                          const std::vector<std::uint64_t>& ids);

private:
    std::string path_;
    io::Access access_;
    io::OpenModel model_;
    std::optional<io::Tokenizer> tokenizer_;
    bool is_without_tokenizer_ = false;
};

/// The model that was opened last.
class ModelCache {
public:
    /// Errors: those of ModelFiles.
    ModelFiles& open(const Request& request, const std::string& path);

private:
    std::string path_;
    std::optional<std::string> config_;
    bool has_settings_ = false;
    std::optional<ModelFiles> files_;
};

/// The flags of the command, or the keys of a request.
struct ModelAsked {
    Args args;                            ///< the keys of a request are flags as well
    Request request;                      ///< without labels
    std::string path;                     ///< of the model
    std::optional<io::InputFile> file{};  ///< the request, which may hold arrays

    /// The array of a flag that is given, from the file that it names, or from
    /// the request. Errors: those of files.
    RealArray read_array(std::string_view key, const io::ArrayRules& rules) const;
};

/// Whether a file holds a request of this command.
bool is_model_request(const io::InputFile& file);

/// `attn model DIR` or `attn model REQUEST.json`. Flags take precedence over
/// the request's keys. Errors: kind usage; those of files.
ModelAsked model_of_command(const Args& args);

/// A record of a batch, whose keys take precedence over `defaults` and `flags`, which are the
/// command's own. `path` is the model of records that name none; empty: each must. Errors: kind
/// usage; with no_files of `defaults`, also for a record that names a file.
ModelAsked model_of_record(const Request& defaults, const Program& program, io::InputFile record,
                           const std::string& path = {}, std::span<const FlagValue> flags = {});

struct ModelQuestion {
    ModelInput input;
    std::vector<std::size_t> layers;
    std::string layers_as_asked;  ///< if `layers` of another request would not
                                  ///< select the same
    std::vector<std::string> emit;
    std::size_t generate = 0;
    std::vector<std::uint64_t> decoder_ids;  ///< for encoder-decoder models
};

/// Refuses the types that keys and values are held in.
void refuse_dtype_of_models(const Request& request);

/// What is run, on what, and its result.
class ModelPlan {
public:
    /// Reads the input and checks the request against the model, whose files must
    /// outlive the plan. Errors: kinds usage, input and io.
    ModelPlan(const ModelAsked& asked, ModelFiles& files);
    ModelPlan(const ModelPlan&) = delete;
    ModelPlan& operator=(const ModelPlan&) = delete;

    const Request& request() const { return request_; }
    const ModelQuestion& question() const { return question_; }

    /// The head of a result up to its layers: schema, id, meta, mode, tokens and config. Tokens are
    /// those of the input; a result has the generated ones too.
    HeadMembers head() const;

    /// Notes on the input.
    std::vector<std::string> notes() const;

    /// The answer of a dry run: sizes, operations and memory as a line of JSON.
    /// `with_text`: the text of the answer is in memory as well.
    std::string cost_line(bool with_text) const;

    /// Errors: kind input if the model needs more memory than there is.
    void require_memory(bool with_text) const;

    /// As check_output_size of a mode.
    std::vector<std::string> check_size() const;

    /// Runs the model, and calls `progress`, which may be empty, when a layer begins. Errors: those
    /// of run_model; kind usage if no layer has an array of the request.
    io::Report run(
        ThreadPool& pool,
        const std::function<void(std::size_t layer, std::size_t layers)>& progress) const;

    /// From now on each array of a layer goes to `take` once the layer is complete: it counts as
    /// memory of that layer alone, and run_layers() is to be called instead of run().
    void pass_layers_on(std::function<void(NamedArray array)> take);
    /// Errors: those of run_model and of `take`.
    void run_layers(ThreadPool& pool) const;

    /// Whether a token of the input may be attended to, (tokens); empty: all.
    std::vector<bool> valid_tokens() const;

private:
    ModelCost cost(const ModelRequest& of_encoder, const ModelRequest& asked) const;
    ModelCost cost() const { return cost(of_encoder_, asked_); }
    void check_question(const Args& args) const;
    void choose_layers(const Args& args);
    void check_emit() const;
    void check_parameters() const;
    const ModelSpec& last() const { return decoder_ ? *decoder_ : spec_; }
    Compute compute_on(ThreadPool& pool) const;
    std::optional<Decoder> decoder_of(const ModelRequest& asked) const;
    ModelResult result(ThreadPool& pool, const ModelRequest& of_encoder,
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
