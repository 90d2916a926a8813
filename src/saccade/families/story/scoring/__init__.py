"""How models of stories are scored: supporting facts, rival maps, and causal tests on changed stories."""
