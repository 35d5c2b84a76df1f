# bin/run-tests: pytest beside a row's wheel, its PyTorch and the locked tools.
#
# Outside the sandbox, since tests of the fetchers and of `bootstrap` start what
# the host has. Its arguments are pytest's.
{
  toolchain,
  python,
  torch,
  # pkgs/wheel
  wheels,
}:
{
  runnerFor =
    row:
    let
      cpython = toolchain.python311;
    in
    toolchain.sh "tests-torch${row.name}"
      {
        environment = python.groupEnv {
          name = "tests-torch${row.name}-env";
          groups = [
            "test"
            "audit"
            "torch"
            "models"
            "architectures"
            "build"
          ];
          python = cpython;
          wheels = [ (wheels.wheelFor row cpython).installed ];
          extra = [ (torch.torchFor row cpython) ];
        };
        inherit (toolchain) busybox;
      }
      # -P: the wheel is what is tested, not a source tree that is the working directory.
      ''
        mkdir -p $out/bin
        cat >$out/bin/run-tests <<END
        #!$busybox/bin/sh
        export PYTHONDONTWRITEBYTECODE=1
        exec $environment/bin/python3 -sEP -m pytest -p no:cacheprovider "\$@"
        END
        chmod +x $out/bin/run-tests
      '';
}
