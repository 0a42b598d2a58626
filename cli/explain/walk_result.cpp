// A result that was computed before; see walk_result.hpp.
#include "cli/explain/walk_result.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/explain/result_steps.hpp"
#include "cli/explain/token_label.hpp"
#include "cli/request/apply.hpp"
#include "cli/request/options.hpp"
#include "cli/request/result_file.hpp"
#include "core/base/error.hpp"
#include "core/base/tensor.hpp"
#include "io/file/source.hpp"

namespace attn::cli {
namespace {

using nlohmann::json;

constexpr std::size_t largest_axis = std::size_t{1} << 31;

class ResultReader {
public:
    ResultReader(const std::string& path, const std::string& token_label, Request& request,
                 ThreadPool& workers)
        : file_(read_result_file(path, workers, true)), token_label_(token_label),
          request_(request) {
        request.input = path;
        take_settings();
        take_labels();
    }

    WalkSource read() {
        WalkSource computed{plan_of_result(), {}};
        computed.file = file_.place;
        computed.digits = digits_;
        Plan& plan = computed.plan;
        choose_query(plan);
        for (const ResultArray& array : file_.arrays)
            if (const auto id = find_array(array.name)) take(computed, named(*id, array, plan));
        computed.missing = missing_from(plan);
        plan.first_query = query_;
        computed.additive_masks = add_steps(computed.result, plan);
        request_.settings = plan.config;
        request_.settings.token = query_;
        return computed;
    }

private:
    [[noreturn]] void fail(const std::string& message) const {
        throw Error(ErrorKind::input, file_.place, message);
    }

    json said(const char* key) const {
        return file_.head->is_object() && file_.head->contains(key) ? (*file_.head)[key] : json();
    }

    bool has(std::string_view name) const { return array_called(name) != nullptr; }
    const Array<double>* array_called(std::string_view name) const {
        for (const ResultArray& array : file_.arrays)
            if (array.name == name) return &array.values;
        return nullptr;
    }

    void take_settings() {
        const json mode = said("mode"), config = said("config");
        const ModeRow* row =
            mode.is_string() ? mode_named(mode.get_ref<const std::string&>()) : nullptr;
        if (row == nullptr || !config.is_object())
            fail(
                "is no result of attn, which says its mode and config; expected one, or a mode "
                "before INPUT, as in attn explain self " +
                io::shortened(file_.place));
        request_.settings.mode = row->mode;
        for (const auto& item : config.items()) {
            if (item.key() == "mode" || item.key() == "id" || item.value().is_null()) continue;
            const Option* option = find_option(item.key());
            const bool is_here = option != nullptr && (option->modes & in(row->mode)) != 0;
            if (!is_here)
                fail("config holds \"" + io::shortened(item.key()) + "\", which mode " +
                     std::string(row->name) + " does not have; expected the config of a result");
            if (item.key() == "token") {
                given_token_ = item.value().is_number_unsigned()
                                   ? std::optional(item.value().get<std::size_t>())
                                   : std::nullopt;
                continue;
            }
            if (item.key() == "precision") {
                if (item.value().is_number_unsigned()) digits_ = item.value().get<std::uint64_t>();
                if (request_.has("precision")) continue;
            }
            std::string value =
                item.value().is_string() ? item.value().get<std::string>() : item.value().dump();
            apply_said(request_, item.key(), item.value(),
                       file_.place + ": " + item.key() + " " + io::shortened(value));
        }
        Settings& s = request_.settings;
        s.kernel = "reference";  // only the plan of it is wanted, whatever computed the result
        s.emit = {"all"};
        s.average_heads = false;
        s.mask_true.reset();
    }

    void take_labels() {
        for (const auto& [key, labels] : {std::pair("tokens", &request_.tokens),
                                          {"context_tokens", &request_.context_tokens}}) {
            const json all = said(key);
            if (!all.is_array()) continue;
            labels->clear();
            for (const json& label : all)
                labels->push_back(label.is_string() ? label.get<std::string>() : label.dump());
        }
    }

    std::size_t size(const char* name) const {
        const json shapes = said("shapes");
        const json size = shapes.is_object() && shapes.contains(name) ? shapes[name] : json();
        if (!size.is_number_unsigned() || size.get<std::uint64_t>() > largest_axis)
            fail(std::string("says no ") + name + " in its shapes; expected those of a result");
        return size.get<std::size_t>();
    }

    /// The length of an array's axis, counted from its end, or nothing.
    std::size_t length(const char* name, std::size_t from_end) const {
        const Array<double>* array = array_called(name);
        if (array == nullptr || array->dimension() < from_end) return 0;
        return array->shape(array->dimension() - from_end);
    }

