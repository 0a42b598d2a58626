# Makes the parts of pages in words/ one text: cmake -DOUT=explain_words.cpp -P embed_words.cmake
cmake_minimum_required(VERSION 3.24)

set(text "")
foreach(name layer head linear)
    file(READ "${CMAKE_CURRENT_LIST_DIR}/words/${name}.txt" part)
    string(APPEND text "R\"words(\n== \n${part})words\"\n")
endforeach()
file(WRITE "${OUT}" "// Made of cli/explain/words by embed_words.cmake.
#include <string_view>

namespace attn::cli {
extern const std::string_view explain_words;
const std::string_view explain_words = ${text};
}  // namespace attn::cli
")
