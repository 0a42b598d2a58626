// How an answer is written: its format and files, its head and its cost.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/question/question.hpp"
#include "cli/request/request.hpp"
#include "core/base/function_ref.hpp"
#include "core/base/thread_pool.hpp"
#include "core/layer/layer.hpp"
#include "core/layer/result.hpp"
#include "core/plan/plan.hpp"
#include "io/file/output.hpp"
#include "io/file/path.hpp"
#include "io/write/output_formats.hpp"
#include "io/write/report.hpp"

namespace attn::cli {

/// The name of a file that a command writes.
struct OutputName {
    const std::string& path;  ///< "-" is standard output
    std::string location;     ///< the name in errors: "--output a.json"
    std::string problem;      ///< the error for a name of another format
    std::string way = {};     ///< another fix, after the list of suffixes
};

/// Whether the name has a suffix and must therefore specify a format. A suffix that no command of
/// attn knows is exempt if the file is empty, as from mktemp, or not a regular file.
bool must_name_format(const std::string& path);

/// Always throws an Error of kind usage with these suffixes and the fix.
[[noreturn]] void refuse_name(const OutputName& name,
                              const std::vector<std::string_view>& suffixes);

/// The same for a format given at `location` if the name specifies the format `named`.
[[noreturn]] void refuse_format(const std::string& location, const OutputName& name,
                                std::string_view named);

/// A format of one command.
struct NamedFormat {
    std::string_view name;
    std::array<std::string_view, 3> suffixes;  ///< of a file in this format
};

/// The format that the name's suffix specifies, or null. With `fit`, only formats whose row sets
/// that member count.
template <class Row, std::size_t N>
const Row* format_of_suffix(const std::array<Row, N>& formats, const std::string& path,
                            bool Row::*fit = nullptr) {
    const std::string suffix = io::suffix_of_name(path);
    for (const Row& row : formats)
        if (!suffix.empty() && (fit == nullptr || row.*fit) &&
            std::ranges::find(row.suffixes, suffix) != row.suffixes.end())
            return &row;
    return nullptr;
}

/// The same if nothing else specifies the format. Errors: kind usage for a suffix of no such
/// format, and with `needs_suffix` for none. With `fit`, the error lists the last row first: it was
/// made for the purpose.
template <class Row, std::size_t N>
const Row* format_of_name(const std::array<Row, N>& formats, const OutputName& name,
                          bool needs_suffix = false, bool Row::*fit = nullptr) {
    const Row* named = format_of_suffix(formats, name.path, fit);
    if (named != nullptr || !(needs_suffix || must_name_format(name.path))) return named;
    std::vector<std::string_view> suffixes;
    for (const Row& row : formats)
        if (!row.suffixes.front().empty() && (fit == nullptr || row.*fit))
            suffixes.push_back(row.suffixes.front());
    if (fit != nullptr) std::ranges::reverse(suffixes);
    refuse_name(name, suffixes);
}

/// The format of `--format`, given as `given`, or else of the name; null if neither specifies one.
/// Errors: kind usage if they contradict each other; those of format_of_name.
template <class Row, std::size_t N>
const Row* format_of_flag(const std::array<Row, N>& formats, const Row* given,
                          const OutputName& name) {
    if (given == nullptr) return format_of_name(formats, name);
    const Row* const named = format_of_suffix(formats, name.path);
    if (named != nullptr && named != given)
        refuse_format("--format " + std::string(given->name), name, named->name);
    return given;
}

/// Checks the request's format, which was given, against the name of its file. Errors: kind usage
/// if the name specifies another format.
void check_format_of_name(const Request& request, const OutputName& name);

/// A setting that contradicts the others, and why.
struct Refusal {
    const char* key;
    bool applies;
    const char* text;
};

/// Errors: kind usage at the first setting that applies.
void refuse(const Request& request, std::initializer_list<Refusal> refusals);

/// Errors: kind usage for settings that the request's format would ignore or cannot hold.
void check_style_and_store(const Request& request);

/// Sets the format, from the flag or the file's suffix, and the arrays to emit if the format holds
/// one, before any array is read. Returns those and the arrays that are only drawn, if some are and
/// the format holds one array; else nothing: what is emitted is computed. Errors: kind usage for
/// settings that the format would ignore, and for names that specify no format or another one.
std::optional<std::vector<std::string>> plan_output(Request& request);

/// The arrays to write: exactly one if the format holds one. Errors: kind usage for several.
std::vector<std::string> arrays_to_write(const Request& request);

/// Whether arrays are written while they are computed: if the format allows it, there are no
/// pictures, and no numbers to check before they are stored in another type.
bool streams_arrays(const Request& request);

/// The format of --save-weights, which the file's suffix names. Errors: kind usage for a suffix of
/// a format that does not hold weights.
const io::OutputFormat& format_of_weights(const Request& request);

/// Names and JSON values in the order of output.
using HeadMembers = std::vector<std::pair<std::string, std::string>>;

/// The first members of an answer's head: schema, id, meta. Members that the request lacks are
/// omitted, and if it is bare the schema.
HeadMembers start_of_head(const Request& request);

/// Those, then mode, tokens, context_tokens, config, shapes, the draws where there are some, and
/// layout if the request is not bare. `draws`: see Draws::end.
HeadMembers head_of(const Request& request, const Plan& plan, std::uint64_t draws = 0);

/// The sizes of a plan as a JSON object.
std::string shapes_json(const Shapes& shapes);

/// Everything needed to interpret the arrays without guessing, as a JSON object: positions, masks,
/// operands and the axes of every array.
std::string layout_json(const Plan& plan);

/// The same with other axes: an object with a list of names for each array.
std::string layout_json(const Plan& plan, const std::string& axes);

/// About so many bytes of a line come before its element, in formats that have a line for each.
constexpr double bytes_before_element = 16;

struct AnswerCost {
    std::uint64_t bytes;  ///< approximate size of its elements, as text or in a file
    double memory;        ///< peak bytes, including those
};

/// The whole answer is in memory before it is written.
AnswerCost answer_cost(const Request& request, const Plan& plan, const Cost& cost);

/// Called before anything is computed. Returns a note for a file of arrays that is larger than
/// --max-output, with its size, or nothing. Errors: SettingError of kind usage for other results
/// that are larger; `ways_below` returns flags for smaller ones, each before ", ".
std::vector<std::string> check_output_size(const Request& request, double bytes,
                                           FunctionRef<std::string(double limit)> ways_below);

/// The same for a mode. Errors: kind usage.
std::vector<std::string> check_output_size(const Request& request, const Plan& plan,
                                           const Cost& cost);

/// The answer of a dry run: sizes, operations and AnswerCost as a line of JSON.
std::string cost_line(const Request& request, const Plan& plan, const Cost& cost);

/// Writes a line of cost to the request's output. Errors: kind usage for another format than JSON,
/// and for pictures.
void write_cost(const Request& request, const std::string& line);

/// Appends a member of a cost line; a number below 2^63 is an integer.
void append_count(std::string& line, std::string_view name, double number);

/// If the request's format holds one array, the one to write comes first.
io::Report make_report(const Request& request, const Plan& plan, Result result,
                       ThreadPool& workers);

/// Writes the report in the request's format, after the text that a model generated if it is a
/// table; nothing if it is `none`.
void write_report(io::Output& out, const Request& request, const io::Report& report);

/// The start of a result's JSON with these members, up to its arrays.
std::string head_text(HeadMembers head);

/// Writes the rest of the JSON after the head, on one line.
void write_after_head(io::Output& out, const Request& request,
                      const std::vector<NamedArray>& arrays, ThreadPool& workers);

/// Whether a table is shown on a terminal, shortened.
bool is_on_terminal(const Request& request);

/// Writes the report to the request's output, and the requested pictures; `weights`, a
/// file that is filled, appears with them. Each file is written completely or not at all. Returns
/// notes on the output. Errors: kind input for NaN that is to be stored as an integer; those of
/// draw_pictures; kind io.
std::vector<std::string> write_files(const Request& request, io::Report report,
                                     io::OutputFile* weights = nullptr);

/// The same for an answer, with its parameters in the file of --save-weights.
std::vector<std::string> write_outputs(Answer answer, ThreadPool& workers);

/// The pieces of one text as they read: " didn" for "Ġdidn" of a byte-level vocabulary, and for
/// "▁didn" of SentencePiece. Pieces of WordPiece, "##ing", and parts of a character's bytes stay as
/// they are.
std::vector<std::string> readable_pieces(std::vector<std::string> pieces);

/// Token ids as labels, for models without a tokenizer.
std::vector<std::string> ids_as_labels(const std::vector<std::uint64_t>& ids);

}  // namespace attn::cli
