#!/usr/bin/env bash
# Runs fuzz targets one after the other and prints what came of each. It fails where one of them has found something.
#
#   fuzz/run.sh [SECONDS [TARGET...]]    by default 30 seconds each and all targets
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
# A target goes on after a finding, but not after so many.
most_findings=5
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
executed() { sed -n 's/^stat::number_of_executed_units: *//p' "$1" | awk '{ sum += $1 } END { print sum + 0 }'; }

table=$(printf '%-14s %12s %12s %9s' target executions executions/s findings)
reproduce=()
for target in "${targets[@]}"; do
  log=target/logs/$target.log
  mkdir -p "corpus/$target" "artifacts/$target"
  echo "fuzzing $target for $seconds s"
  : >"$log"
  declare -A found=()
  began=$SECONDS
  rounds=0
  while left=$((began + seconds - SECONDS)) && ((left > 0 && ${#found[@]} < most_findings && rounds++ < 20)); do
    round=$log.round
    if "$binaries/$target" "${limits[@]}" -max_len=65536 -max_total_time="$left" -print_final_stats=1 \
      -artifact_prefix="artifacts/$target/" "corpus/$target" "seeds/$target" </dev/null &>"$round"; then
      cat "$round" >>"$log"
      break
    fi
    cat "$round" >>"$log"
    input=$(sed -n 's/.*Test unit written to //p' "$round" | tail -1)
    if [[ $input = */timeout-* ]] && ! is_slow "$binaries/$target" "$input"; then
      echo "  an input took more than $unit_seconds s, but less of the processor's time: $input"
    elif [[ -z ${found[${input:-none}]:-} ]]; then
      found[${input:-none}]=1
      grep -A3 -m1 -E 'panicked at|ERROR: libFuzzer' "$round" | cut -c-2000 | sed 's/^/  /' || tail -3 "$round"
      reproduce+=("fuzz/$binaries/$target ${limits[*]} ${input:+fuzz/$input}")
    fi
  done
  rm -f "$log.round"
  executions=$(executed "$log")
  took=$((SECONDS > began ? SECONDS - began : 1))
  table+=$(printf '\n%-14s %12s %12s %9s' "$target" "$executions" "$((executions / took))" "${#found[@]}")
done

printf '\n%s\n' "$table"
if [[ ${#reproduce[@]} -gt 0 ]]; then
  printf '\nreproduce with:\n'
  printf '  %s\n' "${reproduce[@]}"
  exit 1
fi
