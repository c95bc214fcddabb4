#!/usr/bin/env bash
# Builds and runs all tests, or those named as ctest knows them: a C++ test by its file (arc_test), or
# all of a folder by their program (gguf_tests), or of the server in Python by serving_tests; either
# names of tests or of programs.
# usage: test.sh PRESET JOBS [name...]
# CTEST_FLAGS in the environment goes to ctest.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
jobs=$2
shift 2
folder=build/$preset

programs=()
chosen=()
if [[ "${1:-}" == *_tests ]]; then
  for name in "$@"; do
    [ "$name" = serving_tests ] && programs+=(troupe troupe-node) || programs+=("$name")
  done
  chosen=(-L "^($(IFS='|'; echo "$*"))\$")
elif [ "$#" -gt 0 ]; then
  scripts/configure.sh "$preset" TESTS
  ninja -C "$folder" build.ninja >"$folder/configure.log" || { cat "$folder/configure.log" >&2; exit 1; }  # lists a new test
  for name in "$@"; do
    # add_test([=[arc_test]=] "/…/expert_cache_tests" "--gtest_filter=…")
    program=$(find "$folder" -name CTestTestfile.cmake -exec sed -n "s/^add_test(\[*=*\[*$name\]*=*\]* \"\([^\"]*\)\".*/\1/p" {} +)
    if [ -z "$program" ]; then
      echo "test.sh: there is no test '$name'; ctest --test-dir $folder -N lists them" >&2
      exit 2
    fi
    case $program in
      "$PWD/$folder"/*) programs+=("$(basename "$program")") ;;
      *) programs+=(troupe troupe-node) ;;  # a script, which runs it
    esac
  done
  chosen=(-R "^($(IFS='|'; echo "$*"))\$")
fi
scripts/build.sh "$preset" "$jobs" tests "${programs[@]}"

log=$folder/tests.log
# shellcheck disable=SC2086 # several flags
if ! ctest --preset "$preset" -j "$jobs" --no-tests=error "${chosen[@]}" ${CTEST_FLAGS:-} 2>&1 |
  scripts/progress.sh tests "$log"; then
  echo "test.sh: tests failed; all that ctest said: $log, all that the tests wrote: $folder/Testing/Temporary/LastTest.log" >&2
  exit 1
fi
