"""Reads: from the files of a version to merged rows, and the same as plain SQL."""
