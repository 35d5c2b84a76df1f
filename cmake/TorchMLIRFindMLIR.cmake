# Finds Python, LLVM and MLIR, and makes MLIR's targets link LLVM statically.
#
# LLVM and MLIR come from the site-packages of the Python that builds
# (xtc-llvm-*, xtc-mlir-*) unless -DLLVM_DIR and -DMLIR_DIR say otherwise.

# MLIR looks for Python3, nanobind for Python: both have to be the same.
if(Python_EXECUTABLE AND NOT Python3_EXECUTABLE)
  set(Python3_EXECUTABLE "${Python_EXECUTABLE}")
elseif(Python3_EXECUTABLE AND NOT Python_EXECUTABLE)
  set(Python_EXECUTABLE "${Python3_EXECUTABLE}")
endif()
find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
if(NOT Python_EXECUTABLE)
  set(Python_EXECUTABLE "${Python3_EXECUTABLE}")
endif()

include(TorchMLIRPackageFolder)
foreach(_name llvm mlir)
  string(TOUPPER ${_name} _upper)
  if(NOT ${_upper}_DIR)
    torch_mlir_package_folder(${_name} _folder)
    if(NOT IS_DIRECTORY "${_folder}/lib/cmake/${_name}")
      message(FATAL_ERROR
        "${_upper} was not found: ${Python3_EXECUTABLE} has no package '${_name}' with "
        "lib/cmake/${_name}. Install xtc-${_name}-dev and xtc-${_name}-tools there, at the "
        "versions that pyproject.toml pins, or pass "
        "-D${_upper}_DIR=<prefix>/lib/cmake/${_name}.")
    endif()
    set(${_upper}_DIR "${_folder}/lib/cmake/${_name}" CACHE PATH "" FORCE)
  endif()
endforeach()
find_package(LLVM REQUIRED CONFIG NO_DEFAULT_PATH)
find_package(MLIR REQUIRED CONFIG NO_DEFAULT_PATH)
message(STATUS "MLIR ${LLVM_PACKAGE_VERSION} in ${MLIR_INSTALL_PREFIX}")
if(NOT LLVM_ENABLE_ASSERTIONS)
  message(WARNING "This MLIR was built without assertions; the tests expect them.")
endif()

# The exported targets link the shared library LLVM. Linked statically instead,
# section garbage collection drops nearly all of it and the package is
# self-contained.
set(_static_llvm LLVMCore LLVMRemarks LLVMBitstreamReader LLVMBinaryFormat LLVMTargetParser
  LLVMSupport LLVMDemangle)
foreach(_target IN LISTS MLIR_EXPORTED_TARGETS)
  if(NOT TARGET ${_target})
    continue()
  endif()
  foreach(_property INTERFACE_LINK_LIBRARIES MLIR_AGGREGATE_DEP_LIBS_IMPORTED)
    get_target_property(_libraries ${_target} ${_property})
    if("LLVM" IN_LIST _libraries)
      list(REMOVE_ITEM _libraries LLVM)
      list(APPEND _libraries ${_static_llvm})
      set_target_properties(${_target} PROPERTIES ${_property} "${_libraries}")
    endif()
  endforeach()
endforeach()
set(LLVM_LINK_LLVM_DYLIB OFF)
set(MLIR_LINK_MLIR_DYLIB OFF)

list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)
include(HandleLLVMOptions)
include(AddMLIRPython)
include(MLIRDetectPythonEnv)
mlir_configure_python_dev_packages()
