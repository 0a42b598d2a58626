#include "io/read/json_array.hpp"

#include <limits>
#include <utility>

#include "core/base/error.hpp"

namespace attn::io {
namespace {

constexpr std::size_t none = std::string_view::npos;

/// The comma that causes an unexpected byte at `offset`: the one before a closing bracket, or a
/// second one; or none.
std::size_t find_trailing_comma(std::string_view text, std::size_t offset) {
    constexpr std::string_view space = " \t\r\n", closing = "]}";
    if (offset == 0 || offset >= text.size()) return none;
    const std::size_t before = text.find_last_not_of(space, offset - 1);
    if (before == none) return none;
    if (text[before] == ',' && closing.find(text[offset]) != none) return before;
    const bool is_last = text.find_first_not_of(space, offset + 1) == none;
    return text[offset] == ',' && is_last && closing.find(text[before]) != none ? offset : none;
}

}  // namespace

void fail_in_json(const Source& source, std::size_t offset, const std::string& message,
                  std::size_t end) {
    const std::size_t comma = find_trailing_comma(source.text.substr(0, end), offset);
    if (comma == none) throw Error(ErrorKind::input, source.place(offset), message);
    const std::string behind =
        comma == offset ? "the end" : std::string("'") + source.text[offset] + "'";
    throw Error(ErrorKind::input, source.place(comma),
                "a trailing comma; expected none before " + behind);
}

NumberArray JsonArrayReader::read() {
    const std::size_t begin = at_;
    shape_.assign(rules_.highest_rank, 0);
    read_list(0);
    if (rank_ < rules_.lowest_rank)
        fail(begin, "an array of rank " + std::to_string(rank_) + "; expected rank " +
                        rank_range(rules_) + ", as in [[1, 2], [3, 4]]");
    shape_.resize(rank_);
    return {to_array(values_, shape_), boolean_};
}

void JsonArrayReader::fail(std::size_t offset, const std::string& message) const {
    fail_in_json(source_, offset, message, text_.size());
}

char JsonArrayReader::next_token() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
        ++at_;
    if (at_ == text_.size()) fail(at_, "the text ends inside an array; expected ']'");
    return text_[at_];
}

void JsonArrayReader::read_list(std::size_t depth) {
    const std::size_t opened_at = at_;
    if (depth == rules_.highest_rank)
        fail(at_, "an array nested deeper than " + std::to_string(rules_.highest_rank) +
                      "; expected rank " + rank_range(rules_));
    ++at_;
    std::size_t length = 0;
    if (next_token() != ']') {
        for (;;) {
            const bool list = next_token() == '[';
            const std::size_t rank_here = depth + 1;
            if (!list && rank_ == 0) rank_ = rank_here;
            if (list && rank_ == rank_here) fail(at_, "a list among numbers; expected a number");
            if (!list && rank_ != rank_here)
                fail(at_, "found " + excerpt(text_, at_) + "; expected a list, as before it");
            list ? read_list(depth + 1) : read_number();
            ++length;
            if (next_token() == ']') break;
            if (text_[at_] != ',')
                fail(at_, "found " + excerpt(text_, at_) + "; expected ',' or ']'");
            ++at_;
        }
    }
    ++at_;
    close_list(depth, opened_at, length);
}

void JsonArrayReader::close_list(std::size_t depth, std::size_t opened_at, std::size_t length) {
    if (length == 0) fail(opened_at, "an empty list; expected at least one element");
    std::size_t& expected = shape_[depth];
    if (expected == 0) expected = length;
    if (expected != length)
        fail(opened_at, std::to_string(length) + (length == 1 ? " element" : " elements") +
                            " in this list; expected " + std::to_string(expected) +
                            " as in the first one");
}

/// True if `true` or `false` was read here and the rules allow it.
bool JsonArrayReader::read_boolean() {
    for (const auto& [word, value] : {std::pair(std::string_view("true"), 1.0), {"false", 0.0}}) {
        if (!rules_.boolean || !text_.substr(at_).starts_with(word)) continue;
        if (!values_.empty() && !boolean_) fail(at_, "a boolean among numbers; expected a number");
        boolean_ = true;
        values_.push_back(value);
        at_ += word.size();
        return true;
    }
    if (boolean_)
        fail(at_, "found " + excerpt(text_, at_) + " among booleans; expected true or false");
    return false;
}

void JsonArrayReader::read_number() {
    if (read_boolean()) return;
    const std::string_view rest = text_.substr(at_);
    if (rules_.null_is_nan && rest.starts_with("null")) {
        values_.push_back(std::numeric_limits<double>::quiet_NaN());
        at_ += 4;
        return;
    }
    const ParsedNumber number = parse_json_number_or_word(rest);
    if (number.length == 0 && rest.starts_with('"')) fail(at_, "a string; expected a number");
    const std::string_view after = rest.substr(number.length);
    const bool ends = after.empty() ||
                      std::string_view(" \t\r\n,]").find(after.front()) != std::string_view::npos;
    if (number.length == 0 || !ends)
        fail(at_, "found " + excerpt(text_, at_) + "; expected a number");
    const std::string problem = complaint(number.value, rest.substr(0, number.length), rules_);
    if (!problem.empty()) fail(at_, problem);
    values_.push_back(stored_number(number.value, rest.substr(0, number.length), rules_));
    at_ += number.length;
}

}  // namespace attn::io
