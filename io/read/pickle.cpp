#include "io/read/pickle.hpp"

#include <algorithm>
#include <utility>

#include "core/base/error.hpp"
#include "io/file/bytes.hpp"

namespace attn::io {
namespace {

using Kind = PickleValue::Kind;
using Items = std::vector<PickleValue*>;

/// The stack machine of Python's pickletools.py. A mark on the stack is null.
class PickleReader {
public:
    PickleReader(std::string_view bytes, const std::string& location,
                 FunctionRef<void(const std::string&)> check)
        : bytes_(bytes), location_(location), check_(check) {}

    Pickle read() {
        while (run(static_cast<unsigned char>(take(1)[0]))) continue;
        pickle_.size = at_;
        return std::move(pickle_);
    }

private:
    template <class... Parts>
    [[noreturn]] void fail(const Parts&... message) const {
        throw Error(ErrorKind::input, location_, "pickle, byte ", at_, ": ", message...);
    }
    [[noreturn]] void fail_to_find(const char* what) const {
        fail("no ", what, " on the stack; the file is damaged");
    }

    std::string_view take(std::uint64_t count) {
        if (count > bytes_.size() - at_)
            fail(count, " bytes to read of ", bytes_.size() - at_,
                 "; the file is cut short, damaged, or a pickle of more than 32 MiB");
        at_ += static_cast<std::size_t>(count);
        return bytes_.substr(at_ - static_cast<std::size_t>(count),
                             static_cast<std::size_t>(count));
    }
    std::uint64_t number(std::size_t size) { return number_at(take(size), 0, size); }
    std::string line() {
        std::string text(take(bytes_.substr(at_).find('\n') + 1));  // 0: there is none
        if (text.empty()) fail("no end of a name; the file is damaged");
        text.pop_back();
        return text;
    }

    void push(PickleValue* value) {
        if (++pushed_ > max_pickle_values)
            fail("more than ", max_pickle_values, " values; expected fewer");
        stack_.push_back(value);
    }
    PickleValue& make(Kind kind, Items items = {}) {
        if (kind == Kind::dictionary && items.size() % 2 != 0) fail_to_find("value of a key");
        push(&pickle_.values.emplace_back(PickleValue{kind, 0, {}, std::move(items)}));
        return *stack_.back();
    }
    void make_signed(std::uint64_t size) {
        const std::string_view digits = take(size);
        if (size > 8) return void(make(Kind::other));
        const auto bytes = static_cast<std::size_t>(size);
        const std::uint64_t sign = bytes == 0 ? 0 : std::uint64_t{1} << (8 * bytes - 1);
        const std::uint64_t number = number_at(digits, 0, bytes);
        make(Kind::integer).integer = static_cast<std::int64_t>((number ^ sign) - sign);
    }

    PickleValue& top() const {
        if (stack_.empty() || stack_.back() == nullptr) fail_to_find("value");
        return *stack_.back();
    }
    Items pop(std::size_t count) {
        Items items(count);
        for (std::size_t i = count; i-- > 0; stack_.pop_back()) items[i] = &top();
        return items;
    }
    Items pop_to_mark() {
        const auto mark = std::find(stack_.rbegin(), stack_.rend(), nullptr);
        if (mark == stack_.rend()) fail_to_find("mark");
        Items items(mark.base(), stack_.end());
        stack_.erase(mark.base() - 1, stack_.end());
        return items;
    }

    void append(Kind kind, const Items& items) {
        PickleValue& to = top();
        if (to.kind != kind || (kind == Kind::dictionary && items.size() % 2 != 0))
            fail_to_find(kind == Kind::list ? "list" : "dictionary");
        to.items.insert(to.items.end(), items.begin(), items.end());
    }
    void make_global(const std::string& name) {
        check_(name);
        make(Kind::global).text = name;
    }
    void make_object() {
        Items parts = pop(2);
        const PickleValue &global = *parts[0], &arguments = *parts[1];
        if (global.kind != Kind::global || arguments.kind != Kind::tuple)
            fail_to_find("class with a tuple of arguments");
        if (global.text != "collections.OrderedDict")
            return void(make(Kind::object, std::move(parts)));
        if (!arguments.items.empty()) fail("an OrderedDict of Python 2; expected one of Python 3");
        make(Kind::dictionary);
    }

