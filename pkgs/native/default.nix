# The package's native half and the wheel that every row shares, one per CPython.
#
# Two derivations, so that an edit of a Python file rebuilds no C++: `compiled`
# sees C++, CMake and the operator table alone; `baseWheel` packs what it made
# together with the Python files.
{ toolchain, python }:
let
  root = ../..;
  prefix = toString root + "/";
  inherit (builtins)
    any
    match
    path
    stringLength
    substring
    ;

  # The files of the source tree whose path below the root matches one of
  # `patterns`; folders are entered where one of their files may.
  source =
    name: patterns:
    path {
      inherit name;
      path = root;
      filter =
        file: type:
        let
          relative = substring (stringLength prefix) (-1) file;
        in
        match ".*/__pycache__" relative == null
        && match "(build|dist|out|result.*|tests|pkgs|benchmarks|\\..*)" relative == null
        && (type == "directory" || any (pattern: match pattern relative != null) patterns);
    };

  nativeSource = source "torch-mlir-native-source" [
    "CMakeLists\\.txt"
    "cmake/.*"
    "torch_mlir/csrc/.*"
    "torch_mlir/operators/(table\\.txt|emit_cpp\\.py)"
  ];
  packageSource = source "torch-mlir-source" [
    "(CMakeLists\\.txt|pyproject\\.toml|README\\.md|LICENSE)"
    "cmake/.*"
    "torch_mlir/.*\\.(py|pyi|txt|json|typed)"
  ];
in
rec {
  compilerFlags = "placeholder";
  inherit nativeSource packageSource;
}
