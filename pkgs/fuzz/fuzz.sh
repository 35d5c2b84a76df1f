# fuzz --seconds N [--runs N] [--corpus FOLDER]: see default.nix, which sets $program, $seeds.
#
# The corpus grows in FOLDER (./fuzz-corpus), findings go to FOLDER/../fuzz-findings. What libFuzzer
# prints tells the executions; the exit code is not 0 if there was a finding.
set -eu
seconds=0 runs=-1 corpus=fuzz-corpus
while [ $# -gt 0 ]; do
  case $1 in
  --seconds) seconds=$2 ;;
  --runs) runs=$2 ;;
  --corpus) corpus=$2 ;;
  *)
    echo "usage: fuzz [--seconds N] [--runs N] [--corpus FOLDER]" >&2
    exit 2
    ;;
  esac
  shift 2
done
findings=$corpus/../fuzz-findings
mkdir -p "$corpus" "$findings"
exec "$program" -max_total_time="$seconds" -runs="$runs" -max_len=65536 -timeout=60 \
  -rss_limit_mb=3000 -print_final_stats=1 -artifact_prefix="$findings/" "$corpus" "$seeds"
