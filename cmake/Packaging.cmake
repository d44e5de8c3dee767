# .deb, .rpm and .tar.gz, one package a component of Install.cmake. scripts/package.sh runs cpack once for each kind, since
# each kind has its own place for libraries; cpack_config.cmake says which prefix goes with which.
if(GPUCAP_SANITIZE)
  return()
endif()
set(CPACK_PACKAGE_NAME gpucap)
set(CPACK_PACKAGE_VENDOR "The gpucap developers")
set(CPACK_PACKAGE_CONTACT "The gpucap developers <gpucap@example.org>")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_SOURCE_DIR}/packaging/cpack_config.cmake)
set(CPACK_COMPONENTS_ALL library tools development)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_SYSTEM_NAME linux-${CMAKE_SYSTEM_PROCESSOR})
string(TOLOWER ${CPACK_SYSTEM_NAME} CPACK_SYSTEM_NAME)
set(CPACK_PACKAGE_FILE_NAME gpucap-${PROJECT_VERSION}-${CPACK_SYSTEM_NAME})

set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "caps the GPU memory of any CUDA program
 The library that is preloaded into a program (LD_PRELOAD) and makes the
 card look smaller to it. At the cap the program gets CUDA's plain
 out-of-memory error.")
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "launcher and reader for capped CUDA programs
 gpucap starts a program under a cap of GPU memory; gpucap-top shows which
 program uses how much of which cap, and what was refused.")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "format of gpucap's figures, for programs that read them
 The header gpucap/layout.h with a pkg-config file and a CMake package. It
 describes the files in shared memory in which gpucap publishes its figures.")

set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_RELEASE "")
if(CMAKE_SYSTEM_PROCESSOR STREQUAL aarch64)
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
endif()
set(libc_dependency "libc6")
if(GPUCAP_GLIBC_FLOOR)
  set(libc_dependency "libc6 (>= ${GPUCAP_GLIBC_FLOOR})")
endif()
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libgpucap)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS "${libc_dependency}")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${CMAKE_SOURCE_DIR}/packaging/triggers)
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME gpucap)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "${libc_dependency}, libgpucap (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libgpucap-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_ARCHITECTURE all)

set(CPACK_RPM_COMPONENT_INSTALL ON)
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_LICENSE "Apache-2.0")
set(CPACK_RPM_PACKAGE_RELEASE 1)
set(CPACK_RPM_LIBRARY_PACKAGE_NAME libgpucap)
set(CPACK_RPM_LIBRARY_PACKAGE_SUMMARY "Caps the GPU memory of any CUDA program")
set(CPACK_RPM_TOOLS_PACKAGE_NAME gpucap)
set(CPACK_RPM_TOOLS_PACKAGE_SUMMARY "Launcher and reader for capped CUDA programs")
set(CPACK_RPM_TOOLS_PACKAGE_REQUIRES "libgpucap = ${PROJECT_VERSION}")
set(CPACK_RPM_DEVELOPMENT_PACKAGE_NAME gpucap-devel)
set(CPACK_RPM_DEVELOPMENT_PACKAGE_SUMMARY "Format of gpucap's figures, for programs that read them")
set(CPACK_RPM_DEVELOPMENT_PACKAGE_ARCHITECTURE noarch)
# Nothing of the machine or the moment that builds it.
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/packaging/same_time.cmake)
set(CPACK_RPM_SPEC_MORE_DEFINE "%define _buildhost localhost
%define use_source_date_epoch_as_buildtime 1
%define clamp_mtime_to_source_date_epoch 1
%define source_date_epoch_from_changelog 0
%define _build_id_links none
%define __os_install_post %{nil}")
# Folders that every system of this kind has. Those of the shells are the packages' own too: they go with the last of them.
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION /usr/share/man /usr/share/man/man1 /usr/share/man/man5 /usr/share/man/man7 /usr/share/pkgconfig
  /usr/share/doc /usr/share/licenses)
include(CPack)
