# What `nix run` starts besides the checks' own programs.
{
  toolchain,
  python,
  torch,
  wheels,
}:
{
  # "demo" derivation -> the app that runs its bin/demo
  program = name: derivation: {
    type = "app";
    program = "${derivation}/bin/${name}";
  };

  # bin/torch-mlir-import: `torch-mlir import` beside the PyTorch of a row.
  importFor =
    row:
    toolchain.sh "import-torch${row.name}"
      {
        inherit (toolchain) busybox;
        environment = python.groupEnv {
          name = "import-torch${row.name}-env";
          groups = [ "torch" ];
          wheels = [
            (python.lockedWheel "numpy" { })
            (wheels.wheelFor row toolchain.python311).installed
          ];
          extra = [ (torch.torchFor row toolchain.python311) ];
        };
      }
      ''
        mkdir -p $out/bin
        printf '#!%s\nexec %s/bin/torch-mlir import "$@"\n' \
          $busybox/bin/sh $environment > $out/bin/torch-mlir-import
        chmod 555 $out/bin/torch-mlir-import
      '';
}
