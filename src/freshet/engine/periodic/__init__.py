"""Periodic queries in the engine: releases, instances, kept panes, samples."""