    /// Weights of each head and query, by which all sizes are held.
    void check_weights() const {
        const Array<double>* weights = array_called("attention_weights");
        if (weights == nullptr)
            fail("has no attention_weights; expected a result with them, at best with --emit all");
        const std::size_t rank = weights->dimension();
        const std::size_t numbers = size("batch") * size("heads");
        if (rank < 2 || weights->shape(rank - 1) != size("kv_len") ||
            weights->shape(rank - 2) != size("q_len") || weights->size() == 0 ||
            weights->size() / (size("q_len") * size("kv_len")) != numbers)
            fail("has attention_weights of shape " + shape_text(weights->shape()) + "; expected " +
                 std::to_string(numbers) + " matrices (" + std::to_string(size("q_len")) + ", " +
                 std::to_string(size("kv_len")) + "), each head's own, as without --average-heads");
    }

    /// Rank and cache are not said: the first plan whose arrays are shaped as they are here.
    Plan plan_of_result() {
        check_weights();
        const std::size_t kv_len = size("kv_len"), rows = size("q_len");
        const std::size_t new_keys = length(has("keys") ? "keys" : "values", 2),
                          of_inputs = length("inputs", 2);
        std::size_t queries = rows;
        if (given_token_)
            queries = std::max({of_inputs, request_.tokens.size(), *given_token_ + 1});
        const bool is_self = !row_of(request_.settings.mode).context;
        if (given_token_ && of_inputs == 0 && request_.tokens.empty() && is_self && new_keys != 0)
            queries = new_keys;
        std::size_t past = new_keys != 0 ? kv_len - std::min(new_keys, kv_len) : 0;
        if (new_keys == 0 && is_self) past = kv_len - std::min(queries, kv_len);
        Misfit least{std::numeric_limits<std::size_t>::max(), {}};
        for (const std::size_t rank : {2u, 3u, 4u}) {
            try {
                const OperandShapes operands = operands_of(rank, queries, past);
                Settings settings = request_.settings;
                settings.token = given_token_;
                Plan plan = make_plan(settings, operands);
                const Misfit misfit = misfit_of(plan);
                if (misfit.arrays < least.arrays) least = misfit;
                if (misfit.arrays != 0) continue;
                Ask ask;
                ask.walks = true;
                usual_ = make_plan(settings, operands, ask).first_query;
                return plan;
            } catch (const SettingError& error) {
                if (least.first.empty()) least.first = error.what();
            }
        }
        fail("its arrays do not fit its config: " + least.first);
    }

    OperandShapes operands_of(std::size_t rank, std::size_t queries, std::size_t past) const {
        const std::size_t batch = size("batch"), heads = size("heads"), kv_heads = size("kv_heads"),
                          keys = size("kv_len") - past;
        const auto shape = [&](std::size_t in_heads, std::size_t rows, std::size_t columns) {
            Shape full{batch, in_heads, rows, columns};
            return Shape(full.end() - static_cast<std::ptrdiff_t>(rank), full.end());
        };
        OperandShapes shapes;
        if (row_of(request_.settings.mode).projects) {
            const auto layer = [&](std::size_t rows, std::size_t columns) {
                return rank == 2 ? Shape{rows, columns} : Shape{batch, rows, columns};
            };
            shapes.inputs = layer(queries, size("d_in"));
            const std::size_t d_context =
                length("W_key", 1) == size("d_in") ? size("d_in") : context_width();
            if (row_of(request_.settings.mode).context) shapes.context = layer(keys, d_context);
        } else {
            const bool packed = request_.settings.heads.has_value();
            const std::size_t d_k = size("d_k"), d_v = size("d_v");
            const auto operand = [&](std::size_t in_heads, std::size_t rows, std::size_t columns) {
                if (!packed) return shape(in_heads, rows, columns);
                return rank == 2 ? Shape{rows, in_heads * columns}
                                 : Shape{batch, rows, in_heads * columns};
            };
            shapes.query = operand(heads, queries, d_k);
            shapes.key = operand(kv_heads, keys, d_k);
            shapes.value = operand(kv_heads, keys, d_v);
        }
        if (past != 0) {
            shapes.past_key = {batch, kv_heads, past, size("d_k")};
            shapes.past_value = {batch, kv_heads, past, size("d_v")};
        }
        shapes.has_token_ids = has("token_ids");
        if (has("normed_inputs")) shapes.norm = size("d_in");
        return shapes;
    }

    /// Of a parameter that may lie either way round.
    std::size_t context_width() const {
        const std::size_t rows = length("W_key", 2), columns = length("W_key", 1);
        if (rows == 0) return size("d_in");
        return columns == size("kv_heads") * size("d_k") ? rows : columns;
    }

    static std::vector<std::size_t> shape_in(const Plan& plan, ArrayId id) {
        std::vector<std::size_t> shape;
        for (std::size_t place = 0; place < 4; ++place)
            if (plan.shown.shows(id, place))
                shape.push_back(plan.size_of<std::uint64_t>(id.row().axes[place]));
        return shape;
    }

    /// Whether it is a parameter that lies the other way round than a drawn one.
    static bool is_turned(ArrayId id, std::vector<std::size_t> expected,
                          const std::vector<std::size_t>& shape) {
        if (!id.row().is_parameter() || expected.size() < 2 || expected == shape) return false;
        std::swap(expected[expected.size() - 1], expected[expected.size() - 2]);
        return expected == shape;
    }

