#!/usr/bin/env bash
# Configures (once) and builds one preset, quietly when all goes well.
# usage: build.sh PRESET JOBS [target...]
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
jobs=$2
shift 2

# Another clone's objects serve as well: paths within the tree are looked up relative to it.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1

if [ ! -f "build/$preset/build.ninja" ]; then
  options=()
  command -v ccache >/dev/null && options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  command -v mold >/dev/null && [ "$preset" != fuzz ] && options+=(-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=mold)
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  if ! cmake --preset "$preset" "${options[@]}" >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
  fi
fi
if [ -t 1 ]; then
  cmake --build "build/$preset" -j "$jobs" ${@:+--target "$@"}
else
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  if ! cmake --build "build/$preset" -j "$jobs" ${@:+--target "$@"} >"$log" 2>&1; then
    grep -E -A12 'FAILED|error|Error' "$log" | head -n 80 >&2
    exit 1
  fi
fi
