"""The leaderboard of maps: attention, attribution methods and rivals on the same scenes and their twins."""
