#!/usr/bin/env bash
# Runs the tests marked "extras" with the packages themselves, in an environment of their own (.venv-extras): a
# torchvision that does not fit its torch breaks whatever imports it, so it never comes into .venv. Where the extras
# cannot be had, a line says why, and nothing fails.
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python home=.venv-extras

skip() {
  echo "the extras are not tested: $1" >&2
  exit 0
}

if [[ ! -e $home/.installed || pyproject.toml -nt $home/.installed || constraints.txt -nt $home/.installed ]]; then
  # torchvision 0.28 belongs to torch 2.13, and so on. Its wheel is small: it is tried before a gigabyte is installed.
  fitting=$($python -c 'import torch; print("0.%d.*" % (15 + int(torch.__version__.split(".")[1])))')
  probe=$(mktemp -d)
  trap 'rm -rf "$probe"' EXIT
  timeout 120 $python -m pip install --quiet --no-deps --target "$probe" "torchvision==$fitting" ||
    skip "torchvision $fitting, which fits the torch here, could not be installed"
  said=$(PYTHONPATH=$probe $python -c 'import torchvision' 2>&1) ||
    skip "torchvision $fitting does not load beside the torch here (${said##*$'\n'})"
  $python -m venv $home
  timeout 1200 $home/bin/python -m pip install --quiet -c constraints.txt -e '.[dev,timm,transformers]' ||
    skip "saccade-attention[dev,timm,transformers] could not be installed"
  touch $home/.installed
fi
$home/bin/pytest -m extras
