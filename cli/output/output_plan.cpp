#include "cli/output/output.hpp"

#include <unistd.h>

#include <iterator>

#include "cli/output/pictures.hpp"
#include "core/base/error.hpp"
#include "core/operator/arrays.hpp"
#include "io/file/access.hpp"
#include "io/read/input_formats.hpp"

namespace attn::cli {
namespace {

/// The formats that fit, for errors: by --format or, if the name of a file says the format, by
/// that.
template <class Fits>
std::string formats_that(const Request& request, const Fits& fits) {
    const bool by_name = !request.has("format") && request.has("output") && request.output != "-";
    std::vector<std::string_view> names;
    for (const io::OutputFormat& format : io::output_formats)
        if (std::invoke(fits, format) && (!request.of_batch || format.of_batch || format.packs()))
            names.push_back(by_name ? format.suffixes[0] : format.name);
    return (by_name ? "--output with a name that ends in " : "--format ") + listed(names);
}

/// Output files must differ: of two with one name, only one would remain.
void check_files(const Request& request) {
    const bool has_output = request.format->write != nullptr;
    const std::array<std::pair<const char*, std::string>, 3> files{
        {{"output", has_output ? request.output : ""},
         {"save_weights", request.save_weights},
         {"plot", request.plot}}};
    for (const auto& [key, path] : files)
        for (const auto& [other_key, other] : files) {
            if (key == other_key) break;  // each pair once
            if (path.empty() || other.empty() || !io::is_same_output(path, other)) continue;
            const std::string first = request.has(other_key) ? location_of(request, other_key)
                                                             : std::string("standard output");
            throw setting_error(request, key, "the same file as " + first + "; expected another");
        }
}

const io::OutputFormat* format_named(std::string_view name) {
    return find_row(io::output_formats, &io::OutputFormat::name, name);
}

/// The format for a terminal if none is specified. It is JSON if a setting of JSON is given. With
/// --heatmap and without --precision it is none, which leaves the picture alone. Otherwise it is a
/// table.
const io::OutputFormat* format_for_people(const Request& request) {
    if (request.pretty || request.nonfinite) return io::default_format;
    return format_named(request.heatmap && !request.precision ? "none" : "table");
}

/// A flag takes precedence over the request's key: --format, else the suffix of --output.
const io::OutputFormat* format_of(const Request& request) {
    const std::string suffix = io::suffix_of_name(request.output);
    const bool is_picture = format_of_suffix(io::picture_formats, request.output) != nullptr;
    const OutputName name{
        request.output, location_of(request, "output"), "a result cannot be written as " + suffix,
        is_picture ? ", --plot FILE for a picture, or --format as well" : ", or --format as well"};
    const bool by_flag = request.has("format") && location_of(request, "format").starts_with("--");
    if (by_flag) return check_format_of_name(request, name), request.format;
    const io::OutputFormat* named = request.has("format")
                                        ? format_of_suffix(io::output_formats, name.path)
                                        : format_of_name(io::output_formats, name);
    const bool is_free = !request.has("format") && !request.has("output");
    if (is_free && ::isatty(STDOUT_FILENO) != 0) return format_for_people(request);
    return named != nullptr ? named : request.format;
}

/// Arrays that are drawn but not written, if the format holds one array or none.
std::vector<std::string> arrays_only_drawn(const Request& request) {
    std::vector<std::string> drawn;
    if (!request.has("emit") && request.plot_array.empty()) drawn.emplace_back("attention_weights");
    // Drawing reports unknown names, with the names that exist.
    std::ranges::copy_if(request.plot_array, std::back_inserter(drawn),
                         [](const std::string& name) { return find_array(name).has_value(); });
    return drawn;
}

}  // namespace

std::vector<std::string> arrays_to_write(const Request& request) {
    const io::OutputFormat& format = *request.format;
    std::vector<std::string> emit = request.settings.emit;
    const bool adds_gradients = request.settings.backward && !request.has("emit");
    if (!format.one_array) {
        if (adds_gradients) emit.emplace_back(all_gradients);
        return emit;
    }
    if (!request.has("emit")) return {"context_vectors"};
    if (emit.size() != 1 || emit.front() == "all" || emit.front() == all_gradients)
        throw setting_error(request, "emit",
                            std::string(format.name) + " holds one array; expected one name, or " +
                                (format.decimals ? "csv-long, " : "") + "npz, safetensors" +
                                (request.of_batch ? ", c or memh" : " or json"));
    return emit;
}

void check_format_of_name(const Request& request, const OutputName& name) {
    const io::OutputFormat& format = *request.format;
    const io::OutputFormat* named = format_of_suffix(io::output_formats, name.path);
    if (named == nullptr || named == &format || format.write == nullptr) return;
    const bool is_one_line = named->json && format.json && !request.pretty;
    if (!is_one_line) refuse_format(location_of(request, "format"), name, named->name);
}

const io::OutputFormat& format_of_weights(const Request& request) {
    return *format_of_name(io::output_formats,
                           {request.save_weights, location_of(request, "save_weights"),
                            "names no format that holds several arrays"},
                           true, &io::OutputFormat::holds_weights);
}

void refuse(const Request& request, std::initializer_list<Refusal> refusals) {
    for (const Refusal& refusal : refusals)
        if (refusal.applies) throw setting_error(request, refusal.key, refusal.text);
}

void check_style_and_store(const Request& request) {
    // Formats that round numbers to another type hold them as bytes, or integers as code.
    const bool is_integer = request.store && request.store->is_integer();
    for (const auto& [key, is_given] : {std::pair("pretty", request.pretty),
                                        {"nonfinite", request.nonfinite.has_value()},
                                        {"precision", request.precision.has_value()},
                                        {"bare", request.bare && is_integer}})
        if (request.store && is_given)
            throw setting_error(request, "store",
                                "conflicts with " + location_of(request, key) +
                                    ", as no format has both; expected one of them");
    const auto require = [&](const char* key, bool is_given, bool io::OutputFormat::*fit) {
        if (is_given && !(request.format->*fit))
            throw setting_error(request, key, "requires " + formats_that(request, fit));
    };
    require("pretty", request.pretty, &io::OutputFormat::breaks_lines);
    // The index of --out-dir has the heads.
    const bool has_index = request.of_batch && request.format->packs();
    require("bare", request.bare && !has_index, &io::OutputFormat::has_head);
    require("nonfinite", request.nonfinite.has_value(), &io::OutputFormat::json);
    refuse(request, {{"precision", request.precision && !request.format->decimals,
                      "requires a format with digits, as json or csv"}});
    // Integers in a file of arrays would be taken for the numbers themselves, unless it says more.
    if (!request.store) return;
    const auto holds = [&](const io::OutputFormat& format) {
        return (format.stores & io::flag_of(*request.store)) != 0 &&
               (!request.of_batch || format.packs());
    };
    if (!holds(*request.format))
        throw setting_error(request, "store",
                            "not in format " + std::string(request.format->name) + "; expected " +
                                formats_that(request, holds));
}

std::optional<std::vector<std::string>> plan_output(Request& request) {
    if (!io::manifest_in(request.output).empty() && !request.output.ends_with('/'))
        request.output += '/';
    request.format = format_of(request);
    check_style_and_store(request);
    refuse(request, {{"save_family", request.save_weights.empty() && request.save_family != nullptr,
                      request.projects() ? "requires --save-weights"
                                         : "no effect on query, key and value, which are not "
                                           "projected; expected no such flag"}});
    if (!request.save_weights.empty()) format_of_weights(request);
    check_files(request);
    check_pictures(request);
    refuse(
        request,
        {{"format", request.format->is_folder && !request.output.ends_with('/'),
          "requires --output with a name that ends in /"},
         {"format", request.format->binary && request.output == "-" && ::isatty(STDOUT_FILENO) != 0,
          "bytes that no terminal shows; expected -o FILE, or a pipe"}});
    const io::OutputFormat& format = *request.format;
    std::vector<std::string>& emit = request.settings.emit;
    emit = arrays_to_write(request);
    if (format.write != nullptr && !format.one_array) return {};
    if (!request.wants_pictures()) {
        if (format.write == nullptr) emit.clear();
        return {};
    }
    std::vector<std::string> all = emit;
    for (std::string& name : arrays_only_drawn(request)) all.push_back(std::move(name));
    if (format.one_array) return all;
    emit = std::move(all);
    return {};
}

bool streams_arrays(const Request& request) {
    return request.format->streams && !request.wants_pictures() && !request.store;
}

}  // namespace attn::cli
