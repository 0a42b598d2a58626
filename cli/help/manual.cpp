// cli/manual/embed_manual.cmake embeds the pages.
#include "cli/help/manual.hpp"

#include <algorithm>

namespace attn::cli {

const Topic* find_topic(std::string_view name) {
    const auto found = std::find_if(manual.begin(), manual.end(),
                                    [&](const Topic& topic) { return topic.name == name; });
    return found == manual.end() ? nullptr : &*found;
}

std::string_view title_of(const Topic& topic) {
    constexpr std::size_t mark = 2;  // "# "
    return topic.text.substr(mark, topic.text.find('\n') - mark);
}

}  // namespace attn::cli
