# Flags that hold for everything we compile and link.

# Two builds in different folders give the same bytes: __FILE__ in an assertion
# names the file by where it belongs, not by where it lay.
foreach(_pair
    "${CMAKE_BINARY_DIR}=build"
    "${CMAKE_SOURCE_DIR}=torch-mlir"
    "${MLIR_INSTALL_PREFIX}=mlir"
    "${LLVM_INSTALL_PREFIX}=llvm"
    "${NB_DIR}=nanobind"
    "${Python3_INCLUDE_DIRS}=python")
  add_compile_options("-ffile-prefix-map=${_pair}")
endforeach()
add_compile_options(-ffunction-sections -fdata-sections)
add_link_options(LINKER:--gc-sections LINKER:--build-id=none)
if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  # Here rather than at installation: no strip program is needed then.
  add_link_options(LINKER:--strip-all)
endif()
# The package runs beside any PyTorch, and brings the C++ runtime it was tested with.
if(NOT TORCH_MLIR_TOOLCHAIN_LINKS_RUNTIME)
  add_link_options(-static-libstdc++ -static-libgcc)
endif()

# HandleLLVMOptions asks for -z nodelete: a library that stays mapped after
# dlclose. CPython never unloads an extension, and zig's linker driver refuses it.
foreach(_flags CMAKE_SHARED_LINKER_FLAGS CMAKE_MODULE_LINKER_FLAGS)
  string(REPLACE "-Wl,-z,nodelete" "" ${_flags} "${${_flags}}")
endforeach()

# Exports of `target` are what cmake/`script` names, nothing else. Hidden visibility does
# not reach that far: MLIR's archives and libstdc++.a were compiled without it.
function(torch_mlir_export_only target script)
  set(script "${CMAKE_SOURCE_DIR}/cmake/${script}")
  # The script hides what --exclude-libs would, and zig's linker driver refuses that option.
  get_target_property(_options ${target} LINK_OPTIONS)
  if(_options)
    list(FILTER _options EXCLUDE REGEX "exclude-libs")
    set_target_properties(${target} PROPERTIES LINK_OPTIONS "${_options}")
  endif()
  target_link_options(${target} PRIVATE "LINKER:--version-script=${script}")
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${script}")
endfunction()
