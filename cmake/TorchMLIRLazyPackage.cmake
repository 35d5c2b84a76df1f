# What C++ vendors of the lazy backend build with, put into a torch_mlir package folder: headers
# below include/ and the CMake package TorchMLIRLazy below cmake/.
#
# Included by the build, or on its own, for a package that is there already:
#
#   cmake -DPACKAGE=<folder torch_mlir> -DTORCH_MLIR_INCLUDE_DIR=<csrc> -DMLIR_INCLUDE_DIR=<mlir's include>
#         -DTORCH_VERSION=2.13.0 -DTORCH_MLIR_VERSION=<version> -P TorchMLIRLazyPackage.cmake
#
# Vendors need no MLIR of their own: of MLIR's C API these are the headers whose functions our
# aggregate library exports, and which include no others (tests/lazy/test_vendor_package.py).
set(_torch_mlir_c_headers
  AffineExpr AffineMap BuiltinAttributes BuiltinTypes Diagnostics IntegerSet Interfaces IR Pass
  Support)
set(_torch_mlir_headers
  capi/Registration capi/Resources capi/TorchTypes
  lazy/Backend lazy/Computation lazy/Data lazy/Export lazy/LoweringContext)
set(_torch_mlir_lazy_config "${CMAKE_CURRENT_LIST_DIR}/TorchMLIRLazyConfig.cmake.in")
set(_torch_mlir_find_torch "${CMAKE_CURRENT_LIST_DIR}/TorchMLIRFindTorch.cmake")

# The C++ that the headers of PyTorch `version` ask for.
function(torch_mlir_torch_cxx_standard version output)
  set(${output} 17 PARENT_SCOPE)
  if(version VERSION_GREATER_EQUAL 2.14)
    set(${output} 20 PARENT_SCOPE)
  endif()
endfunction()

# `package` is the folder to fill, `csrc` our torch_mlir/csrc, `mlir` the folder with mlir-c/;
# `torch_version` is that of the PyTorch that the lazy backend there was compiled with.
function(torch_mlir_write_lazy_package package csrc mlir version torch_version)
  foreach(_header IN LISTS _torch_mlir_c_headers)
    configure_file("${mlir}/mlir-c/${_header}.h" "${package}/include/mlir-c/${_header}.h" COPYONLY)
  endforeach()
  foreach(_header IN LISTS _torch_mlir_headers)
    configure_file("${csrc}/${_header}.h" "${package}/include/torch_mlir/${_header}.h" COPYONLY)
  endforeach()
  set(TORCH_MLIR_VERSION "${version}")
  string(REGEX MATCH "^[0-9]+\\.[0-9]+" TORCH_MLIR_TORCH_VERSION "${torch_version}")
  torch_mlir_torch_cxx_standard("${torch_version}" TORCH_MLIR_TORCH_CXX_STANDARD)
  configure_file("${_torch_mlir_lazy_config}" "${package}/cmake/TorchMLIRLazyConfig.cmake" @ONLY)
  configure_file("${_torch_mlir_find_torch}" "${package}/cmake/TorchMLIRFindTorch.cmake" COPYONLY)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  foreach(_name PACKAGE TORCH_MLIR_INCLUDE_DIR MLIR_INCLUDE_DIR TORCH_MLIR_VERSION TORCH_VERSION)
    if(NOT ${_name})
      message(FATAL_ERROR "-D${_name}= is missing")
    endif()
  endforeach()
  torch_mlir_write_lazy_package("${PACKAGE}" "${TORCH_MLIR_INCLUDE_DIR}" "${MLIR_INCLUDE_DIR}"
    "${TORCH_MLIR_VERSION}" "${TORCH_VERSION}")
endif()
