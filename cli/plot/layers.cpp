#include "cli/plot/layers.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/memory.hpp"
#include "core/base/tensor.hpp"
#include "io/file/path.hpp"
#include "io/file/source.hpp"
#include "io/read/result_view.hpp"
#include "io/write/row_text.hpp"

namespace attn::cli {
namespace {

const char* type_of(const AnyArray& array) {
    return std::holds_alternative<Array<float>>(array)    ? "float32"
           : std::holds_alternative<Array<double>>(array) ? "float64"
                                                          : "int64";
}

/// The common start of two titles, cut at a gap of two blanks. "  gpt2  layer 3" and
/// "  gpt2  layer 4" give "  gpt2".
std::string common_parts(const std::string& a, const std::string& b) {
    if (a == b) return a;
    const auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
    const std::string common(a.begin(), end);
    const std::size_t gap = common.rfind("  ");
    return common.substr(0, gap == std::string::npos ? 0 : gap);
}

/// Candidate names of layers. The first list in which every layer has a different name is used.
struct LayerNames {
    std::vector<std::string> numbers, ids, files, places;

    void add(const io::ResultView& result) {
        const auto number = result.head().number("layer");
        numbers.push_back(number ? "layer " + std::to_string(*number) : "");
        ids.push_back(result.head().id);
        files.push_back(io::last_part(result.place()));
        places.push_back(result.place());
    }

    std::vector<std::string> chosen() const {
        for (const auto* names : {&numbers, &ids, &files, &places}) {
            const std::set<std::string> different(names->begin(), names->end());
            if (!different.contains("") && different.size() == names->size()) return *names;
        }
        return {};
    }
};

/// Stacks the arrays of several results, which are added one by one, along a new axis.
class Stack {
public:
    /// `of_one`: bytes that reading one result takes.
    Stack(Drawing& drawing, std::size_t layers, double of_one, const std::vector<std::string>& kept)
        : first_(drawing.place), all_(drawing.report), layers_(layers) {
        std::vector<NamedArray> arrays;
        double bytes = 0;
        for (NamedArray& array : all_.arrays)
            if (std::find(kept.begin(), kept.end(), array.name) != kept.end()) {
                bytes += std::visit(
                    [&](const auto& values) {
                        return static_cast<double>(sizeof(*values.data())) *
                               static_cast<double>(values.size()) * static_cast<double>(layers);
                    },
                    array.values);
                arrays.push_back(std::move(array));
            }
        require_memory(bytes + of_one, first_,
                       "the arrays of " + std::to_string(layers) + " layers");
        for (NamedArray& array : arrays) {
            std::visit([&](auto& values) { values = stacked(values); }, array.values);
            array.axes.insert(array.axes.begin(), "layer");
        }
        all_.arrays = std::move(arrays);
    }

    void add(const io::Report& layer, const std::string& place) {
        take_labels("token", all_.query_labels, layer.query_labels, place);
        take_labels("key", all_.key_labels, layer.key_labels, place);
        if (layer.first_query != all_.first_query)
            fail(place, "query " + std::to_string(layer.first_query),
                 "query " + std::to_string(all_.first_query), "the same queries");
        if (layer.title_start != all_.title_start) all_.title_start.clear();
        all_.title_end = common_parts(all_.title_end, layer.title_end);
        for (NamedArray& array : all_.arrays) {
            const NamedArray* const other = array_named(array.name, layer.arrays);
            if (other == nullptr)
                fail(place, "no " + array.name, "one", "the same arrays, as by the same --emit");
            std::visit([&](auto& values) { put(array.name, values, other->values, place); },
                       array.values);
        }
        ++next_;
    }

private:
    template <class T>
    Array<T> stacked(const Array<T>& values) const {
        std::vector<std::size_t> shape(values.shape());
        shape.insert(shape.begin(), layers_);
        Array<T> all = Array<T>::from_shape(shape);
        std::copy(values.begin(), values.end(), all.begin());
        return all;
    }

