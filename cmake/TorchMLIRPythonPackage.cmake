# Assembles the Python package: MLIR's bindings trimmed to what is listed here,
# our extension module, and the Python files below torch_mlir/.

# What of MLIR's Python package is in ours. linalg's Python face writes complex
# operations too, so `complex` comes with it.
set(_dialects arith builtin cf complex func linalg math ml_program scf tensor)
list(TRANSFORM _dialects PREPEND MLIRPythonSources.Dialects. OUTPUT_VARIABLE _dialect_sources)

# _mlir_libs/__init__.py, which finds and runs the site initialisers, is ours.
get_target_property(_core_python MLIRPythonSources.Core.Python INTERFACE_SOURCES)
list(FILTER _core_python EXCLUDE REGEX "_mlir_libs/(__init__\\.py|_mlir/py\\.typed)$")

# ir.py imports numpy for three attribute builders, and that takes four times as
# long as everything else in it: ours imports numpy when one of them is called.
set(_ir_py ${_core_python})
list(FILTER _ir_py INCLUDE REGEX "/ir\\.py$")
list(REMOVE_ITEM _core_python ${_ir_py})
file(READ "${_ir_py}" _ir_text)
string(REPLACE "    import numpy as np\n" "    from ._numpy import numpy as np\n"
  _ir_text_lazy "${_ir_text}")
if(_ir_text_lazy STREQUAL _ir_text)
  message(FATAL_ERROR "${_ir_py} no longer imports numpy as it did. See whether "
    "torch_mlir/_numpy.py is still needed.")
endif()
file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/mlir_python/ir.py" CONTENT "@_ir_text_lazy@"
  @ONLY NEWLINE_STYLE UNIX)
declare_mlir_python_sources(TorchMLIRPythonIR
  ROOT_DIR "${CMAKE_BINARY_DIR}/mlir_python"
  SOURCES ir.py)
set_target_properties(MLIRPythonSources.Core.Python PROPERTIES
  INTERFACE_SOURCES "${_core_python}")

# Ours: everything below torch_mlir/ but C++ and the scripts that make data.
file(GLOB_RECURSE _files CONFIGURE_DEPENDS RELATIVE "${CMAKE_SOURCE_DIR}/torch_mlir"
  "${CMAKE_SOURCE_DIR}/torch_mlir/*.py"
  "${CMAKE_SOURCE_DIR}/torch_mlir/*.pyi"
  "${CMAKE_SOURCE_DIR}/torch_mlir/*.js"
  "${CMAKE_SOURCE_DIR}/torch_mlir/*.css"
  "${CMAKE_SOURCE_DIR}/torch_mlir/*.txt"
  "${CMAKE_SOURCE_DIR}/torch_mlir/*.json"
  "${CMAKE_SOURCE_DIR}/torch_mlir/py.typed")
list(FILTER _files EXCLUDE REGEX "^csrc/|(^|/)(regenerate(_rows|_results)?|emit_((rows|results|versions)_)?cpp|_emit|_rows|_results)\\.py$|__pycache__")
declare_mlir_python_sources(TorchMLIRPythonSources
  ROOT_DIR "${CMAKE_SOURCE_DIR}/torch_mlir"
  SOURCES ${_files})

# Classes for the torch dialect's structural operators; dialects/_torch_operators.py
# makes those of the operator table.
declare_mlir_dialect_python_bindings(
  ADD_TO_PARENT TorchMLIRPythonSources
  ROOT_DIR "${CMAKE_SOURCE_DIR}/torch_mlir"
  TD_FILE dialects/TorchOps.td
  DIALECT_NAME torch)

_flatten_mlir_python_targets(_sources
  MLIRPythonSources.Core ${_dialect_sources} TorchMLIRPythonIR TorchMLIRPythonSources)
set(_pure)
set(_native)
foreach(_target IN LISTS _sources)
  get_target_property(_kind ${_target} mlir_python_SOURCES_TYPE)
  if(_kind STREQUAL "pure")
    list(APPEND _pure ${_target})
  else()
    list(APPEND _native ${_target})
  endif()
