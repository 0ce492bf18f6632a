"""Sums over records on accelerators, by one fused kernel."""
