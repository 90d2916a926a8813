"""Tables and figures of Welleck et al. (2017) from recorded runs."""
