// The embedding of token ids.

#include "core/base/error.hpp"
#include "core/model/model.hpp"

namespace attn {
namespace {

/// The error of an id, a segment or a position outside its table.
SettingError outside(const std::string& setting, std::size_t row, std::size_t rows) {
    const auto [number, table] =
        setting == "token_type_ids" ? std::pair("segment ", "model's segments")
        : setting == "position_ids" ? std::pair("position ", "model's positions")
                                    : std::pair("token id ", "vocabulary");
    return {ErrorKind::input, setting, concat(number, row, " is outside the ", table, " ("),
            rows == 0 ? "none)" : concat("0 to ", rows - 1, ")")};
}

/// Adds a row of a table of this width to `out`.
template <class T>
void add_row(const Parameter& table, std::size_t row, double scale, T* out, std::size_t width,
             NumberType dtype, const std::string& what) {
    if (table->shape().size() != 2 || table->shape()[1] != width)
        throw SettingError(
            ErrorKind::input, what,
            "the model's table does not have the width of the hidden states; expected ", width,
            " columns");
    if (row >= table->shape()[0]) throw outside(what, row, table->shape()[0]);
    std::vector<T> values(width);
    in_dtype(table, dtype)->read(row * width, width, values.data());
    const T factor = static_cast<T>(rounded(scale, dtype));
    for (std::size_t i = 0; i < width; ++i) out[i] += scale == 1 ? values[i] : values[i] * factor;
    round_all(std::span(out, width), dtype);
}

/// The rows of the ids, (1, tokens, width).
States rows_of_ids(const EmbeddingSpec& spec, const ModelInput& input, const std::string& ids,
                   NumberType dtype) {
    const std::size_t width = spec.ids->shape()[1];
    States x = States::zeros(dtype, 1, input.ids.size(), width);
    numbers_of(x)([&](auto* row) {
        for (const std::uint64_t id : input.ids) {
            add_row(spec.ids, static_cast<std::size_t>(id), spec.scale, row, width, dtype, ids);
            row += width;
        }
        if (spec.id_factors == nullptr) return;
        const std::vector<double> factors = spec.id_factors(input.ids, input.valid);
        map(x, [&](double value, std::size_t i) { return value * factors[i / width]; });
    });
    return x;
}

template <class T>
void add_tables(const EmbeddingSpec& spec, std::uint64_t segment, std::int64_t position,
                std::int64_t first_position, T* row, std::size_t width, NumberType dtype) {
    if (spec.segments != nullptr)
        add_row(spec.segments, static_cast<std::size_t>(segment), 1, row, width, dtype,
                "token_type_ids");
    if (spec.positions != nullptr)
        add_row(spec.positions, static_cast<std::size_t>(position + first_position), 1, row, width,
                dtype, "position_ids");
    if (spec.position_row != nullptr && position >= 0) {
        const std::vector<double> added = spec.position_row(static_cast<std::size_t>(position));
        if (added.size() != width)
            throw SettingError(ErrorKind::input, "position_ids", "the position embedding has ",
                               added.size(), " columns, by the model's settings; expected ", width);
        for (std::size_t i = 0; i < width; ++i) row[i] += static_cast<T>(added[i]);
    }
    for (const Parameter& table : spec.first_rows)
        add_row(table, 0, 1, row, width, dtype, "token_ids");
}

/// A text without positions of its own may have more tokens than the table has rows.
void check_length(const EmbeddingSpec& spec, std::int64_t position, std::size_t past,
                  std::size_t tokens, const std::string& ids) {
    if (spec.positions == nullptr) return;
    const auto rows = static_cast<std::int64_t>(spec.positions->shape()[0]) - spec.first_position;
    if (position < rows) return;
    if (past == 0)
        throw SettingError(ErrorKind::input, ids, tokens, " tokens, and the model has ", rows,
                           " positions; expected at most ", rows,
                           ids == "token_ids" ? " tokens, as --truncate " + std::to_string(rows) +
                                                    " keeps of a text"
                                              : " tokens: a shorter text");
    throw SettingError(ErrorKind::input, "generate", "the text with its new tokens is longer than ",
                       rows, " tokens, the model's positions; expected a smaller number");
}

void replace_token(const ReplacedToken& part, const std::vector<std::uint64_t>& ids, States& x) {
    const std::size_t width = x.columns();
    if (part.vector->size() != width)
        throw SettingError(ErrorKind::input, "model", "the vector of a token has ",
                           part.vector->size(), " elements; expected ", width);
    numbers_of(x)([&](auto* values) {
        for (std::size_t t = 0; t < ids.size(); ++t)
            if (ids[t] == part.id) part.vector->read(0, width, values + t * width);
    });
}

}  // namespace

States embed(const Compute& compute, const EmbeddingSpec& spec, const ModelInput& input,
             std::size_t past, NumberType dtype, const std::string& ids) {
    States x = rows_of_ids(spec, input, ids, dtype);
    const bool projects_last = !spec.projects_before_sum && !spec.projects_before_norm;
    const auto project_if = [&](bool is_now) {
        if (is_now && spec.projection) x = apply(compute, spec.projection, x);
    };
    project_if(spec.projects_before_sum);
    const bool has_positions = !input.positions.empty();
    const std::int64_t first_position = spec.padding_id && has_positions ? 0 : spec.first_position;
    auto counted = static_cast<std::int64_t>(past);
    numbers_of(x)([&, width = x.columns()](auto* row) {
        for (std::size_t t = 0; t < input.ids.size(); ++t, row += width) {
            auto position = static_cast<std::int64_t>(
                has_positions ? input.positions[t] : static_cast<double>(past + t));
            if (spec.padding_id && !has_positions)
                position = input.ids[t] == *spec.padding_id ? -1 : counted++;
            if (spec.counts_valid && !has_positions && !input.valid.empty())
                position = input.valid[t] ? counted++ : -1;
            if (!has_positions) check_length(spec, position, past, input.ids.size(), ids);
            add_tables(spec, input.segments.empty() ? 0 : input.segments[t], position,
                       first_position, row, width, dtype);
        }
    });
    project_if(spec.projects_before_norm);
    x = normed(compute, spec.norm, std::move(x));
    for (std::size_t t = 0; t < input.valid.size() && spec.clears_invalid; ++t)
        if (!input.valid[t]) clear_rows(x, t, 1);
    project_if(projects_last);
    if (spec.replaced) replace_token(*spec.replaced, input.ids, x);
    return run_stage(compute, spec.last, std::move(x));
}

}  // namespace attn
