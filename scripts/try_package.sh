#!/usr/bin/env bash
# Makes sdist and wheel (the wheel from the sdist), installs the wheel with its extras in a new environment of every
# Python that is named, and uses it in an empty folder, where nothing but the package can be found.
# Usage: scripts/try_package.sh [PYTHON ...]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"$root/.venv/bin/python" -m pip --quiet wheel --no-deps --no-build-isolation --wheel-dir direct "$root"
(cd "$root" && .venv/bin/python -c "from setuptools import build_meta as b; b.build_sdist('$folder')" >/dev/null)
mkdir sdist && tar -xzf actcodec-*.tar.gz -C sdist --strip-components 1
"$root/.venv/bin/python" -m pip --quiet wheel --no-deps --no-build-isolation --wheel-dir . ./sdist
cmp <(unzip -Z1 actcodec-*.whl | sort) <(unzip -Z1 direct/actcodec-*.whl | sort) || {
    echo "the sdist lacks files of the wheel" >&2; exit 1; }
[ "$(unzip -Z1 actcodec-*.whl | cut -d/ -f1 | grep -v dist-info | sort -u)" = actcodec ] || {
    echo "the wheel installs more names than actcodec" >&2; exit 1; }

for python in "${@:-python3}"; do
    rm -rf env work && "$python" -m venv env && mkdir -p work/rtl && cd work
    touch rtl/__init__.py  # a folder of the user's own, which must not be in the way
    ../env/bin/python -m pip --quiet --disable-pip-version-check install "$(ls ../actcodec-*.whl)"
    ../env/bin/python - <<'PYTHON'
import numpy as np
import actcodec

np.save("x.npy", np.random.default_rng(0).normal(size=(1, 2, 16, 16)).astype("f4"))
assert actcodec.compress(np.load("x.npy"), "jpeg-act").ratio > 1
PYTHON
    run() { ../env/bin/python -m actcodec "$@"; }
    run compress x.npy x.act --mode zvc -q
    run decompress x.act y.npy -q
    cmp x.npy y.npy
    run evaluate x.npy --all >/dev/null
    run modes >/dev/null
    ../env/bin/python -m pip --quiet --disable-pip-version-check install "$(ls ../actcodec-*.whl)[rtl,plot]"
    run verilog dct --name mine -o dct.v
    grep -q "^module mine" dct.v
    HOME=$PWD run demo --output out >/dev/null
    HOME=$PWD run compress x.npy z.act --mode binarize --engine rtl -q
    cd .. && echo "$("$python" --version): compress, decompress, evaluate, verilog, demo, rtl engine"
done
