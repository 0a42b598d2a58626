# Makes page.html and page.css one text: cmake -DOUT=html_template.cpp -P embed_page.cmake
cmake_minimum_required(VERSION 3.24)

set(folder "${CMAKE_CURRENT_LIST_DIR}")
include("${folder}/../../io/plot/page/head.cmake")
file(READ "${folder}/page.html" page)
file(READ "${folder}/page.css" style)
add_head(page "img-src data:" "${style}")  # pictures that are in the page

file(WRITE "${OUT}" "// Made of cli/page by embed_page.cmake.
#include <string_view>

namespace attn::cli {
extern const std::string_view html_template;
const std::string_view html_template = R\"page(${page})page\";
}  // namespace attn::cli
")
