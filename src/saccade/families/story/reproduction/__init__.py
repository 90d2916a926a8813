"""The tables of memory networks on bAbI: Sukhbaatar et al. (2015) and Kumar et al. (2016), from recorded runs.

``record`` writes a record from run folders and needs no drawing library. ``table`` makes the tables.
"""
