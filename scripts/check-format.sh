#!/usr/bin/env bash
# Fails with the names of the C++ files that clang-format would change, and with the lines of any file
# where two versions of it were merged by halves.
set -euo pipefail
cd "$(dirname "$0")/.."
if git grep -nE '^(<{7}|>{7}) ' >&2; then
  echo "format: the lines above are of a merge that nobody finished" >&2
  exit 1
fi
mapfile -t files < <(git ls-files '*.h' '*.cc')
said=$(mktemp)
trap 'rm -f "$said"' EXIT
if ! printf '%s\0' "${files[@]}" | xargs -0 -P "$(nproc)" -n 64 clang-format --dry-run -Werror 2>"$said"; then
  sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: error: .*/not formatted: \1/p' "$said" | sort -u >&2
  echo "format: run clang-format -i on the files above" >&2
  exit 1
fi
echo "format: ${#files[@]} files, all formatted"
