# The demonstration: bin/demo, and a check that runs it in the sandbox.
{
  toolchain,
  python,
  torch,
  # pkgs/wheel
  wheels,
}:
let
  programs = builtins.path {
    name = "demo-programs";
    path = ./.;
    filter = path: _: builtins.match ".*\\.py" path != null;
  };
in
rec {
  demoFor =
    row:
    let
      cpython = toolchain.python311;
    in
    toolchain.sh "demo-torch${row.name}"
      {
        environment = python.groupEnv {
          name = "demo-torch${row.name}-env";
          groups = [
            "torch"
            "models"
          ];
          python = cpython;
          wheels = [ (wheels.wheelFor row cpython).installed ];
          extra = [ (torch.torchFor row cpython) ];
        };
        inherit programs;
        inherit (toolchain) busybox;
      }
      ''
        mkdir -p $out/bin
        cat >$out/bin/demo <<END
        #!$busybox/bin/sh
        exec $environment/bin/python3 -sE $programs/demo.py "\$@"
        END
        chmod +x $out/bin/demo
      '';

  # Its table, if every model's numbers are eager PyTorch's. IREE starts its linker
  # with /bin/sh, which the sandbox has not, so this takes the backend without one.
  checkFor =
    row:
    toolchain.sh "demo-torch${row.name}-table" { demo = demoFor row; } ''
      export HOME=$PWD
      $demo/bin/demo --backend vmvx -o models >table || { cat table >&2; exit 1; }
      cp table $out
    '';
}