endforeach()

set(_package "${CMAKE_BINARY_DIR}/python/torch_mlir")
add_mlir_python_common_capi_library(TorchMLIRAggregateCAPI
  INSTALL_COMPONENT TorchMLIRPythonModules
  INSTALL_DESTINATION torch_mlir/_mlir_libs
  OUTPUT_DIRECTORY "${_package}/_mlir_libs"
  RELATIVE_INSTALL_ROOT ../../..
  DECLARED_SOURCES ${_native}
  # MLIR's bindings need MLIRCAPITransforms and don't say so.
  EMBED_LIBS TorchMLIRCAPI MLIRCAPITransforms)
# LLVM gives shared libraries its version; a wheel holds no symbolic links.
set_property(TARGET TorchMLIRAggregateCAPI PROPERTY VERSION)
set_property(TARGET TorchMLIRAggregateCAPI PROPERTY SOVERSION)

# All extension modules are one shared object, with an entry point for each:
# nanobind, the library behind MLIR's bindings and the modules hand C++ types and
# exceptions to one another, which doesn't work between objects that each bring
# their C++ runtime. torch_mlir/_mlir_libs/__init__.py finds the modules in it.
file(GLOB _extension_sources CONFIGURE_DEPENDS
  "${CMAKE_SOURCE_DIR}/torch_mlir/csrc/bindings/*.cpp")
set(_modules _torchMlir)
foreach(_target IN LISTS _native)
  get_target_property(_target_sources ${_target} INTERFACE_SOURCES)
  list(APPEND _extension_sources ${_target_sources})
  get_target_property(_kind ${_target} mlir_python_SOURCES_TYPE)
  if(_kind STREQUAL "extension")
    get_target_property(_module ${_target} mlir_python_EXTENSION_MODULE_NAME)
    list(APPEND _modules ${_module})
  endif()
endforeach()
list(SORT _modules)
nanobind_add_module(TorchMLIRExtensions NB_STATIC NB_SUPPRESS_WARNINGS
  NB_DOMAIN ${MLIR_BINDINGS_PYTHON_NB_DOMAIN} ${_extension_sources})
target_compile_definitions(TorchMLIRExtensions PRIVATE
  MLIR_BINDINGS_PYTHON_DOMAIN=${MLIR_BINDINGS_PYTHON_NB_DOMAIN}
  MLIR_CAPI_BUILDING_LIBRARY=1)
# LLVM is compiled without, Python bindings can't be.
target_compile_options(TorchMLIRExtensions PRIVATE -frtti -fexceptions)
target_compile_options(nanobind-static PRIVATE -frtti -fexceptions)
target_link_libraries(TorchMLIRExtensions PRIVATE TorchMLIRAggregateCAPI LLVMSupport)
target_link_options(TorchMLIRExtensions PRIVATE LINKER:-z,undefs)  # CPython's symbols
set_target_properties(TorchMLIRExtensions PROPERTIES
  OUTPUT_NAME _mlir
  LIBRARY_OUTPUT_DIRECTORY "${_package}/_mlir_libs"
  INSTALL_RPATH "$ORIGIN")

torch_mlir_export_only(TorchMLIRAggregateCAPI capi.map)
torch_mlir_export_only(TorchMLIRExtensions extension.map)
# The package is found where it lies, in the build tree as when installed.
set_target_properties(TorchMLIRAggregateCAPI TorchMLIRExtensions PROPERTIES
  BUILD_WITH_INSTALL_RPATH ON)

include(TorchMLIRJitIrImporter)
include(TorchMLIRLazyBackend)

# What is native in the package: a line for each shared object, with the
# extension modules that it holds. By it modules are found and leftovers of
# other versions told apart.
list(JOIN _modules " " _modules_text)
set(_importer_line)
set(_importer)
if(TORCH_MLIR_HAS_JIT_IR_IMPORTER)
  set(_importer _jit_ir_importer)
  set(_importer_line "$<TARGET_FILE_NAME:TorchMLIRJitIrImporter> ${_importer}\n")
