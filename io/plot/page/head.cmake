# The head of every page that the program writes.
set(head_folder "${CMAKE_CURRENT_LIST_DIR}")

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

# Replaces {{head}} in the text with this name by the background colours and a style, and by a policy that
# allows only this style, by its hash, and the contents of `policy`.
function(add_head text_name policy style)
    file(READ "${head_folder}/head.html" head)
    file(READ "${head_folder}/ground.css" ground)
    set(style "${ground}${style}")
    source_hash("\n${style}" hash)
    string(REPLACE "{{policy}}" "${policy}" head "${head}")
    string(REPLACE "{{style_hash}}" "${hash}" head "${head}")
    string(REPLACE "{{style}}\n" "${style}" head "${head}")
    string(REPLACE "{{head}}\n" "${head}" text "${${text_name}}")
    set(${text_name} "${text}" PARENT_SCOPE)
endfunction()
