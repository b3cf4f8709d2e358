# Imported target hfta::xsmm: LIBXSMM, small matrix products made at run time. Debian has static archives and no CMake
# package; libxsmmnoblas stands in for the BLAS that it would fall back to. Its symbols stay out of what we link: LibTorch
# exports functions of the same names.
find_path(HFTA_XSMM_INCLUDE libxsmm.h)
find_library(HFTA_XSMM_LIBRARY xsmm)
find_library(HFTA_XSMM_NOBLAS_LIBRARY xsmmnoblas)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(HftaXsmm REQUIRED_VARS HFTA_XSMM_LIBRARY HFTA_XSMM_NOBLAS_LIBRARY HFTA_XSMM_INCLUDE)
# When it is loaded, LIBXSMM opens /tmp/.libxsmm.<user>: a pipe of that name would stop every run for ever, and a link
# would be followed. It opens nothing else by that call, and does without the file. So it gets a call that opens nothing
# (fusion/cpu/kernels/xsmm_files.cpp).
find_program(HFTA_OBJCOPY NAMES ${CMAKE_OBJCOPY} objcopy REQUIRED)
if(HftaXsmm_FOUND AND NOT TARGET hfta::xsmm)
  set(HFTA_XSMM_CONTAINED "${CMAKE_BINARY_DIR}/libxsmm_contained.a")
  execute_process(COMMAND "${HFTA_OBJCOPY}" --redefine-sym open=hfta_xsmm_open "${HFTA_XSMM_LIBRARY}" "${HFTA_XSMM_CONTAINED}"
                  COMMAND_ERROR_IS_FATAL ANY)
  add_library(hfta::xsmm UNKNOWN IMPORTED GLOBAL)
  set_target_properties(hfta::xsmm PROPERTIES IMPORTED_LOCATION "${HFTA_XSMM_CONTAINED}"
                        INTERFACE_INCLUDE_DIRECTORIES "${HFTA_XSMM_INCLUDE}"
                        INTERFACE_LINK_LIBRARIES "${HFTA_XSMM_NOBLAS_LIBRARY};${CMAKE_DL_LIBS}"
                        INTERFACE_LINK_OPTIONS "LINKER:--exclude-libs,libxsmm_contained.a:libxsmmnoblas.a;LINKER:--undefined,hfta_xsmm_open")
endif()
