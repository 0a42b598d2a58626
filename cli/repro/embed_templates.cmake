# Makes the templates of programs texts of attn: cmake -DOUT=templates.cpp -P embed_templates.cmake
cmake_minimum_required(VERSION 3.24)

file(READ "${CMAKE_CURRENT_LIST_DIR}/templates/attention.c" c_text)
file(WRITE "${OUT}" "// Made of cli/repro/templates by embed_templates.cmake.
#include \"cli/repro/language.hpp\"

namespace attn::cli {
constinit const std::string_view c_template = R\"template(${c_text})template\";
}  // namespace attn::cli
")
