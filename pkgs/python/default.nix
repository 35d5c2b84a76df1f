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

  # Wheels unpacked for one CPython: lib/pythonX.Y/site-packages and bin, native
  # programs under that CPython's loader, byte code compiled. Environments share
  # these folders through links.
  installedWheels =
    {
      name,
      python ? toolchain.python311,
      # Costs seconds for the largest, and saves them at each start.
      compile ? true,
    }:
    wheels:
    toolchain.sh "${python.tag}-${name}"
      {
        inherit python installer wheels;
        inherit (programs) install elf;
        compile = if compile then "1" else "";
        # A wheel is read by its own name, which the store prefixes.
        names = map (
          wheel: wheel.file or (baseNameOf (builtins.unsafeDiscardStringContext "${wheel}"))
        ) wheels;
      }
      ''
        mkdir wheels
        for name in $names; do
          cp ''${wheels%% *} wheels/$name
          wheels=''${wheels#* }
        done
        PYTHONDONTWRITEBYTECODE=1 $python/bin/python3 $install \
          --installer $installer --native-programs $elf ''${compile:+--compile} wheels $out
      '';

  installedWheel =
    arguments: wheel:
    installedWheels (
      {
        name = "${wheel.pname or "wheel"}-${wheel.version or "0"}";
      }
      // arguments
    ) [ wheel ];

  # These unpack into the same folders and find each other's files there by their
  # real path: links would take them apart.
  together = wheel: builtins.match "xtc-(llvm|mlir)-(dev|tools)" (wheel.pname or "") != null;

  unpack =
    arguments: wheels:
    let
      parts = builtins.partition together wheels;
    in
    map (installedWheel arguments) parts.wrong
    ++ (
      if parts.right == [ ] then
        [ ]
      else
        [ (installedWheels (arguments // { name = "xtc-mlir"; }) parts.right) ]
    );

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
        parts = unpack { inherit python compile; } wheels ++ extra;
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
