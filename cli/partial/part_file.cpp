#include "cli/partial/partial.hpp"

#include <variant>

#include "cli/output/output.hpp"
#include "cli/request/digest.hpp"
#include "core/base/error.hpp"
#include "core/layer/weights.hpp"
#include "io/file/source.hpp"
#include "io/read/result_view.hpp"
#include "io/text/json_text.hpp"

namespace attn::cli {
namespace {

const RowsInFile* file_of(const OperandRows& rows, const OperandRow& operand) {
    const auto file = rows.files.find(operand.key);
    return file == rows.files.end() ? nullptr : &file->second;
}

template <class T>
std::string_view bytes_of_elements(const T* elements, std::size_t count) {
    return {reinterpret_cast<const char*>(elements), count * sizeof(T)};
}

template <class Numbers>
void add_array(Digest& digest, const Numbers& array) {
    for (const std::size_t length : array.shape()) digest.add(length);
    digest.add(bytes_of_elements(array.data(), array.size()));
}

/// Equals add_array() of the array in memory, since pieces consist of whole words.
template <class T>
void add_array_in_file(Digest& digest, const io::StoredArray& array) {
    for (const std::size_t length : array.shape) digest.add(length);
    const std::size_t count = array.elements();
    digest.add(std::uint64_t{count * sizeof(T)});
    io::read_elements<T>(array, 0, count, [&](std::size_t, std::span<const T> piece) {
        digest.add_words(bytes_of_elements(piece.data(), piece.size()));
    });
}

void add_norm(Digest& digest, const std::optional<InputNorm>& norm) {
    if (!norm) return;
    for (const auto* numbers : {&norm->weight, &norm->bias})
        digest.add(bytes_of_elements(numbers->data(), numbers->size()));
}

template <class T>
void add_weights(Digest& digest, const LayerWeights<T>& weights) {
    for_each_projection(weights, [&](const char*, const Projection<T>& projection) {
        add_array(digest, projection.weight);
        add_array(digest, projection.bias);
    });
    add_norm(digest, weights.query_norm);
    add_norm(digest, weights.key_norm);
}

/// An array of the file in float64.
Array<double> read_named_array(const io::ResultView& view, const char* name, const Shape& shape,
                               ThreadPool& workers) {
    const io::ArrayView* const array = view.find(name);
    if (array == nullptr)
        throw Error(ErrorKind::input, view.location(), "has no ", name,
                    "; expected a part as attn partial writes it");
    Array<double> values = view.read(*array, workers).values;
    if (values.shape() != shape)
        throw Error(ErrorKind::input, view.location(), name, " has shape ",
                    shape_text(values.shape()), "; expected ", shape_text(shape),
                    ", as its layout makes it");
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
    throw Error(ErrorKind::input, file.location, "kv_range is ", io::shortened(text.dump()),
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
        if (values.size() == 0) return;
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
    io::write_file(path, [&](io::Output& to) { format.write(to, report, {}); });
}

std::string digest_of(const Operands& operands, const OperandRows& rows) {
    Digest digest;
    for (const OperandRow& operand : operand_rows) {
        const RealArray& reals = operands[operand];
        digest.add(reals.dimension());
        if (reals.dimension() == 0) continue;
        reals.visit([&]<class T>(const Array<T>& array) {
            if (const RowsInFile* const file = file_of(rows, operand))
                add_array_in_file<T>(digest, file->array);
            else
                add_array(digest, array);
        });
    }
    add_norm(digest, operands.norm);
    if (operands.weights)
        std::visit([&](const auto& weights) { add_weights(digest, *weights); }, *operands.weights);
    return hex_of(digest.value());
}

OperandShapes shapes_of_range(OperandShapes shapes, const OperandRows& rows,
                              const KeyRange& range) {
    for (const OperandRow& operand : operand_rows) {
        Shape& shape = shapes[operand];
        if (file_of(rows, operand) != nullptr) shape[shape.size() - 2] = range.end - range.first;
    }
    return shapes;
}

void read_range(Operands& operands, const OperandRows& rows, const KeyRange& range,
                NumberType dtype, ThreadPool& pool) {
    for (const OperandRow& operand : operand_rows) {
        const RowsInFile* const file = file_of(rows, operand);
        if (file == nullptr) continue;
        Shape shape = file->array.shape;
        std::size_t matrices = 1;
        for (std::size_t i = 0; i + 2 < shape.size(); ++i) matrices *= shape[i];
        const std::size_t count = range.end - range.first;
        shape[shape.size() - 2] = count;
        operands[operand] = reals_of_shape(shape, dtype);
        operands[operand].visit([&](auto& read) {
            auto* to = read.data();
            for (std::size_t matrix = 0; matrix < matrices; ++matrix)
                to = read_rows(*file, matrix, range.first, count, to, pool);
        });
    }
}

}  // namespace attn::cli
