# Records some plans twice: the two files have to be alike, one that was changed has to be told apart.
# Needs RECORD, PYTHON and FOLDER.
set(compare ${CMAKE_CURRENT_LIST_DIR}/compare_answers.py)
foreach(turn first second)
  execute_process(COMMAND ${RECORD} --plans 101 OUTPUT_FILE ${FOLDER}/${turn}.txt
    RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "recording ends with ${result}")
  endif()
endforeach()
execute_process(COMMAND ${PYTHON} ${compare} ${FOLDER}/first.txt ${FOLDER}/second.txt
  RESULT_VARIABLE result OUTPUT_VARIABLE text)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "two records of one version differ:\n${text}")
endif()

# The step time of the first plan becomes longer by 1e-9 of itself.
file(READ ${FOLDER}/first.txt record)
string(REGEX MATCH "\nplan\t0\t[^\t]*" step "${record}")
string(REPLACE "\nplan\t0\t" "" step "${step}")
execute_process(COMMAND ${PYTHON} -c "print(repr(float('${step}') * (1 + 1e-9)))"
  OUTPUT_VARIABLE longer OUTPUT_STRIP_TRAILING_WHITESPACE)
string(REPLACE "\nplan\t0\t${step}\t" "\nplan\t0\t${longer}\t" changed "${record}")
file(WRITE ${FOLDER}/changed.txt "${changed}")
execute_process(COMMAND ${PYTHON} ${compare} ${FOLDER}/first.txt ${FOLDER}/changed.txt
  RESULT_VARIABLE result OUTPUT_VARIABLE text)
if(NOT result EQUAL 1 OR NOT text MATCHES "plan step_time .*1 too far")
  message(FATAL_ERROR "a step longer by 1e-9 goes unnoticed:\n${text}")
endif()
