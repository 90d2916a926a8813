#!/usr/bin/env bash
# Runs the tests marked "extras" with timm and transformers themselves, in an environment of their own (.venv-extras). It
# sees the packages of .venv and has these beside them: a torchvision that does not fit its torch breaks whatever imports
# it, so it never comes into .venv. No weights are downloaded: every model is tiny and random. Where the packages cannot
# be had, a line says why, and nothing fails.
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python home=.venv-extras

skip() {
  echo "the extras are not tested: $1" >&2
  exit 0
}

if [[ ! -e $home/.installed || pyproject.toml -nt $home/.installed || constraints.txt -nt $home/.installed ]]; then
  rm -rf $home
  $python -m venv $home
  packages=$($python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  own=$($home/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  echo "import site; site.addsitedir('$packages')" > "$own/packages_of_venv.pth"
  # torchvision 0.28 belongs to torch 2.13, and so on
  fitting=$($python -c 'import torch; print("0.%d.*" % (15 + int(torch.__version__.split(".")[1])))')
  timeout 600 $home/bin/python -m pip install --quiet -c constraints.txt \
    "torchvision==$fitting" "timm>=1.0.15" "transformers>=4.56" ||
    skip "torchvision $fitting, which fits the torch here, timm and transformers could not be installed"
  touch $home/.installed
fi
said=$(PYTHONPATH=tools $home/bin/python -c 'import torchvision_ops, timm, transformers' 2>&1) ||
  skip "timm and transformers do not load beside the torch here (${said##*$'\n'})"
HF_HUB_OFFLINE=1 PYTHONPATH=tools${PYTHONPATH:+:$PYTHONPATH} $home/bin/python -m pytest -p torchvision_ops -m extras
