# Makes names.tsv rows of the program: cmake -DOUT=names.cpp -P embed_names.cmake
cmake_minimum_required(VERSION 3.24)

file(READ "${CMAKE_CURRENT_LIST_DIR}/names.tsv" text)
string(REGEX REPLACE "([^\t\n]*)\t([^\t\n]*)\t([^\t\n]*)\t([^\t\n]*)\n"
    "    {\"\\1\", \"\\2\", \" \\3 \", R\"row(\\4)row\"},\n" rows "${text}")

file(WRITE "${OUT}" "// Made of cli/args/names.tsv by embed_names.cmake.
#include \"cli/args/names.hpp\"

namespace attn::cli {
namespace {
constexpr NameRow rows_of_names[] = {
${rows}};
}  // namespace
constinit const std::span<const NameRow> all_other_names = rows_of_names;
}  // namespace attn::cli
")
