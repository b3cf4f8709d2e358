# Compile options and packages that every folder shares, and hfta_library(), by which a folder becomes a library.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

find_program(HFTA_CCACHE ccache)
if(HFTA_CCACHE)
  # What ccache wants to be told before it caches files that use a precompiled header (its manual, "Precompiled headers");
  # and that paths below this folder are the same in every clone (scripts/check_mutants builds a copy).
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros
                                  "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" "${HFTA_CCACHE}")
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${HFTA_CCACHE}")
endif()

# What is built carries the run path that it will be installed with. Left to itself CMake pads the build tree's with colons
# so that it can be rewritten in place, and an empty element of a run path is the current folder: the loader would run a
# library that lies where the program was started. tests/cli/loaded_from_test.cpp looks at every binary.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

option(HFTA_STATIC_PACKAGES "Link yaml-cpp and Boost statically, for binaries carried to other machines" OFF)
if(HFTA_STATIC_PACKAGES)
  set(Boost_USE_STATIC_LIBS ON)  # SQLite stays shared: Debian's archive is not made for shared modules such as ours
endif()
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(ZLIB REQUIRED)  # .csv.gz, also in tests
find_package(Boost REQUIRED COMPONENTS program_options)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_path(HFTA_LBFGSPP_INCLUDE LBFGSB.h REQUIRED)  # headers alone; Debian's package has no CMake file
if(HFTA_STATIC_PACKAGES)
  find_library(HFTA_YAML_CPP_ARCHIVE NAMES libyaml-cpp.a REQUIRED)  # Debian's package file names only the shared one
  set_target_properties(yaml-cpp PROPERTIES IMPORTED_LOCATION_NONE "${HFTA_YAML_CPP_ARCHIVE}")
endif()

# Warnings are errors, less -Wrestrict, which g++ 12 raises for any `"text" + string` (GCC bug 105651); products of the
# arithmetic must not depend on how the compiler contracts a*b+c.
add_library(hfta_options INTERFACE)
target_compile_options(hfta_options INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion
                                              -Wno-sign-conversion -Werror -Wno-restrict>
                                              $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
# torch ships fmt 12 headers that shadow Debian's: header-only use keeps either one from needing a library. Without torch,
# and with sanitizers in it, that would be half of the time that the build takes.
if(HFTA_SANITIZE AND NOT HFTA_WITH_TORCH)
  target_link_libraries(hfta_options INTERFACE fmt::fmt Threads::Threads)
else()
  target_link_libraries(hfta_options INTERFACE fmt::fmt-header-only Threads::Threads)
endif()
target_include_directories(hfta_options INTERFACE "$<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>")
if(HFTA_FUZZ AND NOT (HFTA_SANITIZE STREQUAL "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang"))
  message(FATAL_ERROR "HFTA_FUZZ wants clang and HFTA_SANITIZE=address: cmake --preset asan")
endif()
if(HFTA_SANITIZE STREQUAL "address")
  target_compile_definitions(hfta_options INTERFACE _GLIBCXX_ASSERTIONS)  # an index beyond a vector's end is a finding
  target_compile_options(hfta_options INTERFACE
    -fsanitize=$<$<BOOL:${HFTA_FUZZ}>:fuzzer-no-link$<COMMA>>address,undefined,float-cast-overflow
    -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(hfta_options INTERFACE -fsanitize=address,undefined)
elseif(HFTA_SANITIZE STREQUAL "thread")
  target_compile_options(hfta_options INTERFACE -fsanitize=thread)
  target_link_options(hfta_options INTERFACE -fsanitize=thread)
elseif(HFTA_SANITIZE)
  message(FATAL_ERROR "HFTA_SANITIZE is '${HFTA_SANITIZE}', wanted address, thread or empty")
endif()

# hfta_library(NAME SOURCES... DEPENDS TARGETS...): the static library hfta_NAME, also known as hfta::NAME. Who links an
# installed one gets none of hfta_options: warnings are ours, and no public header needs fmt.
function(hfta_library name)
  cmake_parse_arguments(LIB "" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  add_library(hfta_${name} STATIC ${LIB_SOURCES})
  add_library(hfta::${name} ALIAS hfta_${name})
  set_target_properties(hfta_${name} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(hfta_${name} PUBLIC cxx_std_20)
  target_link_libraries(hfta_${name} PUBLIC $<BUILD_INTERFACE:hfta_options> Threads::Threads ${LIB_DEPENDS}
                                     PRIVATE ${LIB_PRIVATE_DEPENDS})
endfunction()

# hfta_precompile_aten(TARGETS...): the targets' sources start from the precompiled <ATen/ATen.h> of hfta_aten, which is
# parsed once (30 s, 390 MB) instead of once per file (20 s each). Sources still include what they use.
function(hfta_precompile_aten)
  if(NOT TARGET hfta_aten)
    file(GENERATE OUTPUT "${CMAKE_BINARY_DIR}/hfta_aten.cpp" CONTENT "// Nothing but its precompiled header.\n")
    add_library(hfta_aten OBJECT "${CMAKE_BINARY_DIR}/hfta_aten.cpp")
    target_link_libraries(hfta_aten PRIVATE hfta_options hfta_torch)
    target_precompile_headers(hfta_aten PRIVATE <ATen/ATen.h>)
    target_compile_options(hfta_aten PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  endif()
  foreach(target IN LISTS ARGN)
    # One header serves libraries and programs only if both are compiled with -fPIC; CMake gives programs -fPIE.
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")
      set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
      target_compile_options(${target} PRIVATE -fPIC)
    endif()
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
    target_precompile_headers(${target} REUSE_FROM hfta_aten)
  endforeach()
endfunction()
