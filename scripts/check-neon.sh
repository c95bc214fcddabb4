#!/usr/bin/env bash
# Compiles the kernels for 64-bit Arm, so that a machine without one sees when NEON stops to compile.
# Needs g++-aarch64-linux-gnu; Highway and fmt are headers here, nothing is linked. TROUPE_HIGHWAY is
# the folder of another version of Highway's headers: later ones have more targets.
set -euo pipefail
cd "$(dirname "$0")/.."

compiler=${CXX:-aarch64-linux-gnu-g++}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# These two alone: with all of /usr/include the compiler would find the headers of this machine.
mkdir "$work/include"
ln -s "${TROUPE_HIGHWAY:-/usr/include/hwy}" /usr/include/fmt "$work/include/"

targets=$(sed -n 's/^ *"\(HWY_DISABLED_TARGETS=.*\)"$/\1/p' src/kernels/CMakeLists.txt)
for source in src/kernels/*.cc; do
  case $source in *_test.cc | *_bench.cc) continue ;; esac
  "$compiler" -std=c++20 -O2 -Wall -Wextra -Wshadow -Werror -ffp-contract=off \
    -DHWY_BROKEN_EMU128=1 "-D$targets" -isystem "$work/include" -Iinclude -Isrc \
    -c "$source" -o "$work/out.o"
  echo "$source"
done
