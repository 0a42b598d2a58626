// A result as JSON. Numbers go straight to text: through nlohmann_json a float32 would be printed
// as the float64 that it widens to, with 17 digits.
#include <cmath>

#include "io/number_text.hpp"
#include "io/writers.hpp"

namespace attn::io {
namespace {

class ArrayWriter {
public:
    ArrayWriter(OutputFile& out, const NumberStyle& style) : out_(out), style_(style) {}

    template <class T>
    void write(const Array<T>& array) {
        const T* next = array.data();
        write_level(next, array, 0);
    }

private:
    template <class T>
    void write_level(const T*& next, const Array<T>& array, std::size_t depth) {
        const bool innermost = depth + 1 == array.dimension();
        text_ = "[";
        for (std::size_t i = 0; i < array.shape(depth); ++i) {
            if (i != 0) text_ += innermost ? (style_.pretty ? ", " : ",") : ",";
            if (innermost) {
                append(*next++);
                continue;
            }
            break_line(depth + 2);
            flush();
            write_level(next, array, depth + 1);
        }
        if (!innermost) break_line(depth + 1);
        text_ += "]";
        flush();
    }

    void break_line(std::size_t depth) {
        if (style_.pretty) text_ += "\n" + std::string(2 * depth, ' ');
    }

    void flush() {
        out_ << text_;
        text_.clear();
    }

    template <class T>
    void append(T value) {
        if constexpr (std::is_floating_point_v<T>) {
            if (!std::isfinite(value)) {
                append_nonfinite(value);
                return;
            }
        }
        append_number(text_, value, style_.decimals);
    }

    void append_nonfinite(double value) {
        const std::string word = std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
        switch (style_.nonfinite) {
            case Nonfinite::string: text_ += '"' + word + '"'; break;
            case Nonfinite::null: text_ += "null"; break;
            case Nonfinite::literal: text_ += word; break;
        }
    }

    OutputFile& out_;
    const NumberStyle& style_;
    std::string text_;
};

/// Documents are small; in the pretty form they stand on one line each, like the rows below them.
std::string key_text(const std::string& key, bool first, bool pretty) {
    const std::string quoted = nlohmann::json(key).dump();
    if (pretty) return std::string(first ? "" : ",") + "\n  " + quoted + ": ";
    return std::string(first ? "" : ",") + quoted + ":";
}

}  // namespace

void write_json(OutputFile& out, const Report& report, const NumberStyle& style) {
    bool first = true;
    out << "{";
    for (const auto& [key, value] : report.head.items()) {
        out << key_text(key, first, style.pretty) << value.dump();
        first = false;
    }
    for (const NamedArray& array : report.arrays) {
        out << key_text(array.name, first, style.pretty);
        std::visit([&](const auto& values) { ArrayWriter(out, style).write(values); },
                   array.values);
        first = false;
    }
    out << (style.pretty ? "\n}\n" : "}\n");
}

}  // namespace attn::io
