# tests/lazy in the sandbox: what is fast, and needs no linker and no compiler; and all of PyTorch's
# samples of operators, which take minutes.
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
in
{
  checks = testsOf ([ oldest ] ++ computing);
  all =
    testsOf matrix.names
    // check {
      name = "lazy-operators";
      rows = builtins.filter (name: name != oldest) matrix.names;
      arguments = "tests/lazy/test_operators.py";
    };
}
