# Makes a page one text: page.html and the STYLES and SCRIPTS of FOLDER, with the head of every page that the program
# writes.
#     cmake -DOUT=FILE -DNAME=page -DNAMESPACE=attn::io -DFOLDER=FOLDER "-DSTYLES=a b" "-DSCRIPTS=c d" -P embed_page.cmake
cmake_minimum_required(VERSION 3.24)

# "sha256-" and the digest as base64, as Content-Security-Policy wants it.
function(source_hash text out)
    set(digits ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
    string(SHA256 hex "${text}")
    string(APPEND hex "00")  # 32 bytes are 10 groups of three and two more
    foreach(at RANGE 0 60 6)
        string(SUBSTRING "${hex}" ${at} 6 group)
        foreach(shift 18 12 6 0)
            math(EXPR digit "(0x${group} >> ${shift}) & 63")
            string(SUBSTRING "${digits}" ${digit} 1 digit)
            string(APPEND base64 "${digit}")
        endforeach()
    endforeach()
    string(SUBSTRING "${base64}" 0 43 base64)
    set(${out} "sha256-${base64}=" PARENT_SCOPE)
endfunction()

file(READ "${FOLDER}/page.html" page)
file(READ "${CMAKE_CURRENT_LIST_DIR}/head.html" head)
file(READ "${CMAKE_CURRENT_LIST_DIR}/ground.css" style)
separate_arguments(STYLES)
foreach(part ${STYLES})
    file(READ "${FOLDER}/${part}.css" text)
    string(APPEND style "${text}")
endforeach()
# One script: a later part may use what an earlier one defines as it begins, every part at work.
set(script "")
separate_arguments(SCRIPTS)
foreach(part ${SCRIPTS})
    file(READ "${FOLDER}/${part}.js" text)
    string(APPEND script "${text}")
endforeach()

# Its style and its script are allowed, by their hashes, or pictures that are in the page.
source_hash("\n${style}" style_hash)
set(policy "img-src data:")
if(SCRIPTS)
    source_hash("\n${script}" hash)
    set(policy "script-src '${hash}'")
endif()
string(REPLACE "{{policy}}" "${policy}" head "${head}")
string(REPLACE "{{style_hash}}" "${style_hash}" head "${head}")
string(REPLACE "{{style}}\n" "${style}" head "${head}")
string(REPLACE "{{head}}\n" "${head}" page "${page}")
string(REPLACE "{{script}}\n" "${script}" page "${page}")

file(WRITE "${OUT}" "// Made by embed_page.cmake.
#include <string_view>

// The standard asks compilers for 65,536 characters at least; those that build this take more.
#pragma GCC diagnostic ignored \"-Woverlength-strings\"

namespace ${NAMESPACE} {
// NOLINTNEXTLINE(readability-redundant-declaration): its header may be in the same unit
extern const std::string_view ${NAME};
const std::string_view ${NAME} = R\"page(${page})page\";
}  // namespace ${NAMESPACE}
")
