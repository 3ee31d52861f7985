#!/usr/bin/env bash
# Runs fuzz targets one after the other and prints what came of each. It fails where one of them has found something.
#
#   fuzz/run.sh [SECONDS [TARGET...]]    30 seconds each and all targets, unless told
set -euo pipefail
cd "$(dirname "$0")"

seconds=${1:-30}
[[ $seconds =~ ^[1-9][0-9]*$ ]] || { echo "the time of a target must be whole seconds, not $seconds" >&2; exit 2; }
targets=("${@:2}")
[[ ${#targets[@]} -gt 0 ]] || mapfile -t targets < <(ls fuzz_targets | sed -n 's/\.rs$//p')
for target in "${targets[@]}"; do
  [[ -f fuzz_targets/$target.rs ]] || { echo "there is no fuzz target $target" >&2; exit 2; }
done

# What takes longer or more than this is a finding: for inputs of 64 KiB, either is far beyond what is honest.
unit_seconds=5
limits=(-timeout=$unit_seconds -rss_limit_mb=1024)

# libFuzzer needs to see which code runs, and nothing that only a nightly compiler has. The flags are those of
# cargo-fuzz without a sanitizer: there is no unsafe code here to watch. With --target, build scripts do without them.
host=$(rustc -vV | sed -n 's/^host: //p')
coverage=(-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
  -Cllvm-args=-sanitizer-coverage-trace-compares)
# The same versions of everything as in what is shipped.
cp -u ../Cargo.lock Cargo.lock
RUSTFLAGS="${coverage[*]}" "${CARGO:-cargo}" build --quiet --release --target "$host" "${targets[@]/#/--bin=}"
binaries=target/$host/release

mkdir -p target/logs
TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT

# A machine that is busy with something else makes any input slow: what counts is the processor's time.
is_slow() { ! (ulimit -St $unit_seconds && exec "$1" -timeout=0 "$2") &>/dev/null; }
stat() { sed -n "s/^stat::$1: *//p" "$2"; }

table=$(printf '%-14s %12s %12s %9s' target executions executions/s findings)
reproduce=()
for target in "${targets[@]}"; do
  log=target/logs/$target.log
  mkdir -p "corpus/$target" "artifacts/$target"
  echo "fuzzing $target for $seconds s"
  findings=0
  "$binaries/$target" "${limits[@]}" -max_len=65536 -max_total_time="$seconds" -print_final_stats=1 \
    -artifact_prefix="artifacts/$target/" "corpus/$target" "seeds/$target" </dev/null &>"$log" || findings=1
  input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -1)
  if [[ $findings = 1 && $input = */timeout-* ]] && ! is_slow "$binaries/$target" "$input"; then
    echo "  cut short: an input took more than $unit_seconds s, but less of the processor's time: $input"
    findings=0
  fi
  if [[ $findings = 1 ]]; then
    grep -A3 -m1 -E 'panicked at|ERROR: libFuzzer' "$log" | cut -c-2000 | sed 's/^/  /' || tail -3 "$log"
    reproduce+=("fuzz/$binaries/$target ${limits[*]} ${input:+fuzz/$input}")
  fi
  table+=$(printf '\n%-14s %12s %12s %9s' "$target" "$(stat number_of_executed_units "$log")" \
    "$(stat average_exec_per_sec "$log")" "$findings")
done

printf '\n%s\n' "$table"
if [[ ${#reproduce[@]} -gt 0 ]]; then
  printf '\nreproduce with:\n'
  printf '  %s\n' "${reproduce[@]}"
  exit 1
fi
