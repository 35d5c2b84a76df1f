# poetry.lock: the one place where the hash of a wheel stands.
#
# A package of the lock lists the groups that need it, transitively, so a group
# is the packages that name it; no list of dependencies is kept here.
{ fetch }:
let
  lock = builtins.fromTOML (builtins.readFile ../../poetry.lock);
  markers = import ./markers.nix;

  inherit (builtins)
    any
    compareVersions
    elem
    elemAt
    filter
    foldl'
    head
    isString
    length
    match
    split
    ;
  splitOn = separator: text: filter isString (split separator text);

  pythonVersions = {
    cp311 = "3.11";
    cp313 = "3.13";
  };

  environmentOf = tag: {
    python_version = pythonVersions.${tag};
    python_full_version = pythonVersions.${tag};
    sys_platform = "linux";
    platform_system = "Linux";
    platform_machine = "x86_64";
    os_name = "posix";
    platform_python_implementation = "CPython";
    implementation_name = "cpython";
    extra = "";
  };

  # Whether the package is wanted for this Python, by any group or by `group`.
  isWanted =
    tag: group: package:
    let
      marker = package.markers or "";
      byGroup = if isString marker then marker else marker.${group} or "";
      holds = text: text == "" || markers.holds (environmentOf tag) text;
    in
    if isString marker || group != null then
      holds byGroup
    else
      any holds (builtins.attrValues marker);

  # The glibc that a platform tag asks for, null if it is for another system.
  glibcOf =
    platform:
    let
      numbered = match "manylinux_([0-9]+)_([0-9]+)_x86_64" platform;
    in
    {
      any = "0";
      manylinux1_x86_64 = "2.5";
      manylinux2010_x86_64 = "2.12";
      manylinux2014_x86_64 = "2.17";
    }
    .${platform}
      or (if numbered == null then null else "${elemAt numbered 0}.${elemAt numbered 1}");

  # How well a wheel fits, as a version to compare; null where it does not run.
  # Best first: this Python's own ABI, the newest stable ABI, any Python.
  rank =
    tag: file:
    let
      parts = match ".*-([^-]+)-([^-]+)-([^-]+)\\.whl" file;
      pythonTags = splitOn "\\." (elemAt parts 0);
      abi = elemAt parts 1;
      own = builtins.fromJSON (elemAt (match "cp3([0-9]+)" tag) 0);
      glibcs = filter (glibc: glibc != null && compareVersions glibc "2.36" <= 0) (
        map glibcOf (splitOn "\\." (elemAt parts 2))
      );
      newest = foldl' (a: b: if compareVersions a b >= 0 then a else b) "0" glibcs;
      minor = python: match "cp3([0-9]+)" python;
      pythonRank =
        if elem tag pythonTags && abi == tag then
          "3.0"
        else if abi == "abi3" then
          foldl' (
            best: python:
            if minor python != null && builtins.fromJSON (head (minor python)) <= own then
              "2.${head (minor python)}"
            else
              best
          ) null pythonTags
        else if abi == "none" && any (python: elem python [ "py3" "py3${toString own}" tag ]) pythonTags then
          "1.0"
        else
          null;
    in
    if parts == null || glibcs == [ ] || pythonRank == null then null else "${pythonRank}.${newest}";

  # The wheel of a package of the lock, fetched.
  wheelOf =
    tag: package:
    let
      ranked = filter (candidate: candidate.rank != null) (
        map (pin: pin // { rank = rank tag pin.file; }) package.files
      );
      best = foldl' (
        a: b: if a == null || compareVersions b.rank a.rank > 0 then b else a
      ) null ranked;
      hash = match "sha256:([0-9a-f]{64})" best.hash;
    in
    if best == null then
      throw "poetry.lock has no wheel of ${package.name} ${package.version} for ${tag} on x86_64 Linux"
    else
      fetch.fetchWheel {
        inherit (package) name version;
        inherit (best) file;
        sha256 = head hash;
      }
      // {
        pname = package.name;
        inherit (package) version;
        inherit (best) file;
        sha256 = head hash;
      };
in
{
  inherit rank;

  # lockedWheel "cmake" { python = "cp311"; } -> the wheel, with pname, version, file, sha256
  lockedWheel =
    name:
    {
      python ? "cp311",
    }:
    let
      found = filter (package: package.name == name && isWanted python null package) lock.package;
    in
    if found == [ ] then
      throw "poetry.lock has no package '${name}' for ${python}"
    else
      wheelOf python (head found);

  # groupWheels { python = "cp311"; } [ "test" "audit" ] -> the wheels of both, each once
  groupWheels =
    {
      python ? "cp311",
    }:
    groups:
    map (wheelOf python) (
      filter (
        package: any (group: elem group package.groups && isWanted python group package) groups
      ) lock.package
    );
}