endif()
set(_lazy_line)
set(_lazy)
if(TORCH_MLIR_HAS_LAZY_BACKEND)
  set(_lazy _lazy_backend)
  set(_lazy_line "_lazy_backend.so ${_lazy}\n")
endif()
file(GENERATE OUTPUT "${_package}/_mlir_libs/shared_objects.txt" CONTENT
  "$<TARGET_FILE_NAME:TorchMLIRAggregateCAPI>\n\
$<TARGET_FILE_NAME:TorchMLIRExtensions> ${_modules_text}\n${_importer_line}${_lazy_line}")

# Puts the Python files together.
foreach(_target IN LISTS _pure)
  # Their native parts are in TorchMLIRExtensions.
  set_target_properties(${_target} PROPERTIES mlir_python_DEPENDS "")
endforeach()
add_mlir_python_modules(TorchMLIRPythonModules
  ROOT_PREFIX "${_package}"
  INSTALL_PREFIX torch_mlir
  DECLARED_SOURCES ${_pure})
add_dependencies(TorchMLIRPythonModules TorchMLIRAggregateCAPI TorchMLIRExtensions)

# Type stubs.
set(_stubs _mlir/__init__ _mlir/ir _mlir/passmanager _mlir/rewrite ${_modules} ${_importer} ${_lazy})
list(REMOVE_ITEM _stubs _mlir)
list(TRANSFORM _stubs REPLACE "(.+)" "${_package}/_mlir_libs/\\1.pyi")
set(_stubs_torch)
if(TORCH_MLIR_HAS_LAZY_BACKEND AND TORCH_MLIR_TORCH_DIR)
  set(_stubs_torch --torch "${TORCH_MLIR_TORCH_DIR}")
endif()
add_custom_command(
  OUTPUT ${_stubs}
  COMMAND "${Python3_EXECUTABLE}" "${CMAKE_SOURCE_DIR}/cmake/write_stubs.py" "${_package}"
    --output "${_package}/_mlir_libs" ${_stubs_torch}
  DEPENDS "${CMAKE_SOURCE_DIR}/cmake/write_stubs.py" TorchMLIRExtensions
    "$<$<BOOL:${TORCH_MLIR_HAS_JIT_IR_IMPORTER}>:TorchMLIRJitIrImporter>" ${_lazy_file}
    TorchMLIRPythonModules.sources.MLIRPythonSources.Core.Python
  COMMENT "Writing type stubs of the extension modules"
  VERBATIM)
add_custom_target(TorchMLIRTypeStubs ALL DEPENDS ${_stubs})
add_dependencies(TorchMLIRPythonModules TorchMLIRTypeStubs)
if(TORCH_MLIR_HAS_JIT_IR_IMPORTER)
  add_dependencies(TorchMLIRTypeStubs TorchMLIRJitIrImporter)
  add_dependencies(TorchMLIRPythonModules TorchMLIRJitIrImporter)
endif()
if(TORCH_MLIR_HAS_LAZY_BACKEND)
  add_dependencies(TorchMLIRTypeStubs TorchMLIRLazyBackend)
  add_dependencies(TorchMLIRPythonModules TorchMLIRLazyBackend)
endif()

install(TARGETS TorchMLIRExtensions
  LIBRARY DESTINATION torch_mlir/_mlir_libs COMPONENT TorchMLIRPythonModules)
install(FILES "${_package}/_mlir_libs/shared_objects.txt"
  DESTINATION torch_mlir/_mlir_libs COMPONENT TorchMLIRPythonModules)
install(DIRECTORY "${_package}/_mlir_libs/"
  DESTINATION torch_mlir/_mlir_libs COMPONENT TorchMLIRPythonModules
  FILES_MATCHING PATTERN "*.pyi")
