#include "io/read/input_formats.hpp"

#include <algorithm>
#include <utility>

#include "io/read/printed_rows.hpp"
#include "io/text/number_text.hpp"
#include "io/text/text.hpp"

namespace attn::io {
namespace {

constexpr std::string_view blanks = " \t\r\n";

/// How a program prints an array as lists in brackets.
struct PrintedForm {
    std::string_view opening;  ///< its first words; empty: it begins with the lists
    std::string_view before;   ///< the last words before the lists, if the opening goes on
    std::string_view after;    ///< the first words behind the lists
    std::string_view end;      ///< the last words
    std::string_view sizes;    ///< the words before its sizes; empty: it has none
    std::string_view way;      ///< prints all elements
    bool is_ggml = false;      ///< commas end lists, and the last axis is the first size
};

constexpr std::string_view of_numpy = "np.set_printoptions(threshold=10**9)",
                           of_ggml = "FILE:float32:SHAPE reads them where fwrite wrote the data";
constexpr std::array<PrintedForm, 13> printed_forms{{
    {"tensor(", "", "", ")", "size=(", "torch.set_printoptions(threshold=10**9)"},
    {"array(", "", "", ")", "", of_numpy},
    {"Array(", "", "", ")", "", of_numpy},
    {"tf.Tensor(", "", "", ")", "shape=(", of_numpy},
    {"<tf.", "numpy=", "", ">", "shape=(", of_numpy},
    {"Tensor(", "stop_gradient=", "", ")", "shape=[", "paddle.set_printoptions(threshold=10**9)"},
    {"Tensor {", "data:", "", "}",
     "shape:", "burn::tensor::set_print_options, threshold: usize::MAX,"},
    {"ggml_debug:", "\n", "sum =", "\n", "= {", of_ggml, true},
    {"common_debug_cb_eval:", "\n", "sum =", "\n", "= {", of_ggml, true},
    {"", "", "Tensor[", "\n", "Tensor[", "candle_core::display::set_print_options_full()"},
    {"", "", "<NDArray ", ">", "<NDArray ", of_numpy},
    {"", "", ", shape=[", "ndim=", "shape=[", "println!(\"{:#?}\", array)"},
    {"", "", "", "", "", of_numpy},
}};

std::size_t skip_space(std::string_view text, std::size_t at) {
    return std::min(text.find_first_not_of(blanks, at), text.size());
}

/// Behind "Parameter containing:" of PyTorch, if that is at `at`.
std::size_t skip_parameter(std::string_view text, std::size_t at) {
    constexpr std::string_view words = "Parameter containing:";
    at = skip_space(text, at);
    return text.substr(at).starts_with(words) ? skip_space(text, at + words.size()) : at;
}

/// The form whose opening is at `at`, behind blanks; null if there is none.
const PrintedForm* opened_form(std::string_view text, std::size_t at) {
    const std::string_view rest = text.substr(skip_parameter(text, at));
    const auto found = std::ranges::find_if(printed_forms, [&](const PrintedForm& form) {
        return !form.opening.empty() && rest.starts_with(form.opening);
    });
    return found == printed_forms.end() ? nullptr : &*found;
}

/// The form without an opening whose last words end the text.
const PrintedForm& closed_form(std::string_view text) {
    constexpr std::size_t longest = 400;
    text.remove_prefix(std::max(text.size(), longest) - longest);
    return *std::ranges::find_if(printed_forms, [&](const PrintedForm& form) {
        if (!form.opening.empty()) return false;
        const std::size_t after = text.rfind(form.after);
        const std::size_t last =
            after - 1 < text.size() ? text.find_last_not_of(blanks, after - 1) : text.npos;
        return form.after.empty() || (last < text.size() && text[last] == ']');
    });
}

/// The name from `at` on that is alone on the line above an array, as in attn's --format torch; or
/// empty.
std::string_view name_at(std::string_view text, std::size_t at) {
    const std::size_t begin = skip_space(text, at);
    const auto is_of_name = [](char c) {
        return is_letter(c) || is_digit(c) || c == '_' || c == '.';
    };
    std::size_t end = begin;
    while (end < text.size() && is_of_name(text[end])) ++end;
    const std::size_t next = skip_space(text, end);
    const bool is_line = text.substr(end, next - end).find('\n') != std::string_view::npos;
    return is_line && opened_form(text, end) != nullptr ? text.substr(begin, end - begin) : "";
}

class PrintedArray {
public:
    explicit PrintedArray(const Source& source) : source_(source), text_(source.text) {}

