# tests/lazy in the sandbox, but for what takes minutes, a linker or a compiler.
{
  toolchain,
  python,
  # pkgs/checks/rows.nix
  checkRows,
}:
checkRows {
  name = "lazy-tests";
  # The oldest, of which the texts of modules are tested, since the reference backend doesn't work
  # with it; the oldest with values, the source of the importer's libtorch, the row of the test
  # suite, the newest.
  rows = [
    "2_0"
    "2_1"
    "2_6"
    "2_13"
    "2_15"
  ];
  tests = ../../tests/lazy;
  place = "tests/lazy";
  # Its program is tested too.
  files."docs/lazy.md" = ../../docs/lazy.md;
  packages = map (name: python.lockedWheel name { python = toolchain.python311.tag; }) [
    "iree-base-compiler"
    "iree-base-runtime"
    "ml-dtypes" # which IREE's runtime needs
  ];
  arguments = "-m 'not slow and not iree and not compiler' tests/lazy";
}
