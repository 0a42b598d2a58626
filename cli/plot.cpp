// `attn plot RESULT`; see plot.hpp.
#include "cli/plot.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <utility>

#include "cli/options.hpp"
#include "cli/pictures.hpp"
#include "cli/request_document.hpp"
#include "core/error.hpp"
#include "core/mask.hpp"
#include "io/data_file.hpp"
#include "io/output_file.hpp"

namespace attn::cli {
namespace {

using nlohmann::json;

/// What a result says beside its arrays; null members where it is none.
struct Head {
    json mode, config, shapes, tokens;
};

io::ArrayRules any_array() {
    io::ArrayRules rules;
    rules.dtype = Dtype::float64;
    rules.nonfinite = rules.boolean = true;
    rules.lowest_rank = 0;
    rules.highest_rank = 4;
    return rules;
}

std::size_t size_in(const json& shapes, const char* name) {
    const bool is_there =
        shapes.is_object() && shapes.contains(name) && shapes[name].is_number_unsigned();
    return is_there ? shapes[name].get<std::size_t>() : 0;
}

/// The axes that attn gives an array of this name.
std::vector<std::string_view> axes_of(const std::string& name,
                                      const std::vector<std::size_t>& shape, const json& shapes) {
    struct Last {
        std::string_view array, rows, columns;
    };
    static constexpr std::array<Last, 12> known{{{"inputs", "tokens", "d_in"},
                                                 {"normed_inputs", "tokens", "d_in"},
                                                 {"queries", "q_len", "d_k"},
                                                 {"keys", "kv_len", "d_k"},
                                                 {"values", "kv_len", "d_v"},
                                                 {"present_key", "kv_len", "d_k"},
                                                 {"present_value", "kv_len", "d_v"},
                                                 {"head_outputs", "q_len", "d_v"},
                                                 {"context_vectors", "q_len", "d_out"},
                                                 {"array", "row", "column"},
                                                 {"W_query", "row", "column"},
                                                 {"W_out", "row", "column"}}};
    const auto found = std::find_if(known.begin(), known.end(),
                                    [&](const Last& last) { return last.array == name; });
    std::vector<std::string_view> axes;
    const std::size_t rank = shape.size();
    if (rank == 4) axes = {"batch", "heads"};
    const bool of_heads = rank == 3 && shape[0] == size_in(shapes, "heads") &&
                          (shape[0] != size_in(shapes, "batch") || shape[0] == 1);
    if (rank == 3) axes = {of_heads ? "heads" : "batch"};
    if (found != known.end())
        axes.insert(axes.end(), {found->rows, found->columns});
    else if (name.starts_with("W_"))
        axes.insert(axes.end(), {"row", "column"});
    else
        axes.insert(axes.end(), {"q_len", "kv_len"});
    if (rank < 2) axes.resize(rank);
    return axes;
}

/// The arrays of a result, or the one array that a file holds or that its path names.
io::Report read_report(const std::string& path, Head& head, Workers& workers) {
    io::Report report;
    const io::DataFile file = io::open_data_file(path);
    const auto add = [&](const std::string& name, Array<double> values) {
        std::vector<std::size_t> shape(values.shape().begin(), values.shape().end());
        std::vector<std::string_view> axes = axes_of(name, shape, head.shapes);
        report.arrays.push_back({name, std::move(values), std::move(axes)});
    };
    const auto member = [](const json& object, const char* key) {
        return object.is_object() && object.contains(key) ? object[key] : json();
    };
    const bool is_one =
        !file.array.empty() || (!file.holds_object() && !file.arrays) ||
        (file.arrays && file.arrays->arrays.size() == 1 && file.arrays->metadata.is_null());
    if (is_one) {
        add(file.array.empty() ? "array" : file.array,
            io::read_one_array(file, any_array(), &workers).values);
    } else if (file.arrays) {
        const json& metadata = file.arrays->metadata;
        head = {member(metadata, "mode"), member(metadata, "config"), member(metadata, "shapes"),
                member(metadata, "tokens")};
        for (const io::StoredArray& array : file.arrays->arrays)
            add(array.name, io::read_numbers(array, any_array()).values);
    } else {
        const io::JsonDocument& document = *file.document;
        const auto value = [&](const char* key) {
            const io::JsonMember* found = document.find(key);
            return found == nullptr ? json() : document.read_value(*found);
        };
        head = {value("mode"), value("config"), value("shapes"), value("tokens")};
        for (const io::JsonMember& found : document.members())
            if (found.key != "tokens" && document.holds_array(found))
                add(found.key, document.read_array(found, any_array(), &workers).values);
    }
    if (head.tokens.is_array())
        for (const json& token : head.tokens)
            if (token.is_string()) report.tokens.push_back(token.get<std::string>());
    if (head.mode.is_string()) report.head.emplace_back("mode", head.mode.dump());
    if (head.config.is_object()) report.head.emplace_back("config", head.config.dump());
    constexpr std::size_t largest = std::size_t{1} << 31;
    report.first_query = std::min(size_in(head.config, "token"), largest);
    const bool has_token = head.config.is_object() && head.config.contains("token");
    report.queries_are_tokens = has_token || size_in(head.shapes, "q_len") == report.tokens.size();
    report.keys_are_tokens =
        head.mode != "cross" && size_in(head.shapes, "kv_len") == report.tokens.size();
    return report;
}

const NamedArray* find(const io::Report& report, std::string_view name) {
    const auto found = std::find_if(report.arrays.begin(), report.arrays.end(),
                                    [&](const NamedArray& array) { return array.name == name; });
    return found == report.arrays.end() ? nullptr : &*found;
}

/// From an array (batch, heads, q_len, kv_len) less leading axes.
double element(const NamedArray& array, std::size_t batch, std::size_t head, std::size_t row,
               std::size_t key) {
    const auto& values = std::get<Array<double>>(array.values);
    const auto& shape = values.shape();
    const std::size_t rank = shape.size();
    std::size_t panel = 0;
    if (rank == 4)
        panel = batch * shape[1] + head;
    else if (rank == 3)
        panel = array.axes[0] == "heads" ? head : batch;
    // A file may hold arrays that do not go together.
    const std::size_t matrix = shape[rank - 2] * shape[rank - 1];
    const bool is_there =
        row < shape[rank - 2] && key < shape[rank - 1] && panel < values.size() / matrix;
    return is_there ? values.data()[panel * matrix + row * shape[rank - 1] + key]
                    : std::numeric_limits<double>::quiet_NaN();
}

io::IsBlocked blocked_of(const io::Report& report, const Head& head) {
    const std::size_t first = report.first_query;
    if (const NamedArray* mask = find(report, "mask"); mask != nullptr && mask->axes.size() >= 2)
        return [mask, first](std::size_t b, std::size_t h, std::size_t q, std::size_t k) {
            return element(*mask, b, h, q - first, k) == 0;
        };
    const NamedArray* weights = find(report, "attention_weights");
    const json& config = head.config;
    if (weights == nullptr || weights->axes.size() < 2 || !config.is_object()) return nullptr;
    const std::size_t q_len = size_in(head.shapes, "q_len"),
                      kv_len = size_in(head.shapes, "kv_len");
    const bool bottom_right =
        config.contains("causal_align") && config["causal_align"] == "bottom-right";
    const auto offset = bottom_right
                            ? static_cast<std::int64_t>(kv_len) - static_cast<std::int64_t>(q_len)
                            : std::int64_t{0};
    auto mask = std::make_shared<Mask>();
    const bool causal =
        head.mode == "causal" || (config.contains("causal") && config["causal"] == true);
    if (causal) mask->add(BandRule(-1, 0, offset), "causal");
    const json window = config.contains("window") ? config["window"] : json();
    if (window.is_array() && window.size() == 2 && window[0].is_number_integer() &&
        window[1].is_number_integer())
        mask->add(BandRule(window[0].get<std::int64_t>(), window[1].get<std::int64_t>(), offset),
                  "window");
    // The config does not say what a mask's file held, nor how long the cache was.
    return [mask, weights, first](std::size_t b, std::size_t h, std::size_t q, std::size_t k) {
        return !mask->allows(b, h, q, k) && element(*weights, b, h, q - first, k) == 0;
    };
}

}  // namespace

void plot(const PlotRequest& request) {
    const bool to_file = !request.output.empty();
    const std::string where = request.arrays.empty() ? request.result : "--array";
    const PlotFormat format =
        to_file ? plot_format(request.output, "--output " + request.output) : PlotFormat::svg;
    Workers workers;
    Head head;
    const io::Report report = read_report(request.result, head, workers);
    const io::IsBlocked is_blocked = blocked_of(report, head);
    const auto arrays =
        arrays_to_draw(report, request.arrays, to_file && format == PlotFormat::html, where);
    if (to_file)
        write_plot(report, arrays, is_blocked, request.scale, request.output, format);
    else
        (io::OutputFile("-") << terminal_text(report, arrays, is_blocked, request.scale,
                                              STDOUT_FILENO))
            .commit();
}

}  // namespace attn::cli
