# What the scripts share: where the repository is, how they speak, how a step's output is kept.
# Sourced by the other scripts of this folder; it does nothing by itself.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '%s\n' "$*"; }

die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# quietly LOG COMMAND...: runs the command with its output in LOG; shows the end of it only if the command failed.
quietly() {
  local log=$1 status=0
  shift
  mkdir -p "$(dirname "$log")"
  "$@" >"$log" 2>&1 </dev/null || status=$?
  if [ "$status" -ne 0 ]; then
    say "--- failed ($status): $*"
    tail -n "${GPUCAP_LOG_LINES:-80}" "$log"
    say "--- the whole output is in $log"
  fi
  return "$status"
}

# persistently LOG COMMAND...: quietly, and up to three times, for what fetches things: a network has its moments.
persistently() {
  local log=$1 pause
  shift
  mkdir -p "$(dirname "$log")"
  for pause in 10 40; do
    if "$@" >"$log" 2>&1 </dev/null; then return 0; fi
    say "did not work, is tried again in $pause s: $*"
    sleep "$pause"
  done
  quietly "$log" "$@"
}

# The python that makes virtual environments and downloads wheels: the first that has venv, ensurepip and pip.
pick_python() {
  local candidate
  for candidate in ${PYTHON:-} python3 /usr/bin/python3; do
    if "$candidate" -c 'import sys, venv, ensurepip, pip; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1; then
      printf '%s\n' "$candidate"
      return 0
    fi
  done
  return 1
}

# make_root SUITE: a small Debian of that release in .deps/roots/SUITE, made once. Needs root and debootstrap.
make_root() {
  local folder=.deps/roots/$1
  [ -e "$folder/.complete" ] && return 0
  command -v debootstrap >/dev/null || die "debootstrap was not found: scripts/setup.sh --packages installs it"
  say "Making $folder"
  mkdir -p .deps/roots
  persistently ".deps/logs/root-$1.log" bash -c 'rm -rf "$2" && debootstrap --variant=minbase "$1" "$2"' bash "$1" "$folder" ||
    die "debootstrap could not make a root of $1"
  touch "$folder/.complete"
}
