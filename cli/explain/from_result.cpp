#include "cli/explain/from_result.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/explain/result_checks.hpp"
#include "cli/explain/result_steps.hpp"
#include "cli/explain/token_label.hpp"
#include "cli/request/result_file.hpp"
#include "cli/request/result_plan.hpp"
#include "core/base/error.hpp"
#include "core/base/tensor.hpp"

namespace attn::cli {
namespace {

using nlohmann::json;

io::InputFile open_one_result(const std::string& path) {
    std::vector<io::InputFile> results = open_results(path);
    if (results.size() == 1) return std::move(results[0]);
    throw Error(ErrorKind::input, results.empty() ? path : results[0].name,
                "holds " + std::to_string(results.size()) +
                    " results; expected one, as jq or sed -n 2p takes it from the others");
}

class ResultReader {
public:
    ResultReader(const std::string& path, const std::string& token_label, const Request& request,
                 ThreadPool& workers)
        : token_label_(token_label), wanted_(request.settings.token) {
        const io::InputFile file = open_one_result(path);
        const json head = head_in(file);
        // Before the arrays, which may be large.
        request_ = request_of_result(head, file.place, request);
        given_token_ = number_in_config(head, "token");
        digits_ = number_in_config(head, "precision");
        request_.input = path;
        request_.settings.token = given_token_;
        plan_ = plan_of_result(head, request_.settings, file.place);
        check_labels(request_, plan_, file.place);
        file_ = read_result(file, workers, true);
    }

    ReadExplanation read() {
        return at_places(request_, [this] { return read_checked(); });
    }

private:
    ReadExplanation read_checked() {
        choose_query();
        ExplanationSource computed{plan_, {}};
        computed.file = file_.place;
        computed.digits = digits_;
        computed.has_one_query = given_token_.has_value();
        for (const ResultArray& array : file_.arrays)
            if (const auto id = find_array(array.name)) take(computed, named(*id, array));
        require_weights(computed);
        computed.plan.first_query = query_;
        add_steps(computed);
        check_agreement(computed);
        computed.missing = missing_from(plan_);
        request_.settings = plan_.config;
        request_.settings.token = query_;
        return {std::move(request_), std::move(computed)};
    }

    [[noreturn]] void fail(const std::string& message) const {
        throw Error(ErrorKind::input, file_.place, message);
    }

    static std::optional<std::uint64_t> number_in_config(const json& head, const char* key) {
        const json number = member(head.at("config"), key);
        return number.is_number_unsigned() ? std::optional(number.get<std::uint64_t>())
                                           : std::nullopt;
    }

    void require_weights(const ExplanationSource& computed) const {
        if (plan_.shown.average_heads)
            fail(
                "has attention_weights averaged over the heads; expected each head's own, as "
                "without --average-heads");
        if (array_of(computed, "attention_weights") == nullptr)
            fail("has no attention_weights; expected a result with them, at best with --emit all");
    }

    /// The arrays that an explanation would have shown, as a list. Without a cache, present_key is
    /// keys.
    std::string missing_from(const Plan& plan) const {
        const auto has = [&](std::string_view name) {
            return std::any_of(file_.arrays.begin(), file_.arrays.end(),
                               [&](const ResultArray& array) { return array.name == name; });
        };
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

    void choose_query() {
        const std::size_t first = plan_.first_query;
        std::optional<std::uint64_t> wanted = wanted_;
        if (!token_label_.empty()) wanted = token_called(token_label_, request_);
        query_ = wanted.value_or(given_token_ ? first : plan_.middle_query());
        row_ = query_ - first;
        if (query_ >= first && row_ < plan_.rows) return;
        throw Error(ErrorKind::usage, place_of(request_, "token"),
                    file_.place + " has " +
                        (given_token_ ? "query " + std::to_string(first) + " alone"
                                      : "queries 0 to " + std::to_string(plan_.rows - 1)) +
                        "; expected one of them");
    }

    NamedArray named(ArrayId id, const ResultArray& array) const {
        Array<double> values = array.values;
        check_shape(plan_, id, {values.shape().begin(), values.shape().end()}, file_.place);
        if (plan_.dtype == Dtype::float32)  // the dtype that the file's decimals represent
            for (double& value : values) value = static_cast<double>(static_cast<float>(value));
        return {array.name, std::move(values), plan_.axes_of(id)};
    }

    /// Takes the chosen query's row of an array with one row per query; pictures keep all rows.
    void take(ExplanationSource& computed, NamedArray array) const {
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
    Request request_;
    std::optional<std::uint64_t> wanted_;       // the query that a flag names
    std::optional<std::uint64_t> given_token_;  // the only query that was computed
    std::optional<std::uint64_t> digits_;       // decimals of rounded numbers
    Plan plan_;
    std::size_t query_ = 0, row_ = 0;  // the shown query, and its row in the arrays
};

}  // namespace

ReadExplanation read_computed(const std::string& path, const std::string& token_label,
                              const Request& request, ThreadPool& workers) {
    return ResultReader(path, token_label, request, workers).read();
}

}  // namespace attn::cli
