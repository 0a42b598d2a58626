// cli/manual/embed_manual.cmake embeds the pages.
#include "cli/help/help.hpp"

#include <algorithm>
#include <string>

#include "cli/args/names.hpp"

namespace attn::cli {
const Topic* find_topic(std::string_view name) {
    const auto find = [](std::string_view page) {
        const auto found = std::find_if(manual.begin(), manual.end(),
                                        [&](const Topic& topic) { return topic.name == page; });
        return found == manual.end() ? nullptr : &*found;
    };
    const NameRow* const other = find_other_name("topic", as_listed(name));
    return find(other != nullptr ? other->of : name);
}

std::string_view title_of(const Topic& topic) {
    constexpr std::size_t mark = 2;  // "# "
    return topic.text.substr(mark, topic.text.find('\n') - mark);
}

}  // namespace attn::cli
