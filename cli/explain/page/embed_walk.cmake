# Makes the page of a walk one text: cmake -DOUT=walk.cpp -P embed_walk.cmake
cmake_minimum_required(VERSION 3.24)

set(folder "${CMAKE_CURRENT_LIST_DIR}")
include("${folder}/../../../io/plot/page/head.cmake")
file(READ "${folder}/walk.html" page)
file(READ "${folder}/walk.css" style)
add_head(page "img-src data:" "${style}")  # pictures that are in the page

file(WRITE "${OUT}" "// Made of cli/explain/page by embed_walk.cmake.
#include <string_view>

namespace attn::cli {
extern const std::string_view walk_template;
const std::string_view walk_template = R\"page(${page})page\";
}  // namespace attn::cli
")
