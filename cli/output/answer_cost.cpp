#include "cli/output/output.hpp"

#include "core/base/error.hpp"
#include "core/base/memory.hpp"
#include "core/operator/arrays.hpp"
#include "core/operator/mask.hpp"
#include "io/plot/colors.hpp"
#include "io/text/json_text.hpp"
#include "io/write/row_text.hpp"

namespace attn::cli {
namespace {

/// The fraction of (query, key) pairs that neither causal attention nor the window masks. It is
/// estimated from at most 64 evenly spaced queries; it is 1 for small answers.
double visible_fraction(const Plan& plan, const Cost& cost) {
    constexpr std::size_t most = 64, few = std::size_t{1} << 16;
    if ((!*plan.config.causal && plan.config.window.empty()) || cost.numbers < few) return 1;
    Mask mask;
    if (*plan.config.causal) mask.add(BandRule(-1, 0, plan.offset));
    if (!plan.config.window.empty())
        mask.add(BandRule(plan.config.window[0], plan.config.window[1], plan.offset));
    const std::size_t asked = std::min(plan.rows, most);
    double seen = 0;
    for (std::size_t i = 0; i < asked; ++i) {
        const std::size_t query = plan.first_query + (2 * i + 1) * plan.rows / (2 * asked);
        const KeyRange keys = mask.range({0, 0, query, 1, 0, plan.kv_len});
        seen += static_cast<double>(keys.end - keys.first);
    }
    return seen / static_cast<double>(asked) / static_cast<double>(plan.kv_len);
}

/// Bytes of the text of a masked element, with its comma.
std::size_t masked_length(const Request& request, io::ArrayColors colors, std::size_t visible) {
    if (colors == io::ArrayColors::from_zero)
        return request.precision ? visible : std::string_view("0.0,").size();
    if (colors != io::ArrayColors::diverging_masked) return visible;
    constexpr std::string_view texts[] = {"\"-Infinity\",", "null,", "-Infinity,"};
    const io::Nonfinite nonfinite = request.nonfinite.value_or(io::Nonfinite::string);
    return texts[static_cast<std::size_t>(nonfinite)].size();
}

/// Columns of the written rows: the size of the last axis that is shown.
double columns_of_array(const Plan& plan, ArrayId array) {
    for (std::size_t axis = array.row().axes.size(); axis-- > 0;)
        if (plan.shown.shows(array, axis)) return plan.size_of<double>(array.row().axes[axis]);
    return 1;
}

/// Bytes of an element, as text or in a binary file.
double element_size(const Request& request, const Plan& plan, ArrayId array, double seen) {
    if (request.format->binary)
        return request.store ? request.store->width() / 8.0
                             : static_cast<double>(row_of(plan.config.dtype).size);
    constexpr std::size_t of_weight = 3, of_any = 4;  // "0." and a comma; in the second also a sign
    const io::ArrayColors colors = io::colors_of(array);
    constexpr std::size_t of_table = 4;
    const std::size_t digits = request.precision.value_or(
        request.format->marks_masked ? of_table : row_of(plan.config.dtype).digits);
    const std::size_t visible =
        digits + (colors == io::ArrayColors::from_zero ? of_weight : of_any);
    const double masked = static_cast<double>(masked_length(request, colors, visible));
    return (request.format->lists_elements ? bytes_before_element : 0) +
           seen * static_cast<double>(visible) + (1 - seen) * masked +
           2 / columns_of_array(plan, array);  // a row's brackets
}

/// Bytes of the labels and the text in a result's head.
double head_size(const Request& request) {
    double bytes = static_cast<double>(request.meta.size());
    if (request.text) bytes += static_cast<double>(request.text->size());
    for (const auto* labels : {&request.tokens, &request.context_tokens})
        for (const std::string& label : *labels) bytes += static_cast<double>(label.size()) + 3;
    return bytes;
}

}  // namespace

AnswerCost answer_cost(const Request& request, const Plan& plan, const Cost& cost) {
    const double seen = visible_fraction(plan, cost);
    double bytes = 0, pieces = 0;
    plan.emit.for_each([&](ArrayId array) {
        const double a_number = element_size(request, plan, array, seen),
                     all = a_number * plan.numbers<double>(array);
        bytes += all;
        pieces = std::max(pieces, std::min(all, a_number * double{io::numbers_in_pieces}));
    });
    const double head = 2 * head_size(request);  // two copies: as built, and as written
    return {static_cast<std::uint64_t>(bytes),
            std::max(cost.memory, cost.answer_memory + bytes + pieces + head)};
}

namespace {

/// At least so many bytes, as --max-output takes them.
std::string size_above(double bytes) {
    for (const auto& [unit, name] : {std::pair(0x1p30, "GiB"), {0x1p20, "MiB"}, {0x1p10, "KiB"}})
        if (bytes > unit)
            return std::to_string(static_cast<std::uint64_t>(bytes / unit) + 1) + name;
    return "1KiB";
}

/// The flags that give a smaller result of the mode, each of them alone.
std::string smaller_ways(const Request& request, const Plan& plan, double limit, double seen) {
    const auto size = [&](ArrayId array) {
        return element_size(request, plan, array, seen) * plan.numbers<double>(array);
    };
    std::string ways;
    double of_rows = 0, others = 0;
    plan.emit.for_each([&](ArrayId array) {
        const auto& axes = array.row().axes;
        (std::ranges::find(axes, Axis::q_len) != axes.end() ? of_rows : others) += size(array);
    });
    const ArrayId context = *find_array("context_vectors");
    if (request.settings.emit != std::vector<std::string>{"context_vectors"} &&
        size(context) <= limit)
        ways += "--emit context_vectors, ";
    const double rows = (limit - others) / of_rows * static_cast<double>(plan.rows);
    if (!request.settings.token && rows >= 1)
        ways += "--rows " + std::to_string(plan.first_query) + ":" +
                std::to_string(plan.first_query + static_cast<std::size_t>(rows)) + ", ";
    return ways;
}

}  // namespace

std::vector<std::string> check_output_size(const Request& request, double bytes,
                                           FunctionRef<std::string(double limit)> ways_below) {
    const io::OutputFormat& format = *request.format;
    const double limit = request.max_output.value_or(0x1p32);
    const bool is_summary =  // whatever the size
        format.write == io::write_torch || is_on_terminal(request);
    if (bytes <= limit || format.write == nullptr || is_summary) return {};
    const std::string ways = ways_below(limit);
    const bool is_shown = !request.of_batch && io::inherited_descriptor(request.output).has_value();
    if (format.binary && !is_shown)
        return {request.output + ": about " + bytes_in_words(bytes) + "; " +
                (ways.empty() ? "" : "less with " + ways.substr(0, ways.size() - 2) + "; ") +
                "--max-output " + size_above(bytes) + " omits this note"};
    std::string file;
    if (request.of_batch) {
        file = "--out-dir DIR, ";
    } else if (!request.precision && !request.pretty && !request.nonfinite) {
        const std::string name = format.one_array ? "npy" : "npz";
        file = (request.has("format") ? "--format " + name + " " : "") + "-o FILE." + name + ", ";
    }
    throw SettingError(ErrorKind::usage, "max_output",
                       std::string(format.name) + " of about " + bytes_in_words(bytes) +
                           "; expected at most " + bytes_in_words(limit) + ", as with " + ways +
                           file + "or --max-output " + size_above(bytes));
}

std::vector<std::string> check_output_size(const Request& request, const Plan& plan,
                                           const Cost& cost) {
    const double seen = visible_fraction(plan, cost);
    double bytes = 0;
    plan.emit.for_each([&](ArrayId array) {
        const bool is_written =
            !request.format->one_array || array.row().name == request.settings.emit.front();
        if (is_written)
            bytes += element_size(request, plan, array, seen) * plan.numbers<double>(array);
    });
    return at_locations(request, [&] {
        return check_output_size(
            request, bytes, [&](double limit) { return smaller_ways(request, plan, limit, seen); });
    });
}

void write_cost(const Request& request, const std::string& line) {
    const char* const by = request.has("format") ? "format" : "output";
    if (request.has(by) && !request.format->json)
        throw setting_error(request, by, "--dry-run writes JSON; expected json or ndjson");
    for (const char* key :
         {"heatmap", "plot", "plot_array", "color_scale", "pretty", "bare", "save_weights"})
        if (request.has(key) && !(key == std::string_view("pretty") && !request.pretty))
            throw setting_error(request, key, "conflicts with --dry-run; expected one of them");
    io::write_file(request.output, [&](io::Output& to) { to << line; });
}

void append_count(std::string& line, std::string_view name, double number) {
    if (number < 0x1p63)
        io::append_member(line, name, static_cast<std::uint64_t>(number));
    else
        io::append_member(line, name, number);
}

std::string cost_line(const Request& request, const Plan& plan, const Cost& cost) {
    const AnswerCost answer = answer_cost(request, plan, cost);
    std::uint64_t bytes = answer.bytes;
    for (const auto& [name, value] : head_of(request, plan))
        bytes += name.size() + value.size() + 4;
    plan.emit.for_each([&](ArrayId array) { bytes += array.row().name.size() + 4; });
    std::string line = "{";
    io::append_member(line, "schema", schemas::cost);
    if (!request.id.empty()) io::append_member(line, "id", io::JsonText{request.id});
    io::append_member(line, "mode", row_of(plan.config.mode).name);
    ((line += ",\"shapes\":") += shapes_json(plan.shapes()));
    append_count(line, "flops", cost.flops);
    append_count(line, "memory_bytes", answer.memory);
    io::append_member(line, "output_numbers", cost.numbers);
    io::append_member(line, "output_bytes", bytes);
    return line + "}\n";
}

}  // namespace attn::cli
