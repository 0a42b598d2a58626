# What the packages are called and what they say of themselves; README.md says how they are made.
set(CPACK_GENERATOR "DEB;TGZ")
set(CPACK_PACKAGE_NAME attn)
set(CPACK_PACKAGE_VENDOR "the attn authors")
set(CPACK_PACKAGE_CONTACT "the attn authors <maintainers@attn.invalid>")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
string(TOLOWER ${CMAKE_SYSTEM_NAME} system)
set(CPACK_PACKAGE_FILE_NAME attn-${PROJECT_VERSION}-${system}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)
set(CPACK_ARCHIVE_UID 0)
set(CPACK_ARCHIVE_GID 0)
set(CPACK_ARCHIVE_THREADS 1)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_BINARY_DIR}/package_options.cmake)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cli/package/debian.cmake)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION math)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "attention of neural networks, computed in the shell
Computes the attention layers of transformers from JSON, CSV, NumPy or
safetensors files: self, causal, multi-head and cross attention and the bare
operator, step by step and with PyTorch's numbers.
.
The package holds the program, its C++ libraries with their headers, and JSON
Schemas of what it writes.")
# The program is static. Those who build with the libraries need what these are made with.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "cmake, g++, libfribidi-dev, libpcre2-dev, libpng-dev, libutf8proc-dev, nlohmann-json3-dev, zlib1g-dev")

# Times are those of the commit, and the same in every build of it.
file(WRITE ${PROJECT_BINARY_DIR}/package_options.cmake "
if(NOT DEFINED ENV{SOURCE_DATE_EPOCH})
    execute_process(COMMAND git -C \"${PROJECT_SOURCE_DIR}\" log -1 --format=%ct
        OUTPUT_VARIABLE time OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(time)
        set(ENV{SOURCE_DATE_EPOCH} \${time})
    endif()
endif()
if(CPACK_GENERATOR STREQUAL DEB)
    set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
endif()
")
include(CPack)
