# Headers, libraries, the program, the data files and a package for find_package(stepcast).

set(stepcast_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/stepcast)
set(stepcast_rooms data model predictor)
if(STEPCAST_BUILD_CALIBRATE)
  list(APPEND stepcast_rooms calibrate)  # with calibrate/online
  install(EXPORT stepcast-calibrate-targets NAMESPACE stepcast::
    DESTINATION ${stepcast_package_dir})
else()
  install(DIRECTORY ${stepcast_SOURCE_DIR}/calibrate/online
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stepcast/calibrate FILES_MATCHING PATTERN "*.h")
endif()
install(EXPORT stepcast-targets NAMESPACE stepcast:: DESTINATION ${stepcast_package_dir})
set(stepcast_no_headers)
if(STEPCAST_BUILD_IO)
  install(EXPORT stepcast-io-targets NAMESPACE stepcast:: DESTINATION ${stepcast_package_dir})
else()
  set(stepcast_no_headers PATTERN "data/io" EXCLUDE PATTERN "data/kineto" EXCLUDE)
endif()
if(TARGET stepcast_capi)
  install(EXPORT stepcast-capi-targets NAMESPACE stepcast:: DESTINATION ${stepcast_package_dir})
endif()

# Every header but those of the program and the interfaces, and yaml_section.h and strict_json.h, which need the
# parsers' own headers and are for the readers' sources alone. The test package.find_package compiles all that is installed.
foreach(room IN LISTS stepcast_rooms)
  install(DIRECTORY ${stepcast_SOURCE_DIR}/${room}
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stepcast
    FILES_MATCHING PATTERN "*.h"
    PATTERN "predictor/cli" EXCLUDE PATTERN "predictor/python" EXCLUDE
    PATTERN "predictor/serve" EXCLUDE PATTERN "predictor/capi" EXCLUDE
    PATTERN "predictor/json" EXCLUDE PATTERN "predictor/web" EXCLUDE PATTERN "predictor/active.h" EXCLUDE
    PATTERN "data/io/yaml_section.h" EXCLUDE PATTERN "data/io/strict_json.h" EXCLUDE
    # Of libraries that are not installed; and of one reader's own.
    PATTERN "data/logs" EXCLUDE PATTERN "data/onnx" EXCLUDE PATTERN "data/pcap" EXCLUDE REGEX "data/kineto/(calls|layers|rank_trace|spans|trace)\\.h$" EXCLUDE
    PATTERN "data/dashboards" EXCLUDE PATTERN "data/machines" EXCLUDE PATTERN "data/measurements" EXCLUDE
    PATTERN "data/parameters" EXCLUDE PATTERN "data/profiles" EXCLUDE ${stepcast_no_headers})
endforeach()
foreach(folder dashboards machines measurements parameters profiles)
  if(IS_DIRECTORY ${stepcast_SOURCE_DIR}/data/${folder})
    install(DIRECTORY ${stepcast_SOURCE_DIR}/data/${folder}
      DESTINATION ${CMAKE_INSTALL_DATADIR}/stepcast COMPONENT data)
  endif()
endforeach()
install(FILES ${stepcast_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/stepcast
  COMPONENT license)

configure_package_config_file(${stepcast_SOURCE_DIR}/cmake/stepcast-config.cmake.in
  ${stepcast_BINARY_DIR}/stepcast-config.cmake INSTALL_DESTINATION ${stepcast_package_dir})
write_basic_package_version_file(${stepcast_BINARY_DIR}/stepcast-config-version.cmake
  VERSION ${stepcast_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${stepcast_BINARY_DIR}/stepcast-config.cmake
  ${stepcast_BINARY_DIR}/stepcast-config-version.cmake
  DESTINATION ${stepcast_package_dir})

# Manual pages and completion, which the program writes of its own options.
if(TARGET stepcast_program AND CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
  message(STATUS "The program does not run here: manual pages and completion are left out")
elseif(TARGET stepcast_program)
  set(manual ${stepcast_BINARY_DIR}/manual)
  file(MAKE_DIRECTORY ${manual}/man1)
  set(program ${CMAKE_COMMAND} -E env STEPCAST_DATA=${stepcast_SOURCE_DIR}/data
    ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:stepcast_program>)
  add_custom_command(
    OUTPUT ${manual}/man1/stepcast.1 ${manual}/stepcast ${manual}/_stepcast ${manual}/stepcast.fish
    COMMAND ${program} man --output ${manual}/man1
    COMMAND ${program} completion bash > ${manual}/stepcast
    COMMAND ${program} completion zsh > ${manual}/_stepcast
    COMMAND ${program} completion fish > ${manual}/stepcast.fish
    DEPENDS stepcast_program
    COMMENT "Writing manual pages and completion"
    VERBATIM)
  add_custom_target(stepcast_manual ALL DEPENDS ${manual}/man1/stepcast.1)
  install(DIRECTORY ${manual}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT cli
    FILES_MATCHING PATTERN "*.1")
  set(share ${CMAKE_INSTALL_DATADIR})
  install(FILES ${manual}/stepcast DESTINATION ${share}/bash-completion/completions COMPONENT cli)
  install(FILES ${manual}/_stepcast DESTINATION ${share}/zsh/site-functions COMPONENT cli)
  install(FILES ${manual}/stepcast.fish DESTINATION ${share}/fish/vendor_completions.d
    COMPONENT cli)
endif()
