# Writes the version and the commit, if they have changed: cmake -DOUT=version.cpp -DVERSION=N [-DCOMMIT=HASH]
# -P write_version.cmake. Without COMMIT it is what git says of the clone; elsewhere "unknown".
cmake_minimum_required(VERSION 3.24)

set(root "${CMAKE_CURRENT_LIST_DIR}/../..")
if(NOT COMMIT AND EXISTS "${root}/.git") # not that of a folder around it
    # As many digits in every clone, however many objects it holds.
    execute_process(COMMAND git -C "${root}" describe --always --dirty --abbrev=12 --exclude=*
        OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT COMMIT)
    set(COMMIT unknown)
endif()
file(CONFIGURE OUTPUT "${OUT}" @ONLY CONTENT "// Made by cli/request/write_version.cmake.
namespace attn::cli {
extern const char* const attn_version;
extern const char* const attn_commit;
const char* const attn_version = \"@VERSION@\";
const char* const attn_commit = \"@COMMIT@\";
}  // namespace attn::cli
")
