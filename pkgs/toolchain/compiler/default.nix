# zig as C and C++ compiler for manylinux_2_28, with libstdc++ linked statically.
#
# MLIR's archives are compiled with GCC's libstdc++, zig ships libc++ alone: the
# headers and the archive of libstdc++ are Debian's.
{
  sh,
  busybox,
  zig,
  libstdcxx,
}:
sh "compiler"
  {
    inherit busybox zig libstdcxx;
    driver = builtins.path {
      name = "driver.sh";
      path = ./driver.sh;
    };
    shim = builtins.path {
      name = "shim";
      path = ./shim;
    };
  }
  ''
    mkdir -p $out/bin $out/lib
    export ZIG_GLOBAL_CACHE_DIR=$PWD/cache ZIG_LOCAL_CACHE_DIR=$PWD/cache
    for name in cc c++; do
      {
        echo "#!$busybox/bin/sh"
        echo "mode=$name zig=$zig/bin/zig libstdcxx=$libstdcxx/usr shim=$shim lib=$out/lib"
        cat $driver
      } > $out/bin/$name
    done
    for name in ar ranlib; do
      printf '#!%s\nexec %s %s "$@"\n' $busybox/bin/sh $zig/bin/zig $name > $out/bin/$name
    done
    chmod 555 $out/bin/*
    $out/bin/cc -O2 -fPIC -c $shim/compat.c -o $out/lib/compat.o
  ''
