# Imported target hfta_torch: LibTorch as it lies in a Python wheel.
# The wheel's own TorchConfig.cmake insists on a CUDA toolkit; linking torch_cpu and c10 by hand needs none, and
# starts in half the time of linking all of torch. HFTA_TORCH_DIR is the folder of the Python package `torch`.
if(NOT HFTA_TORCH_DIR)
  file(GLOB HFTA_TORCH_CANDIDATES "${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch")
  list(APPEND HFTA_TORCH_CANDIDATES "")
  list(GET HFTA_TORCH_CANDIDATES 0 HFTA_TORCH_FOUND)
  set(HFTA_TORCH_DIR "${HFTA_TORCH_FOUND}" CACHE PATH "Folder of the Python package torch" FORCE)
endif()
if(NOT EXISTS "${HFTA_TORCH_DIR}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "No LibTorch in HFTA_TORCH_DIR='${HFTA_TORCH_DIR}'. scripts/quickstart installs it into .venv; "
                      "or pass -DHFTA_TORCH_DIR=.../site-packages/torch, or -DHFTA_WITH_TORCH=OFF for the parts without it.")
endif()
add_library(hfta_torch INTERFACE)
target_include_directories(hfta_torch SYSTEM INTERFACE "${HFTA_TORCH_DIR}/include"
                                                       "${HFTA_TORCH_DIR}/include/torch/csrc/api/include")
target_link_libraries(hfta_torch INTERFACE "${HFTA_TORCH_DIR}/lib/libtorch_cpu.so" "${HFTA_TORCH_DIR}/lib/libc10.so")
