#include "io/read/json_fault.hpp"

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

}  // namespace attn::io
