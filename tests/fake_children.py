"""Processes that stand for trainings: they speak as `saccade.verbs.training.child` does, and start in no time.

A job says what happens: ``kind`` (or the name of the recipe) is one of

- ``ok``: trains and ends well; ``until``: the same, but ends only when the file ``until`` is there;
- ``crash``: ends with a traceback; ``refuse``: tells why and ends with 2; ``early``: the same before it may begin;
  ``late``: the same, but it takes a moment to end;
- ``memory``: runs out of memory at the first attempt; ``killed``: is killed at the first attempt;
- ``orphan``: ends well, but a process that it started lives on and holds its standard error;
- ``wait``: trains until SIGTERM; ``time``: is out of time at once.
"""

from __future__ import annotations

import sys

_SCRIPT = r"""
import json, os, pathlib, signal, sys, time

def say(event, **facts):
    print(json.dumps({"event": event, **facts}), flush=True)

def result(stopped="finished", score=0.5):
    best = {"value": score, "step": 3, "replica": 0, "metrics": {"accuracy": score}}
    say("result", out=job["out"], stopped=stopped, step=3, phase="main", best=best, validation={"accuracy": score},
        seconds=1.5, checkpoint=None, model=None)

def refuse(text):
    say("refused", text=text)
    sys.exit(2)

job = json.loads(sys.stdin.readline())
kind = job.get("kind") or pathlib.Path(job.get("recipe") or "ok").stem
again = job.get("attempts", 0)
if kind == "early":
    refuse("no such data")
if kind == "late":
    say("refused", text="no such data")
    time.sleep(0.5)
    sys.exit(2)
say("ready")
line = sys.stdin.readline()
if not line:
    sys.exit(0)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # it is kept until somebody waits for it
begin = json.loads(line)
out = pathlib.Path(job["out"])
out.mkdir(parents=True, exist_ok=True)
(out / "config.yaml").write_text("begun")
if kind == "ok":
    print("a library that prints", flush=True)
say("begin", phase="main", done=0, total=3, images_per_step=8)
say("values", kind="train", values={"loss": 1.0})
if "memory" in job:
    say("memory", **job["memory"])
print("some warning", file=sys.stderr, flush=True)
if kind == "crash":
    raise RuntimeError("it broke")
if kind == "refuse":
    refuse("the gradient of 'w' is not finite")
if kind == "memory" and not again:
    raise MemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
if kind == "killed" and not again:
    os.kill(os.getpid(), signal.SIGKILL)
if kind == "orphan":
    import subprocess
    left = subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"])
    (out / "left").write_text(str(left.pid))
if kind == "wait":
    signal.sigwait({signal.SIGTERM})
    result("signal")
    sys.exit(0)
if kind == "time":
    result("time")
    sys.exit(0)
for _ in range(6000 if kind == "until" else 0):
    if pathlib.Path(job["until"]).exists():
        break
    time.sleep(0.01)
say("advance", done=3)
seed = (job.get("settings") or {}).get("seed") or 0
say("told", minutes=begin["max_minutes"], device=begin["device"], threads=os.environ.get("OMP_NUM_THREADS"))
result(score=0.5 + seed / 10)
"""

COMMAND = (sys.executable, "-I", "-S", "-c", _SCRIPT)
