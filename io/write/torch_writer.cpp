// Arrays as PyTorch prints a tensor. The rules are those of torch/_tensor_str.py (PyTorch 1.13 and
// 2.x) with its default options, checked against PyTorch's own output in
// data/golden/torch_print.json.
#include <algorithm>
#include <cmath>

#include "core/base/layout.hpp"
#include "io/text/number_text.hpp"
#include "io/write/output_formats.hpp"

namespace attn::io {
namespace {

constexpr std::size_t line_width = 80;
constexpr std::size_t summary_threshold = 1000;  // elements
constexpr std::size_t edge_items = 3;
constexpr int torch_decimals = 4;

/// One notation and one width for the whole tensor.
class Formatter {
public:
    Formatter(const std::vector<double>& shown, bool floating, int decimals)
        : floating_(floating), decimals_(decimals) {
        floating ? choose_notation(shown) : widen(shown);
    }

    std::size_t width() const { return width_; }

    std::string padded(double value) const {
        const std::string text = bare(value);
        return std::string(width_ - std::min(width_, text.size()), ' ') + text;
    }

private:
    void choose_notation(const std::vector<double>& shown) {
        std::vector<double> counted;  // zeros and non-finite values do not count
        std::ranges::copy_if(shown, std::back_inserter(counted),
                             [](double v) { return std::isfinite(v) && v != 0; });
        if (counted.empty()) return;
        double smallest = std::numeric_limits<double>::infinity(), largest = 0;
        for (double v : counted) {
            smallest = std::min(smallest, std::abs(v));
            largest = std::max(largest, std::abs(v));
            if (v != std::ceil(v)) whole_ = false;
        }
        scientific_ =
            largest / smallest > 1000.0 || largest > 1.0e8 || (!whole_ && smallest < 1.0e-4);
        widen(counted);
    }

    void widen(const std::vector<double>& values) {
        for (double v : values) width_ = std::max(width_, bare(v).size());
    }

    std::string bare(double value) const {
        if (!floating_ || !std::isfinite(value)) return fixed_text(value, 0);
        if (scientific_) return scientific_text(value, decimals_);
        if (whole_) return fixed_text(value, 0) + ".";
        return fixed_text(value, decimals_);
    }

    bool floating_;
    int decimals_;
    bool whole_ = true;
    bool scientific_ = false;
    std::size_t width_ = 1;
};

class Printer {
public:
    template <class T>
    Printer(const Array<T>& array, int decimals)
        : shape_(array.shape()), data_(array.begin(), array.end()),
          summarize_(data_.size() > summary_threshold),
          formatter_(shown_values(), std::is_floating_point_v<T>, decimals) {}

    std::string print(std::size_t indent) const { return print_level(0, 0, indent); }

private:
    /// The shown indices of a dimension; a gap follows the first three.
    std::vector<std::size_t> shown_indices(std::size_t dimension) const {
        const std::size_t size = shape_[dimension];
        std::vector<std::size_t> indices;
        for (std::size_t i = 0; i < size; ++i)
            if (!has_gap(dimension) || i < edge_items || i >= size - edge_items)
                indices.push_back(i);
        return indices;
    }

    bool has_gap(std::size_t dimension) const {
        return summarize_ && shape_[dimension] > 2 * edge_items;
    }

    std::vector<double> shown_values() const {
        std::vector<double> shown;
        collect(0, 0, shown);
        return shown;
    }

    void collect(std::size_t dimension, std::size_t offset, std::vector<double>& shown) const {
        for (std::size_t i : shown_indices(dimension)) {
            const std::size_t at = offset + i * AxisRuns(shape_, dimension).inner;
            if (dimension + 1 == shape_.size())
                shown.push_back(data_[at]);
            else
                collect(dimension + 1, at, shown);
        }
    }

    std::string print_level(std::size_t dimension, std::size_t offset, std::size_t indent) const {
        const bool innermost = dimension + 1 == shape_.size();
        std::vector<std::string> parts;
        for (std::size_t i : shown_indices(dimension)) {
            if (parts.size() == edge_items && has_gap(dimension))
                parts.emplace_back(innermost ? " ..." : "...");
            const std::size_t at = offset + i * AxisRuns(shape_, dimension).inner;
            parts.push_back(innermost ? formatter_.padded(data_[at])
                                      : print_level(dimension + 1, at, indent + 1));
        }
        return innermost ? join_numbers(parts, indent)
                         : join_rows(parts, shape_.size() - dimension, indent);
    }

    std::string join_numbers(const std::vector<std::string>& parts, std::size_t indent) const {
        const std::size_t columns = line_width > indent ? line_width - indent : 0;
        const std::size_t per_line = std::max<std::size_t>(1, columns / (formatter_.width() + 2));
        std::string text = "[";
        for (std::size_t i = 0; i < parts.size(); ++i) {
            if (i != 0) text += i % per_line == 0 ? ",\n" + std::string(indent + 1, ' ') : ", ";
            text += parts[i];
        }
        return text + "]";
    }

    static std::string join_rows(const std::vector<std::string>& parts, std::size_t rank,
                                 std::size_t indent) {
        const std::string between =
            "," + std::string(rank - 1, '\n') + std::string(indent + 1, ' ');
        std::string text = "[";
        for (std::size_t i = 0; i < parts.size(); ++i) text += (i == 0 ? "" : between) + parts[i];
        return text + "]";
    }

    const std::vector<std::size_t> shape_;
    const std::vector<double> data_;
    bool summarize_;
    Formatter formatter_;
};

}  // namespace

std::string torch_text(const AnyArray& array, int decimals, NumberType type) {
    const std::string prefix = "tensor(";
    std::string text =
        prefix +
        std::visit([&](const auto& typed) { return Printer(typed, decimals).print(prefix.size()); },
                   array);
    if (std::holds_alternative<Array<double>>(array) || is_rounded(type)) {
        const std::string suffix =
            concat("dtype=torch.", row_of(is_rounded(type) ? type : NumberType::float64).name);
        // npos + 1 is 0: PyTorch counts a single line as two characters longer than it is.
        const std::size_t last_line = text.size() - text.rfind('\n') + 1;
        text += last_line + suffix.size() + 2 > line_width
                    ? ",\n" + std::string(prefix.size(), ' ') + suffix
                    : ", " + suffix;
    }
    return text + ")";
}

void write_torch(Output& out, const Report& report, const NumberStyle& style) {
    for (const NamedArray& array : report.arrays) {
        if (&array != &report.arrays.front()) out << "\n";
        out << array.name << "\n"
            << torch_text(array.values, style.decimals.value_or(torch_decimals),
                          array.type.value_or(NumberType::float32))
            << "\n";
    }
}

}  // namespace attn::io