    std::string as_json() {
        std::string_view name = name_at(text_, 0);
        const bool is_named = !name.empty();
        if (is_named) json_ += '{';
        do {
            if (is_named) {
                leave_out_to(skip_space(text_, at_));
                (json_ += '"') += name;
                json_ += "\":";
                at_ += name.size();
            }
            const std::size_t end = take_array();
            name = is_named ? name_at(text_, end) : "";
            if (name.empty() && skip_space(text_, end) != text_.size()) fail_behind(end);
            leave_out_to(end);
            if (!name.empty()) json_ += ',';
        } while (!name.empty());
        if (is_named) json_ += '}';
        return std::move(json_);
    }

private:
    /// Returns its end. What is around its lists is left out.
    std::size_t take_array() {
        const std::size_t begin = skip_parameter(text_, at_);
        const PrintedForm* const opened = opened_form(text_, at_);
        form_ = opened != nullptr ? opened : &closed_form(text_);
        std::size_t first = skip_space(text_, begin + form_->opening.size());
        if (!form_->before.empty()) {
            const std::size_t before = text_.find(form_->before, first);
            first = std::min(text_.find('[', std::min(before, text_.size())), text_.size());
        }
        leave_out_to(first);
        after_element_ = false;
        lengths_.clear();
        const std::size_t made = json_.size();
        do take_token();
        while (!counts_.empty());
        const std::size_t last = at_, end = skip_closing();
        check_sizes(text_.substr(begin, first - begin), text_.substr(last, end - last));
        if (form_->is_ggml && lengths_.size() > 2 && lengths_[0] == 1) {
            json_[json_.find('[', made)] = ' ';
            json_.back() = ' ';
        }
        return end;
    }

    /// Behind `)`, or `, dtype=torch.float64)` and the like.
    std::size_t skip_closing() const {
        std::size_t at = skip_space(text_, at_), depth = 1;
        if (form_->opening.empty() && form_->after.empty()) return at_;
        if (!form_->opening.empty() && !text_.substr(at).starts_with(form_->after)) return at_;
        if (form_->end != ")") {
            const std::size_t end = text_.find(form_->end, at + form_->after.size());
            if (end == text_.npos && form_->end != "\n") fail_behind(at);
            at = std::min(end, text_.size() - form_->end.size()) + form_->end.size();
            while (at < text_.size() && is_digit(text_[at])) ++at;  // "ndim=2"
            return at;
        }
        if (at == text_.size() || (text_[at] != ',' && text_[at] != ')')) fail_behind(at);
        for (; depth != 0 && at < text_.size(); ++at) {
            if (text_[at] == '(') ++depth;
            if (text_[at] == ')') --depth;
        }
        if (depth != 0) fail_behind(at_);
        return at;
    }

    [[noreturn]] void fail_behind(std::size_t at) const {
        fail("found ", excerpt(text_, skip_space(text_, at)),
             " after a printed array; expected its end, and ",
             name_at(text_, 0).empty() ? "one" : "a name above each", " array in the file");
    }

    /// The sizes that the text names must be those of the lists.
    void check_sizes(std::string_view opening, std::string_view closing) const {
        if (form_->sizes.empty()) return;
        const std::string_view text =
            opening.find(form_->sizes) != opening.npos ? opening : closing;
        std::size_t at = text.rfind(form_->sizes);
        if (at == text.npos) return;
        std::vector<std::size_t> sizes = sizes_in(text.substr(at + form_->sizes.size()));
        if (form_->is_ggml) {
            std::ranges::reverse(sizes);
            while (sizes.size() > lengths_.size() && sizes[0] == 1) sizes.erase(sizes.begin());
        }
        if (sizes != lengths_)
            fail("the array is printed with the shape ", shape_text(sizes), ", but its lists have ",
                 shape_text(lengths_), "; expected one shape");
    }

