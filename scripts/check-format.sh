#!/usr/bin/env bash
# Fails with the names of the C++ files that clang-format would change.
set -euo pipefail
cd "$(dirname "$0")/.."
mapfile -t files < <(git ls-files '*.h' '*.cc')
ugly=()
for file in "${files[@]}"; do
  clang-format --dry-run -Werror "$file" >/dev/null 2>&1 || ugly+=("$file")
done
if [ "${#ugly[@]}" -gt 0 ]; then
  printf 'not formatted: %s\n' "${ugly[@]}" >&2
  echo "format: run clang-format -i on the files above" >&2
  exit 1
fi
echo "format: ${#files[@]} files, all formatted"
