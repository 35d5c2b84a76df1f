# The PyTorch of a row, from PyPI's CUDA wheel, made to run on a CPU.
{
  toolchain,
  fetch,
  lock,
  matrix,
}:
let
  programs = builtins.path {
    name = "torch-programs";
    path = ./.;
    filter = path: _: builtins.match ".*\\.py" path != null;
  };
  adopt = builtins.path {
    name = "native_programs.py";
    path = ../python/native_programs.py;
  };
in
rec {
  # The wheel of a row as the index has it.
  wheelFor =
    row: python:
    fetch.fetchWheel (
      matrix.wheel row python.tag
      // {
        name = "torch";
        inherit (row) version;
        data = "pkgs/matrix/rows.json";
        regenerate = "pkgs/matrix/regenerate.py";
      }
    );

  # row -> python -> a folder with lib/pythonX.Y/site-packages/torch, for the
  # `extra` of a Python environment; PyTorch's own dependencies are the `torch`
  # group of poetry.lock.
  torchFor =
    row: python:
    toolchain.sh "${python.tag}-torch-${row.version}"
      {
        inherit python programs adopt;
        wheel = wheelFor row python;
        pyelftools = lock.lockedWheel "pyelftools" { python = python.tag; };
      }
      ''
        export PYTHONDONTWRITEBYTECODE=1
        PYTHONPATH=$pyelftools $python/bin/python3 $programs/assemble.py --compile $wheel $out
        $python/bin/python3 $adopt $out
      '';
}
