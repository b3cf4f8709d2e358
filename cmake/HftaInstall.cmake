# The install tree: what it takes to tune, less LibTorch, which stays where its Python package put it.
#
#   bin/hfta-tune   lib/libhfta_torch.so   share/hfta-tune/{data,configs}   share/doc/hfta-tune
#
# The module carries the path of the LibTorch it was built with; HFTA_TORCH_DIR in the environment names another.
# What it takes to embed the libraries is the component `development` (docs/embedding.md):
#
#   include/hfta/{base,trials,search,fusion}/*.hpp   lib/libhfta_*.a   lib/cmake/hfta
include(GNUInstallDirs)
if(TARGET hfta-tune)
  install(TARGETS hfta-tune RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(TARGET hfta_torch_module)
  # Not CMAKE_INSTALL_LIBDIR, which may be lib/x86_64-linux-gnu: hfta-tune looks in ../lib.
  install(TARGETS hfta_torch_module LIBRARY DESTINATION lib)
endif()
if(TARGET hfta_cuda_graphs)
  install(TARGETS hfta_cuda_graphs LIBRARY DESTINATION lib)
endif()
install(DIRECTORY data/ DESTINATION share/hfta-tune/data)
install(DIRECTORY configs/ DESTINATION share/hfta-tune/configs FILES_MATCHING PATTERN "*.yaml" PATTERN "README.md")
install(FILES LICENSE THIRD_PARTY.md README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(HFTA_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/hfta)
# A folder's own headers are public, those of its subfolders are not.
foreach(folder base trials search fusion)
  file(GLOB headers CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/${folder}/*.hpp")
  install(FILES ${headers} DESTINATION include/hfta/${folder} COMPONENT development)
endforeach()

# hfta_install_libraries(NAMES... ): export set EXPORT, file EXPORT.cmake.
function(hfta_install_libraries export)
  list(TRANSFORM ARGN PREPEND hfta_ OUTPUT_VARIABLE targets)
  install(TARGETS ${targets} EXPORT ${export} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
          INCLUDES DESTINATION include/hfta)
  install(EXPORT ${export} NAMESPACE hfta:: DESTINATION ${HFTA_PACKAGE_DIR} COMPONENT development)
endfunction()
hfta_install_libraries(hfta-targets base trials search simd threads optimizers metrics graph)
if(HFTA_WITH_TORCH)
  hfta_install_libraries(hfta-array-targets random collectives codec cuda cpu array)
endif()

include(CMakePackageConfigHelpers)
get_property(HFTA_TORCH_VERSION GLOBAL PROPERTY HFTA_TORCH_VERSION)
get_property(HFTA_CUDA_FOUND GLOBAL PROPERTY HFTA_CUDA_FOUND)
configure_package_config_file(cmake/hfta-config.cmake.in "${CMAKE_BINARY_DIR}/hfta-config.cmake"
                              INSTALL_DESTINATION ${HFTA_PACKAGE_DIR})
write_basic_package_version_file("${CMAKE_BINARY_DIR}/hfta-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/hfta-config.cmake" "${CMAKE_BINARY_DIR}/hfta-config-version.cmake"
              cmake/FindHftaTorch.cmake cmake/FindHftaZip.cmake cmake/FindHftaXsmm.cmake
        DESTINATION ${HFTA_PACKAGE_DIR} COMPONENT development)
