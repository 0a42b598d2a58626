# Makes the lines of config_defaults.ndjson texts of the program:
#     cmake -DOUT=FILE -P embed_defaults.cmake
cmake_minimum_required(VERSION 3.24)

# Brackets and semicolons would end elements of CMake's lists.
file(READ "${CMAKE_CURRENT_LIST_DIR}/config_defaults.ndjson" text)
string(REPLACE "\n{\"type\"" ")text\",\n    R\"text({\"type\"" text "${text}")
string(REGEX REPLACE "\n$" "" text "${text}")
file(WRITE "${OUT}" "// Made of io/transformer/config_defaults.ndjson by embed_defaults.cmake.
#include <span>
#include <string_view>
namespace attn::io {
namespace {
constexpr std::string_view lines[] = {
    R\"text(${text})text\"};
}  // namespace
extern const std::span<const std::string_view> config_defaults;
const std::span<const std::string_view> config_defaults = lines;
}  // namespace attn::io
")
