#!/usr/bin/env bash
# Installs the packages of Debian 12 or later, or of Ubuntu 24.04, that a task needs and that are missing,
# and says which and what for. tests/data/packages.tsv has the names of those releases, by which
# tests/package_names_test.py tries this script.
# usage: install-packages.sh [GROUP]...   (default: run; the groups are listed below)
# Quick and silent when nothing is missing; needs root or sudo otherwise.
set -euo pipefail
cd "$(dirname "$0")/.."

declare -A purpose=(
  [run]='to build and run troupe'
  [test]='to build and run the tests'
  [benches]='to build the microbenchmarks'
  [clang]='for the sanitizers and fuzzers, which are Clang'"'"'s'
  [check]='to check format and layers'
  [tidy]='for clang-tidy'
  [clients]='to run clients of the server'
  [page]='to look at the live page'
  [llamacpp]='to run a llama.cpp beside troupe'
  [arm]='to compile for ARM'
  [train]='to train models'
  [machine]='to make a bare Debian in a folder'
  [deb]='to make a Debian package'
)
# a|b: the first that the system's release has. a?: optional, left out where the release has none or it cannot be installed. VERSION is that of its clang.
declare -A packages=(
  [run]='g++ cmake ninja-build pkg-config
    libboost1.81-dev|libboost1.83-dev libcli11-dev libcurl4-openssl-dev libedit-dev libeigen3-dev libfmt-dev libgrpc++-dev libhwy-dev liblemon-dev libpcre2-dev libprotobuf-dev libssl-dev liburing-dev libxxhash-dev libzstd-dev
    nlohmann-json3-dev opencl-c-headers? prometheus-cpp-dev protobuf-compiler'
  [test]='libgtest-dev libgmock-dev etcd-client etcd-server iproute2 kubernetes-client? ocl-icd-libopencl1? openssl pocl-opencl-icd? prometheus python3 python3-jinja2 python3-jsonschema python3-numpy zstd ccache mold'
  [benches]='libbenchmark-dev'
  [clang]='clang libclang-rt-VERSION-dev'
  [check]='clang-format python3'
  [tidy]='clang clang-tidy'
  [clients]='nodejs npm'
  [page]='nodejs npm chromium'
  [llamacpp]='nodejs npm python3'
  [arm]='g++-aarch64-linux-gnu'
  [train]='python3-torch libopenblas0-pthread python3-sentencepiece python3-numpy zstd'
  [machine]='debootstrap'
  [deb]='dpkg-dev file'
)

# A machine may have some from elsewhere (a newer node, say); what counts is the command.
declare -A command_of=(
  [g++]=g++ [cmake]=cmake [ninja-build]=ninja [pkg-config]=pkg-config [clang]=clang [clang-format]=clang-format
  [clang-tidy]=clang-tidy [python3]=python3 [nodejs]=node [npm]=npm [chromium]=chromium [prometheus]=promtool [debootstrap]=debootstrap
  [etcd-client]=etcdctl [etcd-server]=etcd [iproute2]=ip [kubernetes-client]=kubectl
)
installed() {
  local package
  if [[ $1 == *'|'* ]]; then
    for package in ${1//|/ }; do
      if installed "$package"; then return 0; fi
    done
    return 1
  elif [[ $1 == *VERSION* ]]; then
    command -v clang >/dev/null && installed "${1/VERSION/$(clang -dumpversion | cut -d. -f1)}"
  elif [ -n "${command_of[$1]:-}" ]; then
    command -v "${command_of[$1]}" >/dev/null
  else
    dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed
  fi
}

# Of a name that only other packages mention, apt-cache succeeds and shows nothing (Debian 13 does so
# of libboost1.81-dev).
to_be_had() { [ -n "$(apt-cache show "$1" 2>/dev/null)" ]; }

# The name that this release has for a package, once apt-get knows what there is.
name_here() {
  local package
  if [[ $1 == *VERSION* ]]; then
    echo "${1/VERSION/$(apt-cache depends clang | sed -n 's/^ *Depends: clang-\([0-9]*\)$/\1/p')}"
    return
  fi
  for package in ${1//|/ }; do
    if to_be_had "$package"; then break; fi
  done
  echo "$package"
}

[ "$#" -gt 0 ] || set -- run
missing=()
optional=()
spare=  # set where nothing but optional packages is missing: what cannot be installed is then no error
go_without() {
  echo "going on without ${missing[*]} (optional): $1"
  exit 0
}
for group in "$@"; do
  if [ -z "${packages[$group]:-}" ]; then
    echo "install-packages.sh: '$group' is no group; there are: ${!packages[*]}" >&2
    exit 2
  fi
  lacking=()
  for package in ${packages[$group]}; do
    if installed "${package%\?}"; then continue; fi
    if [[ $package == *'?' ]]; then optional+=("${package%\?}"); else lacking+=("$package"); fi
  done
  [ "${#lacking[@]}" -eq 0 ] && continue
  echo "missing ${purpose[$group]}: ${lacking[*]}"
  missing+=("${lacking[@]}")
done
if [ "${#missing[@]}" -eq 0 ]; then
  for package in "${optional[@]}"; do
    if to_be_had "$package"; then missing+=("$package"); fi
  done
  [ "${#missing[@]}" -eq 0 ] && exit 0
  spare=1
  optional=()
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    [ -n "$spare" ] && go_without 'needs root or sudo'
    echo "install-packages.sh: run as root, or install sudo" >&2
    exit 1
  fi
  as_root=(sudo)
  # Nobody is asked for a password for what is not needed.
  if [ -n "$spare" ] && ! sudo -n true 2>/dev/null; then go_without 'needs root'; fi
fi
[ -n "$spare" ] && echo "missing where this release has it: ${missing[*]}"
echo "installing them with ${as_root[*]:+sudo }apt-get"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt_get() { "${as_root[@]}" env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get "$@" </dev/null 2>&1; }
install_missing() {
  apt_get update || return
  local names=() package
  for package in "${missing[@]}"; do names+=("$(name_here "$package")"); done
  for package in "${optional[@]}"; do
    if to_be_had "$package"; then names+=("$package"); fi
  done
  apt_get install -y --no-install-recommends "${names[@]}"
}
if ! install_missing | scripts/progress.sh packages "$log"; then
  [ -n "$spare" ] && go_without 'apt-get could not install that'
  tail -n 20 "$log" >&2
  echo "install-packages.sh: apt-get could not install ${missing[*]}" >&2
  exit 1
fi
