# What every target of this project shares: language, warnings, instrumentation, include root.

# Flags for our own code only; dependencies are SYSTEM and never judged by them.
add_library(stepcast_build_flags INTERFACE)
target_compile_features(stepcast_build_flags INTERFACE cxx_std_20)
# CUDA sources have a compiler of their own, which does not know these.
set(cxx_only "$<COMPILE_LANGUAGE:CXX>")
target_compile_options(stepcast_build_flags INTERFACE
  "$<${cxx_only}:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wnon-virtual-dtor;-Wimplicit-fallthrough>"
  # g++ 12 warns wrongly about "literal" + std::string() in optimised code (GCC bug 105651).
  $<$<AND:${cxx_only},$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)
# Instrumented code makes the compiler guess wrongly; there, warnings stay warnings.
if(STEPCAST_WERROR AND NOT STEPCAST_SANITIZE)
  target_compile_options(stepcast_build_flags INTERFACE "$<${cxx_only}:-Werror>")
endif()
if(STEPCAST_SANITIZE)
  target_compile_options(stepcast_build_flags INTERFACE
    "$<${cxx_only}:-fsanitize=${STEPCAST_SANITIZE};-fno-omit-frame-pointer;-fno-sanitize-recover=all>")
  target_link_options(stepcast_build_flags INTERFACE -fsanitize=${STEPCAST_SANITIZE})
endif()
if(STEPCAST_COVERAGE)
  target_compile_options(stepcast_build_flags INTERFACE
    "$<${cxx_only}:--coverage;-fprofile-update=atomic>")
  target_link_options(stepcast_build_flags INTERFACE --coverage)
endif()

# With CMAKE_UNITY_BUILD the sources of a target are compiled eight at a time, so that headers are read
# once for them: a first build takes much less time, a change of one source more. What is
# private to a source then is told apart by name; that it lies in an included source is no fault.
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(stepcast_build_flags INTERFACE "$<${cxx_only}:-Wno-subobject-linkage>")
endif()

# stepcast_library(ROOM source ...) makes the library stepcast::ROOM. Headers are included by their
# place in the source tree ("data/record/run.h"); users outside write <stepcast/data/record/run.h>.
function(stepcast_library room)
  add_library(stepcast_${room} ${ARGN})
  add_library(stepcast::${room} ALIAS stepcast_${room})
  target_compile_features(stepcast_${room} PUBLIC cxx_std_20)
  target_include_directories(stepcast_${room} PUBLIC
    $<BUILD_INTERFACE:${stepcast_SOURCE_DIR}>
    $<BUILD_INTERFACE:${stepcast_BINARY_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/stepcast>)
  target_link_libraries(stepcast_${room} PRIVATE $<BUILD_INTERFACE:stepcast_build_flags>)
  # The binary interface changes with the minor number, as long as the major one is 0.
  set_target_properties(stepcast_${room} PROPERTIES
    EXPORT_NAME ${room} POSITION_INDEPENDENT_CODE ON
    VERSION ${stepcast_VERSION} SOVERSION ${stepcast_VERSION_MAJOR}.${stepcast_VERSION_MINOR})
  get_target_property(type stepcast_${room} TYPE)
  if(type STREQUAL "SHARED_LIBRARY" AND NOT APPLE)
    set(map ${stepcast_SOURCE_DIR}/cmake/exports.map)
    target_link_options(stepcast_${room} PRIVATE -Wl,--version-script=${map})
    set_target_properties(stepcast_${room} PROPERTIES LINK_DEPENDS ${map})
  endif()
  set(export stepcast-targets)
  # Apart, so that who only predicts needs neither Ceres nor a parser of files.
  if(room MATCHES "^(io|calibrate)$")
    set(export stepcast-${room}-targets)
  endif()
  install(TARGETS stepcast_${room} EXPORT ${export}
    LIBRARY COMPONENT runtime NAMELINK_COMPONENT development)
endfunction()

# Shared libraries find each other, and the program and its modules find them, wherever they lie.
if(BUILD_SHARED_LIBS)
  set(CMAKE_INSTALL_RPATH "$ORIGIN;$ORIGIN/..;$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
endif()

# stepcast_inline_all(SOURCE): of a library in this folder, arithmetic on numbers with twenty
# derivatives, half of which would be copying them between functions that g++ finds too large to inline.
function(stepcast_inline_all source)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT STEPCAST_SANITIZE)
    set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS
      "--param=large-function-growth=2000;--param=inline-unit-growth=1000;--param=max-inline-insns-auto=400;--param=large-unit-insns=100000;--param=large-stack-frame-growth=10000")
  endif()
endfunction()

# stepcast_wide_loops(SOURCE): of a library in this folder, loops of one kind of arithmetic. Nobody asks
# whether a root or a comparison set errno or a flag; without that they take several numbers at once.
# Results are the same bits.
function(stepcast_wide_loops source)
  set_source_files_properties(${source} PROPERTIES
    COMPILE_OPTIONS "-fno-math-errno;-fno-trapping-math")
endfunction()

# <stepcast/...> in the build tree is the source tree.
file(MAKE_DIRECTORY ${stepcast_BINARY_DIR}/include)
file(CREATE_LINK ${stepcast_SOURCE_DIR} ${stepcast_BINARY_DIR}/include/stepcast SYMBOLIC)
