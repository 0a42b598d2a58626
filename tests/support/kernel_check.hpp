// Every fused kernel's answer to one question, against the formula in long double.
#pragma once

#include "tests/support/fused_answer.hpp"
#include "tests/support/generated_question.hpp"

namespace attn::test {

template <class T>
bool same_bits(const Tensor4<T>& a, const Tensor4<T>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](T x, T y) {
        return x == y ? std::signbit(x) == std::signbit(y) : std::isnan(x) && std::isnan(y);
    });
}

template <class T>
bool same_bits(const Answer<T>& a, const Answer<T>& b) {
    return same_bits(a.context, b.context) && same_bits(a.weights, b.weights) &&
           same_bits(a.scores, b.scores) && same_bits(a.logsumexp, b.logsumexp);
}

using Exact = std::vector<long double>;

/// The error of one row of `length` numbers; infinity where a number is not finite but the truth
/// is.
template <class Numbers>
long double row_error(const Numbers& got, const Exact& truth, std::size_t row, std::size_t length) {
    long double worst = 0;
    for (std::size_t i = row * length; i < (row + 1) * length; ++i) {
        const auto x = static_cast<long double>(got.data()[i]);
        if (x == truth[i]) continue;
        const long double apart = std::abs(x - truth[i]);
        worst = std::isnan(apart) ? std::numeric_limits<long double>::infinity()
                                  : std::max(worst, apart);
    }
    return worst;
}

/// A row of a kernel may be twice as far from the truth as plain arithmetic is anywhere in the same
/// question: the reference's, or the formula's in T, which rounds in other places. Both can be
/// right by chance, so a few units in the last place are forgiven, and a quarter of the unit of the
/// largest score. The reference may be eight times as far as the formula's arithmetic in T. Rows
/// that plain arithmetic cannot do, since its numbers overflow, are left out.
template <class T>
class RowCheck {
public:
    RowCheck(const Exact& truth, const Tensor4<T>& reference, const std::vector<T>& formula,
             std::size_t rows)
        : truth_(truth), length_(truth.size() / rows), reference_(rows), formula_(rows) {
        for (std::size_t row = 0; row < rows; ++row) {
            reference_[row] = row_error(reference, truth, row, length_);
            formula_[row] = row_error(formula, truth, row, length_);
        }
    }

    /// The first row of a kernel's answer that is wrong and by how much, or nothing.
    std::string first_wrong(const Tensor4<T>& got, long double unit) const {
        const long double allowed = std::max(largest(reference_), largest(formula_));
        for (std::size_t row = 0; row < reference_.size(); ++row)
            if (const long double error = row_error(got, truth_, row, length_);
                std::isfinite(reference_[row]) && error > 2 * allowed + 4 * unit)
                return words_of(row, error, allowed, unit);
        return "";
    }

    std::string reference_wrong(long double unit) const {
        const long double allowed = largest(formula_);
        for (std::size_t row = 0; row < reference_.size(); ++row)
            if (std::isfinite(reference_[row]) && std::isfinite(formula_[row]) &&
                reference_[row] > 8 * allowed + 16 * unit)
                return words_of(row, reference_[row], allowed, unit);
        return "";
    }

    /// Whether plain arithmetic can do the row of this element.
    bool is_usable(std::size_t i) const { return std::isfinite(reference_[i / length_]); }

    std::size_t usable() const {
        return static_cast<std::size_t>(std::count_if(
            reference_.begin(), reference_.end(), [](long double x) { return std::isfinite(x); }));
    }

private:
    static long double largest(const std::vector<long double>& errors) {
        long double most = 0;
        for (long double error : errors)
            if (std::isfinite(error)) most = std::max(most, error);
        return most;
    }

    static std::string words_of(std::size_t row, long double error, long double allowed,
                                long double unit) {
        std::ostringstream words;
        words << "row " << row << ": error " << error << ", plain arithmetic " << allowed
              << ", unit " << unit;
        return words.str();
    }

