#include "cli/explain/from_result.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/explain/recompute.hpp"
#include "cli/explain/token_label.hpp"
#include "cli/request/result_plan.hpp"
#include "core/base/error.hpp"
#include "core/base/tensor.hpp"
#include "io/read/result_view.hpp"

namespace attn::cli {
namespace {

using nlohmann::json;

class ResultReader {
public:
    ResultReader(const std::string& path, const std::string& token_label, const Request& request,
                 ThreadPool& workers)
        : view_(io::ResultView::open(path, io::ResultView::Scope::whole)), workers_(workers),
          token_label_(token_label), wanted_(request.settings.token) {
        const json& head = view_.head();
        request_ = request_of_result(head, view_.place(), request);
        given_token_ = number_in_config(head, "token");
        digits_ = number_in_config(head, "precision");
        request_.input = path;
        request_.settings.token = given_token_;
        plan_ = plan_of_result(head, request_.settings, view_.place());
        check_labels(request_, plan_, view_.place());
    }

    ReadExplanation read() {
        return at_places(request_, [this] { return read_checked(); });
    }

private:
    ReadExplanation read_checked() {
        choose_query();
        ExplanationSource computed{plan_, {}};
        computed.file = view_.place();
        computed.digits = digits_;
        computed.has_one_query = given_token_.has_value();
        view_.require_memory_for_all();
        for_dtype(plan_.dtype, [&]<class T>(T) {
            for (const io::ArrayView& array : view_.arrays())
                if (const auto id = find_array(array.name)) take<T>(computed, named<T>(*id, array));
        });
        require_weights(computed);
        computed.plan.first_query = query_;
        recompute(computed);
        request_.settings = plan_.config;
        request_.settings.token = query_;
        return {std::move(request_), std::move(computed)};
    }

    [[noreturn]] void fail(const std::string& message) const {
        throw Error(ErrorKind::input, view_.place(), message);
    }

    static std::optional<std::uint64_t> number_in_config(const json& head, const char* key) {
        const json number = io::member(head.at("config"), key);
        return number.is_number_unsigned() ? std::optional(number.get<std::uint64_t>())
                                           : std::nullopt;
    }

    void require_weights(const ExplanationSource& computed) const {
        if (plan_.shown.average_heads)
            fail(
                "has attention_weights averaged over the heads; expected each head's own, as "
                "without --average-heads");
        const std::vector<NamedArray>& arrays = computed.result.arrays;
        if (std::none_of(arrays.begin(), arrays.end(),
                         [](const NamedArray& array) { return array.name == "attention_weights"; }))
            fail("has no attention_weights; expected a result with them, at best with --emit all");
    }

    void choose_query() {
        const std::size_t first = plan_.first_query;
        std::optional<std::uint64_t> wanted = wanted_;
        if (!token_label_.empty()) wanted = token_labelled(token_label_, request_);
        query_ = wanted.value_or(given_token_ ? first : plan_.middle_query());
        row_ = query_ - first;
        if (query_ >= first && row_ < plan_.rows) return;
        throw Error(ErrorKind::usage, place_of(request_, "token"),
                    view_.place() + " has " +
                        (given_token_ ? "query " + std::to_string(first) + " alone"
                                      : "queries 0 to " + std::to_string(plan_.rows - 1)) +
                        "; expected one of them");
    }

    /// The numbers of a file are the decimals of the plan's dtype.
    template <class T>
    NamedArray named(ArrayId id, const io::ArrayView& array) const {
        const Array<double> values = view_.read(array, workers_).values;
        check_shape(plan_, id, {values.shape().begin(), values.shape().end()}, view_.place());
        return {array.name, Array<T>(values), plan_.axes_of(id)};
    }

    /// Takes the chosen query's row of an array with one row per query; pictures keep all rows.
    template <class T>
    void take(ExplanationSource& computed, NamedArray array) const {
        const bool is_drawn = array.name == "mask" || array.name == "attention_weights";
        if (is_drawn && !given_token_) computed.maps.arrays.push_back(array);
        const auto axis = std::find(array.axes.begin(), array.axes.end(), "q_len");
        if (axis != array.axes.end()) {
            const auto place = static_cast<std::size_t>(axis - array.axes.begin());
            array.values = row_of_each(std::get<Array<T>>(array.values), place, row_);
        }
        computed.result.arrays.push_back(std::move(array));
    }

    template <class T>
    static Array<T> row_of_each(const Array<T>& all, std::size_t axis, std::size_t row) {
        std::vector<std::size_t> shape = all.shape();
        std::size_t inner = 1;
        for (std::size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
        const std::size_t rows = std::exchange(shape[axis], 1);
        auto part = Array<T>::from_shape(shape);
        for (std::size_t i = 0; i < part.size() / inner; ++i)
            std::copy_n(all.data() + (i * rows + row) * inner, inner, part.data() + i * inner);
        return part;
    }

    io::ResultView view_;
    ThreadPool& workers_;
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
