#include "cli/explain/walk_result.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/explain/result_checks.hpp"
#include "cli/explain/result_plan.hpp"
#include "cli/explain/result_steps.hpp"
#include "cli/explain/token_label.hpp"
#include "cli/request/options.hpp"
#include "cli/request/request_builder.hpp"
#include "cli/request/result_file.hpp"
#include "core/base/error.hpp"
#include "core/base/tensor.hpp"
#include "io/file/source.hpp"

namespace attn::cli {
namespace {

using nlohmann::json;

/// The mode that a result says. Errors: kind input, for what is no result.
const ModeRow& mode_said(const json& head, const std::string& place) {
    const json mode = head.value("mode", json());
    const ModeRow* row =
        mode.is_string() ? mode_named(mode.get_ref<const std::string&>()) : nullptr;
    if (row == nullptr || !head.value("config", json()).is_object())
        throw Error(ErrorKind::input, place,
                    "is no result of attn, which says its mode and config; expected one, or a "
                    "mode before INPUT, as in attn explain self " +
                        io::shortened(place));
    return *row;
}

/// What is no result is refused before its arrays are read.
ResultFile read_one_result(const std::string& path, ThreadPool& workers) {
    const std::vector<io::InputFile> results = open_results(path);
    if (results.size() == 1) {
        (void)mode_said(head_in(results[0]), results[0].place);
        return read_result(results[0], workers, true);
    }
    throw Error(ErrorKind::input, results.empty() ? path : results[0].name,
                "holds " + std::to_string(results.size()) +
                    " results; expected one, as jq or sed -n 2p takes it from the others");
}

class ResultReader {
public:
    ResultReader(const std::string& path, const std::string& token_label, const Request& request,
                 ThreadPool& workers)
        : file_(read_one_result(path, workers)), token_label_(token_label), builder_{request} {
        builder_.request.input = path;
        take_settings();
        take_labels();
    }

    ComputedWalk read() {
        return at_places(request_, [this] { return read_walk(); });
    }

private:
    ComputedWalk read_walk() {
        ResultPlan planned = plan_of_result(file_, request_, given_token_);
        WalkSource computed{std::move(planned.plan), {}};
        computed.file = file_.place;
        computed.digits = digits_;
        computed.has_one_query = given_token_.has_value();
        computed.unsaid = planned.unsaid;
        Plan& plan = computed.plan;
        choose_query(plan, planned.usual_query);
        for (const ResultArray& array : file_.arrays)
            if (const auto id = find_array(array.name)) take(computed, named(*id, array, plan));
        plan.first_query = query_;
        add_steps(computed);
        check_agreement(computed);
        computed.missing = missing_from(plan);
        builder_.request.settings = plan.config;
        builder_.request.settings.token = query_;
        return {std::move(builder_.request), std::move(computed)};
    }

    [[noreturn]] void fail(const std::string& message) const {
        throw Error(ErrorKind::input, file_.place, message);
    }

    json said(const char* key) const {
        return file_.head->is_object() && file_.head->contains(key) ? (*file_.head)[key] : json();
    }

    void take_settings() {
        const json config = said("config");
        const ModeRow* const row = &mode_said(*file_.head, file_.place);
        builder_.request.settings.mode = row->mode;
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
            builder_.apply_value(item.key(), item.value(),
                                 file_.place + ": " + item.key() + " " + io::shortened(value));
        }
        Settings& s = builder_.request.settings;
        // Only a plan of it is wanted, the smallest, whatever computed the result.
        s.kernel = "auto";
        s.emit = {"attention_weights"};
        s.average_heads = false;
        s.mask_true.reset();
    }

    void take_labels() {
        for (const auto& [key, labels] : {std::pair("tokens", &builder_.request.tokens),
                                          {"context_tokens", &builder_.request.context_tokens}}) {
            const json all = said(key);
            if (!all.is_array()) continue;
            labels->clear();
            for (const json& label : all)
                labels->push_back(label.is_string() ? label.get<std::string>() : label.dump());
        }
    }

    /// What a walk would have shown, as a list. Without a cache present_key is keys.
    std::string missing_from(const Plan& plan) const {
        const auto has = [&](const char* name) { return array_called(file_, name) != nullptr; };
        const bool is_cached = plan.past_len != 0;
        std::string list;
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

    void choose_query(const Plan& plan, std::size_t usual) {
        const std::size_t first = given_token_.value_or(0);
        std::optional<std::uint64_t> wanted = request_.settings.token;
        if (!token_label_.empty()) wanted = token_called(token_label_, request_);
        query_ = wanted.value_or(usual);
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
        if (lies_turned(plan, id, array.values) || lies_in_out(id, plan))
            std::swap(taken.axes[taken.axes.size() - 1], taken.axes[taken.axes.size() - 2]);
        return taken;
    }

    /// A square matrix does not show which way round it lies; its initialiser does.
    bool lies_in_out(ArrayId id, const Plan& plan) const {
        return id.row().is_parameter() && is_square(plan, id) &&
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
    RequestBuilder builder_;
    const Request& request_ = builder_.request;
    std::optional<std::size_t> given_token_;  // the one query that was computed
    std::optional<std::uint64_t> digits_;     // of numbers that were rounded
    std::size_t query_ = 0, row_ = 0;         // the one that is shown, and its row in the arrays
};

}  // namespace

ComputedWalk read_computed(const std::string& path, const std::string& token_label,
                           const Request& request, ThreadPool& workers) {
    return ResultReader(path, token_label, request, workers).read();
}

}  // namespace attn::cli
