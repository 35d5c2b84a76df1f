# `nix fmt`: ruff and clang-format at the versions of poetry.lock.
{ toolchain, python }:
toolchain.sh "fmt"
  {
    inherit (toolchain) busybox;
    env = python.pythonEnv {
      name = "formatters";
      wheels = map (name: python.lockedWheel name { }) [
        "ruff"
        "clang-format"
      ];
    };
    script = builtins.path {
      name = "format.sh";
      path = ./format.sh;
    };
  }
  ''
    mkdir -p $out/bin
    {
      echo "#!$busybox/bin/sh"
      echo "PATH=$busybox/bin env=$env"
      cat $script
    } > $out/bin/fmt
    chmod 555 $out/bin/fmt
  ''
