// `attn model`: a model's layers, from its own files.

#include <chrono>
#include <utility>

#include "cli/model/model.hpp"
#include "cli/model/model_options.hpp"
#include "cli/question/question.hpp"
#include "cli/request/field.hpp"
#include "io/file/screen.hpp"

namespace attn::cli {
namespace {

/// "[=====>    ] layer 3 of 12"
std::string layer_text(std::size_t layer, std::size_t layers) {
    constexpr std::size_t width = 30;
    return io::progress_bar(layer * width / layers, width) + " layer " + std::to_string(layer) +
           " of " + std::to_string(layers);
}

int run_model_command(const Args& args) {
    const ModelAsked asked = model_of_command(args);
    ModelFiles files(asked.request, asked.path);
    const ModelPlan plan(asked, files);
    if (plan.request().dry_run) {
        write_cost(plan.request(), plan.cost_line(false));
        return 0;
    }
    plan.require_memory(false);
    show_notes(plan.check_size());
    ThreadPool pool(static_cast<std::size_t>(asked.request.threads.value_or(0)));
    io::ProgressLine line(std::chrono::milliseconds(500), io::ProgressLine::End::clear);
    const Request& request = plan.request();
    io::Report report = plan.run(pool, [&](std::size_t layer, std::size_t layers) {
        if (layers != 0) line.show([&] { return layer_text(layer, layers); });
    });
    show_notes(plan.notes());
    show_notes(at_locations(request, [&] { return write_files(request, std::move(report)); }));
    return 0;
}

/// The file of the model, and its type as results state it.
constexpr Option model_keys[] = {
    {.key = "model", .field = operand_field, .argument = "FILE", .help = "the model"},
    {.key = "model_type", .help = "the type of the model, which is checked"},
};

constexpr HelpOverride model_flags[] = {
    {"token_ids", "token ids, as in 3,1,4"},
    {"text", "a text, for the model's own tokenizer"},
    {"layers", "layers to write, as in 0,5,-1 (default all)"},
    {"head", "heads to write, from 0 (default all)"},
    {"emit", "arrays to write: attention_weights, ..., or all"},
    {"generate", "append the most probable token N times first"},
    {"format", "json, table, torch, csv, npy, npz, ..."},
    {"output", "write there; the suffix determines the format"},
    {"heatmap", "draw the weights on the terminal"},
};

constexpr HelpOverride model_help[] = {
    {"emit",
     "arrays to write: all, or some of those in attn help model (default hidden_states, "
     "recurrent_state, cross_attention_weights, last_hidden_state, attention_weights)"},
};

}  // namespace

constexpr CommandRow model_command{
    .name = "model",
    .summary = "every layer of a model, from its own files",
    .examples =
        "  attn model data/models/gpt2 --token-ids 3,1,4\n"
        "  attn model DIR --token-ids 3,1,4 --layers 0,-1 --emit "
        "attention_weights\n",
    .usage =
        "DIR\n\nDIR is a folder with config.json and model.safetensors or pytorch_model.bin, a "
        "folder of Hugging\nFace's cache, or a GGUF file; or a request as JSON, which names the "
        "model by its key model.",
    .common_flags = model_flags,
    .takes = in_model | in_files,
    .shown_flags = model_help,
    .own = model_options,
    .keys = model_keys,
    .run = run_model_command};

}  // namespace attn::cli
