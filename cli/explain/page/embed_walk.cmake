# Makes the page of a walk one text: cmake -DOUT=walk.cpp -P embed_walk.cmake
# The policy in walk.html allows the one style by its hash and pictures that are in the page.
cmake_minimum_required(VERSION 3.24)

set(folder "${CMAKE_CURRENT_LIST_DIR}")
include("${folder}/../../../io/plot/page/source_hash.cmake")
file(READ "${folder}/walk.html" page)
file(READ "${folder}/walk.css" style)
source_hash("\n${style}" hash)
string(REPLACE "{{style_hash}}" "${hash}" page "${page}")
string(REPLACE "{{style}}\n" "${style}" page "${page}")

file(WRITE "${OUT}" "// Made of cli/explain/page by embed_walk.cmake.
#include <string_view>

namespace attn::cli {
extern const std::string_view walk_template;
const std::string_view walk_template = R\"page(${page})page\";
}  // namespace attn::cli
")
