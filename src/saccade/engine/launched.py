"""Checks that torchrun or SLURM started the requested number of processes; otherwise some would wait forever."""

from __future__ import annotations

import os
from collections.abc import Mapping

from saccade.errors import ConfigError


def check_launched(devices: int, nodes: int, environment: Mapping[str, str] = os.environ) -> None:
    """Refuse ``devices`` on each of ``nodes`` machines where a launcher started another number of processes.

    Raises:
        ConfigError: it names the options that fit what was started.
    """
    if "TORCHELASTIC_RUN_ID" in environment:
        started, each = int(environment.get("WORLD_SIZE", 1)), int(environment.get("LOCAL_WORLD_SIZE", 1))
        if (devices, nodes) != (each, started // each):
            raise ConfigError(
                f"torchrun started {started} processes, {each} here, but `devices={devices}` and `nodes={nodes}` "
                f"was asked for; use `devices={each}` and `nodes={started // each}`"
            )
    elif "SLURM_NTASKS" in environment and environment.get("SLURM_JOB_NAME") not in ("bash", "interactive"):
        tasks, machines = int(environment["SLURM_NTASKS"]), int(environment.get("SLURM_NNODES", nodes))
        if tasks != devices * nodes:
            each = max(1, tasks // machines)
            cure = (
                f"use `devices={each}` and `nodes={machines}`"
                if tasks == each * machines and each > 1
                else f"ask for 'sbatch --nodes={nodes} --ntasks-per-node={devices}' in the job, and start it with srun"
            )
            raise ConfigError(
                f"SLURM started {tasks} tasks on {machines} machines, but `devices={devices}` and `nodes={nodes}` was "
                f"asked for; {cure}"
            )
