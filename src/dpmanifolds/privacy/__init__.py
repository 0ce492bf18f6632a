"""The privacy calculus: budgets, guarantees, sensitivities, Gaussian DP, calibration and composition."""

from __future__ import annotations

__all__: list[str] = []
