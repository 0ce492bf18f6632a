"""How records come in: arrays, files, streams, Dask, and whose they are."""
