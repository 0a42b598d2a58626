# Makes the pages of this folder texts of the program: cmake -DOUT=manual.cpp -P embed_manual.cmake
cmake_minimum_required(VERSION 3.24)

file(GLOB pages "${CMAKE_CURRENT_LIST_DIR}/*.md")
list(SORT pages)
foreach(page IN LISTS pages)
    get_filename_component(topic "${page}" NAME_WE)
    file(READ "${page}" text)
    string(APPEND rows "    {\"${topic}\", R\"page(${text})page\"},\n")
endforeach()

file(WRITE "${OUT}" "// Made of cli/manual by embed_manual.cmake.
#include \"cli/help/help.hpp\"

namespace attn::cli {
namespace {
constexpr Topic topics[] = {
${rows}};
}  // namespace
constinit const std::span<const Topic> manual = topics;
}  // namespace attn::cli
")
