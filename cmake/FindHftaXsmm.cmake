# Imported target hfta::xsmm: LIBXSMM, small matrix products made at run time. Debian has static archives and no CMake
# package; libxsmmnoblas stands in for the BLAS that it would fall back to. Its symbols stay out of what we link: LibTorch
# exports functions of the same names.
find_path(HFTA_XSMM_INCLUDE libxsmm.h)
find_library(HFTA_XSMM_LIBRARY xsmm)
find_library(HFTA_XSMM_NOBLAS_LIBRARY xsmmnoblas)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(HftaXsmm REQUIRED_VARS HFTA_XSMM_LIBRARY HFTA_XSMM_NOBLAS_LIBRARY HFTA_XSMM_INCLUDE)
if(HftaXsmm_FOUND AND NOT TARGET hfta::xsmm)
  add_library(hfta::xsmm UNKNOWN IMPORTED GLOBAL)
  set_target_properties(hfta::xsmm PROPERTIES IMPORTED_LOCATION "${HFTA_XSMM_LIBRARY}"
                        INTERFACE_INCLUDE_DIRECTORIES "${HFTA_XSMM_INCLUDE}"
                        INTERFACE_LINK_LIBRARIES "${HFTA_XSMM_NOBLAS_LIBRARY};${CMAKE_DL_LIBS}"
                        INTERFACE_LINK_OPTIONS "LINKER:--exclude-libs,libxsmm.a:libxsmmnoblas.a")
endif()
