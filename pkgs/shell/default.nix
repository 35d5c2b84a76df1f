# Development shells: `nix develop` for the newest row, `nix develop .#torch2_1` for one.
{
  system,
  toolchain,
  python,
  matrix,
  torch,
}:
let
  inherit (toolchain) compiler;

  # `nix develop` runs the builder to read the environment from it, and that has
  # to be a bash.
  bash = toolchain.unpackDebs "bash-static" "bookworm" [ "bash-static" ];
  bashPath = toolchain.sh "bash" { inherit bash; } ''
    mkdir -p $out/bin
    cp $bash/bin/bash-static $out/bin/bash
    ln -s bash $out/bin/sh
  '';

  # The command that configures on first use and then builds what changed.
  rebuild =
    env:
    toolchain.sh "rebuild"
      {
        inherit env compiler;
        inherit (toolchain) busybox;
        script = builtins.path {
          name = "rebuild.sh";
          path = ./rebuild.sh;
        };
      }
      ''
        mkdir -p $out/bin
        {
          echo "#!$busybox/bin/sh"
          echo "python=$env/bin/python3 compiler=$compiler"
          cat $script
        } > $out/bin/rebuild
        chmod 555 $out/bin/rebuild
      '';

  shellFor =
    row: interpreter:
    let
      env = python.groupEnv {
        name = "${interpreter.tag}-development-torch-${row.version}";
        python = interpreter;
        groups = [
          "build"
          "test"
          "audit"
          "torch"
          "models"
          "architectures"
          "dev"
        ];
        extra = [ (torch.torchFor row interpreter) ];
      };
      command = rebuild env;
    in
    derivation {
      inherit system;
      name = "torch-mlir-torch${row.name}";
      builder = "${bashPath}/bin/bash";
      args = [
        "-euc"
        ''
          mkdir -p $out/bin
          for program in rebuild python3; do ln -s "$(command -v $program)" $out/bin/; done
        ''
      ];
      outputs = [ "out" ];
      PATH = builtins.concatStringsSep ":" [
        "${command}/bin"
        "${env}/bin"
        "${compiler}/bin"
        "${toolchain.busybox}/bin"
      ];
      allowSubstitutes = false;

      # Read by `nix develop`, run by its shell where the user stands.
      shellHook = ''
        if [ -e "$PWD/pyproject.toml" ] && [ -d "$PWD/torch_mlir" ]; then
          export TORCH_MLIR_SOURCE=$PWD
          export TORCH_MLIR_BUILD=''${TORCH_MLIR_BUILD:-$PWD/build/torch${row.name}}
          export PYTHONPATH=$TORCH_MLIR_BUILD/python''${PYTHONPATH:+:$PYTHONPATH}
          # The package is the built one, not the folder of its sources that lies here.
          export PYTHONSAFEPATH=1 PYTHONDONTWRITEBYTECODE=1
          [ -e "$TORCH_MLIR_BUILD/python/torch_mlir/_mlir_libs" ] || rebuild
        else
          echo "Enter this shell in the source tree, to build and import torch_mlir there." >&2
        fi
      '';
    };
in
{
  # { torch2_1 = shell; … }: CPython 3.11 runs every row.
  rows = builtins.listToAttrs (
    map (name: {
      name = "torch${name}";
      value = shellFor (matrix.row name) toolchain.python311;
    }) matrix.names
  );
}
