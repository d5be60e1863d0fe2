#!/usr/bin/env bash
# Makes .venv with every Python package at its locked version. What PyPI lacks comes from apt when this runs as root;
# otherwise the missing packages are named. Usage: scripts/setup.sh [bench] [dist] [judges] [registers] [site] [soc] [synth]
# [torch] [triton] [iverilog]
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}

fail() { echo "setup: $*" >&2; exit 1; }
apt_packages=()
# need COMMAND PACKAGE: asks for PACKAGE when COMMAND (any shell command) fails
need() { eval "$1" >/dev/null 2>&1 || apt_packages+=("$2"); }
install() {
    [ ${#apt_packages[@]} -eq 0 ] && return
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
        fail "please install: ${apt_packages[*]} (for instance: sudo apt-get install ${apt_packages[*]})"
    fi
    echo "setup: installing ${apt_packages[*]} with apt"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends "${apt_packages[@]}" >/dev/null
    apt_packages=()
}

need "command -v $python" python3
need "command -v g++" g++
need "command -v make" make
need "command -v perl" perl
locks=()
for word in "$@"; do
    case $word in
    bench | dist | registers | triton) locks+=("requirements-$word.lock") ;;
    site) locks+=(requirements-site.lock); need "command -v chromium || command -v google-chrome" chromium ;;
    judges) locks+=(requirements-judges.lock requirements-torch.lock) ;;
    soc)
        locks+=(requirements-registers.lock requirements-soc.lock)
        need "command -v riscv64-unknown-elf-gcc" gcc-riscv64-unknown-elf
        need "riscv64-unknown-elf-gcc --specs=picolibc.specs -E -x c /dev/null" picolibc-riscv64-unknown-elf
        ;;
    synth) locks+=(requirements-synth.lock); need "command -v sta" opensta ;;
    torch) locks+=(requirements-torch.lock) ;;
    *) need "command -v $word" "$word" ;;
    esac
done
install
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "needs Python 3.11 or newer, $python is $("$python" --version 2>&1); choose one with make PYTHON=..."
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
need "$python -c 'import ensurepip, venv'" "python$version-venv"
install

# A virtual environment works in one place and with one Python only: elsewhere it is made anew.
stamp=.venv/stamp
home="Python $version in $(pwd -P)"
wanted="$home $(cat requirements.lock pyproject.toml scripts/setup.sh | sha256sum)"
found=$(cat $stamp 2>/dev/null || true)
pip() { .venv/bin/python -m pip --quiet --disable-pip-version-check "$@"; }
# Python compiles what it imports; all of it beforehand would take half of the set-up's time.
if [ "$found" != "$wanted" ]; then
    echo "setup: installing the locked Python packages into .venv"
    [[ "$found" = "$home "* && -x .venv/bin/python ]] || "$python" -m venv --clear .venv
    pip install --no-compile -r requirements.lock
    pip install --no-deps --no-build-isolation -e .
    # cocotb loads Python into the simulator as a shared library, which Debian packages on its own.
    need ".venv/bin/python -c 'from find_libpython import find_libpython; assert find_libpython()'" "libpython$version"
    install
    echo "$wanted" >$stamp
fi
# What only some targets need, installed when one of them runs: what judges the golden model; synthesis; training.
for lock in ${locks[@]+"${locks[@]}"}; do
    cmp -s "$lock" ".venv/$lock" && continue
    echo "setup: installing the packages of $lock"
    pip install --no-compile --no-deps --retries 1 -r "$lock"
    cp "$lock" .venv/
done
