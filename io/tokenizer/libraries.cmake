# The libraries that read regular expressions and know characters. Uses the installed ones, else these
# releases, by hash. As targets whose names are the libraries', so that what is installed asks for them.
find_path(PCRE2_INCLUDE pcre2.h)
find_library(PCRE2_LIBRARY pcre2-8)
if(PCRE2_INCLUDE AND PCRE2_LIBRARY)
    add_library(pcre2-8 UNKNOWN IMPORTED)
    set_target_properties(pcre2-8 PROPERTIES IMPORTED_LOCATION ${PCRE2_LIBRARY}
                          INTERFACE_INCLUDE_DIRECTORIES ${PCRE2_INCLUDE})
else()
    enable_language(C)
    FetchContent_Declare(pcre2_source
        URL https://github.com/PCRE2Project/pcre2/releases/download/pcre2-10.42/pcre2-10.42.tar.gz
        URL_HASH SHA256=c33b418e3b936ee3153de2c61cc638e7e4fe3156022a5c77d0711bcbb9d64f1f)
    FetchContent_GetProperties(pcre2_source)
    if(NOT pcre2_source_POPULATED)
        FetchContent_Populate(pcre2_source)  # its own CMakeLists.txt installs more than the library
    endif()
    set(pcre2_folder ${pcre2_source_SOURCE_DIR}/src)
    configure_file(${pcre2_folder}/pcre2.h.generic ${pcre2_source_BINARY_DIR}/pcre2.h COPYONLY)
    configure_file(${pcre2_folder}/pcre2_chartables.c.dist ${pcre2_source_BINARY_DIR}/pcre2_chartables.c COPYONLY)
    set(pcre2_files ${pcre2_source_BINARY_DIR}/pcre2_chartables.c)
    foreach(part auto_possess compile config context convert dfa_match error extuni find_bracket maketables
                 match match_data newline ord2utf pattern_info script_run serialize string_utils study
                 substitute substring tables ucd valid_utf xclass)
        list(APPEND pcre2_files ${pcre2_folder}/pcre2_${part}.c)
    endforeach()
    add_library(pcre2-8 STATIC ${pcre2_files})
    target_include_directories(pcre2-8 SYSTEM PUBLIC $<BUILD_INTERFACE:${pcre2_source_BINARY_DIR}>
                               PRIVATE ${pcre2_folder})
    target_compile_definitions(pcre2-8 PRIVATE
        PCRE2_CODE_UNIT_WIDTH=8 PCRE2_STATIC SUPPORT_UNICODE LINK_SIZE=2 NEWLINE_DEFAULT=2
        HEAP_LIMIT=20000000 MATCH_LIMIT=10000000 MATCH_LIMIT_DEPTH=MATCH_LIMIT PARENS_NEST_LIMIT=250
        MAX_NAME_SIZE=32 MAX_NAME_COUNT=10000 HAVE_MEMMOVE HAVE_STDINT_H HAVE_INTTYPES_H)
    install(TARGETS pcre2-8 EXPORT attn_targets)
endif()

find_path(UTF8PROC_INCLUDE utf8proc.h)
find_library(UTF8PROC_LIBRARY utf8proc)
if(UTF8PROC_INCLUDE AND UTF8PROC_LIBRARY)
    add_library(utf8proc UNKNOWN IMPORTED)
    set_target_properties(utf8proc PROPERTIES IMPORTED_LOCATION ${UTF8PROC_LIBRARY}
                          INTERFACE_INCLUDE_DIRECTORIES ${UTF8PROC_INCLUDE})
else()
    enable_language(C)
    FetchContent_Declare(utf8proc_source
        URL https://github.com/JuliaStrings/utf8proc/archive/v2.8.0.tar.gz
        URL_HASH SHA256=a0a60a79fe6f6d54e7d411facbfcc867a6e198608f2cd992490e46f04b1bcecc)
    FetchContent_GetProperties(utf8proc_source)
    if(NOT utf8proc_source_POPULATED)
        FetchContent_Populate(utf8proc_source)
    endif()
    add_library(utf8proc STATIC ${utf8proc_source_SOURCE_DIR}/utf8proc.c)
    target_include_directories(utf8proc SYSTEM PUBLIC $<BUILD_INTERFACE:${utf8proc_source_SOURCE_DIR}>)
    target_compile_definitions(utf8proc PUBLIC UTF8PROC_STATIC)
    install(TARGETS utf8proc EXPORT attn_targets)
endif()
