"""Every fuzz target by name."""

from __future__ import annotations

from fuzz_archives import Archives
from fuzz_checkpoints import Checkpoints
from fuzz_maps import Maps
from fuzz_models import Models
from fuzz_pictures import Pictures
from fuzz_recipes import Recipes
from fuzz_records import Records
from fuzz_requests import Requests
from fuzz_tables import Tables
from fuzzing import Target

TARGETS: dict[str, type[Target]] = {
    target.name: target
    for target in (Pictures, Models, Tables, Recipes, Records, Checkpoints, Requests, Archives, Maps)
}
