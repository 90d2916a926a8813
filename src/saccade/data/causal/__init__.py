"""Causal sets: pictures with their twins, in which one thing is changed; of drawn scenes, and of photographs."""
