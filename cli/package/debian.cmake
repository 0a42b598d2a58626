# What Debian requires in addition to the installed files: a changelog, reasons, and compressed pages. cpack
# runs it where the files are before it packs them.
if(NOT CPACK_GENERATOR STREQUAL DEB)
    return()
endif()
set(share ${CPACK_TEMPORARY_DIRECTORY}/usr/share)

string(TIMESTAMP day "%a, %d %b %Y %H:%M:%S +0000" UTC)  # of SOURCE_DATE_EPOCH
file(WRITE ${share}/doc/attn/changelog
"attn (${CPACK_PACKAGE_VERSION}) unstable; urgency=low

  * Built by the project itself; its CHANGELOG.md says what has changed.

 -- ${CPACK_PACKAGE_CONTACT}  ${day}
")
configure_file(${CMAKE_CURRENT_LIST_DIR}/lintian-overrides ${share}/lintian/overrides/attn COPYONLY)

file(GLOB_RECURSE pages ${share}/man/*.[1-9])
execute_process(COMMAND gzip -9n ${share}/doc/attn/changelog ${pages} COMMAND_ERROR_IS_FATAL ANY)
