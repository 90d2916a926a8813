"""Every fuzz target by name."""

from fuzz_folders import Models, Records
from fuzz_pictures import Pictures
from fuzz_requests import Requests
from fuzz_text import Recipes, Tables
from fuzzing import Target

TARGETS: dict[str, type[Target]] = {
    target.name: target for target in (Pictures, Models, Tables, Recipes, Records, Requests)
}
