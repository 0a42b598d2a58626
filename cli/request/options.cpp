// The table of options and what a request document's keys do with it; see options.hpp.
#include "cli/request/options.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <unordered_map>

#include "cli/request/option_values.hpp"
#include "core/base/did_you_mean.hpp"
#include "core/base/error.hpp"
#include "io/file/source.hpp"
#include "io/read/examples.hpp"

namespace attn::cli {
namespace {

constexpr Modes multihead = in(Mode::multihead);
constexpr Modes cross = in(Mode::cross);
constexpr Modes layers = in(Mode::self) | in(Mode::causal) | multihead | cross;
constexpr Modes sdpa = in(Mode::sdpa);
constexpr Modes several_heads = multihead | cross | sdpa;
constexpr Modes everywhere = layers | sdpa;

/// Far beyond any layer, and small enough that products of two sizes fit 64 bits.
constexpr std::uint64_t largest_size = std::uint64_t{1} << 31;

#define FIELD(path)             \
    +[](Request & r) -> auto& { \
        return r.path;          \
    }

std::vector<Option> make_options() {
    constexpr double most = std::numeric_limits<double>::max();
    std::vector<Option> all;
    const auto add = [&](Option option) { all.push_back(std::move(option)); };

    const std::string input = "Input";
    add(flag_only(choice("input-format", input, everywhere, "format of INPUT", input_format_names,
                         FIELD(input_format))));
    add(flag_only(choice("csv-header", input, everywhere, "whether CSV starts with a header line",
                         io::guess_names, FIELD(csv.header))));
    add(flag_only(choice("csv-labels", input, everywhere,
                         "whether the first CSV column holds token labels", io::guess_names,
                         FIELD(csv.labels))));
    add(not_in_config(text("example", input, layers, std::string(io::example_names),
                           "use a built-in input instead of INPUT", FIELD(example))));
    add(text("text", input, layers, "TEXT", "embed these words instead of reading INPUT",
             FIELD(text)));
    add(whole("vocab-size", input, layers, "rows of the embedding of --text (default 50000)",
              FIELD(vocab_size), 1));
    add(whole("embed-dim", input, layers, "columns of the embedding of --text (default 3)",
              FIELD(embed_dim), 1));
    add(seed("embed-seed", input, layers, "seed of the embedding of --text (default 0)",
             FIELD(embed_seed)));
    add(whole("context-length", input, layers,
              "refuse inputs of more than N tokens (default no limit)",
              FIELD(settings.context_length), 1, largest_size));
    for (const char* name : {"query", "key", "value"})
        add(operand(name, input, sdpa, std::string("the ") + name + " (default: of the request)"));
    add(operand("context", input, cross,
                "what keys and values are made from (default: of the request)"));
    add(not_in_config(numbers<std::uint64_t>(
        "token-ids", input, layers, "N,...",
        "embed these tokens with the model of --weights instead of reading INPUT (default none)",
        FIELD(token_ids), largest_size, [](const json& v) { return v.is_number_unsigned(); },
        "whole numbers from 0")));

    const std::string dimensions = "Dimensions";
    add(whole("d-out", dimensions, layers, "width of the context vectors (default d_in)",
              FIELD(settings.d_out), 1, largest_size));
    add(whole("d-k", dimensions, layers, "width of queries and keys (default d_out)",
              FIELD(settings.d_k), 1, largest_size));
    add(whole("d-v", dimensions, layers, "width of values (default d_out)", FIELD(settings.d_v), 1,
              largest_size));
    add(whole("heads", dimensions, several_heads,
              "number of heads (default 1, or of the model's config; in sdpa as the query's shape "
              "has it)",
              FIELD(settings.heads), 1, largest_size));
    add(whole("kv-heads", dimensions, several_heads,
              "heads of keys and values, each shared by a group of heads (default as heads)",
              FIELD(settings.kv_heads), 1, largest_size));

    const std::string weights = "Weights";
    add(choice("init", weights, layers,
               "how the parameters are drawn; none: Q = K = V = X, unscaled", init_names,
               FIELD(settings.init)));
    add(seed("seed", weights, everywhere, "torch.manual_seed, -2^63 to 2^64-1 (default 0)",
             FIELD(settings.seed)));
    add(whole("rng-skip", weights, everywhere,
              "throw N 32-bit draws away before the first weight (default 0)",
              FIELD(settings.rng_skip), 0));
    add(boolean("qkv-bias", weights, layers,
                "add biases to the query, key and value projections (default off)",
                FIELD(settings.qkv_bias)));
    add(negated("out-proj", weights, multihead | cross,
                "leave the output projection away (default: project; style wrapper never does)",
                FIELD(settings.out_proj)));
    add(negated("out-bias", weights, multihead | cross,
                "output projection without bias (default with)", FIELD(settings.out_bias)));
    add(choice("style", weights, multihead,
               "split: one projection, cut into heads; wrapper: independent layers side by "
               "side, each to d_out",
               style_names, FIELD(settings.style)));

    Option given =
        operand("weights", weights, layers,
                "parameters from a file of a model instead of drawn ones (default none)");
    given.write = [](std::string& out, const Request& request) {
        const auto path = request.operand_files.find("weights");
        if (path != request.operand_files.end()) io::append_json(out, path->second);
    };
    add(given);
    add(choice("family", weights, layers,
               "whose names the tensors have (default: found by the names)", io::family_names,
               FIELD(family)));
    add(whole("layer", weights, layers, "layer of the model (default 0, or the only one)",
              FIELD(layer), 0, largest_size));
    add(choice("weights-layout", weights, layers,
               "axes of bare W_query arrays: (d_in, d_out) or (d_out, d_in) (default in-out, or as "
               "attn wrote them)",
               weights_layout_names, FIELD(weights_layout)));
    add(shapes("weights-shapes", weights, layers, FIELD(weights_shapes)));
    add(text("model-config", weights, layers, "FILE|none",
             "heads, rope and the like of the model (default: config.json beside --weights)",
             FIELD(model_config)));
    const Modes one_input = layers & ~cross;
    add(boolean("pre-norm", weights, one_input,
                "apply the model's norm before the layer (default on with --token-ids where the "
                "model has one, else off)",
                FIELD(pre_norm)));
    add(real("norm-eps", weights, one_input, "E",
             "epsilon of the model's norms (default: of its config, else its family's)",
             FIELD(norm_eps), 0, most, "a number of at least 0"));
    add(flag_only(
        choice("save-family", weights, layers,
               "whose names --save-weights gives (default --family; else notebook, or mha "
               "after --init mha)",
               io::family_names, FIELD(save_family))));
    add(flag_only(
        text("save-weights", weights, layers, "FILE",
             "write the parameters too, as safetensors, npz or json by the name (default none)",
             FIELD(save_weights))));

    const std::string masking = "Masking";
    Option causal = boolean("causal", masking, several_heads,
                            "whether a token sees only itself and those before it (default yes in "
                            "multihead, but for bert; no in cross and sdpa)",
                            FIELD(settings.causal));
    causal.negated_in = multihead;
    add(causal);
    add(choice("causal-align", masking, everywhere,
               "query i sees keys up to i, or the last query sees all (default top-left; must be "
               "named where causal and lengths differ)",
               causal_align_names, FIELD(settings.causal_align)));
    add(operand("mask", masking, everywhere,
                "boolean or additive, broadcast to (batch, heads, q, kv) (default none)"));
    add(choice("mask-true", masking, everywhere,
               "what true means in boolean masks: may attend, or is blocked (no default)",
               mask_true_names, FIELD(settings.mask_true)));
    add(operand("key-padding-mask", masking, everywhere,
                "mask of keys, (batch, kv) (default none)"));
    add(numbers<std::uint64_t>(
        "kv-lengths", masking, everywhere, "N,...",
        "real keys of each batch entry; those after are blocked (default all)",
        FIELD(settings.kv_lengths), largest_size,
        [](const json& v) { return v.is_number_unsigned(); }, "whole numbers from 0"));
    add(numbers<std::int64_t>(
        "window", masking, everywhere, "LEFT[,RIGHT]",
        "keys from p-LEFT to p+RIGHT of a query at p; -1 is unbounded (default -1,-1)",
        FIELD(settings.window), 2,
        [](const json& v) {
            return v.is_number_integer() && v.get<std::int64_t>() >= -1 &&
                   v.get<std::int64_t>() <= static_cast<std::int64_t>(largest_size);
        },
        "one or two whole numbers from -1 to 2147483648"));
    add(choice("mask-method", masking, everywhere,
               "mask scores before the softmax, or weights after it and divide rows by their sums",
               mask_method_names, FIELD(settings.mask_method)));

    const std::string scores = "Scores";
    add(real("scale", scores, everywhere, "S",
             "factor on the scores (default 1/sqrt(d_k); 1 without projections)",
             FIELD(settings.scale), -most, most, "a finite number"));
    add(real("softcap", scores, everywhere, "C",
             "C tanh(x / C) on the scaled scores (default 0, off)", FIELD(settings.softcap), 0,
             most, "a number of at least 0"));
    add(boolean("alibi", scores, everywhere,
                "add 2^(-8(h+1)/heads) (k - p) to the scores (default off)",
                FIELD(settings.alibi)));
    add(choice("rope", scores, everywhere,
               "rotate queries and keys by their position, in pairs (i, i+d/2) or (2i, 2i+1) "
               "(default off)",
               rope_names, FIELD(settings.rope)));
    add(real("rope-base", scores, everywhere, "B", "base of the angles (default 10000)",
             FIELD(settings.rope_base), std::numeric_limits<double>::denorm_min(), most,
             "a number above 0"));
    add(whole("rope-dims", scores, everywhere, "dimensions of a head to rotate (default all)",
              FIELD(settings.rope_dims), 2, largest_size));
    add(numbers<double>(
        "rope-scaling", scores, everywhere, "F[,LOW,HIGH,LENGTH]",
        "slower angles: all divided by F, or Llama 3.1's, which spares those that turn more than "
        "HIGH times in LENGTH positions (default none)",
        FIELD(settings.rope_scaling), 4, [](const json& v) { return v.is_number(); },
        "one number or four"));
    add(numbers<double>(
        "sink", scores, everywhere, "S,...",
        "logits in the softmax's denominator, one a head or one for all (default none)",
        FIELD(settings.sink), largest_size, [](const json& v) { return v.is_number(); },
        "numbers"));
    const std::string cache = "Cache";
    add(operand("past-key", cache, everywhere,
                "cached keys, put before the new ones (default none)"));
    add(operand("past-value", cache, everywhere, "cached values (default none)"));

    const std::string dropout = "Dropout";
    add(real("dropout", dropout, everywhere, "P",
             "probability of dropping each attention weight (default 0)", FIELD(settings.dropout),
             0, 1, "a probability from 0 to 1"));
    add(seed("dropout-seed", dropout, everywhere,
             "give dropout a generator of its own (default: go on after the weights' draws)",
             FIELD(settings.dropout_seed)));
    add(whole("dropout-skip", dropout, everywhere,
              "32-bit draws thrown away in dropout's own generator (default 0)",
              FIELD(settings.dropout_skip), 0));
    add(choice("dropout-stream", dropout, everywhere,
               "PyTorch's own stream, or that of its builds with MKL on Intel processors",
               dropout_stream_names, FIELD(settings.dropout_stream)));

    const std::string output = "Output";
    add(flag_only(text("output", output, everywhere, "FILE",
                       "write there, whole or not at all (default -, standard output)",
                       FIELD(output))));
    add(choice("format", output, everywhere,
               "a JSON document; arrays for other programs; PyTorch's print(); an aligned table; "
               "nothing; without it -o's suffix says",
               io::format_names, FIELD(format)));
    add(list(
        "emit", output, everywhere,
        "arrays to write, or all (default context_vectors,attention_weights; csv, tsv and npy: "
        "context_vectors)",
        FIELD(settings.emit)));
    add(whole("token", output, everywhere, "compute one query row only, from 0 (default all)",
              FIELD(settings.token), 0));
    add(whole("precision", output, everywhere,
              "digits after the point (default: json the shortest exact, torch and table 4)",
              FIELD(precision), 0, 20));
    add(choice(
        "nonfinite", output, everywhere,
        "how JSON shows infinities and NaN: \"-Infinity\", null or -Infinity (default string)",
        io::nonfinite_names, FIELD(nonfinite)));
    add(boolean("average-heads", output, several_heads,
                "attention_weights as their mean over the heads (default off)",
                FIELD(settings.average_heads)));
    add(boolean("pretty", output, everywhere, "one line a row in JSON (default one line in all)",
                FIELD(pretty)));

    const std::string pictures = "Pictures";
    add(flag_only(boolean("heatmap", pictures, everywhere,
                          "draw on the terminal: on standard output where nothing else goes there "
                          "(--format none, or -o), else on standard error (default off)",
                          FIELD(heatmap))));
    add(flag_only(text("plot", pictures, everywhere, "FILE",
                       "draw as .svg, .png or .html, by the name (default none)", FIELD(plot))));
    add(flag_only(list("plot-array", pictures, everywhere,
                       "emitted arrays to draw, or all (default attention_weights; html: all)",
                       FIELD(plot_array))));
    add(flag_only(choice("color-scale", pictures, everywhere, io::color_scale_help,
                         io::color_scale_names, FIELD(color_scale))));

    const std::string numerics = "Numerics";
    add(choice("dtype", numerics, everywhere, "type of draws, steps and results", dtype_names,
               FIELD(settings.dtype)));
    add(choice("kernel", numerics, everywhere,
               "what computes: PyTorch's arithmetic step by step, or a fused kernel; auto: that "
               "of this processor where the work is large; also by the environment's ATTN_KERNEL",
               kernel_names, FIELD(settings.kernel)));
    add(not_in_config(whole("threads", numerics, everywhere,
                            "threads for large work (default: the processors that there are)",
                            FIELD(threads), 1, 1024)));
    return all;
}

#undef FIELD

std::vector<std::string> known_keys(Mode mode) {
    std::vector<std::string> keys{"mode", "id", "inputs", "tokens"};
    for (const Option& option : options())
        if (option.is_key && (option.modes & in(mode)) != 0) keys.push_back(option.key);
    return keys;
}

std::string modes_text(Modes modes) {
    std::string text;
    for (const auto& [mode, name] : mode_names)
        if ((modes & in(mode)) != 0) text += (text.empty() ? "" : ", ") + std::string(name);
    return text;
}

}  // namespace

const std::vector<Option>& options() {
    static const std::vector<Option> table = make_options();
    return table;
}

const Option* find_option(std::string_view key) {
    static const auto by_key = [] {
        std::unordered_map<std::string_view, const Option*> all;
        for (const Option& option : options()) all[option.key] = &option;
        return all;
    }();
    const auto found = by_key.find(key);
    return found == by_key.end() ? nullptr : found->second;
}

std::string text_of(const Request& request, const std::string& key, const Place& place) {
    if (!place.in_document) return place.text;
    const std::string where = request.document->place(place.offset);
    return place.value.empty() ? where : where + ": " + key + " " + io::shortened(place.value);
}

void settle_places(Request& request) {
    for (auto& [key, place] : request.places) place = Place(text_of(request, key, place));
    request.document.reset();
}

std::string place_of(const Request& request, const std::string& key) {
    const auto found = request.places.find(key);
    if (found != request.places.end()) return text_of(request, key, found->second);
    const Option* option = find_option(key);
    return option != nullptr ? "--" + option->name : key;
}

void apply_key(Request& request, const std::string& key, const json& value, const Place& place) {
    const Option* option = find_option(key);
    const Mode mode = request.settings.mode;
    const auto fail = [&](const std::string& message) {
        Place key_place = place;
        key_place.value = {};
        throw Error(ErrorKind::usage, text_of(request, key, key_place), message);
    };
    const Option* positive = key.starts_with("no_") ? find_option(key.substr(3)) : nullptr;
    if (positive != nullptr && positive->kind == Kind::boolean)
        fail("unknown key \"" + key + "\"; expected \"" + positive->key + "\": false");
    if (option == nullptr || !option->is_key)
        fail("unknown key \"" + io::shortened(key) + "\"; the nearest known one is \"" +
             did_you_mean(key, known_keys(mode)) + "\"");
    if ((option->modes & in(mode)) == 0)
        fail("mode " + std::string(name_of(mode_names, mode)) + " has no \"" + key +
             "\"; expected mode " + modes_text(option->modes));
    const bool flag_wins = request.has(key) && !request.of_batch;
    if (flag_wins || value.is_null()) return;
    const std::string problem = option->store(request, value);
    if (!problem.empty()) throw Error(ErrorKind::usage, text_of(request, key, place), problem);
    request.places[key] = place;
}

void check_defaults(const Request& request) {
    for (const auto& [key, place] : request.places) {
        const Option* option = find_option(key);
        if (option != nullptr && (option->modes & in(request.settings.mode)) == 0)
            throw Error(ErrorKind::usage, text_of(request, key, place),
                        "mode " + std::string(name_of(mode_names, request.settings.mode)) +
                            " has no such setting; expected mode " + modes_text(option->modes));
    }
}

void apply_environment(Request& request) {
    const char* kernel = std::getenv("ATTN_KERNEL");
    if (kernel == nullptr || *kernel == '\0' || request.has("kernel")) return;
    const std::string where = "ATTN_KERNEL=" + io::shortened(kernel);
    const std::string problem = find_option("kernel")->store(request, kernel);
    if (!problem.empty()) throw Error(ErrorKind::usage, where, problem);
    request.places["kernel"] = where;
}

namespace {

/// What `config` may say of a question in this mode, whose weights are given or drawn.
const std::vector<const Option*>& config_options(Mode mode, bool given) {
    static const auto lists = [] {
        std::array<std::array<std::vector<const Option*>, 2>, mode_names.size()> all;
        for (const Option& option : options()) {
            const bool of_draws = option.key == "init" || option.key == "rng_skip";
            const bool of_model = option.key == "family" || option.key == "layer";
            for (const auto& [at_mode, name] : mode_names) {
                if (!option.write || (option.modes & in(at_mode)) == 0) continue;
                auto& [drawn, read] = all[static_cast<std::size_t>(at_mode)];
                if (!of_model) drawn.push_back(&option);
                if (!of_draws) read.push_back(&option);
            }
        }
        return all;
    }();
    return lists[static_cast<std::size_t>(mode)][given ? 1 : 0];
}

}  // namespace

std::string config_of(const Request& request) {
    std::string config;
    config.reserve(1024);  // longer than most
    config = '{';
    io::append_member(config, "mode", name_of(mode_names, request.settings.mode));
    if (!request.id.empty()) io::append_member(config, "id", io::JsonText{request.id});
    const bool tokens_of_text = request.text && !request.has("tokens");
    if (!request.tokens.empty() && !tokens_of_text)
        io::append_member(config, "tokens", request.tokens);
    for (const Option* option : config_options(request.settings.mode, request.has("weights"))) {
        const std::size_t before = config.size();
        config += option->key_in_config;
        const std::size_t without_value = config.size();
        option->write(config, request);
        if (config.size() == without_value) config.resize(before);
    }
    return config += '}';
}

}  // namespace attn::cli
