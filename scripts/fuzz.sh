#!/usr/bin/env bash
# Builds the libFuzzer targets and runs each for the given number of seconds over its seed corpus, JOBS
# of them at a time.
# usage: fuzz.sh JOBS SECONDS_EACH
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=$1
seconds=$2

fuzz_one() {  # NAME SECONDS
  local found log runs
  found=$(mktemp -d)
  log=$(mktemp)
  if ! "build/asan/fuzz/$1" -max_total_time="$2" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$found/" "$found" "fuzz/corpus/${1#fuzz_}" >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    echo "fuzz: $1 found a failure; the input is under $found" >&2
    return 255  # xargs starts no other
  fi
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  echo "fuzz: $1: $runs inputs in $2 s, no failure"
  rm -rf "$found" "$log"
}
export -f fuzz_one

scripts/build.sh asan "$jobs" fuzzers
basename -s .cc fuzz/fuzz_*.cc | xargs -P "$jobs" -I '{}' bash -c "fuzz_one {} $seconds"
