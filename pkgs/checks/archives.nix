# Archives of TorchScript, written by a row's PyTorch in the sandbox, beside what
# that PyTorch holds in memory for them: tests/importers/torchscript/test_raw.py,
# and test_compare.py, which shows that the comparison finds differences. And
# test_kept.py: those in the repository come out as they are kept.
{
  toolchain,
  python,
  matrix,
  torch,
  # pkgs/wheel
  wheels,
}:
let
  # The oldest that exports, the source of the importer's libtorch, the newest; what
  # 2.13 writes, the whole test suite compares.
  checkedRows = [
    "2_1"
    "2_6"
    "2_15"
  ];
  cpython = toolchain.python311;

  archives =
    row:
    toolchain.sh "archives-torch${row.name}"
      {
        tests = builtins.path {
          name = "torchscript-tests";
          path = ../../tests/importers/torchscript;
          filter = file: _: builtins.match ".*/__pycache__" file == null;
        };
        inherit (row) version;
        environment = python.groupEnv {
          name = "archives-torch${row.name}-env";
          python = cpython;
          groups = [
            "test"
            "torch"
          ];
          wheels = [ (wheels.wheelFor row cpython).installed ];
          extra = [ (torch.torchFor row cpython) ];
        };
      }
      ''
        set -o pipefail
        export HOME=$PWD PYTHONDONTWRITEBYTECODE=1
        # TorchScript reads the sources of what it scripts, where they lie.
        cp -r $tests tests
        echo "archives written by PyTorch $version"
        $environment/bin/python3 -sEP -m pytest -p no:cacheprovider -q --rootdir tests \
          tests/test_raw.py tests/test_compare.py tests/test_kept.py | tee log
        tail -n 1 log > $out
      '';
in
builtins.listToAttrs (
  map (name: {
    name = "archives-torch${name}";
    value = archives (matrix.row name);
  }) checkedRows
)
