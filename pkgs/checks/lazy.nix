# tests/lazy in the sandbox, as far as they need no linker and no compiler: all of PyTorch's samples of
# operators, which take about a minute for a row, and the rest.
{
  toolchain,
  python,
  matrix,
  # pkgs/checks/rows.nix
  checkRows,
}:
let
  # The oldest with values, the source of the importer's libtorch, the row of the test suite, the
  # newest.
  computing = [
    "2_1"
    "2_6"
    "2_13"
    "2_15"
  ];
  check =
    more:
    checkRows (
      {
        tests = ../../tests/lazy;
        place = "tests/lazy";
        # Its program is tested too.
        files."docs/lazy.md" = ../../docs/lazy.md;
        packages = map (name: python.lockedWheel name { python = toolchain.python311.tag; }) [
          "iree-base-compiler"
          "iree-base-runtime"
          "ml-dtypes" # which IREE's runtime needs
        ];
      }
      // more
    );
  # Of the oldest of all the texts of modules are tested, since the reference backend doesn't work with
  # it.
  oldest = "2_0";
  testsOf =
    rows:
    check {
      name = "lazy-tests";
      inherit rows;
      arguments = "-m 'not slow and not iree and not compiler' tests/lazy";
    };
  operatorsOf =
    rows:
    check {
      name = "lazy-operators";
      inherit rows;
      arguments = "tests/lazy/test_operators.py";
    };
in
{
  checks = testsOf ([ oldest ] ++ computing) // operatorsOf computing;
  all = testsOf matrix.names // operatorsOf (builtins.filter (name: name != oldest) matrix.names);
}
