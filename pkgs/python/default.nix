# Python environments from the wheels of poetry.lock.
{
  toolchain,
  lock,
}:
let
  inherit (builtins) path;

  programs = {
    install = path {
      name = "install_wheel.py";
      path = ./install_wheel.py;
    };
    join = path {
      name = "join_environment.py";
      path = ./join_environment.py;
    };
    elf = path {
      name = "native_programs.py";
      path = ./native_programs.py;
    };
  };
  installer = lock.lockedWheel "installer" { };

  # A wheel unpacked for one CPython: lib/pythonX.Y/site-packages and bin, its
  # native programs under that CPython's loader, its byte code compiled.
  # Environments share it through links.
  installedWheel =
    {
      python ? toolchain.python311,
      # Costs seconds for the largest, and saves them at each start.
      compile ? true,
    }:
    wheel:
    toolchain.sh "${python.tag}-${wheel.pname or "wheel"}-${wheel.version or "0"}"
      {
        inherit
          python
          installer
          wheel
          ;
        inherit (programs) install elf;
        fileName = wheel.file or (baseNameOf (builtins.unsafeDiscardStringContext "${wheel}"));
        compile = if compile then "1" else "";
      }
      ''
        export PYTHONDONTWRITEBYTECODE=1
        $python/bin/python3 $install --installer $installer --native-programs $elf \
          ''${compile:+--compile} --file-name "$fileName" $wheel $out
      '';

  # A virtual environment: bin/python3, the wheels' programs in bin and
  # lib/pythonX.Y/site-packages. `extra` are folders laid out like installedWheel's
  # (lib/pythonX.Y/site-packages, bin), say a PyTorch made to run on a CPU.
  pythonEnv =
    {
      name ? "python-env",
      python ? toolchain.python311,
      wheels ? [ ],
      extra ? [ ],
      compile ? true,
    }:
    toolchain.sh name
      {
        inherit python;
        inherit (programs) join;
        parts = map (installedWheel { inherit python compile; }) wheels ++ extra;
      }
      ''
        PYTHONDONTWRITEBYTECODE=1 $python/bin/python3 $join $python $out $parts
      ''
    // {
      inherit python;
      sitePackages = "lib/python${python.version}/site-packages";
    };
in
{
  inherit (lock) lockedWheel groupWheels;
  inherit installedWheel pythonEnv;

  # groupEnv { groups = [ "test" ]; } -> the environment of these groups of the lock
  groupEnv =
    {
      groups,
      python ? toolchain.python311,
      wheels ? [ ],
      extra ? [ ],
      name ? "python-env-${builtins.concatStringsSep "-" groups}",
    }:
    pythonEnv {
      inherit name python extra;
      wheels = lock.groupWheels { python = python.tag; } groups ++ wheels;
    };
}
