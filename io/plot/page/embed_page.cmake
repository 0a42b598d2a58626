# Makes the page of html.hpp one text: cmake -DOUT=page.cpp -P embed_page.cmake
cmake_minimum_required(VERSION 3.24)

include("${CMAKE_CURRENT_LIST_DIR}/head.cmake")

set(folder "${CMAKE_CURRENT_LIST_DIR}")
file(READ "${folder}/page.html" page)
foreach(part page walk)
    file(READ "${folder}/${part}.css" text)
    string(APPEND style "${text}")
endforeach()
# One script: a later part may use what an earlier one defines as it begins, every part at work.
foreach(part data chosen colors labels map bars lines grid address save walk page)
    file(READ "${folder}/${part}.js" text)
    string(APPEND script "${text}")
endforeach()
source_hash("\n${script}" hash)
add_head(page "script-src '${hash}'" "${style}")
string(REPLACE "{{script}}\n" "${script}" page "${page}")

file(WRITE "${OUT}" "// Made of io/plot/page by embed_page.cmake.
#include <string_view>

// The standard asks compilers for 65,536 characters at least; those that build this take more.
#pragma GCC diagnostic ignored \"-Woverlength-strings\"

namespace attn::io {
extern const std::string_view page_template;
const std::string_view page_template = R\"page(${page})page\";
}  // namespace attn::io
")
