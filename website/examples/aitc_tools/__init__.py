"""Stands in for a package that some platforms install before a training.

Put the directory above this one into PYTHONPATH, for instance beside the
training's own code, and leave the pip command out.
"""
