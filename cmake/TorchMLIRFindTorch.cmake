# Finds the PyTorch that the lazy backend is compiled with: its headers and libraries, which a
# wheel holds.
#
# PyTorch's own package for CMake wants the CUDA that it was built with. Nothing of it is needed.
#
# -DTORCH_MLIR_TORCH_DIR=<site-packages>/torch names it; by default it is that of Python3_EXECUTABLE.
# Sets TORCH_MLIR_TORCH_FOUND, and where it is found TORCH_MLIR_TORCH_VERSION and the target
# TorchMLIRTorch.
set(TORCH_MLIR_TORCH_FOUND OFF)
set(TORCH_MLIR_TORCH_DIR "" CACHE PATH
  "The folder of the PyTorch package that the lazy backend is compiled with")
set(_torch "${TORCH_MLIR_TORCH_DIR}")
if(NOT _torch)
  torch_mlir_package_folder(torch _torch)
endif()
if(NOT EXISTS "${_torch}/include/torch/csrc/lazy/backend/backend_interface.h")
  if(TORCH_MLIR_TORCH_DIR)
    message(FATAL_ERROR "TORCH_MLIR_TORCH_DIR=${TORCH_MLIR_TORCH_DIR} holds no "
      "include/torch/csrc/lazy: it has to be the folder of an installed PyTorch package")
  endif()
  return()
endif()

file(STRINGS "${_torch}/version.py" _line REGEX "^__version__ = ")
string(REGEX MATCH "[0-9]+\\.[0-9]+(\\.[0-9]+)?" TORCH_MLIR_TORCH_VERSION "${_line}")
if(TORCH_MLIR_TORCH_VERSION VERSION_LESS 2.0)
  message(FATAL_ERROR "PyTorch ${TORCH_MLIR_TORCH_VERSION} in ${_torch} is too old for the lazy "
    "backend, which needs 2.0 or newer")
endif()
set(_libraries)
foreach(_name torch_python torch_cpu c10)
  if(NOT EXISTS "${_torch}/lib/lib${_name}.so")
    message(FATAL_ERROR "The PyTorch in ${_torch} has no lib/lib${_name}.so")
  endif()
  list(APPEND _libraries "${_torch}/lib/lib${_name}.so")
endforeach()

# Which std::string it was compiled with, by the name of a constructor that takes one.
file(STRINGS "${_torch}/lib/libc10.so" _constructors LIMIT_COUNT 1
  REGEX "_ZN3c105ErrorC[12]E.*St7__cxx1112basic_string")
set(_abi 0)
if(_constructors)
  set(_abi 1)
endif()

add_library(TorchMLIRTorch INTERFACE)
target_include_directories(TorchMLIRTorch SYSTEM INTERFACE
  "${_torch}/include" "${_torch}/include/torch/csrc/api/include")
target_compile_definitions(TorchMLIRTorch INTERFACE _GLIBCXX_USE_CXX11_ABI=${_abi})
target_compile_options(TorchMLIRTorch INTERFACE "-ffile-prefix-map=${_torch}=torch")
target_link_libraries(TorchMLIRTorch INTERFACE ${_libraries})
set(TORCH_MLIR_TORCH_FOUND ON)
message(STATUS "PyTorch ${TORCH_MLIR_TORCH_VERSION} in ${_torch}, C++11 ABI ${_abi}")
