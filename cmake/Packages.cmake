# Debian packages: `cpack -G DEB` in the build tree makes one of each component.
#
#   libstepcast0      runtime       the C library
#   libstepcast-dev   development   headers, static C++ libraries, files for CMake and pkg-config
#   stepcast          cli           the program, its modules, manual pages, completion
#   python3-stepcast  python        the package for Python
#   stepcast-data     data          machines, measurements and profiles: text for every architecture,
#                                   which program and Python both read and which changes without them
#
# The component cuda, the GPU's back end, is in none: its libraries are in no package of Debian.
if(BUILD_SHARED_LIBS)
  return()  # the packages have static C++ libraries
endif()
set(STEPCAST_MAINTAINER "stepcast <root@localhost>" CACHE STRING
  "Maintainer of the Debian packages: who builds them")

set(CPACK_PACKAGE_VENDOR stepcast)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each has its own
set(CPACK_PACKAGE_CONTACT "${STEPCAST_MAINTAINER}")
set(CPACK_RESOURCE_FILE_LICENSE ${stepcast_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# Adds what a package of Debian has beside its files.
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/debian_files.cmake)
set(CPACK_STEPCAST_SOURCE ${stepcast_SOURCE_DIR})

# stepcast_package(COMPONENT NAME SECTION DEPENDS TEXT), with DEPENDS beside what dpkg-shlibdeps finds.
macro(stepcast_package component name section depends text)
  list(APPEND CPACK_COMPONENTS_ALL ${component})
  string(TOUPPER ${component} key)
  set(CPACK_DEBIAN_${key}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${key}_PACKAGE_SECTION ${section})
  set(CPACK_DEBIAN_${key}_PACKAGE_DEPENDS "${depends}")
  set(CPACK_COMPONENT_${key}_DESCRIPTION "${stepcast_DESCRIPTION}: ${text}")
endmacro()
set(same "(= ${stepcast_VERSION})")

stepcast_package(data stepcast-data science "" "data files
Machines, measurements and profiles of public sources, which the program
and the package for Python know by name.")
set(CPACK_DEBIAN_DATA_PACKAGE_ARCHITECTURE all)
stepcast_package(development libstepcast-dev libdevel
  "libeigen3-dev, libfmt-dev, libyaml-cpp-dev" "development files
Headers and static libraries for C++, files for find_package and, for C,
pkg-config.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_RECOMMENDS "libceres-dev")
if(TARGET stepcast_capi)
  stepcast_package(runtime libstepcast0 libs "" "C library
The shared library for programs in C, Go, Rust and others that call C.")
  set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS stepcast-data)
  string(PREPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libstepcast0 ${same}, ")
endif()
if(TARGET stepcast_program)
  stepcast_package(cli stepcast science "stepcast-data ${same}" "program
How long one step of data-parallel training takes on a cluster and network,
with what certainty, where scaling ends and why, and which batch to use.")
endif()
if(TARGET stepcast_python)
  # The modules are for one minor version.
  get_directory_property(minor DIRECTORY ${stepcast_SOURCE_DIR}/predictor/python
    DEFINITION Python_VERSION_MINOR)
  math(EXPR next "${minor} + 1")
  stepcast_package(python python3-stepcast python
    "python3 (>= 3.${minor}), python3 (<< 3.${next}), python3-numpy, stepcast-data ${same}"
    "package for Python
The library for Python 3, with NumPy arrays of plans and of their forecasts.")
endif()
include(CPack)
