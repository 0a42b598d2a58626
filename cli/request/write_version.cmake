# Writes the version and the commit, if they have changed: cmake -DOUT=version.cpp -DVERSION=N [-DCOMMIT=HASH]
# -P write_version.cmake. Without COMMIT it is what git says of this folder; outside a clone, "unknown".
cmake_minimum_required(VERSION 3.24)

if(NOT COMMIT)
    # As many digits in every clone, however many objects it holds.
    execute_process(COMMAND git -C "${CMAKE_CURRENT_LIST_DIR}" describe --always --dirty --abbrev=12 --exclude=*
        OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    if(failed)
        set(COMMIT unknown)
    endif()
endif()
file(CONFIGURE OUTPUT "${OUT}" @ONLY CONTENT "// Made by cli/request/write_version.cmake.
namespace attn::cli {
extern const char* const attn_version;
extern const char* const attn_commit;
const char* const attn_version = \"@VERSION@\";
const char* const attn_commit = \"@COMMIT@\";
}  // namespace attn::cli
")
