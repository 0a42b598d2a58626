#include "cli/partial/partial.hpp"

#include <algorithm>
#include <string_view>

#include "cli/output/output.hpp"
#include "cli/request/request.hpp"
#include "core/base/error.hpp"
#include "io/file/output.hpp"
#include "io/file/source.hpp"
#include "io/read/result_view.hpp"
#include "io/text/json_text.hpp"

namespace attn::cli {
namespace {

/// An array of the file in float64.
Array<double> read_named_array(const io::ResultView& view, const char* name, const Shape& shape,
                               ThreadPool& workers) {
    const io::ArrayView* const array = view.find(name);
    if (array == nullptr)
        throw Error(ErrorKind::input, view.place(), "has no ", name,
                    "; expected a part as attn partial writes it");
    Array<double> values = view.read(*array, workers).values;
    if (values.shape() != shape)
        throw Error(ErrorKind::input, view.place(), name, " has shape ", shape_text(values.shape()),
                    "; expected ", shape_text(shape), ", as its layout makes it");
    return values;
}

}  // namespace

std::string text_of_ranges(const KeyRanges& ranges) {
    std::string text;
    for (const KeyRange& range : ranges)
        text += concat(text.empty() ? "" : ",", range.first, ":", range.end);
    return text;
}

KeyRanges ranges_of_text(const std::string& text) {
    KeyRanges ranges;
    for (std::size_t first = 0; first <= text.size();) {
        const std::size_t end = std::min(text.find(',', first), text.size());
        const auto range = two_numbers(std::string_view(text).substr(first, end - first), ':');
        if (!range || range->first >= range->second ||
            (!ranges.empty() && ranges.back().end >= range->first))
            return {};
        ranges.push_back({range->first, range->second});
        first = end + 1;
    }
    return ranges;
}

KeyPart read_part_arrays(const io::InputFile& file, const Plan& plan, ThreadPool& workers) {
    const io::ResultView view(file, io::ResultView::Scope::whole);
    const Shape rows{plan.batch, plan.heads, plan.rows};
    Shape context = rows;
    context.push_back(plan.d_v);
    KeyPart part;
    part.context = read_named_array(view, "context", context, workers);
    part.logsumexp = read_named_array(view, "logsumexp", rows, workers);
    if (!*plan.config.out_proj) return part;
    part.out_weight = read_named_array(view, "W_out", {plan.d_out, plan.heads * plan.d_v}, workers);
    if (*plan.config.out_bias)
        part.out_bias = read_named_array(view, "b_out", {plan.d_out}, workers);
    return part;
}

KeyRanges read_ranges(const io::InputFile& file, const Plan& plan) {
    const nlohmann::json text = io::head_member(file, "kv_range");
    KeyRanges ranges = text.is_string() ? ranges_of_text(text.get<std::string>()) : KeyRanges{};
    if (!ranges.empty() && ranges.back().end <= plan.kv_len) return ranges;
    throw Error(ErrorKind::input, file.place, "kv_range is ", io::shortened(text.dump()),
                "; expected ranges of its keys in order, as \"0:", plan.kv_len, "\"");
}

const io::OutputFormat& format_of_part(const std::string& path) {
    if (path == "-") return *io::default_format;
    return *format_of_name(
        io::output_formats,
        {path, "--output " + path, "names no format that holds the arrays of a part"}, true,
        &io::OutputFormat::holds_weights);
}

void write_part(const std::string& path, PartFile file, ThreadPool& workers) {
    const io::OutputFormat& format = format_of_part(path);
    io::Report report;
    report.head.emplace_back("schema", io::value_text(schemas::part));
    report.head.emplace_back("kv_range", io::value_text(text_of_ranges(file.ranges)));
    for (const auto& [key, value] : file.question.items())
        report.head.emplace_back(key, value.dump());
    report.workers = &workers;
    const auto add = [&](const char* name, RealArray values, std::vector<std::string_view> axes) {
        if (values.bytes() == 0) return;
        NamedArray& array = report.arrays.emplace_back();
        array.name = name;
        array.axes = std::move(axes);
        // Text has the shortest digits of float64, which are read back as that.
        if (!format.json && values.holds<float>())
            array.values = values.take<float>();
        else
            array.values = values.take<double>();
    };
    add("context", std::move(file.part.context), {"batch", "heads", "q_len", "d_v"});
    add("logsumexp", std::move(file.part.logsumexp), {"batch", "heads", "q_len"});
    add("W_out", std::move(file.part.out_weight), {"d_out", "joined"});
    add("b_out", std::move(file.part.out_bias), {"d_out"});
    io::OutputFile out(path);
    out.fill([&](io::Output& to) { format.write(to, report, {}); });
    out.commit();
}

}  // namespace attn::cli
