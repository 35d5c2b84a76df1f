# The folder of a package that Python3_EXECUTABLE would import; empty where there is none.
function(torch_mlir_package_folder name output)
  execute_process(
    COMMAND "${Python3_EXECUTABLE}" -P -c [[
import importlib.util, sys
spec = importlib.util.find_spec(sys.argv[1])
places = list(spec.submodule_search_locations) if spec else []
print(places[0] if places else "", end="")
]] ${name}
    OUTPUT_VARIABLE _folder
    COMMAND_ERROR_IS_FATAL ANY)
  set(${output} "${_folder}" PARENT_SCOPE)
endfunction()
