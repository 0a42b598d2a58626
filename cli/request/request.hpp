// One request: what argv and a request document ask for, before any array is read.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/args/args.hpp"
#include "core/base/error.hpp"
#include "core/layer/norm.hpp"
#include "core/plan/settings.hpp"
#include "io/file/access.hpp"
#include "io/file/source.hpp"
#include "io/model/families.hpp"
#include "io/plot/heat_map.hpp"
#include "io/read/csv.hpp"
#include "io/read/input_formats.hpp"
#include "io/write/output_formats.hpp"

namespace attn::cli {

/// The names of a table's rows, for the option that chooses one.
template <class Row, std::size_t N>
constexpr Names<const Row*, N> names_of(const std::array<Row, N>& rows) {
    Names<const Row*, N> names{};
    for (std::size_t i = 0; i < N; ++i) names[i] = {&rows[i], rows[i].name};
    return names;
}
inline constexpr auto format_names = names_of(io::output_formats);

/// What an input may be said to be; where it is not, its name or first bytes say.
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

/// Where a setting was given: "--heads 5"; or in the request's document, as "request.json:1:9:
/// heads 5", which is made into a text only when an error needs it.
struct Place {
    Place() = default;
    Place(std::string words) : text(std::move(words)) {}
    Place(std::size_t at, std::string_view value_text = {})
        : in_document(true), offset(at), value(value_text) {}

    std::string text;
    bool in_document = false;
    bool is_default = false;  ///< in a file of flags
    std::size_t offset = 0;   ///< of the key or value in the document
    std::string_view value;   ///< as it is written there; empty where the place says it all
};

struct Request {
    Settings settings;

    std::string input;  ///< a path, "-", or empty where standard input or nothing is read
    const io::InputFormat* input_format = nullptr;
    io::CsvStyle csv;
    std::optional<std::string> example;
    std::optional<std::string> text;
    std::optional<std::uint64_t> vocab_size, embed_dim;
    std::optional<Seed> embed_seed;

    /// A model's file of weights: which layer of it, and what the model does before the layer.
    const io::Family* family = nullptr;  ///< null: found by the names
    std::optional<std::uint64_t> layer;
    std::optional<WeightsLayout> weights_layout;
    /// As JSON, by tensor; empty where they may be any.
    std::optional<std::map<std::string, std::string>> weights_shapes;
    std::optional<std::string> model_config;
    std::vector<std::uint64_t> token_ids;
    std::optional<bool> pre_norm;
    std::optional<NormForm> norm;  ///< empty: the family's
    std::optional<double> norm_eps;
    std::optional<std::uint64_t> position_offset;  ///< of the first token; empty: 0
    std::optional<double> embedding_scale;         ///< empty: 1
    bool is_next_layer = false;   ///< the inputs are the context vectors of an earlier result
    bool is_saved_model = false;  ///< the weights' file is attn's own and says what they are for
    std::string save_weights;     ///< a path, or empty
    const io::Family* save_family = nullptr;  ///< null: `family`, else by the initialiser

    /// Paths of the operands that have a file of their own, by key: query, mask, weights, ...
    std::map<std::string, std::string, std::less<>> operand_files;

    bool heatmap = false;  ///< on the terminal
    std::string plot;      ///< a path, or empty
    std::optional<io::ColorScale> color_scale;
    std::vector<std::string> plot_array;  ///< that are drawn; empty: the weights, else all

    std::string output = "-";
    const io::OutputFormat* format = io::default_format;
    std::optional<std::uint64_t> precision;
    std::optional<io::Nonfinite> nonfinite;
    bool pretty = false;

    std::optional<std::uint64_t> threads;  ///< empty: all processors

    std::string id;  ///< as JSON; empty where there is none
    /// One label a token of the inputs or the query, or empty; in sdpa where there are as many
    /// queries or keys as labels.
    std::vector<std::string> tokens;
    std::vector<std::string> context_tokens;  ///< the same of the context or the key

    std::vector<Given> waiting;  ///< flags of the environment, until the mode is known
    std::map<std::string, Place, std::less<>> places;  ///< where each setting was given, by key
    std::shared_ptr<const io::Source> document;        ///< that places lie in; else null

    io::Access access;  ///< to every file that it names; those in its document are regular only

    /// A record of a batch: its own keys win over the flags, which are the batch's defaults.
    bool of_batch = false;
    bool has_mode = true;   ///< else the document has to say it
    bool no_files = false;  ///< the document may name none

    bool has(std::string_view setting) const { return places.contains(setting); }
    /// Whether a flag was given that wins over what the document says.
    bool keeps_flag(std::string_view setting) const {
        const auto place = places.find(setting);
        return place != places.end() && !place->second.is_default && !of_batch;
    }
    bool has_file(std::string_view operand) const { return operand_files.contains(operand); }

    /// Whether it says where the input comes from; else that is standard input.
    bool names_input() const {
        return !input.empty() || example || text || !token_ids.empty() || has_file("query") ||
               has_file("key") || has_file("value");
    }
};

/// Whether a flag, or a file of flags, says the setting `key`: not the request's document, nor
/// nobody.
bool is_from_flag(const Request& request, std::string_view key);

/// How the file may be opened that `key` names.
io::Access access_to(const Request& request, std::string_view key);

/// The place of the setting `key` as an error shows it.
std::string text_of(const Request& request, const std::string& key, const Place& place);

/// The request with the text of every place, so that the document can be released.
Request without_document(Request request);

/// What an error calls the setting or operand `key`: its place, or the flag that would set it.
std::string place_of(const Request& request, const std::string& key);

/// Gives what `act` gives; an error of a setting becomes one at the setting's place.
template <class Act>
decltype(auto) at_places(const Request& request, const Act& act) {
    try {
        return act();
    } catch (const SettingError& error) {
        throw Error(error.kind(), place_of(request, error.where()), error.what());
    }
}

}  // namespace attn::cli
