# Imported target hfta::zip: libzip. Debian's libzip-config.cmake insists on the zip tools being installed, so the
# library is looked for by hand.
find_path(HFTA_ZIP_INCLUDE zip.h)
find_library(HFTA_ZIP_LIBRARY zip)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(HftaZip REQUIRED_VARS HFTA_ZIP_LIBRARY HFTA_ZIP_INCLUDE)
if(HftaZip_FOUND AND NOT TARGET hfta::zip)
  add_library(hfta::zip UNKNOWN IMPORTED GLOBAL)
  set_target_properties(hfta::zip PROPERTIES IMPORTED_LOCATION "${HFTA_ZIP_LIBRARY}"
                        INTERFACE_INCLUDE_DIRECTORIES "${HFTA_ZIP_INCLUDE}")
endif()