    /// The lines stay those of the text.
    void leave_out_to(std::size_t end) {
        for (; at_ < end; ++at_) json_ += text_[at_] == '\n' ? '\n' : ' ';
    }

    template <class... Parts>
    [[noreturn]] void fail(const Parts&... message) const {
        throw Error(ErrorKind::input, source_.location(at_), message...);
    }

    void take_token() {
        const std::size_t end = skip_space(text_, at_);
        json_ += text_.substr(at_, end - at_);
        at_ = end;
        if (at_ == text_.size()) fail("the text ends inside an array; expected ']'");
        const char c = text_[at_];
        if (c == ',' && !after_element_) fail("found ','; expected a number");
        if (c == ',' || c == ']') {
            if (c == ']') close();
            json_ += c;
            ++at_;
            after_element_ = c == ']';
            return;
        }
        if (after_element_) json_ += ',';
        after_element_ = c != '[';
        if (c != '[') return take_element();
        json_ += c;
        ++at_;
        counts_.push_back(0);
    }

    void close() {
        if (counts_.empty()) fail("found ']'; expected '['");
        const std::size_t comma = json_.find_last_not_of(blanks);
        if (form_->is_ggml && !after_element_ && json_[comma] == ',') json_[comma] = ' ';
        lengths_.resize(std::max(lengths_.size(), counts_.size()));
        if (lengths_[counts_.size() - 1] == 0) lengths_[counts_.size() - 1] = counts_.back();
        counts_.pop_back();
        if (!counts_.empty()) ++counts_.back();
    }

    void take_element() {
        const std::string_view rest = text_.substr(at_);
        if (rest.starts_with("...") || rest.starts_with("\u2026"))
            fail("'...' in place of elements of a printed array; expected all of them, as ",
                 form_->way, form_->is_ggml ? "" : " prints them");
        std::size_t length = 0;
        for (const auto& [word, value] : {std::pair(std::string_view("True"), "true"),
                                          {"False", "false"},
                                          {"true", "true"},
                                          {"false", "false"}})
            if (rest.starts_with(word)) {
                json_ += value;
                length = word.size();
            }
        if (length == 0) length = append_json_number(json_, rest);
        const char after = length < rest.size() ? rest[length] : ' ';
        if (length == 0 || std::string_view(" \t\r\n,]").find(after) == std::string_view::npos)
            fail("found ", excerpt(text_, at_), " in a printed array; expected a number");
        at_ += length;
        if (!counts_.empty()) ++counts_.back();
    }

    const Source& source_;
    std::string_view text_;
    std::string json_;
    std::size_t at_ = 0;
    bool after_element_ = false;
    const PrintedForm* form_ = nullptr;
    std::vector<std::size_t> counts_;   // elements so far of the lists that are not closed
    std::vector<std::size_t> lengths_;  // of the first lists of each depth
};

}  // namespace

bool has_printed_opening(std::string_view text) {
    return opened_form(text, 0) != nullptr || !name_at(text, 0).empty();
}

bool is_printed_array(std::string_view text) {
    if (has_printed_opening(text) || are_printed_rows(text)) return true;
    std::size_t at = skip_space(text, 0), depth = 0;
    for (; at < text.size() && text[at] == '['; at = skip_space(text, at + 1)) ++depth;
    const std::size_t length = parse_loose_number(text.substr(std::min(at, text.size()))).length;
    if (depth == 0 || length == 0) return false;
    if (!closed_form(text).after.empty()) return true;
    const std::size_t end = at + length, next = skip_space(text, end);
    if (text[end - 1] == '.') return true;  // not as JSON writes numbers
    if (next == text.size()) return false;
    if (text[next] != ']') return text[next] != ',' && next != end;
    std::size_t after = next, closed = 0;
    for (; after < text.size() && text[after] == ']'; after = skip_space(text, after + 1)) ++closed;
    return closed < depth && after < text.size() && text[after] == '[';
}

std::shared_ptr<const Source> json_of_printed_array(const Source& printed) {
    auto text = std::make_shared<const std::string>(are_printed_rows(printed.text)
                                                        ? json_of_printed_rows(printed)
                                                        : PrintedArray(printed).as_json());
    return std::make_shared<const Source>(
        Source{printed.name, std::string_view(*text), text, printed.first_line});
}

}  // namespace attn::io
