// The order of an operand's axes, as it is given and as it is computed with, and its scales.
#include "cli/question/operands.hpp"

#include <utility>

#include "core/base/layout.hpp"
#include "core/operator/shown_axes.hpp"

namespace attn::cli {
namespace {

/// The names of an operand's axes in the order of computation; empty: it has no such rank.
std::vector<std::string_view> axes_of(const Request& request, OperandId operand, std::size_t rank,
                                      std::size_t of_tokens) {
    const OperandRow& row = operand.row();
    const bool projects = request.projects(),
               has_columns_of_heads = projects || (request.settings.heads && of_tokens < 4),
               lacks_columns =
                   row.kind == OperandKind::gate && !has_columns_of_heads && rank + 1 == of_tokens,
               is_batch = row.kind == OperandKind::cache ? projects && of_tokens == 3
                                                         : has_columns_of_heads;
    std::vector<std::string_view> names{"batch", "heads", "tokens", "d"};
    if (lacks_columns) names.pop_back();
    if (rank < names.size()) names.erase(names.begin() + (is_batch ? 1 : 0));
    if (rank < names.size()) names.erase(names.begin());
    if (rank != names.size()) names.clear();
    return names;
}

std::size_t rank_of_tokens(const Request& request, const Operands& operands) {
    return operands[request.projects() ? OperandId("inputs") : OperandId("query")].dimension();
}

bool is_of_keys(const OperandRow& row) {
    return row.key == std::string_view("key") || row.key == std::string_view("past_key");
}

/// Whether its elements are keys or values.
bool is_keys_or_values(const OperandRow& row) {
    const std::string_view key = row.key;
    return is_of_keys(row) || key == "value" || key == "past_value";
}

}  // namespace

std::vector<std::size_t> computed_order(const Request& request, OperandId operand, std::size_t rank,
                                        std::size_t of_tokens) {
    const QkvFormat order = request.settings.order();
    const std::optional<ArrayId> array = find_array(operand.row().array);
    if (rank < 2 || order == QkvFormat::bhsd || !array->row().has_order()) return {};
    return inverse_of(order_of_axes(order, axes_of(request, operand, rank, of_tokens)));
}

void split_packed(const RealArray& all, const std::string& location,
                  std::span<const OperandId> parts, Operands& operands) {
    Shape shape = all.shape();
    const std::size_t axis = std::max<std::size_t>(shape.size(), 3) - 3;
    if (shape.size() < 4 || shape[axis] != parts.size())
        throw Error(ErrorKind::shape, location, "shape ", shape_text(shape),
                    "; expected ([batch,] tokens, ", parts.size(), ", heads, d)");
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
    for (std::size_t i = 0; const OperandId operand : parts)
        operands[operand] = all.visit([&](const auto& x) -> RealArray {
            auto part = sliced(x, axis, i++, 1);
            part.reshape(shape);
            return part;
        });
}

void to_computed_order(const Request& request, Operands& operands, OperandId operand) {
    RealArray& array = operands[operand];
    const auto order =
        computed_order(request, operand, array.dimension(), rank_of_tokens(request, operands));
    if (!order.empty())
        array = array.visit([&](auto& given) -> RealArray { return permuted(given, order); });
}

const std::shared_ptr<const Array<double>>* OperandScales::scale_of(const OperandRow& row) const {
    const Settings& s = request_.settings;
    const std::string_view key = row.key;
    const auto& scale = is_of_keys(row) ? s.key_scale : s.value_scale;
    const bool is_taken =
        has_past_ ? key == "past_key" || key == "past_value" : key == "key" || key == "value";
    return is_taken && scale != nullptr ? &scale : nullptr;
}

void OperandScales::require_used() const {
    const Settings& s = request_.settings;
    for (const auto& [key, is_given, is_used] :
         {std::tuple("key_scale", s.key_scale != nullptr, is_used_[0]),
          {"value_scale", s.value_scale != nullptr, is_used_[1]}})
        if (is_given && !is_used)
            throw setting_error(request_, key,
                                "nothing that it scales is given; expected a cache, or query, key "
                                "and value");
}

void OperandScales::hold_example(Operands& operands) {
    for (const OperandId operand : {OperandId("key"), OperandId("value")})
        if (request_.settings.quantised_type) apply(operands, operand.row(), false);
}

void OperandScales::apply(Operands& operands, const OperandRow& row, bool is_done) {
    const bool codes =
        (std::exchange(are_codes_, false) || !request_.settings.quantised_type) && !is_done;
    RealArray& array = operands[row];
    if (array.dimension() == 0) return;
    const bool rounds = is_keys_or_values(row) && request_.settings.quantised_type;
    const NumberType type = request_.settings.quantised_type.value_or(NumberType::float32);
    const char* const key = is_of_keys(row) ? "key_scale" : "value_scale";
    if (has(row)) is_used_[is_of_keys(row) ? 0 : 1] = true;
    if (!rounds && !(has(row) && codes)) return;
    auto one = Array<double>::from_shape({1});
    *one.begin() = 1;
    const Array<double>& scale = has(row) ? **scale_of(row) : one;
    const Shape& shape = array.shape();
    const std::size_t rank = shape.size(), own = scale.dimension();
    const auto names = axes_of(request_, row, rank, rank_of_tokens(request_, operands)),
               given = in_order(names, order_of_axes(request_.settings.order(), names));
    Shape full(rank, 1);
    for (std::size_t axis = 0, next = 0; axis < rank && scale.size() != 1; ++axis) {
        const std::string_view name = given.empty() ? "" : given[axis];
        // Of a head, of a batch entry and head, of a token and head, or of any of these axes.
        const bool has_axis =
            own + 1 >= rank ? axis < own : name == "heads" || (own == 2 && name == "batch");
        if (has_axis && next < own) full[axis] = scale.shape(next++);
        if (full[axis] != 1 && full[axis] != shape[axis]) full.clear();
        if (full.empty() || (axis + 1 == rank && next != own))
            throw SettingError(ErrorKind::shape, key, "shape ", shape_text(scale.shape()),
                               "; expected one number, one for each key head, or a shape that "
                               "broadcasts to ",
                               shape_text(shape), " of ", row.key, ", whose last axis it may lack");
    }
    array.visit([&](auto& numbers) {
        using T = typename std::decay_t<decltype(numbers)>::value_type;
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            std::size_t from = 0, rest = i, stride = 1;
            for (std::size_t axis = rank; axis-- > 0; rest /= shape[axis]) {
                if (full[axis] != 1) from += rest % shape[axis] * stride;
                stride *= full[axis];
            }
            const double factor = scale.data()[from];
            if (rounds && factor == 0)
                throw SettingError(ErrorKind::input, key, "a scale of 0, by which numbers are ",
                                   "divided; expected other scales");
            double number = double{numbers.data()[i]} * (codes ? factor : 1);
            if (rounds) number = quantised(number / factor, type, row.key) * factor;
            numbers.data()[i] = static_cast<T>(number);
        }
    });
}

}  // namespace attn::cli
