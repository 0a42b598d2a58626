# Makes config_defaults.ndjson a text of the program: cmake -DOUT=FILE -P embed_defaults.cmake
cmake_minimum_required(VERSION 3.24)

file(READ "${CMAKE_CURRENT_LIST_DIR}/config_defaults.ndjson" text)
# Compilers limit one literal to 64 KiB.
string(LENGTH "${text}" length)
set(first 0)
set(literals)
while(first LESS length)
    string(SUBSTRING "${text}" ${first} 16000 piece)
    string(APPEND literals "R\"text(${piece})text\"\n")
    math(EXPR first "${first} + 16000")
endwhile()
file(WRITE "${OUT}" "// Made of io/transformer/config_defaults.ndjson by embed_defaults.cmake.
#include <string_view>
namespace attn::io {
extern const std::string_view config_defaults;
const std::string_view config_defaults = ${literals};
}  // namespace attn::io
")
