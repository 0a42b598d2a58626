# The fonts that pictures are lettered with, deflated into one object file. Debian's installed files
# where they are these very bytes, else those of its packages: pictures are the same everywhere.

# Sets `out` to a file with this hash from /usr/share/fonts/`path` or in this package.
function(find_font path hash package package_hash out)
    set(file /usr/share/fonts/${path})
    if(EXISTS ${file})
        file(SHA256 ${file} found)
    endif()
    if(NOT found STREQUAL hash)
        get_filename_component(name ${package} NAME)
        string(MAKE_C_IDENTIFIER ${name} name)
        FetchContent_Declare(${name}
            URL http://deb.debian.org/debian/pool/main/${package}.deb
                http://snapshot.debian.org/archive/debian/20230701T000000Z/pool/main/${package}.deb
            URL_HASH SHA256=${package_hash}
            DOWNLOAD_NO_EXTRACT ON)
        FetchContent_MakeAvailable(${name})
        file(GLOB archive ${${name}_SOURCE_DIR}/*.deb)
        file(ARCHIVE_EXTRACT INPUT ${archive} DESTINATION ${${name}_SOURCE_DIR})
        file(ARCHIVE_EXTRACT INPUT ${${name}_SOURCE_DIR}/data.tar.xz
             DESTINATION ${${name}_SOURCE_DIR})
        set(file ${${name}_SOURCE_DIR}/usr/share/fonts/${path})
    endif()
    set(${out} ${file} PARENT_SCOPE)
endfunction()

# Writes the source file of embedded_fonts.hpp.
function(embed_fonts out)
    set(symbols "")
    set(rows "")
    foreach(name dejavu droid unifont unifont_upper)
        set(packed ${PROJECT_BINARY_DIR}/${name}.gz)
        if(NOT EXISTS ${packed} OR ${font_${name}} IS_NEWER_THAN ${packed})
            file(ARCHIVE_CREATE OUTPUT ${packed} PATHS ${font_${name}}
                 FORMAT raw COMPRESSION GZip COMPRESSION_LEVEL 9)
        endif()
        file(SIZE ${packed} packed_size)
        file(SIZE ${font_${name}} size)
        math(EXPR packed_size "${packed_size} - 10")
        string(APPEND symbols "FONT(${name}, \"${packed}\")\n")
        string(APPEND rows "    {attn_font_${name}, ${packed_size}, ${size}},\n")
    endforeach()
    file(CONFIGURE OUTPUT ${out} CONTENT [[// Made by io/plot/fonts/fonts.cmake.
#include "io/plot/fonts/embedded_fonts.hpp"

#ifdef __APPLE__
#define SECTION ".section __TEXT,__const\n"
#define SYMBOL "_attn_font_"
#else
#define SECTION ".section .rodata\n"
#define SYMBOL "attn_font_"
#endif
// Less gzip's header, which holds the time.
#define FONT(name, file)                                                                    \
    asm(SECTION ".globl " SYMBOL #name "\n" SYMBOL #name ":\n.incbin \"" file "\", 10\n.text\n"); \
    extern "C" const unsigned char attn_font_##name[];

@symbols@
namespace attn::io {
const std::array<EmbeddedFont, 4> embedded_fonts{{
@rows@}};
}  // namespace attn::io
]] @ONLY)
endfunction()

find_font(truetype/dejavu/DejaVuSans.ttf
    abdc775b21b1bc470d50c97e790d276f2054b7504e56e5bd3e64f48d68582322
    f/fonts-dejavu/fonts-dejavu-core_2.37-6_all
    8892669e51aab4dc56682c8e39d8ddb7d70fad83c369344e1e240bf3ca22bb76 font_dejavu)
find_font(truetype/droid/DroidSansFallbackFull.ttf
    acb6440a713d880a13a21b468ba7cd43f5a2b2934972e51be791c880730777b8
    f/fonts-android/fonts-droid-fallback_6.0.1r16-1.1_all
    d2096d4edde128fedf6749be2dd204a5810210a6201126d99b8d412344f71056 font_droid)
set(unifont u/unifont/fonts-unifont_15.0.01-2_all
    cd46245f1b228d1277ed2b453ce893fde1cf4bf4ec317e82b0079395bdc9c2b5)
find_font(opentype/unifont/unifont.otf
    db1960227adcb14640063e7384fdcd2867aaf819d9ca4866bca289d4db9a9f67 ${unifont} font_unifont)
find_font(opentype/unifont/unifont_upper.otf
    29adae95e09d12c0169319669f82ae814dcafef029526c7c1304d07dd0e6fe1c ${unifont} font_unifont_upper)
