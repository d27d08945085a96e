# cmake -DBENCH=PROGRAM -DFILTER=REGEX -DMOST=N -DUNIT=ns [-DCOUNTER=NAME] -P check_median.cmake
# Fails when the median of a benchmark that FILTER names exceeds MOST, in the unit in which it
# reports, on a machine as fast as the one that times were promised for: a slower one, as the
# reference work of the same run shows, has as many times longer (reference.h). Processor time is
# compared, because others may share the machine, or the counter that COUNTER names, in UNIT.
#
# Others slow a machine down within a run as well, and never make it faster: what was too slow is
# measured again, and fails when it always is. They slow some work more than other work, too: where
# the reference takes more than twice as long, what is too slow tells nothing, and is skipped.
cmake_minimum_required(VERSION 3.25)
if(NOT COUNTER)
  set(COUNTER cpu_time)
endif()
set(rounds 3)

# Sets `slow` to the benchmarks that took too long.
function(measure)
  execute_process(
    COMMAND ${BENCH} --benchmark_filter=${FILTER}|^Reference$ --benchmark_min_time=0.02
      --benchmark_repetitions=9 --benchmark_enable_random_interleaving=true
      --benchmark_report_aggregates_only=true --benchmark_format=json
    OUTPUT_VARIABLE json
    ERROR_VARIABLE ignored
    RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "${BENCH} ended with ${failed}: ${ignored}")
  endif()
  string(JSON count LENGTH "${json}" benchmarks)
  math(EXPR last "${count} - 1")
  set(slowness "")
  foreach(i RANGE ${last})
    string(JSON name GET "${json}" benchmarks ${i} name)
    if(name STREQUAL Reference_median)
      string(JSON slowness GET "${json}" benchmarks ${i} slowness)
    endif()
  endforeach()
  if(slowness STREQUAL "")
    message(FATAL_ERROR "${BENCH} has no reference")
  endif()
  execute_process(
    COMMAND awk "BEGIN { print ${MOST} * (${slowness} > 1 ? ${slowness} : 1) }"
    OUTPUT_VARIABLE allowed OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  message(STATUS "the machine takes ${slowness} times as long: ${allowed} ${UNIT} for ${MOST}")
  set(medians 0)
  set(too_slow "")
  foreach(i RANGE ${last})
    string(JSON aggregate GET "${json}" benchmarks ${i} aggregate_name)
    string(JSON name GET "${json}" benchmarks ${i} run_name)
    if(NOT aggregate STREQUAL median OR name STREQUAL Reference)
      continue()
    endif()
    math(EXPR medians "${medians} + 1")
    string(JSON unit GET "${json}" benchmarks ${i} time_unit)
    if(COUNTER STREQUAL cpu_time AND NOT unit STREQUAL UNIT)
      message(FATAL_ERROR "${name} reports in ${unit}, not in ${UNIT}")
    endif()
    string(JSON time GET "${json}" benchmarks ${i} ${COUNTER})
    message(STATUS "${name}: ${time} ${UNIT}")
    if(time GREATER allowed)
      list(APPEND too_slow "${name}")
    endif()
  endforeach()
  if(medians EQUAL 0)
    message(FATAL_ERROR "no benchmark matches ${FILTER}")
  endif()
  set(slow "${too_slow}" PARENT_SCOPE)
  set(slowness "${slowness}" PARENT_SCOPE)
endfunction()

measure()
set(always "${slow}")
foreach(round RANGE 2 ${rounds})
  if(NOT always)
    break()
  endif()
  message(STATUS "too slow, and measured again: ${always}")
  measure()
  set(both "")
  foreach(name IN LISTS always)
    if(name IN_LIST slow)
      list(APPEND both "${name}")
    endif()
  endforeach()
  set(always "${both}")
endforeach()
if(always AND slowness GREATER 2)
  message(STATUS "skipped: the machine takes ${slowness} times as long")
elseif(always)
  message(FATAL_ERROR "slower than ${MOST} ${UNIT}, ${rounds} times: ${always}")
endif()
