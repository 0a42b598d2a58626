// `attn model`: a model's layers, from its own files.
#include "cli/model/model_command.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "cli/model/decoder_input.hpp"
#include "cli/model/layer_progress.hpp"
#include "cli/model/model_files.hpp"
#include "cli/model/model_inputs.hpp"
#include "cli/model/model_question.hpp"
#include "cli/model/model_report.hpp"
#include "cli/output/output_plan.hpp"
#include "cli/output/pictures.hpp"
#include "cli/output/report.hpp"
#include "cli/request/field.hpp"
#include "cli/request/request_builder.hpp"
#include "core/base/error.hpp"
#include "core/model/encoder_decoder.hpp"
#include "io/file/output_file.hpp"
#include "io/transformer/model.hpp"

namespace attn::cli {
namespace {

void write(const Request& request, const io::Report& report) {
    std::optional<Pictures> pictures;
    if (request.wants_pictures()) pictures.emplace(request, report);
    io::OutputFile out(request.output);
    const auto fill = [&] { out.fill([&](io::Output& to) { write_report(to, request, report); }); };
    if (!out.is_in_place()) fill();
    if (pictures) pictures->commit();
    if (out.is_in_place()) fill();
    out.commit();
    if (pictures) pictures->show();
}

std::size_t tokens_of(const ModelInput& input) {
    return input.hidden_states ? input.hidden_states->shape(0) : input.ids.size();
}

/// Formats of one array require one name, of one layer if it is an array of layers.
void check_one_array(const Request& request, const ModelQuestion& question) {
    if (!request.format->one_array) return;
    const bool is_hidden = request.has("emit") && question.emit.front() == "hidden_states";
    if (!request.has("emit") || question.emit.size() != 1 || question.layers.size() != 1 ||
        is_hidden)
        throw setting_error(
            request, "emit",
            std::string(request.format->name) + " holds one array; expected --emit with one name" +
                (is_hidden ? " other than hidden_states" : "") + ", and --layers with one number");
}

void check_width(const Args& args, const io::OpenModel& model, const ModelInput& input) {
    if (!input.hidden_states) return;
    const std::size_t width = model.config().whole("hidden_size", 0),
                      found = input.hidden_states->shape(1);
    if (width != 0 && found != width)
        throw Error(ErrorKind::input, location_of(*args.find("hidden_states")),
                    std::to_string(found) + " columns; expected " + std::to_string(width) +
                        ", the model's width");
}

/// Whether --emit has this name.
bool names(const Request& request, std::string_view array) {
    const std::vector<std::string>& emit = request.settings.emit;
    return request.has("emit") && std::find(emit.begin(), emit.end(), array) != emit.end();
}

void check_head(const ModelSpec& model, std::size_t generate) {
    if (model.head && model.head()) return;
    throw Error(ErrorKind::usage, "--generate " + std::to_string(generate),
                "the model has no head, which gives the next token; expected a model with one");
}

/// Lists with an entry for each token do not say what generated ones have.
void check_generated(const Args& args, const ModelQuestion& question) {
    if (question.generate == 0) return;
    for (const char* key : {"attention_mask", "position_ids", "token_type_ids", "text_pair"})
        if (args.has(key))
            throw Error(ErrorKind::usage, location_of(*args.find(key)),
                        "conflicts with --generate; expected one of them");
}

/// The layers that are asked for may not have an array.
void check_found(const Request& request, const ModelQuestion& question, const ModelResult& result) {
    const bool is_one = result.arrays.size() == 1;
    if (is_one || (!request.format->one_array && !result.arrays.empty())) return;
    std::string list;
    for (const std::string& name : question.emit) list += (list.empty() ? "" : ", ") + name;
    throw setting_error(request, "emit",
                        "the layers that are asked for have no " + list +
                            "; expected other arrays, or other --layers");
}

int run_model_command(const Args& args) {
    const std::vector<std::string>& words = args.names();
    if (words.size() != 1)
        throw Error(ErrorKind::usage, "attn model",
                    words.empty() ? "no model; expected its folder or file, as in attn model DIR "
                                    "--token-ids 3,1,4"
                                  : "a second model, " + words[1] + "; expected one");
    Request request = with_flags({}, args);
    request = with_output(request, plan_output(request));
    for (const char* key : {"position_ids", "token_type_ids", "attention_mask"})
        if (args.has(key)) request.locations[key] = Location(location_of(*args.find(key)));
    ModelQuestion question;
    question.emit = arrays_named(request);
    const io::OpenModel model(open_asked_model(request, words[0]));
    request.tokens = read_tokens(args, request, words[0], model.files(), question.input);
    read_input_arrays(args, request, question.input);
    check_input(args, request, model.row().inputs, !model.row().ids.empty(), question.input);
    question.generate = static_cast<std::size_t>(args.whole("generate").value_or(0));
    read_decoder_ids(args, model, question);
    const bool has_decoder = model.decoder() != nullptr;
    const ModelSpec spec = at_locations(request, [&] {
        return model.specify(tokens_of(question.input) + (has_decoder ? 0 : question.generate),
                             model.row().inputs.empty() ? nullptr : &question.input);
    });
    if (question.generate != 0 && question.input.ids.empty() && !has_decoder)
        throw Error(ErrorKind::usage, "--generate " + std::to_string(question.generate),
                    "requires --token-ids or --text");
    check_generated(args, question);
    if (!question.input.segments.empty() && spec.embedding.segments == nullptr &&
        args.has("token_type_ids"))
        throw Error(ErrorKind::usage, location_of(*args.find("token_type_ids")),
                    "the model has no segments; expected no such flag");
    check_width(args, model, question.input);
    const std::string layers = args.text("layers").value_or("all");
    ModelRequest asked;
    asked.arrays = {question.emit, request.settings.head,
                    names(request, "logits") || names(request, "next_tokens")};
    asked.generate = question.generate;
    LayerProgress progress;
    asked.progress = [&progress](std::size_t layer, std::size_t layers_in_all) {
        progress.show(layer, layers_in_all);
    };
    ModelRequest of_encoder = asked;
    ModelSpec decoder;
    if (has_decoder) {
        decoder = model.decoder()->specify(question.decoder_ids.size() + question.generate);
        check_decoder_ids(args, model, question, decoder.vocabulary);
        const std::size_t deepest = std::max(spec.layers, decoder.layers);
        of_encoder.layers = layers_of_stack(layers, spec.layers, deepest);
        asked.layers = layers_of_stack(layers, decoder.layers, deepest);
        std::set_union(of_encoder.layers.begin(), of_encoder.layers.end(), asked.layers.begin(),
                       asked.layers.end(), std::back_inserter(question.layers));
    } else {
        asked.layers = question.layers = layers_named(layers, spec.layers);
    }
    if (question.generate != 0) check_head(has_decoder ? decoder : spec, question.generate);
    check_one_array(request, question);
    for (const char* name : {"last_hidden_state", "logits", "next_tokens"})
        if (names(request, name) &&
            (asked.layers.empty() ||
             asked.layers.back() + 1 != (has_decoder ? decoder : spec).layers))
            throw setting_error(
                request, "emit",
                std::string(name) + " is of the last layer; expected --layers with -1 among them");
    if (question.input.hidden_states) question.input.first_layer = asked.layers.front();
    asked.run_layers = asked.layers.empty() ? 0 : asked.layers.back() + 1;
    const bool needs_all = question.generate != 0;
    at_locations(request, [&] {
        if (has_decoder)
            model.check(spec, spec.layers, decoder, needs_all ? decoder.layers : asked.run_layers);
        else
            model.check(spec, needs_all ? spec.layers : asked.run_layers);
    });
    ThreadPool pool(static_cast<std::size_t>(request.threads.value_or(0)));
    const Compute compute{pool, request.settings.kernel,
                          &backend_of_products(request.settings.kernel)};
    ModelResult result = at_locations(request, [&] {
        return has_decoder
                   ? run_encoder_decoder(compute, spec, decoder, question.input,
                                         question.decoder_ids, of_encoder, asked,
                                         request.settings.dtype)
                   : run_model(compute, spec, question.input, asked, request.settings.dtype);
    });
    check_found(request, question, result);
    write(request, make_model_report(request, words[0], model, question, std::move(result), pool));
    return 0;
}

constexpr Option model_options[] = {
    {.key = "text",
     .argument = "TEXT",
     .help = "the input as a text; the tokenizer is the folder's tokenizer.json, or the one in the "
             "GGUF file"},
    {.key = "text_pair",
     .argument = "TEXT",
     .help = "a second text; the tokenizer joins the pair (default none)"},
    {.key = "no_special_tokens", .field = no_value, .help = "add no special tokens to --text"},
    {.key = "hidden_states",
     .argument = "FILE",
     .help =
         "the hidden states that enter the first of --layers, (tokens, width), instead of tokens"},
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
     .help = "append the most probable token up to N times, then compute the arrays (default 0)"},
    {.key = "decoder_ids",
     .limits = {.expected = "token ids, as in 0,31,4"},
     .argument = "N,...",
     .help = "for encoder-decoder models: token ids of the decoder (default its start token)"},
    {.key = "pixel_values",
     .argument = "FILE",
     .help = "for image models: an image, (channels, height, width), or its patches"},
    {.key = "spatial_shapes",
     .argument = "FILE",
     .help = "for image models that take patches: the numbers of rows and columns of patches"},
    {.key = "input_values",
     .argument = "FILE",
     .help = "for audio models: the samples, or a spectrogram (frames, bins)"},
    {.key = "input_features",
     .argument = "FILE",
     .help = "for audio models: features (bins, frames)"},
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

}  // namespace

constexpr CommandRow model_command{
    .name = "model",
    .summary = "every layer of a model, from its own files",
    .examples =
        "  attn model data/models/gpt2 --token-ids 3,1,4\n"
        "  attn model DIR --token-ids 3,1,4 --layers 0,-1 --emit attention_weights\n",
    .usage =
        "DIR\n\nDIR is a folder with config.json and model.safetensors, a folder of Hugging Face's "
        "cache, or a GGUF file.",
    .common_flags = model_flags,
    .takes = in_model,
    .own = model_options,
    .run = run_model_command};

}  // namespace attn::cli