    const Exact& truth_;
    std::size_t length_;
    std::vector<long double> reference_, formula_;  // the error of each row
};

/// The unit in the last place of each array's largest numbers.
struct Units {
    long double context, weights, logsumexp;
};

template <class T>
Units units_of(const GeneratedQuestion<T>& question, const Formula<long double>& truth) {
    const long double eps = std::numeric_limits<T>::epsilon() / 2;
    const long double unit =
        eps * (1 + std::min(truth.largest_score, static_cast<long double>(1e9)) / 16);
    long double largest_value = std::numeric_limits<T>::min(), largest_sum = 1;
    for (T value : question.call.value)
        if (std::isfinite(value))
            largest_value = std::max(largest_value, std::abs(static_cast<long double>(value)));
    for (long double sum : truth.logsumexp)
        if (std::isfinite(sum)) largest_sum = std::max(largest_sum, std::abs(sum));
    return {unit * largest_value, unit, eps * largest_sum};
}

struct KernelCheck {
    std::vector<std::string> wrong;  ///< "avx2: context: row 3: ..."; empty where all is right
    std::size_t usable = 0;          ///< rows that could be checked
};

template <class T>
KernelCheck check_kernels(const GeneratedQuestion<T>& question) {
    KernelCheck check;
    const Formula<long double> truth = question.template formula<long double>();
    const Formula<T> formula = question.template formula<T>();
    const Answer<T> plain = reference(question.call);
    const std::size_t rows = truth.logsumexp.size();
    const RowCheck<T> context(truth.context, plain.context, formula.context, rows);
    const RowCheck<T> weights(truth.weights, plain.weights, formula.weights, rows);
    const RowCheck<T> logsumexp(truth.logsumexp, plain.logsumexp, formula.logsumexp, rows);
    check.usable = context.usable();
    const Units units = units_of(question, truth);

    for (const auto& [what, wrong] : {std::pair("context", context.reference_wrong(units.context)),
                                      {"weights", weights.reference_wrong(units.weights)},
                                      {"logsumexp", logsumexp.reference_wrong(units.logsumexp)}})
        if (!wrong.empty()) check.wrong.push_back(std::string("reference: ") + what + ": " + wrong);

    std::optional<Answer<T>> first, first_alone;
    for (const kernels::Kernel* kernel : kernels::supported()) {
        const auto note = [&](const char* what, const std::string& wrong) {
            if (!wrong.empty())
                check.wrong.push_back(std::string(kernel->name) + ": " + what + ": " + wrong);
        };
        const auto note_same = [&](const char* what, bool same) {
            note(what, same ? "" : "other bits");
        };
        const Answer<T> got = fused(*kernel, question.call, true, 1);
        note("context", context.first_wrong(got.context, units.context));
        note("weights", weights.first_wrong(got.weights, units.weights));
        note("logsumexp", logsumexp.first_wrong(got.logsumexp, units.logsumexp));
        for (std::size_t i = 0; i < truth.weights.size(); ++i)
            if (truth.weights[i] == 0 && got.weights.data()[i] != 0 && weights.is_usable(i))
                note("weights", "a masked one is not 0");
        // Without weights long rows are computed in parts, which rounds in other places.
        const Answer<T> alone = fused(*kernel, question.call, false, 1);
        note("context alone", context.first_wrong(alone.context, units.context));
        note("logsumexp alone", logsumexp.first_wrong(alone.logsumexp, units.logsumexp));
        if (question.kv_len() < 8192) {
            note_same("context with and without weights", same_bits(alone.context, got.context));
            note_same("logsumexp with and without weights",
                      same_bits(alone.logsumexp, got.logsumexp));
        }
        if (std::string(kernel->name) == "generic") continue;
        if (!first) {
            first = got;
            first_alone = alone;
        }
        note_same("than another kernel", same_bits(got, *first));
        note_same("alone, than another kernel", same_bits(alone, *first_alone));
    }
    return check;
}

}  // namespace attn::test
