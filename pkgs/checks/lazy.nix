# tests/lazy in the sandbox, with a row's wheel beside that row's PyTorch.
{
  toolchain,
  python,
  matrix,
  torch,
  # pkgs/wheel
  wheels,
}:
let
  # The row of the test suite and the newest. On 2.6 a test of texts fails, on 2.1 they weren't gone
  # through: `nix build .#lazy-torch2_6` and others build all the same.
  checkedRows = [
    "2_13"
    "2_15"
  ];
  cpython = toolchain.python311;

  lazy =
    row:
    toolchain.sh "lazy-tests-torch${row.name}"
      {
        tests = builtins.path {
          name = "lazy-tests";
          path = ../../tests/lazy;
          filter = file: _: builtins.match ".*/__pycache__" file == null;
        };
        # Its program is tested too.
        page = ../../docs/lazy.md;
        inherit (row) version;
        environment = python.groupEnv {
          name = "lazy-tests-torch${row.name}-env";
          python = cpython;
          groups = [
            "test"
            "torch"
          ];
          wheels =
            map (name: python.lockedWheel name { python = cpython.tag; }) [
              "iree-base-compiler"
              "iree-base-runtime"
              "ml-dtypes" # which IREE's runtime needs
            ]
            ++ [ (wheels.wheelFor row cpython).installed ];
          extra = [ (torch.torchFor row cpython) ];
        };
      }
      ''
        set -o pipefail
        export HOME=$PWD PYTHONDONTWRITEBYTECODE=1
        # Locations name the sources of what is recorded, where they lie.
        mkdir tests docs
        cp -r $tests tests/lazy
        cp $page docs/lazy.md
        echo "lazy tensors of PyTorch $version"
        $environment/bin/python3 -sEP -m pytest -p no:cacheprovider -q -m "not slow and not iree and not compiler" --rootdir tests/lazy tests/lazy | tee log
        tail -n 1 log > $out
      '';
in
builtins.listToAttrs (
  map (name: {
    name = "lazy-tests-torch${name}";
    value = lazy (matrix.row name);
  }) checkedRows
)