    struct Misfit {
        std::size_t arrays = 0;
        std::string first;  // what is wrong with the first of them
    };

    Misfit misfit_of(const Plan& plan) const {
        Misfit misfit;
        for (const ResultArray& array : file_.arrays) {
            const auto id = find_array(array.name);
            if (!id) continue;
            const auto shape = array.values.shape(), expected = shape_in(plan, *id);
            if (shape != expected && !is_turned(*id, expected, shape))
                if (misfit.arrays++ == 0)
                    misfit.first = array.name + " has shape " + shape_text(shape) + ", expected " +
                                   shape_text(expected);
        }
        return misfit;
    }

    /// What a walk would have shown, as a list. Without a cache present_key is keys.
    std::string missing_from(const Plan& plan) const {
        std::string list;
        const bool is_cached = plan.past_len != 0;
        for (const auto& [name, same] : {std::pair("inputs", ""),
                                         {"queries", ""},
                                         {is_cached ? "present_key" : "keys", "present_key"},
                                         {is_cached ? "present_value" : "values", "present_value"},
                                         {"scores", ""},
                                         {"scaled_scores", ""},
                                         {"biased_scores", ""},
                                         {"mask", ""},
                                         {"head_outputs", ""}})
            if (!has(name) && !has(same) && plan.has(find_array(name)->row()))
                list += (list.empty() ? "" : ", ") + std::string(name);
        return list;
    }

    void choose_query(const Plan& plan) {
        const std::size_t first = given_token_.value_or(0);
        std::optional<std::uint64_t> wanted = request_.settings.token;
        if (!token_label_.empty()) wanted = token_called(token_label_, request_);
        query_ = wanted.value_or(usual_);
        row_ = query_ - first;
        if (query_ >= first && row_ < plan.rows) return;
        throw Error(ErrorKind::usage, place_of(request_, "token"),
                    file_.place + " has " +
                        (given_token_ ? "query " + std::to_string(first) + " alone"
                                      : "queries 0 to " + std::to_string(plan.rows - 1)) +
                        "; expected one of them");
    }

    NamedArray named(ArrayId id, const ResultArray& array, const Plan& plan) const {
        Array<double> values = array.values;
        if (plan.dtype == Dtype::float32)  // which the file's decimals stand for
            for (double& value : values) value = static_cast<double>(static_cast<float>(value));
        NamedArray taken{array.name, std::move(values), {}};
        for (std::size_t place = 0; place < 4; ++place)
            if (plan.shown.shows(id, place))
                taken.axes.push_back(axis_name(id.row().axes[place], plan.shown.separate_heads));
        if (is_turned(id, shape_in(plan, id), array.values.shape()) || lies_in_out(id, plan))
            std::swap(taken.axes[taken.axes.size() - 1], taken.axes[taken.axes.size() - 2]);
        return taken;
    }

    /// A square matrix does not show which way round it lies; its initialiser does.
    bool lies_in_out(ArrayId id, const Plan& plan) const {
        const auto shape = shape_in(plan, id);
        return id.row().is_parameter() && shape.size() >= 2 && shape.back() == shape.end()[-2] &&
               (plan.config.init == Init::rand || request_.weights_layout == WeightsLayout::in_out);
    }

    /// Of an array with a row a query the chosen one's; pictures have all.
    void take(WalkSource& computed, NamedArray array) const {
        const bool is_drawn = array.name == "mask" || array.name == "attention_weights";
        if (is_drawn && !given_token_) computed.maps.arrays.push_back(array);
        const auto axis = std::find(array.axes.begin(), array.axes.end(), "q_len");
        if (axis != array.axes.end()) {
            const auto place = static_cast<std::size_t>(axis - array.axes.begin());
            array.values = row_of_each(std::get<Array<double>>(array.values), place, row_);
        }
        computed.result.arrays.push_back(std::move(array));
    }

    static Array<double> row_of_each(const Array<double>& all, std::size_t axis, std::size_t row) {
        std::vector<std::size_t> shape(all.shape().begin(), all.shape().end());
        std::size_t inner = 1;
        for (std::size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
        const std::size_t rows = std::exchange(shape[axis], 1);
        auto part = Array<double>::from_shape(shape);
        for (std::size_t i = 0; i < part.size() / inner; ++i)
            std::copy_n(all.data() + (i * rows + row) * inner, inner, part.data() + i * inner);
        return part;
    }

    ResultFile file_;
    const std::string& token_label_;
    Request& request_;
    std::optional<std::size_t> given_token_;  // the one query that was computed
    std::optional<std::uint64_t> digits_;     // of numbers that were rounded
    std::size_t usual_ = 0;                   // the query that is shown by default
    std::size_t query_ = 0, row_ = 0;         // the one that is shown, and its row in the arrays
};

}  // namespace

WalkSource read_computed(const std::string& path, const std::string& token_label, Request& request,
                         ThreadPool& workers) {
    return ResultReader(path, token_label, request, workers).read();
}

}  // namespace attn::cli
