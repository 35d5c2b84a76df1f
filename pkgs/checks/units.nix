# Tests in the sandbox, on the newest CPython that we build for: those of the
# bindings, the dialect and the operator table, which need no PyTorch.
# `tests.nix` runs all of them on the oldest.
{
  toolchain,
  python,
  wheels,
}:
let
  cpython = toolchain.python313;
  folder =
    path:
    builtins.path {
      name = baseNameOf path;
      inherit path;
      filter = file: _: builtins.match ".*/__pycache__" file == null;
    };
in
{
  unitsFor =
    row:
    toolchain.sh "units-${cpython.tag}"
      {
        CC = "${toolchain.compiler}/bin/cc";
        tests = folder ../../tests;
        # Tests read definitions and run the scripts that make data where they lie.
        package = folder ../../torch_mlir;
        rows = builtins.path {
          name = "rows.json";
          path = ../matrix/rows.json;
        };
        environment = python.groupEnv {
          name = "units-${cpython.tag}-env";
          python = cpython;
          groups = [ "test" ];
          wheels = [
            (python.lockedWheel "iree-base-compiler" { python = cpython.tag; })
            (wheels.wheelFor row cpython).installed
          ];
        };
      }
      ''
        set -o pipefail
        export HOME=$PWD PYTHONDONTWRITEBYTECODE=1
        mkdir -p source/pkgs/matrix
        cp $rows source/pkgs/matrix/rows.json
        cp -r $tests source/tests
        cp -r $package source/torch_mlir
        chmod -R u+w source
        $environment/bin/python3 -sEP -m pytest -p no:cacheprovider -q -n ''${NIX_BUILD_CORES:-1} \
          source/tests/_mlir_libs source/tests/bindings source/tests/dialects source/tests/operators \
          | tee log
        tail -n 1 log > $out
      '';
}
