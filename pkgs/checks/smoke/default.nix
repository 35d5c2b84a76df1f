# A row's wheel beside that row's PyTorch and nothing else of ours.
#
#   checks   the rows that `nix flake check` tries
#   all      every row, on every CPython that it has a wheel for: smoke-torch2_N on
#            3.11, smoke-torch2_N-cp313 on 3.13
{
  toolchain,
  python,
  matrix,
  torch,
  # pkgs/wheel
  wheels,
}:
let
  inherit (builtins)
    concatMap
    listToAttrs
    map
    path
    ;

  # The oldest that exports, the last with the old C++ ABI, a recent one, the newest.
  checkedRows = [
    "2_1"
    "2_6"
    "2_13"
    "2_15"
  ];

  smoke =
    row: interpreter:
    let
      locked = name: python.lockedWheel name { python = interpreter.tag; };
      name = nameOf row interpreter.tag;
      environment = python.groupEnv {
        name = "${name}-env";
        python = interpreter;
        groups = [ "torch" ];
        wheels =
          map locked [
            "numpy"
            "iree-base-compiler"
            "iree-base-runtime"
            "ml-dtypes" # which IREE's runtime needs
          ]
          ++ [ (wheels.wheelFor row interpreter).installed ];
        extra = [ (torch.torchFor row interpreter) ];
      };
    in
    toolchain.sh name
      {
        inherit environment;
        inherit (row) version;
        smoke = path {
          name = "smoke.py";
          path = ./smoke.py;
        };
      }
      ''
        HOME=$PWD $environment/bin/python3 $smoke --torch $version -o $out
      '';

  nameOf = row: tag: "smoke-torch${row.name}${if tag == "cp311" then "" else "-${tag}"}";
  pair = row: tag: {
    name = nameOf row tag;
    value = smoke row (toolchain.pythonFor tag);
  };
in
{
  checks = listToAttrs (map (name: pair (matrix.row name) "cp311") checkedRows);
  all = listToAttrs (
    concatMap (name: map (pair (matrix.row name)) (matrix.pythons (matrix.row name))) matrix.names
  );
}
