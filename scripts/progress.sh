#!/usr/bin/env bash
# Says how far ninja, ctest or apt-get is: reads their output and writes a line for every tenth of the
# work, and one every 20 seconds (PROGRESS_SECONDS) however little was done; on a terminal one line that
# is rewritten. All that was read goes to LOG.
# usage: COMMAND 2>&1 | progress.sh build|tests|packages LOG [WHAT]
#   build     lines 'n of m ...' (NINJA_STATUS='%f of %t '); shows nothing else: build.sh shows errors
#   tests     ctest's lines; what failing tests wrote is shown, less what GoogleTest says of good ones
#   packages  apt-get's lines; shows nothing else: install-packages.sh shows errors
set -euo pipefail
kind=$1
log=$2
: >"$log"
what=${3:-$kind}
interval=${PROGRESS_SECONDS:-20}  # at most, between two lines

done_now=0
total=0
phase=''
said=-1        # tenths of the work when a line was last written
said_at=0      # and the second
passed=0
skipped=()
failed=()
summary=no     # ctest has begun its own
declare -A count=([fetched]=0 [unpacked]=0 [installed]=0)

state() {
  case $kind in
    build) echo "$what: $done_now of $total" ;;
    packages) echo "$what: $done_now of $total $phase" ;;
    tests)
      local line="$what: $passed of $total passed"
      [ "${#skipped[@]}" -gt 0 ] && line+=", ${#skipped[@]} skipped"
      [ "${#failed[@]}" -gt 0 ] && line+=", ${#failed[@]} failed"
      echo "$line"
      ;;
  esac
}

show() {
  if [ "$done_now" -eq 0 ]; then
    if [ $((SECONDS - said_at)) -ge "$interval" ]; then
      printf '%s: begun, %d s\n' "$what" "$SECONDS"
      said_at=$SECONDS
    fi
    return
  fi
  [ "$kind$done_now" != "tests$total" ] || return 0  # the last line says more
  if [ -t 1 ]; then
    printf '\r\033[K%s, %d s' "$(state)" "$SECONDS"
  elif [ $((done_now * 10 / total)) -ne "$said" ] || [ $((SECONDS - said_at)) -ge "$interval" ]; then
    printf '%s, %d s\n' "$(state)" "$SECONDS"
    said=$((done_now * 10 / total))
    said_at=$SECONDS
  fi
}

pass_on() {
  [ -t 1 ] && printf '\r\033[K'
  printf '%s\n' "$1"
}

step_packages() {  # PHASE: one package more has reached it
  count[$1]=$((count[$1] + 1))
  [ "$phase" = "$1" ] || said=-1
  phase=$1
  done_now=${count[$1]}
}

read_packages() {
  local word=${1%% *}
  if [[ $1 =~ ^([0-9]+)\ upgraded,\ ([0-9]+)\ newly ]]; then
    total=$((BASH_REMATCH[1] + BASH_REMATCH[2]))
    return
  fi
  [ "$total" -gt 0 ] || return 0
  case $word in
    Get:*) step_packages fetched ;;
    Unpacking) step_packages unpacked ;;
    Setting) step_packages installed ;;
  esac
}

read_build() {
  if [[ $1 =~ ^([0-9]+)\ of\ ([0-9]+)\  ]]; then
    done_now=${BASH_REMATCH[1]}
    total=${BASH_REMATCH[2]}
  fi
}

read_tests() {
  if [[ $1 =~ ^\ *([0-9]+)/([0-9]+)\ Test\ +\#[0-9]+:\ ([^ ]+)\ [.]*(.*)$ ]]; then
    done_now=${BASH_REMATCH[1]}
    total=${BASH_REMATCH[2]}
    case ${BASH_REMATCH[4]} in
      *'***Skipped'*) skipped+=("${BASH_REMATCH[3]}") ;;
      \ *Passed*) passed=$((passed + 1)) ;;
      *)
        failed+=("${BASH_REMATCH[3]}")
        pass_on "$1"
        ;;
    esac
    return
  fi
  case $1 in
    *'% tests passed'*) summary=yes ;;
    '' | *' Start '* | 'Test project '* | '[ RUN '* | '[       OK '* | '[-----'* | '[====='* | '[  PASSED  ]'*) ;;
    'Internal ctest '* | 'Note: Google Test filter'* | 'Running main() from '*) ;;
    *) [ "$summary" = yes ] || pass_on "$1" ;;
  esac
}

# A read that runs into its time keeps what it had of the line.
rest=''
while true; do
  status=0
  IFS= read -r -t 1 part || status=$?
  rest+=$part
  if [ "$status" -gt 128 ]; then
    show
    continue
  fi
  if [ "$status" -eq 0 ] || [ -n "$rest" ]; then
    printf '%s\n' "$rest" >>"$log"
    "read_$kind" "$rest"
    rest=''
    show
  fi
  [ "$status" -eq 0 ] || break
done

[ -t 1 ] && [ "$done_now" -gt 0 ] && printf '\r\033[K'
if [ "$kind" = tests ] && [ "$total" -gt 0 ]; then
  echo "$(state), $SECONDS s${skipped:+; skipped: ${skipped[*]}}${failed:+; failed: ${failed[*]}}"
elif [ -t 1 ] && [ "$done_now" -gt 0 ]; then
  echo "$(state), $SECONDS s"
fi
