"""Multisets: the labels of everything on a picture, each as often as it occurs."""
