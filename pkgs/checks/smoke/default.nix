# A row's wheel beside that row's PyTorch and nothing else of ours: row -> python -> check.
{
  toolchain,
  python,
  torch,
  # pkgs/wheel
  wheels,
}:
row: interpreter:
let
  locked = name: python.lockedWheel name { python = interpreter.tag; };

  environment = python.groupEnv {
    name = "smoke-torch${row.name}-env";
    python = interpreter;
    groups = [ "torch" ];
    wheels = map locked [
      "numpy"
      "iree-base-compiler"
      "iree-base-runtime"
      "ml-dtypes" # which IREE's runtime needs
    ] ++ [ (wheels.wheelFor row interpreter).installed ];
    extra = [ (torch.torchFor row interpreter) ];
  };
in
toolchain.sh "smoke-torch${row.name}"
  {
    inherit environment;
    inherit (row) version;
    smoke = builtins.path {
      name = "smoke.py";
      path = ./smoke.py;
    };
  }
  ''
    HOME=$PWD $environment/bin/python3 $smoke --torch $version -o $out
  ''
