#!/usr/bin/env bash
# Configures build/PRESET, if it has to. The first time it has the program alone, and what is named; a
# later call turns on what is missing and never anything off: `make run` needs neither GoogleTest nor
# Python, `make test` adds the tests to the same folder.
# usage: configure.sh PRESET [TESTS|BENCHES|FUZZ]...
# TROUPE_WERROR=ON or OFF in the environment sets that option.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
shift
folder=build/$preset

set_in_cache() { grep -q "^$1:[A-Z]*=$2\$" "$folder/CMakeCache.txt"; }  # OPTION VALUE

options=()
first=no
if [ ! -f "$folder/build.ninja" ]; then
  first=yes
  [[ " $* " == *' TESTS '* ]] || options+=(-DTROUPE_TESTS=OFF)
  command -v ccache >/dev/null && options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  command -v mold >/dev/null && options+=(-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=mold)
fi
for part in "$@"; do
  if [ "$first" = yes ] || ! set_in_cache "TROUPE_$part" ON; then
    options+=("-DTROUPE_$part=ON")
  fi
done
if [ -n "${TROUPE_WERROR:-}" ]; then
  if [ "$first" = yes ] || ! set_in_cache TROUPE_WERROR "$TROUPE_WERROR"; then
    options+=("-DTROUPE_WERROR=$TROUPE_WERROR")
  fi
fi
[ "$first" = no ] && [ "${#options[@]}" -eq 0 ] && exit 0

echo "configuring $folder"
mkdir -p "$folder"
log=$folder/configure.log
if ! cmake --preset "$preset" "${options[@]}" >"$log" 2>&1; then
  grep -B4 -A12 'CMake Error' "$log" >&2 || tail -n 20 "$log" >&2
  echo "configure.sh: could not configure; all of it: $log" >&2
  rm -f "$folder/build.ninja"  # so that the next call begins anew
  exit 1
fi