    template <class T>
    void put(const std::string& name, Array<T>& all, const AnyArray& from,
             const std::string& place) {
        const std::vector<std::size_t> shape(all.shape().begin() + 1, all.shape().end());
        const auto found = std::visit([](const auto& values) { return values.shape(); }, from);
        if (found != shape)
            fail(place, name + " " + shape_text(found), shape_text(shape), "layers of one shape");
        const Array<T>* values = std::get_if<Array<T>>(&from);
        if (values == nullptr)
            fail(place, name + " of " + type_of(from), type_of(AnyArray(Array<T>())),
                 "layers of one type");
        std::copy(values->begin(), values->end(), all.data() + next_ * values->size());
    }

    /// Layers without labels take those of the others.
    void take_labels(const char* what, std::vector<std::string>& a,
                     const std::vector<std::string>& b, const std::string& place) const {
        if (a.empty()) a = b;
        if (b.empty() || a == b) return;
        const auto [at, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
        const auto quoted = [](const auto& label, const auto& labels) {
            return label == labels.end() ? "none" : "\"" + io::shortened(*label) + "\"";
        };
        fail(place,
             std::string("label ") + quoted(other, b) + " for " + what + " " +
                 std::to_string(at - a.begin()),
             quoted(at, a), "layers of the same words");
    }

    [[noreturn]] void fail(const std::string& place, const std::string& found,
                           const std::string& first, const std::string& expected) const {
        throw Error(
            ErrorKind::input, place,
            "has " + found + ", and " + first_ + " has " + first + "; expected " + expected);
    }

    std::string first_;
    io::Report& all_;
    std::size_t layers_, next_ = 1;
};

class DrawingReader {
public:
    DrawingReader(const Naming& naming, ChooseArrays choose, ThreadPool& workers)
        : naming_(naming), choose_(choose), workers_(workers) {}

    Drawing read(const std::vector<std::string>& paths) {
        for (const std::string& path : paths) {
            std::vector<io::InputFile> files = io::open_results(path);
            if (paths.size() > 1 && files.size() > 1)
                throw Error(ErrorKind::input, path,
                            "holds " + std::to_string(files.size()) +
                                " results; expected one in each of several files, or this file "
                                "alone");
            for (io::InputFile& file : files)
                add(io::ResultView(std::move(file), io::ResultView::Scope::whole),
                    std::max(paths.size(), files.size()));
        }
        if (stack_) {
            drawing_.report.layer_labels = names_.chosen();
            name_selected();
        }
        drawing_.report.is_masked =
            is_masked_in(drawing_.report, std::move(rules_), drawing_.place);
        return std::move(drawing_);
    }

private:
    /// Reads all arrays: those that are not drawn determine which cells are masked.
    void add(const io::ResultView& result, std::size_t count) {
        const std::optional<Plan> plan = layout_plan(result);
        io::Report report = read_report(result, plan, naming_, workers_, drawing_.notes);
        rules_.push_back(rules_of(plan));
        names_.add(result);
        if (stack_) return stack_->add(report, result.place());
        drawing_.place = result.place();
        drawing_.named = result.named();
        drawing_.is_plain = !plan;
        drawing_.report = std::move(report);
        if (count == 1) return;
        std::vector<std::string> kept{"mask", "attention_weights"};
        for (const NamedArray* array : choose_(drawing_)) {
            if (array->axes.front() == "layer")
                throw Error(ErrorKind::input, result.place(),
                            array->name + " has layers already; expected it alone");
            kept.push_back(array->name);
        }
        stack_.emplace(drawing_, count, result.bytes(), kept);
    }

    const Naming& naming_;
    ChooseArrays choose_;
    ThreadPool& workers_;
    Drawing drawing_;
    std::optional<Stack> stack_;
    std::vector<LayerRules> rules_;
    LayerNames names_;
};

}  // namespace

Drawing read_drawing(const std::vector<std::string>& paths, const Naming& naming,
                     ChooseArrays choose, ThreadPool& workers) {
    return DrawingReader(naming, choose, workers).read(paths);
}

}  // namespace attn::cli
    std::string selected_;  // in the first result, if only that array is drawn; else empty
