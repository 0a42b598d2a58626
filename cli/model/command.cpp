// `attn model`: a model's layers, from its own files.

#include <chrono>
#include <string>
#include <utility>

#include "cli/model/model.hpp"
#include "cli/output/output.hpp"
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

constexpr Option model_options[] = {
    {.key = "text",
     .argument = "TEXT",
     .help = "the input as a text; the tokenizer is the folder's "
             "tokenizer.json, or the one in the "
             "GGUF file"},
    {.key = "text_pair",
     .argument = "TEXT",
     .help = "a second text; the tokenizer joins the pair (default none)"},
    {.key = "no_special_tokens", .field = no_value, .help = "add no special tokens to --text"},
    {.key = "hidden_states",
     .field = operand_field,
     .argument = "FILE",
     .help = "the hidden states that enter the first of --layers, (tokens, "
             "width), instead of tokens"},
    {.key = "attention_mask",
     .limits = {.expected = "0 or 1 for each token"},
     .argument = "LIST",
     .help = "1 for tokens that may be attended to, 0 for padding (default all 1)"},
    {.key = "position_ids",
     .limits = {.expected = "integers from 0, one per token"},
     .argument = "LIST",
     .help = "positions of the tokens (default 0,1,...)"},
    {.key = "token_type_ids",
     .limits = {.expected = "integers from 0, one per token"},
     .argument = "LIST",
     .help = "segments of the tokens, for models that have them (default all 0)"},
    {.key = "layers",
     .limits = {.expected = "all, or numbers from 0; negative numbers count from the end"},
     .argument = "LIST",
     .help = "layers whose arrays are written, as in 0,5,-1 (default all)"},
    {.key = "generate",
     .limits = {.lowest = 1, .highest = 1e6, .expected = "an integer from 1 to 1000000"},
     .argument = "N",
     .help = "append the most probable token up to N times, then compute the "
             "arrays (default 0)"},
    {.key = "decoder_ids",
     .limits = {.expected = "token ids, as in 0,31,4"},
     .argument = "N,...",
     .help = "for encoder-decoder models: token ids of the decoder (default "
             "its start token)"},
    {.key = "pixel_values",
     .field = operand_field,
     .argument = "FILE",
     .help = "for image models: an image, (channels, height, width), or its "
             "patches"},
    {.key = "spatial_shapes",
     .field = operand_field,
     .argument = "FILE",
     .help = "for image models that take patches: the numbers of rows and "
             "columns of patches"},
    {.key = "input_values",
     .field = operand_field,
     .argument = "FILE",
     .help = "for audio models: the samples, or a spectrogram (frames, bins)"},
    {.key = "input_features",
     .field = operand_field,
     .argument = "FILE",
     .help = "for audio models: features (bins, frames)"},
};

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
        "DIR\n\nDIR is a folder with config.json and model.safetensors, a "
        "folder of Hugging Face's "
        "cache, or a GGUF\nfile; or a request as JSON, which names the "
        "model by its key model.",
    .common_flags = model_flags,
    .takes = in_model | in_files,
    .shown_flags = model_help,
    .own = model_options,
    .keys = model_keys,
    .run = run_model_command};

}  // namespace attn::cli
