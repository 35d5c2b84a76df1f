# The extension module _jit_ir_importer: the TorchScript importer, linked with a libtorch of
# its own (pkgs/libtorch) in which every symbol is resolved, and with our C interface.
#
# -DSelectiveLibtorch_DIR=<prefix>/lib/cmake/SelectiveLibtorch names that libtorch. Without it
# the package is built without the module; torch_mlir.torchscript says so when it is used.
set(TORCH_MLIR_HAS_JIT_IR_IMPORTER OFF)
find_package(SelectiveLibtorch CONFIG)
if(NOT SelectiveLibtorch_FOUND)
  message(WARNING "Without SelectiveLibtorch_DIR there is no importer of TorchScript archives. "
    "pkgs/libtorch builds that library: nix build .#libtorch-2_6")
  return()
endif()
message(STATUS "Selective libtorch ${SelectiveLibtorch_VERSION} in ${SelectiveLibtorch_DIR}")
set(TORCH_MLIR_HAS_JIT_IR_IMPORTER ON)

# The operators of every row's PyTorch.
set(_operators "${CMAKE_CURRENT_SOURCE_DIR}/torch_mlir/operators")
set(_row_schemas "${CMAKE_CURRENT_BINARY_DIR}/torch_mlir/csrc/torchscript/RowSchemas.inc")
add_custom_command(
  OUTPUT "${_row_schemas}"
  COMMAND "${Python3_EXECUTABLE}" "${_operators}/emit_rows_cpp.py"
          --libtorch "${SelectiveLibtorch_VERSION}" -o "${_row_schemas}"
  DEPENDS "${_operators}/emit_rows_cpp.py" "${_operators}/_emit.py" "${_operators}/_rows.py"
    "${_operators}/_table.py" "${_operators}/rows.tsv" "${_operators}/table.txt"
  COMMENT "Packing the operators of all rows"
  VERBATIM)

include(TorchMLIRResultRules)
set(_generated "${CMAKE_CURRENT_BINARY_DIR}/torch_mlir/csrc/torchscript")
torch_mlir_emit_result_rules("${CMAKE_CURRENT_SOURCE_DIR}" "${_generated}")

file(GLOB _sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/torch_mlir/csrc/torchscript/*.cpp")
nanobind_add_module(TorchMLIRJitIrImporter NB_STATIC NB_SUPPRESS_WARNINGS
  NB_DOMAIN torch_mlir_jit_ir_importer ${_sources} "${_row_schemas}" "${_generated}/ResultRules.inc")
target_include_directories(TorchMLIRJitIrImporter PRIVATE
  "${CMAKE_CURRENT_BINARY_DIR}/torch_mlir/csrc/torchscript")
target_compile_options(TorchMLIRJitIrImporter PRIVATE ${SelectiveLibtorch_PREFIX_MAPS}
  -frtti -fexceptions -ffunction-sections -fdata-sections
  -DNDEBUG)  # as that libtorch, whose inline functions both compile
target_link_libraries(TorchMLIRJitIrImporter PRIVATE
  TorchMLIRAggregateCAPI SelectiveLibtorch::torch)
target_link_options(TorchMLIRJitIrImporter PRIVATE
  LINKER:-z,undefs  # CPython's symbols; test_shared_object.py sees to the others
  LINKER:--gc-sections
  LINKER:--whole-archive "${SelectiveLibtorch_LIBRARY}" LINKER:--no-whole-archive)
set_target_properties(TorchMLIRJitIrImporter PROPERTIES
  OUTPUT_NAME _jit_ir_importer
  LIBRARY_OUTPUT_DIRECTORY "${_package}/_mlir_libs"
  INSTALL_RPATH "$ORIGIN"
  BUILD_WITH_INSTALL_RPATH ON)
torch_mlir_export_only(TorchMLIRJitIrImporter extension.map)
install(TARGETS TorchMLIRJitIrImporter
  LIBRARY DESTINATION torch_mlir/_mlir_libs COMPONENT TorchMLIRPythonModules)
