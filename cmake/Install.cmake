# What `cmake --install` puts where, in three components: library, tools, development. Included last by CMakeLists.txt.
# The library goes to lib, lib64 or lib/<triplet>, as GNUInstallDirs finds right for the prefix; bin/gpucap finds it there.
# Man pages (man/*.scd) and completions (completions/{bash,zsh,fish}) come along if they are there when configuring.
include(GNUInstallDirs)
if(GPUCAP_SANITIZE)
  return()
endif()
set(packaging ${CMAKE_SOURCE_DIR}/packaging)
set(install_work ${CMAKE_BINARY_DIR}/install)
set(doc_folder ${CMAKE_INSTALL_DATADIR}/doc)

install(TARGETS gpucap_shim LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
install(TARGETS gpucap gpucap-top RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
file(GLOB manuals CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/*.md)
install(FILES README.md CHANGELOG.md ${manuals} DESTINATION ${doc_folder}/gpucap COMPONENT tools)

# For programs of other people that read the figures: the formats, as headers of plain C.
install(FILES wire/layout.h wire/group_layout.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/gpucap COMPONENT development)
install(FILES docs/wire-format.md DESTINATION ${doc_folder}/libgpucap-dev COMPONENT development)
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${install_work}/gpucapConfigVersion.cmake COMPATIBILITY SameMajorVersion ARCH_INDEPENDENT)
configure_package_config_file(${packaging}/gpucapConfig.cmake.in ${install_work}/gpucapConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_DATADIR}/cmake/gpucap PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
install(FILES ${install_work}/gpucapConfig.cmake ${install_work}/gpucapConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_DATADIR}/cmake/gpucap COMPONENT development)
configure_file(${packaging}/gpucap-wire.pc.in ${install_work}/gpucap-wire.pc @ONLY)
install(FILES ${install_work}/gpucap-wire.pc DESTINATION ${CMAKE_INSTALL_DATADIR}/pkgconfig COMPONENT development)

# Each package tells its licence and its history where a system looks for them, and the licences of what is compiled in, as
# this machine's packages state them.
string(TIMESTAMP today "%a, %d %b %Y %H:%M:%S +0000" UTC) # of SOURCE_DATE_EPOCH, where that is set
configure_file(${packaging}/changelog.in ${install_work}/changelog @ONLY)
find_program(GZIP_PROGRAM gzip REQUIRED)
execute_process(COMMAND ${GZIP_PROGRAM} -9nc ${install_work}/changelog OUTPUT_FILE ${install_work}/changelog.gz
  COMMAND_ERROR_IS_FATAL ANY)
file(GLOB third_party /usr/share/doc/libspdlog-dev/copyright /usr/share/doc/libfmt-dev/copyright /usr/share/doc/libcli11-dev/copyright
  /usr/share/doc/nlohmann-json3-dev/copyright /usr/share/doc/libncurses-dev/copyright /usr/share/doc/libstdc++-12-dev/copyright)
foreach(component_package library:libgpucap tools:gpucap development:libgpucap-dev)
  string(REPLACE ":" ";" pair ${component_package})
  list(GET pair 0 component)
  list(GET pair 1 package)
  install(FILES ${packaging}/copyright ${install_work}/changelog.gz DESTINATION ${doc_folder}/${package} COMPONENT ${component})
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/licenses/${package} COMPONENT ${component})
  if(component STREQUAL development)
    continue()
  endif()
  foreach(file ${third_party})
    get_filename_component(origin ${file} DIRECTORY)
    get_filename_component(origin ${origin} NAME)
    install(FILES ${file} RENAME ${origin}.txt DESTINATION ${doc_folder}/${package}/third-party COMPONENT ${component})
  endforeach()
endforeach()

find_program(SCDOC_PROGRAM scdoc)
file(GLOB man_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/man/*.scd)
if(man_sources AND NOT SCDOC_PROGRAM)
  message(STATUS "scdoc was not found: no man pages")
elseif(man_sources)
  set(man_pages "")
  foreach(source ${man_sources})
    get_filename_component(page ${source} NAME_WLE) # gpucap.1
    get_filename_component(section ${page} LAST_EXT)
    string(SUBSTRING ${section} 1 -1 section)
    set(rendered ${CMAKE_BINARY_DIR}/man/${page}.gz)
    add_custom_command(OUTPUT ${rendered} DEPENDS ${source} VERBATIM
      COMMAND sh -c "\"$1\" <\"$2\" | \"$3\" -9n >\"$4\"" sh ${SCDOC_PROGRAM} ${source} ${GZIP_PROGRAM} ${rendered})
    list(APPEND man_pages ${rendered})
    install(FILES ${rendered} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} COMPONENT tools)
  endforeach()
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/man)
  add_custom_target(man_pages ALL DEPENDS ${man_pages})
endif()
foreach(shell_folder bash:bash-completion/completions zsh:zsh/vendor-completions fish:fish/vendor_completions.d)
  string(REPLACE ":" ";" pair ${shell_folder})
  list(GET pair 0 shell)
  list(GET pair 1 folder)
  if(IS_DIRECTORY ${CMAKE_SOURCE_DIR}/completions/${shell})
    install(DIRECTORY completions/${shell}/ DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder} COMPONENT tools)
  endif()
endforeach()
