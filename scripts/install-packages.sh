#!/usr/bin/env bash
# Installs the Debian 12 packages that the build, the tests or the tools need and that are missing.
# usage: install-packages.sh [build|test|bench|arm|train]...   (default: build)
# Quick and silent when nothing is missing; needs root or sudo otherwise.
set -euo pipefail

build=(build-essential cmake ninja-build pkg-config ccache mold
  libhwy-dev libfmt-dev nlohmann-json3-dev libcli11-dev libpcre2-dev libxxhash-dev liburing-dev
  libgtest-dev libgmock-dev libbenchmark-dev liblemon-dev libzstd-dev)
test=(clang clang-format clang-tidy libclang-rt-14-dev python3 python3-numpy zstd)
bench=(nodejs npm)
arm=(g++-aarch64-linux-gnu)
train=(python3-torch libopenblas0-pthread python3-sentencepiece python3-numpy zstd)

wanted=()
for group in "${@:-build}"; do
  case "$group" in
    build) wanted+=("${build[@]}") ;;
    test) wanted+=("${test[@]}") ;;
    bench) wanted+=("${bench[@]}") ;;
    arm) wanted+=("${arm[@]}") ;;
    train) wanted+=("${train[@]}") ;;
    *)
      echo "install-packages.sh: '$group' is no group; expected build, test, bench, arm or train" >&2
      exit 2
      ;;
  esac
done

installed() { dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed; }

missing=()
for package in "${wanted[@]}"; do
  case "$package" in
    # A machine may have these from elsewhere (a newer node, say); what counts is the command.
    nodejs) command -v node >/dev/null || missing+=(nodejs) ;;
    npm | cmake | clang | clang-format | clang-tidy | python3)
      command -v "$package" >/dev/null || missing+=("$package")
      ;;
    *) installed "$package" || missing+=("$package") ;;
  esac
done
[ "${#missing[@]}" -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "install-packages.sh: missing ${missing[*]}; run as root, or install sudo" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "installing: ${missing[*]}" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { "${as_root[@]}" apt-get update &&
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"; } \
  >"$log" 2>&1 </dev/null; then
  tail -n 20 "$log" >&2
  echo "install-packages.sh: apt-get could not install ${missing[*]}" >&2
  exit 1
fi
