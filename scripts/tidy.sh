#!/usr/bin/env bash
# clang-tidy over every source of ours, with Clang's view of the build (which also turns on the
# thread-safety analysis). usage: tidy.sh JOBS
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${1:-2}
cmake -S . -B build/tidy -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_COMPILER=clang \
  -DCMAKE_CXX_COMPILER=clang++ -DTROUPE_UNITS=OFF -DTROUPE_TESTS=OFF -DTROUPE_WERROR=ON >/dev/null
git ls-files 'src/*.cc' 'tools/*.cc' | grep -v '_test\.cc$' | grep -v '_bench\.cc$' |
  xargs -P "$jobs" -n 4 clang-tidy -p build/tidy --quiet
