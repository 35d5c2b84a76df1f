# The demonstration: bin/demo. No check of the flake, since IREE starts its linker
# with /bin/sh, which a sandbox has not: `./bootstrap test` runs it.
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
{
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
}
