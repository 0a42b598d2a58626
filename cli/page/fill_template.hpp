// A text with sections that only some cases have, and values in it.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace attn::cli {

/// What one case puts into a template.
struct TemplateCase {
    std::map<std::string_view, bool> conditions{};
    std::map<std::string_view, std::string> values{};
};

/// The text of a template. A template is the text itself, and in it
///
///     @NAME@        anywhere in a line: the value NAME. A line that is nothing else may become
///                   several lines, or none if the value is empty;
///     @if NAME      alone on a line: the lines below it, up to `@else` or `@end`, are kept if the
///                   condition NAME is true; with `@if !NAME`, if it is false. Sections nest.
///     @else         those below it are kept in the other case;
///     @end          ends the section.
///
/// Values are not searched for names. Throws std::logic_error for a name that `with` does not have
/// in a line that is kept.
std::string fill_template(std::string_view text, const TemplateCase& with);

}  // namespace attn::cli
