// The table of options, and a request: the settings from the command line and a request document,
// before any array is read.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/args/args.hpp"
#include "core/base/error.hpp"
#include "core/base/function_ref.hpp"
#include "core/layer/norm.hpp"
#include "core/model/attention_part.hpp"
#include "core/plan/settings.hpp"
#include "io/file/access.hpp"
#include "io/file/source.hpp"
#include "io/model/families.hpp"
#include "io/plot/heat_map.hpp"
#include "io/read/csv.hpp"
#include "io/read/input_formats.hpp"
#include "io/write/output_formats.hpp"

namespace attn::cli {

/// All options, by group. Help, `config` and checks of the options follow this order.
std::span<const Option> options();

/// The option with this key, or null.
const Option* find_option(std::string_view key);

/// The names of a table's rows, for the option that chooses one.
template <class Row, std::size_t N>
constexpr Names<const Row*, N> names_of(const std::array<Row, N>& rows) {
    Names<const Row*, N> names{};
    for (std::size_t i = 0; i < N; ++i) names[i] = {&rows[i], rows[i].name};
    return names;
}
inline constexpr auto format_names = names_of(io::output_formats);

/// The formats that a flag can specify for the input; `auto` means by its name or first bytes.
inline constexpr auto input_format_names = [] {
    constexpr auto rows = names_of(io::input_formats);
    Names<const io::InputFormat*, rows.size() + 1> names{};
    names[0] = {nullptr, "auto"};
    for (std::size_t i = 0; i < rows.size(); ++i) names[i + 1] = rows[i];
    return names;
}();

enum class WeightsLayout { in_out, out_in };
inline constexpr Names<WeightsLayout, 2> weights_layout_names{
    {{WeightsLayout::in_out, "in-out"}, {WeightsLayout::out_in, "out-in"}}};

/// Of queries, keys and values in one tensor.
inline constexpr Names<JoinedHeads, 2> qkv_layout_names{
    {{JoinedHeads::parts, "parts"}, {JoinedHeads::groups, "heads"}}};

/// The location of a setting: "--heads 5" for a flag, "request.json:1:9: heads 5" in the request's
/// document. The latter is formatted only when an error needs it.
struct Location {
    Location() = default;
    Location(std::string words) : text(std::move(words)) {}
    Location(std::size_t at, std::string_view value_text = {})
        : in_document(true), is_key(true), offset(at), value(value_text) {}

    std::string text;  ///< in a document, the key that sets this one
    bool in_document = false;
    bool is_key = false;      ///< from a request, whose document may have been freed
    bool is_default = false;  ///< from a file of flags
    bool follows = false;     ///< from the model of a result, and was not asked
    std::size_t offset = 0;   ///< of the key or value in the document
    std::string_view value;   ///< as written there; empty if the location is enough
};

/// What a mask of 0 and 1 is, whose type does not show it.
enum class MaskKind { boolean, additive };
inline constexpr Names<MaskKind, 2> mask_kind_names{
    {{MaskKind::boolean, "boolean"}, {MaskKind::additive, "additive"}}};

/// Inputs at the limits of the type that numbers are stored in, or of the dtype: 0, 1, its largest
/// or smallest positive number, or 1 and -1 in turn, by row and column.
enum class Corner { zeros, ones, largest, smallest, alternating };
inline constexpr Names<Corner, 5> corner_names{{{Corner::zeros, "zeros"},
                                                {Corner::ones, "ones"},
                                                {Corner::largest, "largest"},
                                                {Corner::smallest, "smallest"},
                                                {Corner::alternating, "alternating"}}};
/// Where a notebook draws parameters, and dropout.
using Device = std::pair<Rng, DropoutStream>;
inline constexpr Names<Device, 2> device_names{
    {{{Rng::torch, DropoutStream::mt19937}, "cpu"}, {{Rng::cuda, DropoutStream::cuda}, "cuda"}}};

struct Request {
    Settings settings;
    std::optional<Device> device;   ///< for the settings rng and dropout_stream
    std::optional<GpuThreads> gpu;  ///< for those of its threads

    std::string input;  ///< a path, "-", or empty if standard input or nothing is read
    const io::InputFormat* input_format = nullptr;
    io::CsvStyle csv;
    std::optional<std::string> example;
    std::optional<std::string> text;
    std::optional<std::uint64_t> truncate;  ///< words of the text that are kept
    std::optional<std::uint64_t> vocab_size, embed_dim;
    std::optional<Seed> embed_seed;

