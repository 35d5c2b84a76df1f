# What is known of operators' results, as C++: ResultRules.inc in the folder `output`.
function(torch_mlir_emit_result_rules root output)
  set(_operators "${root}/torch_mlir/operators")
  add_custom_command(
    OUTPUT "${output}/ResultRules.inc"
    COMMAND "${Python3_EXECUTABLE}" "${_operators}/emit_results_cpp.py"
            -o "${output}/ResultRules.inc"
    DEPENDS "${_operators}/emit_results_cpp.py" "${_operators}/_emit.py" "${_operators}/_results.py"
      "${_operators}/results.tsv"
    COMMENT "Packing the rules for operators' results"
    VERBATIM)
endfunction()
