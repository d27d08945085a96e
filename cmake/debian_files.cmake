# Run by cpack -G DEB on the files that it is about to pack, a folder for each component: adds the
# copyright and the changelog, compresses what Debian wants compressed, and moves what it has elsewhere.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()
find_program(gzip gzip REQUIRED)

foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  set(usr ${CPACK_TEMPORARY_DIRECTORY}/${component}/usr)
  string(TOUPPER ${component} key)
  set(doc ${usr}/share/doc/${CPACK_DEBIAN_${key}_PACKAGE_NAME})
  file(WRITE ${doc}/copyright
"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: stepcast

Files: *
Copyright: the authors of stepcast
License: Apache-2.0
 The full text is in /usr/share/common-licenses/Apache-2.0.
")
  configure_file(${CPACK_STEPCAST_SOURCE}/CHANGELOG.md ${doc}/changelog COPYONLY)
  file(GLOB compressed ${doc}/changelog ${usr}/share/man/man1/*.1)
  execute_process(COMMAND ${gzip} -9nf ${compressed} COMMAND_ERROR_IS_FATAL ANY)
  if(EXISTS ${usr}/share/zsh/site-functions)
    file(RENAME ${usr}/share/zsh/site-functions ${usr}/share/zsh/vendor-completions)
  endif()
endforeach()