    /// The weights file of a model: its layer, and what the model does before the layer.
    const io::Family* family = nullptr;  ///< null: determined by the names
    std::optional<std::uint64_t> layer;
    std::vector<std::string> weight_names;            ///< THEIRS=OURS; empty: by the family
    std::optional<JoinedHeads> qkv_layout;            ///< empty: determined by the names
    JoinedHeads read_layout = JoinedHeads::separate;  ///< where `qkv_layout` may change it
    std::optional<WeightsLayout> weights_layout;
    /// The shapes of the tensors as JSON, by name; empty: any shapes.
    std::optional<std::map<std::string, std::string>> weights_shapes;
    std::optional<std::string> model_config;
    std::vector<std::uint64_t> token_ids;
    std::optional<bool> pre_norm;
    std::optional<NormForm> norm;  ///< empty: the family's
    std::optional<double> norm_eps;
    std::optional<std::uint64_t> position_offset;  ///< of the first token; empty: 0
    std::optional<double> embedding_scale;         ///< empty: 1
    bool is_question = false;  ///< INPUT may be a result, whose question is asked again
    /// The result of --config, or null: INPUT if is_question, else its settings apply.
    std::shared_ptr<const io::InputFile> result;
    std::vector<FlagValue> of_result;  ///< these settings
    bool is_next_layer = false;        ///< the inputs are the context vectors of an earlier result
    bool is_saved_model = false;       ///< attn wrote the weights' file, with its layer's settings
    std::string save_weights;          ///< a path, or empty
    const io::Family* save_family = nullptr;  ///< null: `family`, else the initialiser's

    /// Paths of the operands that have a file of their own, by key: query, mask, weights, ...
    std::map<std::string, std::string, std::less<>> operand_files;

    std::optional<MaskKind> mask_kind;

    /// The names that keys have in INPUT, by key: "mask" may be "attn_mask" there. A key that is
    /// not here has its own.
    std::map<std::string, std::string, std::less<>> array_names;
    std::vector<std::string> ignore_arrays;  ///< in INPUT, which may be anything

    bool heatmap = false;  ///< on the terminal
    std::string plot;      ///< a path, or empty
    std::optional<io::ColorScale> color_scale;
    std::vector<std::string> plot_array;  ///< arrays to draw; empty: the weights, else all

    std::string output = "-";
    const io::OutputFormat* format = io::default_format;
    std::optional<std::uint64_t> precision;
    std::optional<io::Nonfinite> nonfinite;
    bool pretty = false;
    std::optional<Corner> corners;     ///< in place of the numbers that `rand` draws
    std::optional<StoredType> store;   ///< empty: numbers keep their type
    std::string command;               ///< for comments; empty in a batch
    bool bare = false;                 ///< of a result, only the id and the arrays are written
    std::optional<double> max_output;  ///< in bytes
    bool dry_run = false;              ///< the cost is written instead of the arrays

    std::optional<std::uint64_t> threads;  ///< empty: all processors

    std::string id;    ///< as JSON; empty where there is none
    std::string meta;  ///< the same: any value of the request, passed on to the result
    /// Of the query to compute; plan_question() replaces it by settings.token. Empty: none.
    std::string token_label;
    /// One label per token of the inputs or the query, or empty. In sdpa, one per query or one per
    /// key.
    std::uint64_t num_truncated_tokens = 0;  ///< that `truncate` left out of the text
    std::vector<std::string> tokens;
    std::vector<std::string> context_tokens;  ///< the same for the context or the key

    /// As JSON: the settings that were asked; empty if `config` shows which they are.
    std::string asked;

    std::vector<FlagValue> deferred;  ///< environment flags, until the mode is known
    std::map<std::string, Location, std::less<>>
        locations;                               ///< the location of each setting, by key
    std::shared_ptr<const io::Source> document;  ///< of the locations, or null

    io::Access access;  ///< to all files that it names; files named in its document must be regular

    /// A batch record: its keys override the flags, which are the batch's defaults.
    bool of_batch = false;
    bool has_mode = true;   ///< else the document must specify it
    bool no_files = false;  ///< the document must not name files

