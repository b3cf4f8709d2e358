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
  set(CMAKE_CXX_COMPILER_LAUNCHER "${HFTA_CCACHE}")
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${HFTA_CCACHE}")
endif()

option(HFTA_STATIC_PACKAGES "Link SQLite, yaml-cpp and Boost statically, for binaries carried to other machines" OFF)
if(HFTA_STATIC_PACKAGES)
  set(Boost_USE_STATIC_LIBS ON)
  find_library(SQLite3_LIBRARY NAMES libsqlite3.a REQUIRED)
endif()
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(Boost REQUIRED COMPONENTS program_options)
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
# torch ships fmt 12 headers that shadow Debian's: header-only use keeps either one from needing a library.
target_link_libraries(hfta_options INTERFACE fmt::fmt-header-only Threads::Threads)
target_include_directories(hfta_options INTERFACE "$<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>")
if(HFTA_FUZZ)
  target_compile_options(hfta_options INTERFACE -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
                                                -fno-omit-frame-pointer)
  target_link_options(hfta_options INTERFACE -fsanitize=address,undefined)
elseif(HFTA_SANITIZE STREQUAL "address")
  target_compile_options(hfta_options INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
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
