# Makes the page of html.hpp one text: cmake -DOUT=page.cpp -P embed_page.cmake
# The policy in page.html allows the one script and the one style by their hashes, nothing else.
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

set(folder "${CMAKE_CURRENT_LIST_DIR}")
file(READ "${folder}/page.html" page)
foreach(part page walk)
    file(READ "${folder}/${part}.css" text)
    string(APPEND style "${text}")
endforeach()
# One script: a later part may use what an earlier one defines as it begins, every part at work.
foreach(part data chosen colors labels map bars lines grid address save walk page)
    file(READ "${folder}/${part}.js" text)
    string(APPEND script "${text}")
endforeach()
foreach(part style script)
    source_hash("\n${${part}}" hash)
    string(REPLACE "{{${part}_hash}}" "${hash}" page "${page}")
    string(REPLACE "{{${part}}}\n" "${${part}}" page "${page}")
endforeach()

file(WRITE "${OUT}" "// Made of io/plot/page by embed_page.cmake.
#include <string_view>

namespace attn::io {
extern const std::string_view page_template;
const std::string_view page_template = R\"page(${page})page\";
}  // namespace attn::io
")