    void remember(std::uint64_t index) {
        if (index >= max_pickle_values)
            fail("entry ", index, " of the memo; expected less than ", max_pickle_values);
        if (index >= memo_.size()) memo_.resize(static_cast<std::size_t>(index) + 1);
        memo_[static_cast<std::size_t>(index)] = &top();
    }
    void recall(std::uint64_t index) {
        if (index >= memo_.size() || memo_[static_cast<std::size_t>(index)] == nullptr)
            fail("no entry ", index, " in the memo; the file is damaged");
        push(memo_[static_cast<std::size_t>(index)]);
    }

    /// False after the last opcode.
    bool run(unsigned char opcode) {
        switch (opcode) {
            case 0x80: take(1); break;  // the protocol
            case 0x95: take(8); break;  // the length of a frame
            case '.': pickle_.value = &top(); return false;
            case 'N':
            case 0x88:
            case 0x89: make(Kind::other); break;
            case 'G': take(8), make(Kind::other); break;
            case 'K': make(Kind::integer).integer = static_cast<std::int64_t>(number(1)); break;
            case 'M': make(Kind::integer).integer = static_cast<std::int64_t>(number(2)); break;
            case 'J': make_signed(4); break;
            case 0x8a: make_signed(number(1)); break;
            case 0x8b: make_signed(number(4)); break;
            case 'U':
            case 'C':
            case 0x8c: make(Kind::text).text = take(number(1)); break;
            case 'T':
            case 'B':
            case 'X': make(Kind::text).text = take(number(4)); break;
            case 0x8d:
            case 0x8e: make(Kind::text).text = take(number(8)); break;
            case '(': push(nullptr); break;
            case '0': pop(1); break;
            case '1': pop_to_mark(); break;
            case '2': push(&top()); break;
            case ']': make(Kind::list); break;
            case ')': make(Kind::tuple); break;
            case '}': make(Kind::dictionary); break;
            case 'l': make(Kind::list, pop_to_mark()); break;
            case 't': make(Kind::tuple, pop_to_mark()); break;
            case 'd': make(Kind::dictionary, pop_to_mark()); break;
            case 0x85:
            case 0x86:
            case 0x87: make(Kind::tuple, pop(opcode - 0x84u)); break;
            case 'a': append(Kind::list, pop(1)); break;
            case 'e': append(Kind::list, pop_to_mark()); break;
            case 's': append(Kind::dictionary, pop(2)); break;
            case 'u': append(Kind::dictionary, pop_to_mark()); break;
            case 'Q': make(Kind::persistent, pop(1)); break;
            case 'R':
            case 0x81: make_object(); break;
            case 'b':  // attributes: a state_dict has the versions of its modules
                pop(1);
                if (top().kind != Kind::dictionary) fail_to_find("dictionary");
                break;
            case 'c': {
                const std::string module = line();
                make_global(module + "." + line());
                break;
            }
            case 0x93: {
                const Items words = pop(2);
                make_global(words[0]->text + "." + words[1]->text);
                break;
            }
            case 'q': remember(number(1)); break;
            case 'r': remember(number(4)); break;
            case 0x94: remember(memo_.size()); break;
            case 'h': recall(number(1)); break;
            case 'j': recall(number(4)); break;
            default:
                fail("opcode ", static_cast<unsigned>(opcode),
                     "; expected those of dictionaries, lists, numbers and strings, protocol 2 "
                     "to 5");
        }
        return true;
    }

    std::string_view bytes_;
    const std::string& location_;
    FunctionRef<void(const std::string&)> check_;
    Pickle pickle_;
    Items stack_, memo_;
    std::size_t at_ = 0, pushed_ = 0;
};

}  // namespace

Pickle read_pickle(std::string_view bytes, const std::string& location,
                   FunctionRef<void(const std::string& global)> check) {
    return PickleReader(bytes, location, check).read();
}

}  // namespace attn::io
