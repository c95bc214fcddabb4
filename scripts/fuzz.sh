#!/usr/bin/env bash
# Builds the libFuzzer targets and runs each for the given number of seconds over its seed corpus.
# usage: fuzz.sh SECONDS_EACH
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
mapfile -t targets < <(basename -s .cc fuzz/fuzz_*.cc)
scripts/build.sh fuzz "$(nproc)" "${targets[@]}"
for name in "${targets[@]}"; do
  target=build/fuzz/fuzz/$name
  found=$(mktemp -d)
  log=$(mktemp)
  if ! "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$found/" "$found" "fuzz/corpus/${name#fuzz_}" >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    echo "fuzz: $name found a failure; the input is under $found" >&2
    exit 1
  fi
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  echo "fuzz: $name: $runs inputs in ${seconds} s, no failure"
  rm -rf "$found" "$log"
done
