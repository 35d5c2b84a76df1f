# Archives of TorchScript, written by a row's PyTorch in the sandbox, beside what
# that PyTorch holds in memory for them: tests/importers/torchscript/test_raw.py,
# and test_compare.py, which shows that the comparison finds differences. And
# test_kept.py: those in the repository come out as they are kept.
{
  # pkgs/checks/rows.nix
  checkRows,
}:
checkRows {
  name = "archives";
  # The oldest that exports, the source of the importer's libtorch, the newest; what
  # 2.13 writes, the whole test suite compares.
  rows = [
    "2_1"
    "2_6"
    "2_15"
  ];
  tests = ../../tests/importers/torchscript;
  place = "tests";
  arguments = "tests/test_raw.py tests/test_compare.py tests/test_kept.py";
}
