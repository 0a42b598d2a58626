#include <charconv>
#include <cmath>
#include <optional>

#include "core/base/did_you_mean.hpp"
#include "core/base/error.hpp"
#include "core/expression/expression.hpp"

namespace attn {
namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool is_of_name(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// Recursive descent over the text, with one loop for all binary operators.
class Parser {
public:
    Parser(std::string_view key, std::string_view text, std::optional<Variable> given,
           const ExpressionArrays& arrays)
        : key_(key), text_(text), given_(given), arrays_(arrays) {}

    Expression parse() {
        if (text_.size() > longest_expression)
            throw SettingError(ErrorKind::usage, std::string(key_), text_.size(),
                               " characters; expected at most ", longest_expression);
        const std::uint32_t root = conditional();  // the last node
        if (!at_end()) fail("an operator or the end", hint_for_operator());
        given_ ? as_real(root) : as_truth(root);
        tree_.text = text_;
        return std::move(tree_);
    }

private:
    [[noreturn]] void fail(std::string_view expected, std::string_view hint = {}) {
        std::string found = "the end";
        if (!at_end()) {
            std::size_t end = at_;
            while (end < text_.size() && is_of_name(text_[end])) ++end;
            // A character outside ASCII is shown whole.
            if (end == at_) do
                    ++end;
                while (end < text_.size() && (static_cast<unsigned char>(text_[end]) >> 6) == 2);
            found = concat('"', text_.substr(at_, end - at_), '"');
        }
        throw SettingError(ErrorKind::usage, std::string(key_), "column ", at_ + 1, ": ", found,
                           "; expected ", expected, hint);
    }

    /// Of other languages.
    std::string_view hint_for_operator() const {
        constexpr std::pair<std::string_view, std::string_view> others[] = {
            {"=", "; did you mean ==?"},   {"&", "; did you mean &&?"},
            {"and", "; did you mean &&?"}, {"|", "; did you mean ||?"},
            {"or", "; did you mean ||?"},  {"if", "; did you mean CONDITION ? A : B?"}};
        for (const auto& [other, hint] : others)
            if (text_.substr(at_).starts_with(other)) return hint;
        return {};
    }

    void skip_blanks() {
        while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos)
            ++at_;
    }
    bool at_end() {
        skip_blanks();
        return at_ == text_.size();
    }
    bool take(std::string_view symbol) {
        skip_blanks();
        if (!text_.substr(at_).starts_with(symbol)) return false;
        at_ += symbol.size();
        return true;
    }
    void expect(std::string_view symbol) {
        if (!take(symbol)) fail(concat('"', symbol, '"'));
    }

    std::uint32_t add(ExpressionNode node) {
        if (tree_.nodes.size() == max_nodes)
            throw SettingError(ErrorKind::usage, std::string(key_), "more than ", max_nodes,
                               " operations; expected fewer");
        const auto include = [&](std::uint32_t of) { node.uses |= tree_.nodes[of].uses; };
        for (std::size_t i = 0; i < row_of(node.operation).operands; ++i) include(node.operand[i]);
        for (const std::uint32_t index : node.index) include(index);
        tree_.nodes.push_back(std::move(node));
        return static_cast<std::uint32_t>(tree_.nodes.size() - 1);
    }

    std::uint32_t as_real(std::uint32_t node) {
        if (tree_.nodes[node].is_real) return node;
        return add({.operation = Operation::to_real, .is_real = true, .operand = {node}});
    }

    /// An integer, which is false if it is 0.
    std::uint32_t as_truth(std::uint32_t node) {
        if (!tree_.nodes[node].is_real) return node;
        return apply(Operation::not_equal, {node, add({.operation = Operation::number})});
    }

    /// Operands of one kind: integers are converted where one is real.
    std::uint32_t apply(Operation operation, std::array<std::uint32_t, 3> operand) {
        const OperationRow& row = row_of(operation);
        const std::size_t truths = row.operands * std::size_t{row.result == OperationResult::logic};
        const std::size_t first = operation == Operation::conditional ? 1 : truths;
        for (std::size_t i = 0; i < first; ++i) operand[i] = as_truth(operand[i]);
        bool real = row.result == OperationResult::real;
        for (std::size_t i = first; i < row.operands; ++i)
            real = real || tree_.nodes[operand[i]].is_real;
        for (std::size_t i = first; real && i < row.operands; ++i) operand[i] = as_real(operand[i]);
        return add({.operation = operation,
                    .is_real = real && row.result != OperationResult::truth,
                    .operand = operand});
    }

    std::uint32_t conditional() {
        const Depth depth(*this);
        const std::uint32_t condition = binary(2);
        if (!take("?")) return condition;
        const std::uint32_t then = conditional();
        expect(":");
        return apply(Operation::conditional, {condition, then, conditional()});
    }

    /// The operator at the cursor, if it binds at least as tightly.
    const OperationRow* binary_operator(int precedence) {
        skip_blanks();
        const std::string_view rest = text_.substr(at_);
        const OperationRow* longest = nullptr;
        for (const OperationRow& row : operation_rows())
            if (row.precedence > 1 && row.operands == 2 && rest.starts_with(row.symbol) &&
                (longest == nullptr || row.symbol.size() > longest->symbol.size()))
                longest = &row;
        return longest != nullptr && longest->precedence >= precedence ? longest : nullptr;
    }

    std::uint32_t binary(int precedence) {
        std::uint32_t left = unary();
        bool compared = false;
        while (const OperationRow* const row = binary_operator(precedence)) {
            const bool compares = row->precedence == row_of(Operation::equal).precedence;
            if (compares && compared) fail("&& between two comparisons");
            compared = compares;
            at_ += row->symbol.size();
            left = apply(row->operation, {left, binary(row->precedence + 1)});
        }
        return left;
    }

    std::uint32_t unary() {
        const Depth depth(*this);
        skip_blanks();
        if (text_.substr(at_, 2) != "!=" && take("!"))
            return apply(Operation::logical_not, {unary()});
        if (take("-")) return apply(Operation::negate, {unary()});
        if (take("+")) return unary();
        return primary();
    }

    std::uint32_t primary() {
        if (take("(")) {
            const std::uint32_t inside = conditional();
            expect(")");
            return inside;
        }
        if (at_end()) fail_operand();
        if (is_digit(text_[at_]) || text_[at_] == '.') return number();
        const std::size_t begin = at_;
        while (at_ < text_.size() && is_of_name(text_[at_])) ++at_;
        const std::string_view name = text_.substr(begin, at_ - begin);
        if (name.empty()) fail_operand();
        if (take("(")) return function(name, begin);
        for (const auto& [variable, text] : variable_names)
            if (text == name) {
                const bool is_value = variable == Variable::score || variable == Variable::p;
                if (is_value && variable != given_) break;
                if (variable == Variable::qpos || variable == Variable::kpos)
                    if (const auto ids = arrays_.find(name); ids != arrays_.end())
                        return position(*ids);
                return add({.operation = Operation::variable,
                            .is_real = is_value,
                            .variable = variable,
                            .uses = bit_of(variable)});
            }
        if (const auto array = arrays_.find(name); array != arrays_.end()) return element(*array);
        if (name == "inf")
            return add({.operation = Operation::number,
                        .is_real = true,
                        .number = std::numeric_limits<double>::infinity()});
        at_ = begin;
        fail_name(name);
    }

    [[noreturn]] void fail_operand() {
        fail("a number, a variable, a function, an array of --let or \"(\"");
    }

    std::vector<std::string> names() const {
        std::vector<std::string> all;
        for (const auto& [variable, text] : variable_names) {
            const bool is_value = variable == Variable::score || variable == Variable::p;
            if (!is_value || variable == given_) all.emplace_back(text);
        }
        for (const auto& [name, array] : arrays_)
            if (is_name_of_array(name)) all.push_back(name);
        return all;
    }

    [[noreturn]] void fail_name(std::string_view name) {
        const std::vector<std::string> all = names();
        std::string listed;
        for (const std::string& one : all) listed += (listed.empty() ? "" : ", ") + one;
        const std::string near = did_you_mean(name, all);
        fail(listed + " or an array of --let", near.empty() ? "" : "; did you mean " + near + "?");
    }

    std::uint32_t number() {
        double value = 0;
        const char* const begin = text_.data() + at_;
        const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
        const std::string_view digits(begin, static_cast<std::size_t>(end - begin));
        if (error != std::errc()) fail("a finite number");
        at_ += digits.size();
        if (at_ < text_.size() && is_of_name(text_[at_])) fail("an operator after the number");
        const bool is_integer = digits.find_first_of(".eE") == digits.npos && value <= 0x1p53;
        return add({.operation = Operation::number, .is_real = !is_integer, .number = value});
    }

    std::uint32_t function(std::string_view name, std::size_t begin) {
        const OperationRow* found = nullptr;
        std::vector<std::string> functions;
        for (const OperationRow& row : operation_rows())
            if (row.precedence == 0 && !row.symbol.empty()) {
                functions.emplace_back(row.symbol);
                if (row.symbol == name) found = &row;
            }
        if (found == nullptr) {
            std::string listed;
            for (const std::string& one : functions) listed += (listed.empty() ? "" : ", ") + one;
            at_ = begin;
            fail("a function: " + listed);
        }
        std::array<std::uint32_t, 3> operand{};
        operand[0] = conditional();
        for (std::size_t i = 1; i < found->operands; ++i) {
            expect(",");
            operand[i] = conditional();
        }
        // min and max take any number of values.
        const bool folds = found->operation == Operation::min || found->operation == Operation::max;
        std::uint32_t value = apply(found->operation, operand);
        while (folds && take(",")) value = apply(found->operation, {value, conditional()});
        expect(")");
        return value;
    }

    std::uint32_t add(Variable name) {
        return add({.operation = Operation::variable, .variable = name, .uses = bit_of(name)});
    }

    /// The position id of a query, ids[b, q - offset of q[b]], or of a key, ids[b, k].
    std::uint32_t position(const ExpressionArrays::value_type& ids) {
        const std::uint32_t b = add(Variable::b);
        if (ids.first == "kpos") return element(ids, {b, add(Variable::k)});
        const std::uint32_t q = add(Variable::q), offset = element(*arrays_.find("q"), {b});
        return element(ids, {b, apply(Operation::subtract, {q, offset})});
    }

    /// name[i, j, ...], as many as the array has axes.
    std::uint32_t element(const ExpressionArrays::value_type& array) {
        std::vector<std::uint32_t> index;
        expect("[");
        do {
            const std::size_t begin = at_;
            index.push_back(conditional());
            if (tree_.nodes[index.back()].is_real) {
                at_ = begin;
                fail("an integer as the index: x // y is one, x / y is not");
            }
        } while (take(","));
        if (index.size() != array.second->dimension())
            fail(concat("an index for each axis of ", array.first, ", which has ",
                        array.second->dimension()));
        expect("]");
        return element(array, std::move(index));
    }

    std::uint32_t element(const ExpressionArrays::value_type& array,
                          std::vector<std::uint32_t> index) {
        const auto& [name, numbers] = array;
        ExpressionNode node{.operation = Operation::element, .index = std::move(index)};
        const auto known = std::ranges::find(tree_.array_names, name);
        node.array = static_cast<std::uint32_t>(known - tree_.array_names.begin());
        if (known == tree_.array_names.end()) {
            tree_.array_names.push_back(name);
            tree_.arrays.push_back(numbers);
            const double first = numbers->data()[0];
            NumberRange bounds{first, first};
            std::vector<NumberRange> parts;
            parts.reserve(numbers->size() / tree_.part + 1);
            for (std::size_t i = 0; i < numbers->size(); ++i) {
                const double x = numbers->data()[i];
                const NumberRange one{x, x, std::isnan(x)};
                if (i % tree_.part == 0) parts.push_back(one);
                parts.back().include(one);
                bounds.include(one);
            }
            tree_.part_bounds.push_back(std::move(parts));
            tree_.array_bounds.push_back(bounds);
        }
        node.is_real = !std::all_of(numbers->begin(), numbers->end(), [](double x) {
            return std::abs(x) <= 0x1p53 && std::floor(x) == x;
        });
        return add(std::move(node));
    }

    /// Counts how deep the descent is: a hostile text does not overflow the stack.
    class Depth {
    public:
        explicit Depth(Parser& of) : parser_(of) {
            if (++parser_.depth_ > 2 * deepest_expression)
                parser_.fail(concat("at most ", deepest_expression, " levels"));
        }
        ~Depth() { --parser_.depth_; }
        Depth(const Depth&) = delete;
        Depth& operator=(const Depth&) = delete;

    private:
        Parser& parser_;
    };

    std::string_view key_, text_;
    std::optional<Variable> given_;
    const ExpressionArrays& arrays_;
    Expression tree_;
    std::size_t at_ = 0, depth_ = 0;
};

}  // namespace

bool is_name_of_array(std::string_view name) {
    return !name.empty() && !is_digit(name[0]) && std::ranges::all_of(name, is_of_name) &&
           find_row(variable_names, &std::pair<Variable, std::string_view>::second, name) ==
               nullptr &&
           find_row(operation_rows(), &OperationRow::symbol, name) == nullptr && name != "inf";
}

std::shared_ptr<const Array<double>> array_of(const std::vector<std::size_t>& shape,
                                              const std::vector<double>& numbers) {
    Array<double> array = Array<double>::from_shape(shape);
    std::ranges::copy(numbers, array.begin());
    return std::make_shared<const Array<double>>(std::move(array));
}

Expression parse_expression(std::string_view key, std::string_view text,
                            std::optional<Variable> given, const ExpressionArrays& arrays) {
    return Parser(key, text, given, arrays).parse();
}

}  // namespace attn
