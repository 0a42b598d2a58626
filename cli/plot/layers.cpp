#include "cli/plot/plot.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "core/base/did_you_mean.hpp"
#include "core/base/error.hpp"
#include "core/base/memory.hpp"
#include "core/base/tensor.hpp"
#include "core/layer/mask_rows.hpp"
#include "io/file/path.hpp"
#include "io/file/source.hpp"
#include "io/text/text.hpp"

namespace attn::cli {
namespace {

std::string type_of(const AnyArray& array) {
    return std::visit(
        []<class T>(const Array<T>&) { return std::string(row_of(dtype_of<T>).name); }, array);
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

bool are_alike(const std::vector<std::string>& names) {
    return std::ranges::adjacent_find(names, std::not_equal_to<>()) == names.end();
}

/// Candidate names of layers. The first list in which every layer has a different name is used.
struct LayerNames {
    std::vector<std::string> numbers, ids, files, locations;
    std::vector<std::string> arrays;  ///< that FILE:NAME selects
    std::vector<std::string> files_with_arrays, locations_with_arrays;

    void add(const io::ResultView& result, const std::string& array) {
        const auto number = result.head().number("layer");
        numbers.push_back(number ? "layer " + std::to_string(*number) : "");
        ids.push_back(result.head().id);
        files.push_back(io::last_part(result.location()));
        locations.push_back(result.location());
        arrays.push_back(array);
        files_with_arrays.push_back(files.back() + ":" + array);
        locations_with_arrays.push_back(locations.back() + ":" + array);
    }

    /// Layers of different arrays are named after these.
    std::vector<std::string> chosen() const {
        using Lists = std::vector<const std::vector<std::string>*>;
        const Lists lists = are_alike(arrays)
                                ? Lists{&numbers, &ids, &files, &locations}
                                : Lists{&arrays, &files_with_arrays, &locations_with_arrays};
        for (const auto* names : lists) {
            const std::set<std::string> different(names->begin(), names->end());
            if (!different.contains("") && different.size() == names->size()) return *names;
        }
        return {};
    }

    /// The name of the stacked array: "scores", or "x, y", "l0, ..., l7" for different ones.
    std::string array() const {
        constexpr std::size_t most = 3;
        if (are_alike(arrays)) return arrays.front();
        if (arrays.size() > most) return arrays.front() + ", ..., " + arrays.back();
        return io::comma_list(arrays);
    }
};

/// Stacks the arrays of several results, which are added one by one, along a new axis.
class Stack {
public:
    /// `of_one`: bytes that reading one result takes. `selected`: the array that FILE:NAME selects,
    /// or empty.
    Stack(Drawing& drawing, std::size_t layers, double of_one, const std::vector<std::string>& kept,
          std::string selected)
        : first_(drawing.location), all_(drawing.report), layers_(layers),
          selected_(std::move(selected)) {
        std::vector<NamedArray> arrays;
        double bytes = 0;
        for (NamedArray& array : all_.arrays)
            if (std::ranges::find(kept, array.name) != kept.end()) {
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

    /// `selected`: its array of the same index as the first result's selected one.
    void add(const io::Report& layer, const std::string& location, const std::string& selected) {
        // Arrays that are selected one by one need not come with masks.
        if (!selected_.empty() && array_named("mask", layer.arrays) == nullptr)
            std::erase_if(all_.arrays, [&](const NamedArray& array) {
                return array.name == "mask" && array.name != selected_;
            });
        take_labels("token", all_.query_labels, layer.query_labels, location);
        take_labels("key", all_.key_labels, layer.key_labels, location);
        if (layer.first_query != all_.first_query)
            fail(location, "query " + std::to_string(layer.first_query),
                 "query " + std::to_string(all_.first_query), "the same queries");
        if (layer.heads != all_.heads)
            fail(location, heads_text(layer.heads), heads_text(all_.heads), "the same heads");
        if (layer.title_start != all_.title_start) all_.title_start.clear();
        if (layer.averaged_heads != all_.averaged_heads) all_.averaged_heads = 0;
        all_.has_dropout = all_.has_dropout || layer.has_dropout;
        all_.title_end = common_parts(all_.title_end, layer.title_end);
        for (NamedArray& array : all_.arrays) {
            const std::string& name = array.name == selected_ ? selected : array.name;
            const NamedArray* const other = array_named(name, layer.arrays);
            if (other == nullptr && array.name == selected_) fail_without(name, layer, location);
            if (other == nullptr)
                fail(location, "no " + name, "one", "the same arrays, as by the same --emit");
            const NamePair names{name, location == first_ ? array.name + " " : ""};
            std::visit([&](auto& values) { put(names, values, other->values, location); },
                       array.values);
            keep_common_axes(array.axes, other->axes);
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

    /// An array's name, and that of the first layer's in errors: of one file, arrays have two
    /// names.
    struct NamePair {
        std::string own, first;
    };

    template <class T>
    void put(const NamePair& names, Array<T>& all, const AnyArray& from,
             const std::string& location) {
        const std::vector<std::size_t> shape(all.shape().begin() + 1, all.shape().end());
        const auto found = std::visit([](const auto& values) { return values.shape(); }, from);
        if (found != shape)
            fail(location, names.own + " " + shape_text(found), names.first + shape_text(shape),
                 "layers of one shape");
        const Array<T>* values = std::get_if<Array<T>>(&from);
        if (values == nullptr)
            fail(location, names.own + " of " + type_of(from),
                 (names.first.empty() ? "" : names.first + "of ") + type_of(AnyArray(Array<T>())),
                 "layers of one type");
        std::copy(values->begin(), values->end(), all.data() + next_ * values->size());
    }

    /// `axes` are those of a layer after the axis of layers. Rows and columns that count other
    /// things in another layer are only rows and columns.
    static void keep_common_axes(std::vector<std::string_view>& axes,
                                 const std::vector<std::string_view>& others) {
        const std::size_t rank = others.size();
        if (axes[rank - 1] != others[rank - 2]) axes[rank - 1] = "row";
        if (axes[rank] != others[rank - 1]) axes[rank] = "column";
    }

    /// Layers without labels take those of the others.
    void take_labels(const char* what, std::vector<std::string>& a,
                     const std::vector<std::string>& b, const std::string& location) const {
        if (a.empty()) a = b;
        if (b.empty() || a == b) return;
        const auto [at, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
        const auto quoted = [](const auto& label, const auto& labels) {
            return label == labels.end() ? "none" : "\"" + io::shortened(*label) + "\"";
        };
        fail(location,
             std::string("label ") + quoted(other, b) + " for " + what + " " +
                 std::to_string(at - a.begin()),
             quoted(at, a), "layers of the same words");
    }

    static std::string heads_text(const std::vector<std::size_t>& heads) {
        return heads.empty() ? "all heads" : "heads " + shape_text(heads);
    }

    [[noreturn]] static void fail_without(const std::string& name, const io::Report& layer,
                                          const std::string& location) {
        std::vector<std::string> names;
        for (const NamedArray& array : layer.arrays) names.push_back(array.name);
        const std::string near = did_you_mean(name, names);
        throw Error(ErrorKind::input, location, "has no array \"", io::shortened(name), "\"; ",
                    near.empty() ? "expected one of " +
                                       io::shortened(io::comma_list(names), io::longest_list)
                                 : "did you mean " + near + "?");
    }

    [[noreturn]] void fail(const std::string& location, const std::string& found,
                           const std::string& first, const std::string& expected) const {
        throw Error(ErrorKind::input, location, "has ", found, ", and ",
                    (location == first_ ? "" : first_ + " has "), first, "; expected ", expected);
    }

    std::string first_;
    io::Report& all_;
    std::size_t layers_, next_ = 1;
    std::string selected_;
};

class DrawingReader {
public:
    DrawingReader(const Naming& naming, ChooseArrays choose, ThreadPool& workers)
        : naming_(naming), choose_(choose), workers_(workers) {}

    Drawing read(const std::vector<std::string>& paths) {
        for (const std::string& path : paths) {
            std::vector<io::InputFile> files = io::open_results(path);
            if (paths.size() > 1 && files.size() > 1)
                throw Error(ErrorKind::input, path, "holds ", files.size(),
                            " results; expected one in each of several files, or this file "
                            "alone");
            for (io::InputFile& file : files)
                add(io::ResultView(std::move(file), io::ResultView::Scope::whole),
                    std::max(paths.size(), files.size()));
        }
        if (stack_) {
            const std::vector<std::string> labels = names_.chosen();
            for (NamedArray& array : drawing_.report.arrays) array.layer_labels = labels;
            name_selected();
        }
        io::Report& report = drawing_.report;
        const std::vector<std::size_t> layers =
            report.layers.empty() ? kept_results() : report.layers;
        report.masked_of = masked_in(report, std::move(masks_), layers, drawing_.location);
        return std::move(drawing_);
    }

private:
    /// Reads all arrays: those that are not drawn determine which cells are masked.
    void add(const io::ResultView& result, std::size_t count) {
        std::optional<Plan> plan;
        if (result.head().has_layout()) plan = plan_of_result(result.head()).plan;
        const std::optional<io::LayerArray> of_layer = selected_layer(result);
        Naming naming = naming_;
        if (of_layer) naming.layers = {of_layer->layer};
        check_layers(result, naming.layers);
        io::Report report = read_report(result, plan, naming, workers_, drawing_.notes);
        if (!report.layers.empty()) stack_layers(report, report.layers);
        if (!report.layers.empty())
            masks_ = masks_of_model(result.head(), report.layers);
        else if (plan)
            add_mask(*plan);
        ++results_;
        if (stack_) {
            const std::string selected = selected_in(result);
            names_.add(result, selected_.empty() ? "" : selected);
            return stack_->add(report, result.location(), selected);
        }
        drawing_.location = result.location();
        drawing_.named = of_layer ? of_layer->array : result.named();
        drawing_.is_plain = !plan && report.layers.empty() && result.head().mode != scan_mode;
        drawing_.lacks_weights = missing_weights(result, naming.layers);
        drawing_.report = std::move(report);
        if (count == 1) return;
        const std::vector<const NamedArray*> chosen = choose_(drawing_);
        const std::string named = selected_in(result);
        if (chosen.size() == 1 && chosen.front()->name == named) selected_ = named;
        names_.add(result, selected_);
        std::vector<std::string> kept{"mask"};
        if (selected_.empty()) kept.emplace_back("attention_weights");
        for (const NamedArray* array : chosen) {
            if (array->axes.front() == "layer")
                throw Error(ErrorKind::input, result.location(),
                            array->name + " has layers already; expected it alone");
            kept.push_back(array->name);
        }
        stack_.emplace(drawing_, count, result.bytes(), kept, selected_);
    }

    /// What the settings of a result mask, in all heads.
    void add_mask(const Plan& plan) {
        Mask mask = settings_mask(plan);
        if (mask.rules().empty()) return;
        masks_.push_back({"", results_, 1, plan.kv_len,
                          std::make_shared<const Mask>(std::move(mask)), plan.batch});
    }

    /// The results whose layers are drawn; of one result, its number.
    std::vector<std::size_t> kept_results() {
        std::vector<std::size_t> all(results_);
        std::iota(all.begin(), all.end(), std::size_t{0});
        if (naming_.layers.empty()) return all;
        const auto kept = keep_layers(drawing_.report, naming_.layers, drawing_.location);
        return results_ < 2 ? all : kept;
    }

    /// The array and layer that FILE:NAME.N selects in a model's result.
    static std::optional<io::LayerArray> selected_layer(const io::ResultView& result) {
        const io::ArrayView* array = result.named().empty() ? nullptr : result.find(result.named());
        return array == nullptr ? std::nullopt : array->of_layer;
    }

    /// Those of a model's result; of other arrays, layers are chosen once they are read.
    static void check_layers(const io::ResultView& result, const std::vector<std::size_t>& layers) {
        const std::vector<std::size_t>& all = result.head().layer_numbers;
        if (all.empty()) return;
        for (const std::size_t layer : layers) {
            const std::string location = "--layer " + std::to_string(layer);
            const bool is_there = std::ranges::count(all, layer) != 0 ||
                                  std::ranges::any_of(result.arrays(), [&](const auto& array) {
                                      return array.of_layer && array.of_layer->layer == layer;
                                  });
            if (!is_there)
                throw Error(ErrorKind::usage, location, result.location(), " has the layers ",
                            shape_text(all), "; expected one of them");
        }
    }

    static std::string missing_weights(const io::ResultView& result,
                                       const std::vector<std::size_t>& layers) {
        const std::vector<std::size_t> all = result.layers_with("attention_weights");
        const std::vector<std::size_t>& computed = result.head().layer_numbers;
        const auto is_in = [](const std::vector<std::size_t>& list, std::size_t layer) {
            return std::ranges::count(list, layer) != 0;
        };
        const bool none =
            std::ranges::none_of(layers, [&](std::size_t layer) { return is_in(all, layer); });
        // Recurrent layers are drawn as those without weights; the output is not a layer.
        const auto without = std::ranges::find_if(layers, [&](std::size_t layer) {
            return !is_in(all, layer) && (none || !is_in(computed, layer));
        });
        if (all.empty() || without == layers.end()) return {};
        return "no attention_weights in layer " + std::to_string(*without) +
               "; expected one of the layers " + shape_text(all) + ", or --array for another array";
    }

    /// The array that FILE:NAME names, or the only one of a file; of a further result else the one
    /// of the first result's name.
    std::string selected_in(const io::ResultView& result) const {
        if (!result.named().empty()) return result.named();
        return result.is_one_array() ? result.arrays().front().name : selected_;
    }

    /// Names the stacked array after the selected ones.
    void name_selected() {
        if (selected_.empty()) return;
        for (NamedArray& array : drawing_.report.arrays)
            if (array.name == selected_) array.name = names_.array();
        drawing_.named = names_.array();
        drawing_.is_selected = true;
    }

    const Naming& naming_;
    ChooseArrays choose_;
    ThreadPool& workers_;
    Drawing drawing_;
    std::optional<Stack> stack_;
    std::size_t results_ = 0;
    std::vector<LayerMask> masks_;  // of each result, or of the layers of a model's result
    LayerNames names_;
    std::string selected_;  // in the first result, if only that array is drawn; else empty
};

}  // namespace

Drawing read_drawing(const std::vector<std::string>& paths, const Naming& naming,
                     ChooseArrays choose, ThreadPool& workers) {
    return DrawingReader(naming, choose, workers).read(paths);
}

}  // namespace attn::cli
