#!/usr/bin/env bash
# Builds a part of the project in build/PRESET, and says how far it is.
# usage: build.sh PRESET JOBS program|library|tests|benches|fuzzers [target...]
# Without a target the whole part.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
jobs=$2
part=$3
shift 3
targets=("$@")
folder=build/$preset

# Another clone's objects serve as well: paths within the tree are looked up relative to it, and the
# language of the messages does not matter.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:+$CCACHE_SLOPPINESS,}locale

case $part in
  program) what=troupe whole='troupe troupe-node' needs=() ;;
  library) what='troupe and its library' whole='troupe troupe-node libtroupe_static libtroupe_shared' needs=() ;;
  tests) what='troupe and its tests' whole=all_tests needs=(TESTS) ;;
  benches) what='the microbenchmarks' whole=all_benches needs=(TESTS BENCHES) ;;  # one lies among the tests
  fuzzers) what='the fuzz targets' whole=all_fuzzers needs=(FUZZ) ;;
  *)
    echo "build.sh: '$part' is no part; expected program, library, tests, benches or fuzzers" >&2
    exit 2
    ;;
esac
scripts/configure.sh "$preset" "${needs[@]}"
[ "${#targets[@]}" -gt 0 ] || read -ra targets <<<"$whole"

if [ -t 1 ]; then
  NINJA_STATUS="building $what: %f of %t, %es  " exec ninja -C "$folder" -j "$jobs" "${targets[@]}"
fi
log=$folder/build.log
if ! NINJA_STATUS='%f of %t ' ninja -C "$folder" -j "$jobs" "${targets[@]}" 2>&1 |
  scripts/progress.sh build "$log" "building $what"; then
  # What failed and what the compiler said of it, without the command lines.
  awk '/^[0-9]+ of [0-9]+ /{on = 0} on == 2 {print} on == 1 {on = 2} /^FAILED: /{print; on = 1}
       /^ninja: error/{print}' "$log" | head -n 80 >&2
  echo "build.sh: could not build; all of it: $log" >&2
  exit 1
fi
