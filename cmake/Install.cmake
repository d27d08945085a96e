# Headers, libraries, the program, the data files and a package for find_package(stepcast).

set(stepcast_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/stepcast)
set(stepcast_rooms data model predictor)
if(STEPCAST_BUILD_CALIBRATE)
  list(APPEND stepcast_rooms calibrate)
  install(EXPORT stepcast-calibrate-targets NAMESPACE stepcast::
    DESTINATION ${stepcast_package_dir})
endif()
install(EXPORT stepcast-targets NAMESPACE stepcast:: DESTINATION ${stepcast_package_dir})

# Every header but those of the program and yaml_section.h, which needs yaml-cpp's own headers and
# is for the readers' sources alone. The test package.find_package compiles all that is installed.
foreach(room IN LISTS stepcast_rooms)
  install(DIRECTORY ${stepcast_SOURCE_DIR}/${room}
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stepcast
    FILES_MATCHING PATTERN "*.h"
    PATTERN "predictor/cli" EXCLUDE PATTERN "predictor/python" EXCLUDE
    PATTERN "data/io/yaml_section.h" EXCLUDE
    # Of a library that is not installed; and of one reader's own.
    REGEX "data/io/(import_)?onnx[a-z_]*\\.h$" EXCLUDE REGEX "data/io/kineto_[a-z_]*\\.h$" EXCLUDE
    PATTERN "data/machines" EXCLUDE PATTERN "data/measurements" EXCLUDE
    PATTERN "data/parameters" EXCLUDE PATTERN "data/profiles" EXCLUDE)
endforeach()
foreach(folder machines measurements parameters profiles)
  if(IS_DIRECTORY ${stepcast_SOURCE_DIR}/data/${folder})
    install(DIRECTORY ${stepcast_SOURCE_DIR}/data/${folder}
      DESTINATION ${CMAKE_INSTALL_DATADIR}/stepcast)
  endif()
endforeach()
install(FILES ${stepcast_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/stepcast)

configure_package_config_file(${stepcast_SOURCE_DIR}/cmake/stepcast-config.cmake.in
  ${stepcast_BINARY_DIR}/stepcast-config.cmake INSTALL_DESTINATION ${stepcast_package_dir})
write_basic_package_version_file(${stepcast_BINARY_DIR}/stepcast-config-version.cmake
  VERSION ${stepcast_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${stepcast_BINARY_DIR}/stepcast-config.cmake
  ${stepcast_BINARY_DIR}/stepcast-config-version.cmake
  DESTINATION ${stepcast_package_dir})
