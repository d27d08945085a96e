# cmake -DBENCH=PROGRAM -DFILTER=REGEX -DMOST=N -DUNIT=ns [-DCOUNTER=NAME] -P check_least.cmake
# Fails when a benchmark that FILTER names exceeds MOST, in the unit in which it reports, on a
# machine as fast as the one that times were promised for: a slower one, as the reference work
# beside it shows, has as many times longer (reference.h), and a tenth more, by which the ratio of
# two works differs from machine to machine. Processor time is compared, because others may share
# the machine, or the counter that COUNTER names, in UNIT.
#
# Others slow a machine down within a run as well, some work more than other work, and never make
# it faster: what counts is the least of all repetitions, of a benchmark and of the reference. What
# was too slow is measured again, and fails when it still is. Where the reference always takes more
# than twice as long, what is too slow tells nothing, and is skipped.
cmake_minimum_required(VERSION 3.25)
if(NOT COUNTER)
  set(COUNTER cpu_time)
endif()
set(rounds 10)
set(names "")
set(slowness "")

# Sets `least_NAME` of each of the `names`, and `slowness`, to the least until now.
macro(measure)
  execute_process(
    COMMAND ${BENCH} --benchmark_filter=${FILTER}|^Reference$ --benchmark_min_time=0.01
      --benchmark_repetitions=15 --benchmark_enable_random_interleaving=true
      --benchmark_format=json
    OUTPUT_VARIABLE json
    ERROR_VARIABLE ignored
    RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "${BENCH} ended with ${failed}: ${ignored}")
  endif()
  string(JSON runs GET "${json}" benchmarks)
  string(JSON count LENGTH "${runs}")
  math(EXPR last "${count} - 1")
  foreach(i RANGE ${last})
    string(JSON run GET "${runs}" ${i})
    string(JSON type GET "${run}" run_type)
    string(JSON name GET "${run}" run_name)
    if(NOT type STREQUAL iteration)
      continue()
    elseif(name STREQUAL Reference)
      string(JSON time GET "${run}" slowness)
      if(slowness STREQUAL "" OR time LESS slowness)
        set(slowness ${time})
      endif()
      continue()
    endif()
    string(JSON unit GET "${run}" time_unit)
    if(COUNTER STREQUAL cpu_time AND NOT unit STREQUAL UNIT)
      message(FATAL_ERROR "${name} reports in ${unit}, not in ${UNIT}")
    endif()
    string(JSON time GET "${run}" ${COUNTER})
    if(NOT name IN_LIST names)
      list(APPEND names "${name}")
      set("least_${name}" ${time})
    elseif(time LESS "${least_${name}}")
      set("least_${name}" ${time})
    endif()
  endforeach()
endmacro()

foreach(round RANGE 1 ${rounds})
  measure()
  if(NOT names)
    message(FATAL_ERROR "no benchmark matches ${FILTER}")
  elseif(slowness STREQUAL "")
    message(FATAL_ERROR "${BENCH} has no reference")
  endif()
  execute_process(
    COMMAND awk "BEGIN { print 1.1 * ${MOST} * (${slowness} > 1 ? ${slowness} : 1) }"
    OUTPUT_VARIABLE allowed OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  message(STATUS "the machine takes ${slowness} times as long: ${allowed} ${UNIT} for ${MOST}")
  set(too_slow "")
  foreach(name IN LISTS names)
    message(STATUS "${name}: ${least_${name}} ${UNIT}")
    if(least_${name} GREATER allowed)
      list(APPEND too_slow "${name}")
    endif()
  endforeach()
  if(NOT too_slow)
    return()
  endif()
  message(STATUS "too slow: ${too_slow}")
  if(round LESS rounds)
    execute_process(COMMAND ${CMAKE_COMMAND} -E sleep 1)
  endif()
endforeach()
if(slowness GREATER 2)
  message(STATUS "skipped: the machine takes ${slowness} times as long")
else()
  message(FATAL_ERROR "slower than ${MOST} ${UNIT} in ${rounds} rounds: ${too_slow}")
endif()
