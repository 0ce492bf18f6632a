"""Records become integers, integers are summed exactly, noise is added once."""
