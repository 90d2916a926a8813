#!/usr/bin/env bash
# Runs the tests marked "extras" with the packages themselves, in environments of their own: timm and transformers in
# .venv-extras, Ray and what starts many processes in .venv-ray. Both see the packages of .venv and have these beside
# them: a torchvision that does not fit its torch breaks whatever imports it, so it never comes into .venv. No weights are
# downloaded: every model is tiny and random. Where packages cannot be had, a line says why, and nothing fails.
# Usage: tools/test_extras.sh [many_machines] [published_models]; both without a name. "packages" runs nothing: it makes
# the environment of published_models, which another command can do meanwhile.
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python

# environment HOME PACKAGE…: an environment with these packages, made once for each pyproject and constraints
environment() {
  local home=$1 packages own
  shift
  [[ ! -e $home/.installed || pyproject.toml -nt $home/.installed || constraints.txt -nt $home/.installed ]] || return 0
  rm -rf "$home"
  $python -m venv "$home"
  packages=$($python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  own=$("$home/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  echo "import site; site.addsitedir('$packages')" > "$own/packages_of_venv.pth"
  timeout 600 "$home/bin/python" -m pip install --quiet -c constraints.txt "$@" || return 1
  touch "$home/.installed"
}

not_tested() {
  echo "not tested: $1" >&2
}

packages() {
  local fitting
  # torchvision 0.28 belongs to torch 2.13, and so on
  fitting=$($python -c 'import torch; print("0.%d.*" % (15 + int(torch.__version__.split(".")[1])))')
  environment .venv-extras "torchvision==$fitting" "timm>=1.0.15" "transformers>=4.56"
}

published_models() {
  local said tests
  if ! packages; then
    not_tested "the torchvision that fits the torch here, timm and transformers could not be installed"
    return 0
  fi
  if ! said=$(PYTHONPATH=tools .venv-extras/bin/python -c 'import torchvision_ops, timm, transformers' 2>&1); then
    not_tested "timm and transformers do not load beside the torch here (${said##*$'\n'})"
    return 0
  fi
  mapfile -t tests < <(grep -rl --include='test_*.py' 'mark\.extras' tests)  # to collect all files takes half a minute
  HF_HUB_OFFLINE=1 PYTHONPATH=tools${PYTHONPATH:+:$PYTHONPATH} .venv-extras/bin/python -m pytest -p torchvision_ops -m extras "${tests[@]}"
}

many_machines() {
  $python -m pytest --all -m extras tests/engine/test_engine_devices.py
  if ! environment .venv-ray "ray[data]>=2.51"; then
    not_tested "Ray could not be installed"
    return 0
  fi
  OMP_NUM_THREADS=1 .venv-ray/bin/python -m pytest -m extras tests/adapters
}

[[ $# -gt 0 ]] || set -- many_machines published_models
for part in "$@"; do
  "$part"
done
