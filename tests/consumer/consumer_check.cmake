# Installs BUILD, moves what was installed, builds examples/embed against it and looks at what it prints. TORCH is the
# folder of the Python package torch, or empty where the build is without.
cmake_minimum_required(VERSION 3.25)

# configure(FOLDER ARGUMENTS...) -> status, log
function(configure folder)
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -S "${SOURCE}/examples/embed" -B "${WORK}/${folder}" "-DCMAKE_PREFIX_PATH=${WORK}/moved"
            "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}" ${ARGN}
    RESULT_VARIABLE status OUTPUT_VARIABLE log ERROR_VARIABLE log)
  set(status ${status} PARENT_SCOPE)
  set(log "${log}" PARENT_SCOPE)
endfunction()

# run(PROGRAM ARGUMENTS...) -> output
function(run program)
  execute_process(COMMAND "${WORK}/build/${program}" ${ARGN} OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(check_search)
  run(search)
  string(REGEX MATCHALL "configuration [0-9]+: lr [^\n]+ epochs, loss " configurations "${output}")
  list(LENGTH configurations count)
  string(REGEX MATCHALL ", 9 epochs, loss [^\n]+ COMPLETE" complete "${output}")
  list(LENGTH complete completed)
  # Hyperband's brackets for 9 epochs and eta 3: 9, 5 and 3 configurations, of which 1, 1 and 3 train to the end.
  if(NOT count EQUAL 17 OR NOT completed EQUAL 5 OR NOT output MATCHES "best: configuration [0-9]+\n")
    message(FATAL_ERROR "search: found ${count} configurations, ${completed} complete, wanted 17 and 5:\n${output}")
  endif()
endfunction()

# Four curves, each its own, each falling.
function(check_train)
  run(train ${ARGN})
  set(last_losses "")
  foreach(rate 0.03 0.01 0.003 0.001)
    string(REGEX MATCH "lr ${rate}: train_loss ([0-9. ]+)\n" line "${output}")
    string(REPLACE " " ";" losses "${CMAKE_MATCH_1}")
    list(LENGTH losses epochs)
    list(GET losses 0 first)
    list(GET losses -1 last)
    if(NOT epochs EQUAL 6 OR NOT last LESS first)
      message(FATAL_ERROR "train: lr ${rate}: found ${epochs} losses from ${first} to ${last}, wanted 6 that fall:\n${output}")
    endif()
    list(APPEND last_losses ${last})
  endforeach()
  list(REMOVE_DUPLICATES last_losses)
  list(LENGTH last_losses curves)
  if(NOT curves EQUAL 4)
    message(FATAL_ERROR "train: found ${curves} different curves, wanted 4:\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE "${WORK}")
execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/installed" --component development
                OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
file(RENAME "${WORK}/installed" "${WORK}/moved")
file(GLOB_RECURSE package "${WORK}/moved/*.cmake")
foreach(file IN LISTS package)
  file(READ "${file}" text)
  foreach(leak "${SOURCE}/" "${BUILD}/" "-Werror")
    string(FIND "${text}" "${leak}" at)
    if(NOT at EQUAL -1)
      message(FATAL_ERROR "${file} holds '${leak}', which consumers must not see")
    endif()
  endforeach()
endforeach()

# Without LibTorch: the search alone.
configure(plain -DHFTA_TORCH_DIR=/nonexistent)
if(NOT status EQUAL 0 OR NOT log MATCHES "Without train")
  message(FATAL_ERROR "without LibTorch: found status ${status}, wanted a configured build:\n${log}")
endif()
file(WRITE "${WORK}/misspelt/CMakeLists.txt"
     "cmake_minimum_required(VERSION 3.25)\nproject(misspelt CXX)\nfind_package(hfta REQUIRED COMPONENTS serch)\n")
execute_process(COMMAND "${CMAKE_COMMAND}" -S "${WORK}/misspelt" -B "${WORK}/misspelt/build"
                        "-DCMAKE_PREFIX_PATH=${WORK}/moved" "-DCMAKE_CXX_COMPILER=${COMPILER}"
                RESULT_VARIABLE status OUTPUT_VARIABLE log ERROR_VARIABLE log)
if(status EQUAL 0 OR NOT log MATCHES "no component serch")
  message(FATAL_ERROR "a component that there is not: found status ${status}, wanted an error that names it:\n${log}")
endif()
configure(build "-DHFTA_TORCH_DIR=${TORCH}")
if(NOT status EQUAL 0)
  message(FATAL_ERROR "examples/embed does not configure:\n${log}")
endif()
execute_process(COMMAND "${CMAKE_COMMAND}" --build "${WORK}/build" OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
check_search()
if(TORCH)
  check_train()
  check_train("${SOURCE}/tests/fusion/pt2/golden/torch-2.11.pt2")
endif()
