"""Table 1 of Xu et al. (2015) from recorded runs."""