    bool wants_pictures() const { return heatmap || !plot.empty(); }
    /// Whether an output shows which cells are masked.
    bool marks_masked() const { return wants_pictures() || format->marks_masked; }

    bool has(std::string_view setting) const { return locations.contains(setting); }
    /// Whether a flag takes precedence over the document's value.
    bool keeps_flag(std::string_view setting) const {
        const auto found = locations.find(setting);
        return found != locations.end() && !found->second.is_default && !of_batch;
    }
    /// Whether queries, keys and values are projected from inputs: the request gives none.
    bool projects() const {
        return row_of(settings.mode).projects(has("query") || has("key") || has("value"));
    }
    /// Of the array NAME of --let under "let.NAME".
    bool has_file(std::string_view operand) const { return operand_files.contains(operand); }

    /// Whether it specifies the source of the input; otherwise the source is standard input.
    bool names_input() const {
        return !input.empty() || example || text || !settings.drawn_shape().empty() ||
               !token_ids.empty() || has_file("query") || has_file("key") || has_file("value") ||
               has_file("qkv") || has_file("text_file");
    }
};

/// Whether the setting `key` is given by a flag or a file of flags, and not by the request's
/// document.
bool is_from_flag(const Request& request, std::string_view key);

/// How to open the file that `key` names.
io::Access access_to(const Request& request, std::string_view key);

/// What the key of an array's file in `operand_files` begins with, if formulas name the array.
inline constexpr std::string_view let_prefix = "let.";
inline bool is_of_let(std::string_view key) {
    return key.starts_with(let_prefix);
}

/// The location of the setting `key` as errors show it.
std::string text_of(const Request& request, const std::string& key, const Location& location);

/// The request with all locations as text, so that the document can be freed.
Request without_document(Request request);

/// The name of the setting or operand `key` in errors: its location, or the flag that would set it.
std::string location_of(const Request& request, const std::string& key);

/// Whether the setting `key` is given by a key of the request.
bool is_from_key(const Request& request, const std::string& key);

/// An error at a setting; it names keys where a key of the request is wrong.
Error setting_error(const Request& request, const std::string& key, const std::string& message,
                    ErrorKind kind = ErrorKind::usage);

/// Returns the result of `act`. A SettingError becomes a setting_error().
template <class Act>
decltype(auto) at_locations(const Request& request, const Act& act) {
    try {
        return act();
    } catch (const SettingError& error) {
        throw setting_error(request, error.location(), error.what(), error.kind());
    }
}

/// Whether config_of() has the setting, if it has a value.
bool is_in_config(const Request& request, const Option& option);

/// Every resolved setting as a JSON object: a request without its inputs.
std::string config_of(const Request& request);

/// Appends these settings to a JSON object that has a member already.
void append_settings(std::string& config, const Request& request,
                     FunctionRef<bool(const Option&)> is_shown);

/// " --flag VALUE" for each flag but those of these keys.
std::string flags_text(std::span<const FlagValue> flags,
                       std::initializer_list<std::string_view> left_out);

/// A line of shell that asks for the same: "attn self tokens.csv --d-out 2". It has the flags of
/// files and the environment too, and lacks --threads, which changes no byte of a result.
std::string command_text(const Args& args);

/// The version, the compiler, and the kernels that this processor supports, one line each. The last
/// kernel is the one that auto uses for large work.
std::string version_text();

/// "unknown array "probs"; attn calls it attention_weights": which of `names` other programs and
/// papers call so, else the nearest of them, else all.
std::string unknown_array(std::string_view name, const std::vector<std::string>& names);

/// Errors: SettingError of kind usage at `emit`, for a name that no array has; see unknown_array.
void check_array_names(const std::vector<std::string>& emit);

namespace schemas {

inline constexpr std::string_view result = "attn.result/1", index = "attn.index/1",
                                  weights = "attn.weights/1", cost = "attn.cost/1",
                                  comparison = "attn.comparison/1",
                                  inspection = "attn.inspection/1", tokens = "attn.tokens/1",
                                  check = "attn.check/1", part = "attn.part/1",
                                  stats = "attn.stats/1";
inline constexpr std::string_view all[] = {result,     index,  weights, cost, comparison,
                                           inspection, tokens, check,   part, stats};

}  // namespace schemas

}  // namespace attn::cli
