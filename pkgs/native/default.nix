# The package's native half and the wheel that every row shares, one per CPython.
#
# Two derivations, so that an edit of a Python file rebuilds no C++: `compiled`
# sees C++, CMake and the operator table alone; `baseWheel` packs what it made
# together with the Python files.
{
  toolchain,
  python,
  # the selective libtorch that the importer is linked with
  libtorch,
}:
let
  inherit (builtins)
    any
    match
    path
    stringLength
    substring
    ;
  root = ../..;
  prefix = toString root + "/";

  # The files below the root whose path matches one of `patterns` and not `except`.
  source =
    name: except: patterns:
    path {
      inherit name;
      path = root;
      filter =
        file: type:
        let
          relative = substring (stringLength prefix) (-1) file;
        in
        if type == "directory" then
          match "cmake(/.*)?|torch_mlir(/.*)?" relative != null && match ".*/__pycache__" relative == null
        else
          match except relative == null && any (pattern: match pattern relative != null) patterns;
    };

  nativeSource = source "torch-mlir-native-source" "torch_mlir/csrc/lazy/.*|cmake/(lazy\\.|TorchMLIRLazy(Config|Package)).*" [
    "CMakeLists\\.txt"
    "cmake/.*"
    "torch_mlir/csrc/.*|.*\\.td"
    "torch_mlir/operators/(table\\.txt|(rows|results)\\.tsv|emit_((rows|results)_)?cpp\\.py|_(emit|table|rows|results)\\.py)"
  ];
  # What pkgs/lazy compiles for each row.
  lazySource = source "torch-mlir-lazy-source" "" [
    "cmake/(TorchMLIR(FindTorch|LazyConfig|LazyPackage|PackageFolder)\\.cmake(\\.in)?|lazy\\..*|write_stubs\\.py)"
    "torch_mlir/csrc/(lazy/.*|torchscript/[^/]*\\.(cpp|h)|(capi|dialect)/.*\\.h)"
    "torch_mlir/version\\.py"
    "torch_mlir/operators/(table\\.txt|rows\\.tsv|emit_versions_cpp\\.py|_(emit|table|rows)\\.py)"
  ];
  # What writes data or C++ is no part of the package.
  packageSource = source "torch-mlir-package-source" "torch_mlir/csrc/.*|.*/(regenerate(_rows|_results)?|emit_((rows|results|versions)_)?cpp|_emit|_rows|_results)\\.py" [
    "pyproject\\.toml|README\\.md|LICENSE"
    "torch_mlir/.*\\.(py|pyi|txt|json|typed|js|css)"
  ];

  environment =
    interpreter:
    python.groupEnv {
      python = interpreter;
      groups = [ "build" ];
    };
in
rec {
  inherit nativeSource lazySource packageSource;

  # <out>/torch_mlir: shared objects, MLIR's Python files, stubs.
  compiled =
    interpreter:
    toolchain.compiling (environment interpreter) "torch-mlir-compiled-${interpreter.tag}"
      {
        src = nativeSource;
        inherit libtorch;
      }
      ''
        cmake -S $src -B build -G Ninja \
          -DCMAKE_BUILD_TYPE=Release \
          -DCMAKE_C_COMPILER=$compiler/bin/cc \
          -DCMAKE_CXX_COMPILER=$compiler/bin/c++ \
          -DTORCH_MLIR_TOOLCHAIN_LINKS_RUNTIME=ON \
          -DSelectiveLibtorch_DIR=$libtorch/lib/cmake/SelectiveLibtorch \
          -DPython3_EXECUTABLE=$env/bin/python3
        ninja -C build -j ''${NIX_BUILD_CORES:-1}
        cmake --install build --prefix $out --component TorchMLIRPythonModules
      '';

  # The wheel that every row's is made of: <out>/torch_mlir_static-….whl
  baseWheel =
    interpreter:
    toolchain.sh "torch-mlir-base-wheel-${interpreter.tag}"
      {
        src = packageSource;
        compiled = compiled interpreter;
        env = environment interpreter;
        pack = ''
          import sys
          from scikit_build_core.build import build_wheel
          build_wheel(sys.argv[1], {
              "wheel.cmake": "false",
              "wheel.platlib": "true",
              "wheel.packages": "torch_mlir",
          })
        '';
      }
      ''
        export HOME=$PWD PYTHONDONTWRITEBYTECODE=1
        cp -rL $src source
        chmod -R u+w source
        cp -r $compiled/torch_mlir source/
        chmod -R u+w source
        mkdir $out
        cd source
        $env/bin/python3 -c "$pack" $out
      '';
}
