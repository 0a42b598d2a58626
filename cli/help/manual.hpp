// The pages of cli/manual, which are compiled into the program.
#pragma once

#include <span>
#include <string_view>

namespace attn::cli {

struct Topic {
    std::string_view name;  ///< of the page's file, without .md
    std::string_view text;  ///< Markdown; the first line is "# " and the title
};

/// By name.
extern const std::span<const Topic> manual;

/// By its name, an earlier name or a word that people look up. Null for an unknown topic.
const Topic* find_topic(std::string_view name);

std::string_view title_of(const Topic& topic);

}  // namespace attn::cli
