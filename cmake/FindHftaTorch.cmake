# Imported target hfta_torch: LibTorch as it lies in a Python wheel. For this project and for those that embed it.
# The wheel's own TorchConfig.cmake insists on a CUDA toolkit; linking torch_cpu and c10 by hand needs none, and
# starts in half the time of linking all of torch. HFTA_TORCH_DIR is the folder of the Python package `torch`. Unless
# given it is looked for in CMAKE_PREFIX_PATH (`python -c "import torch; print(torch.utils.cmake_prefix_path)"`), then
# in .venv.
set(HFTA_TORCH_CANDIDATES ${CMAKE_PREFIX_PATH})
list(TRANSFORM HFTA_TORCH_CANDIDATES APPEND "/../..")
file(GLOB HFTA_TORCH_VENV "${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch")
find_path(HFTA_TORCH_DIR lib/libtorch_cpu.so NO_DEFAULT_PATH DOC "Folder of the Python package torch"
          PATHS ${CMAKE_PREFIX_PATH} ${HFTA_TORCH_CANDIDATES} ${HFTA_TORCH_VENV})
find_file(HFTA_TORCH_VERSION_FILE version.py NO_CACHE NO_DEFAULT_PATH PATHS "${HFTA_TORCH_DIR}")
find_library(HFTA_TORCH_CPU torch_cpu NO_CACHE NO_DEFAULT_PATH PATHS "${HFTA_TORCH_DIR}/lib")
if(HFTA_TORCH_VERSION_FILE)
  file(STRINGS "${HFTA_TORCH_VERSION_FILE}" HftaTorch_VERSION REGEX "^__version__")
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" HftaTorch_VERSION "${HftaTorch_VERSION}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(HftaTorch REQUIRED_VARS HFTA_TORCH_CPU HFTA_TORCH_VERSION_FILE VERSION_VAR HftaTorch_VERSION
  REASON_FAILURE_MESSAGE "HFTA_TORCH_DIR is '${HFTA_TORCH_DIR}', wanted: -DHFTA_TORCH_DIR=.../site-packages/torch")
if(HftaTorch_FOUND AND NOT TARGET hfta_torch)
  add_library(hfta_torch INTERFACE IMPORTED GLOBAL)
  target_include_directories(hfta_torch INTERFACE "${HFTA_TORCH_DIR}/include"
                                                  "${HFTA_TORCH_DIR}/include/torch/csrc/api/include")
  target_link_libraries(hfta_torch INTERFACE "${HFTA_TORCH_DIR}/lib/libtorch_cpu.so" "${HFTA_TORCH_DIR}/lib/libc10.so")
endif()
