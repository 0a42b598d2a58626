# The libraries that draw and order letters. Neither provides a CMake package: uses the installed one, else
# Debian's sources, by hash.
find_path(STB_INCLUDE stb_truetype.h PATH_SUFFIXES stb)
if(NOT STB_INCLUDE)
    FetchContent_Declare(stb
        URL http://deb.debian.org/debian/pool/main/libs/libstb/libstb_0.0~git20220908.8b5f1f3+ds.orig.tar.xz
            http://snapshot.debian.org/archive/debian/20230701T000000Z/pool/main/libs/libstb/libstb_0.0~git20220908.8b5f1f3+ds.orig.tar.xz
        URL_HASH SHA256=6949c8ff9f86d982cff1b384f1301a731cbaf3b3fa4d1728c7b48a02386d31d8)
    FetchContent_MakeAvailable(stb)
    set(STB_INCLUDE ${stb_SOURCE_DIR})
endif()

# As a target, so that what is installed asks for it by its name.
find_path(FRIBIDI_INCLUDE fribidi.h PATH_SUFFIXES fribidi)
find_library(FRIBIDI_LIBRARY fribidi)
if(FRIBIDI_INCLUDE AND FRIBIDI_LIBRARY)
    add_library(fribidi UNKNOWN IMPORTED)
    set_target_properties(fribidi PROPERTIES IMPORTED_LOCATION ${FRIBIDI_LIBRARY}
                          INTERFACE_INCLUDE_DIRECTORIES ${FRIBIDI_INCLUDE})
else()
    enable_language(C)
    FetchContent_Declare(fribidi_source
        URL http://deb.debian.org/debian/pool/main/f/fribidi/fribidi_1.0.8.orig.tar.bz2
            http://snapshot.debian.org/archive/debian/20230701T000000Z/pool/main/f/fribidi/fribidi_1.0.8.orig.tar.bz2
        URL_HASH SHA256=94c7b68d86ad2a9613b4dcffe7bbeb03523d63b5b37918bdf2e4ef34195c1e6c)
    FetchContent_MakeAvailable(fribidi_source)
    set(fribidi_folder ${fribidi_source_SOURCE_DIR}/lib)
    file(GLOB fribidi_files ${fribidi_folder}/*.c)
    add_library(fribidi STATIC ${fribidi_files})
    target_include_directories(fribidi SYSTEM PUBLIC $<BUILD_INTERFACE:${fribidi_folder}>)
    target_compile_definitions(fribidi PUBLIC DONT_HAVE_FRIBIDI_CONFIG_H
        PRIVATE STDC_HEADERS=1 HAVE_STDLIB_H=1 HAVE_STRING_H=1 HAVE_STRINGIZE=1)
    install(TARGETS fribidi EXPORT attn_targets)
endif()
