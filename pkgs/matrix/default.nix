# The rows of rows.json, each with its own name beside what the file says.
#
#   names    every row, oldest first
#   rows     { "2_13" = { name; version; wheels; cxx11_abi; manylinux; libtorch_source; }; … }
#   row      "2_13" -> that row; an unknown name fails with the list of those there are
#   wheel    row: "cp311" -> { file; sha256; }; fails where PyTorch never built one
#   pythons  row -> the interpreters that its PyTorch has a wheel for
{ }:
let
  read = builtins.fromJSON (builtins.readFile ./rows.json);
  version = name: builtins.replaceStrings [ "_" ] [ "." ] name;
  list = builtins.concatStringsSep " ";

  names = builtins.sort (a: b: builtins.compareVersions (version a) (version b) < 0) (
    builtins.attrNames read
  );
  rows = builtins.mapAttrs (name: row: row // { inherit name; }) read;
  pythons = row: builtins.attrNames row.wheels;
in
{
  inherit names rows pythons;

  row =
    name:
    rows.${name} or (throw ''
      there is no row "${name}" in pkgs/matrix/rows.json; the rows are ${list names}.
      For a newer PyTorch run pkgs/matrix/regenerate.py.'');

  wheel =
    row: python:
    row.wheels.${python} or (throw "PyTorch ${row.version} has no wheel for ${python}, only for ${list (pythons row)}");
}
