# Tests in the sandbox, with a row's wheel beside that row's PyTorch: a check for each of some rows.
{
  toolchain,
  python,
  matrix,
  torch,
  # pkgs/wheel
  wheels,
}:
{
  # The checks are "<name>-torch2_13" and so on.
  name,
  # names of rows
  rows,
  # a folder, and where it lies while it is tested: TorchScript and locations of operations read the
  # sources of what they record, where those lie
  tests,
  place,
  # of pytest, beside those that all have
  arguments,
  # more that is there, below its name: { "docs/lazy.md" = ../../docs/lazy.md; }
  files ? { },
  # wheels beside those of the groups test and torch
  packages ? [ ],
}:
let
  inherit (builtins)
    attrNames
    concatStringsSep
    listToAttrs
    match
    path
    ;
  cpython = toolchain.python311;

  check =
    row:
    toolchain.sh "${name}-torch${row.name}"
      {
        inherit (row) version;
        tests = path {
          name = "${name}-tests";
          path = tests;
          filter = file: _: match ".*/__pycache__" file == null;
        };
        environment = python.groupEnv {
          name = "${name}-torch${row.name}-env";
          python = cpython;
          groups = [
            "test"
            "torch"
          ];
          wheels = packages ++ [ (wheels.wheelFor row cpython).installed ];
          extra = [ (torch.torchFor row cpython) ];
        };
      }
      ''
        set -o pipefail
        export HOME=$PWD PYTHONDONTWRITEBYTECODE=1
        mkdir -p ${place}
        cp -r $tests/. ${place}
        ${concatStringsSep "\n" (
          map (file: "mkdir -p $(dirname ${file}); cp ${files.${file}} ${file}") (attrNames files)
        )}
        echo "${name}, with PyTorch $version"
        $environment/bin/python3 -sEP -m pytest -p no:cacheprovider -q --rootdir ${place} \
          ${arguments} | tee log
        tail -n 1 log > $out
      '';
in
listToAttrs (
  map (each: {
    name = "${name}-torch${each}";
    value = check (matrix.row each);
  }) rows
)
