# Makes the tables of unicode_versions.txt those that characters.hpp declares:
#     cmake -DOUT=FILE -P embed_unicode.cmake
cmake_minimum_required(VERSION 3.24)

file(STRINGS "${CMAKE_CURRENT_LIST_DIR}/unicode_versions.txt" lines)
set(tables)
foreach(line IN LISTS lines)
    if(line MATCHES "^([A-Za-z]+) ([a-z_]+)$")
        string(APPEND tables "};\nconstexpr ${CMAKE_MATCH_1} ${CMAKE_MATCH_2}_ranges[] = {\n")
        string(APPEND spans "const std::span<const ${CMAKE_MATCH_1}> ${CMAKE_MATCH_2}(${CMAKE_MATCH_2}_ranges);\n")
    elseif(line MATCHES "^  ")
        string(REGEX REPLACE ":([A-Z][a-z])" ":\"\\1\"" line "${line}")
        string(REGEX REPLACE " ([0-9a-f]+)(:| |$)" " \\1-\\1\\2" line "${line}")
        string(REGEX REPLACE " ([0-9a-f]+)(:| |$)" " \\1-\\1\\2" line "${line}") # matches do not overlap
        string(REGEX REPLACE "([0-9a-f]+)-([0-9a-f]+)(:([^ ]+))?" "{0x\\1, 0x\\2, \\4}," line "${line}")
        string(REPLACE ", }" "}" line "${line}")
        string(APPEND tables "${line}\n")
    endif()
endforeach()
string(REGEX REPLACE "^};" "" tables "${tables}")
file(WRITE "${OUT}" "// Made of io/tokenizer/unicode_versions.txt by embed_unicode.cmake.
#include \"io/tokenizer/characters.hpp\"
namespace attn::io {
namespace {${tables}};
}  // namespace
${spans}}  // namespace attn::io
")
