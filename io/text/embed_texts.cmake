# Makes texts of files:
#     cmake -DOUT=OUT.cpp -DNAMESPACE=NAMESPACE -DFOLDER=FOLDER "-DTEXTS=NAME=FILE NAME=FILE+FILE" -P embed_texts.cmake
# Each NAME is a constant of the namespace, the content of its files.
cmake_minimum_required(VERSION 3.24)

set(constants "")
separate_arguments(TEXTS)
foreach(row ${TEXTS})
    string(REGEX MATCHALL "[^=+]+" words "${row}")
    list(POP_FRONT words name)
    set(text "")
    foreach(file ${words})
        file(READ "${FOLDER}/${file}" part)
        string(APPEND text "${part}")
    endforeach()
    string(APPEND constants "// NOLINTNEXTLINE(readability-redundant-declaration): its header may be in the same unit
extern const std::string_view ${name};
constinit const std::string_view ${name} = R\"text(${text})text\";
")
endforeach()
file(WRITE "${OUT}" "// Made by embed_texts.cmake.
#pragma GCC diagnostic ignored \"-Woverlength-strings\"
#include <string_view>

namespace ${NAMESPACE} {
${constants}}  // namespace ${NAMESPACE}
")
