# The extension module _lazy_backend, beside the PyTorch of the Python that builds: a project of its
# own (torch_mlir/csrc/lazy), since it is compiled and linked as that PyTorch is and not as the rest.
#
# -DTORCH_MLIR_TORCH_DIR=<site-packages>/torch names another PyTorch. Without one the package is
# built without the module; torch_mlir.lazy says so when it is imported.
set(TORCH_MLIR_HAS_LAZY_BACKEND OFF)
set(_lazy_file)
include(TorchMLIRFindTorch)
if(NOT TORCH_MLIR_TORCH_FOUND)
  message(WARNING "${Python3_EXECUTABLE} has no PyTorch: the backend of PyTorch's lazy tensors is "
    "left out. It is compiled with a PyTorch; install one, or pass "
    "-DTORCH_MLIR_TORCH_DIR=<site-packages>/torch.")
  return()
endif()
set(TORCH_MLIR_HAS_LAZY_BACKEND ON)
set(_lazy_file "${_package}/_mlir_libs/_lazy_backend.so")

include(ExternalProject)
ExternalProject_Add(TorchMLIRLazyBackend
  SOURCE_DIR "${CMAKE_CURRENT_SOURCE_DIR}/torch_mlir/csrc/lazy"
  BINARY_DIR "${CMAKE_CURRENT_BINARY_DIR}/lazy"
  CMAKE_CACHE_ARGS
    "-DCMAKE_BUILD_TYPE:STRING=${CMAKE_BUILD_TYPE}"
    "-DCMAKE_C_COMPILER:FILEPATH=${CMAKE_C_COMPILER}"
    "-DCMAKE_CXX_COMPILER:FILEPATH=${CMAKE_CXX_COMPILER}"
    "-DCMAKE_INSTALL_PREFIX:PATH=${CMAKE_BINARY_DIR}/python"
    "-DPython3_EXECUTABLE:FILEPATH=${Python3_EXECUTABLE}"
    "-DMLIR_DIR:PATH=${MLIR_DIR}"
    "-DTORCH_MLIR_TORCH_DIR:PATH=${TORCH_MLIR_TORCH_DIR}"
    "-DTORCH_MLIR_PACKAGE:PATH=${_package}"
  DEPENDS TorchMLIRAggregateCAPI
  BUILD_ALWAYS ON
  BUILD_BYPRODUCTS "${_lazy_file}")
install(FILES "${_lazy_file}"
  DESTINATION torch_mlir/_mlir_libs COMPONENT TorchMLIRPythonModules)
install(DIRECTORY "${_package}/include" "${_package}/cmake"
  DESTINATION torch_mlir COMPONENT TorchMLIRPythonModules)
