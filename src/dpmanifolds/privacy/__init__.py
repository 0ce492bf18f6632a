"""The privacy calculus: budgets, guarantees, sensitivities, Gaussian DP, calibration and composition."""

from __future__ import annotations

from dpmanifolds.privacy.budget import Budget, split
from dpmanifolds.privacy.budgets import ApproxDP, GaussianDP, PureDP, RenyiDP, ZeroConcentratedDP, convert
from dpmanifolds.privacy.calibration import (
    affordable_epsilon,
    affordable_mu,
    affordable_rho,
    affordable_shift,
    gaussian_sigma,
    laplace_scale,
    largest_affordable,
)
from dpmanifolds.privacy.conversions import delta_of_mu, epsilon_of_mu, mu_for, mu_of_pure
from dpmanifolds.privacy.guarantee import Guarantee, compose
from dpmanifolds.privacy.riemannian_gaussian import RiemannianGaussianProfile, gaussian_dp_mu, sigma_for_mu
from dpmanifolds.privacy.sensitivity import (
    Sensitivity,
    sensitivity_of_flat_mean,
    sensitivity_of_mean,
    sensitivity_of_mean_at_center,
    sensitivity_of_mean_gradient,
    sensitivity_of_variance,
)
from dpmanifolds.privacy.spending import Spending, spent
from dpmanifolds.privacy.subsampling import (
    fixed_size_descent,
    full_batch_descent,
    poisson_descent,
)

__all__ = [
    "ApproxDP",
    "Budget",
    "GaussianDP",
    "Guarantee",
    "PureDP",
    "RenyiDP",
    "RiemannianGaussianProfile",
    "Sensitivity",
    "Spending",
    "ZeroConcentratedDP",
    "affordable_epsilon",
    "affordable_mu",
    "affordable_rho",
    "affordable_shift",
    "compose",
    "convert",
    "delta_of_mu",
    "epsilon_of_mu",
    "fixed_size_descent",
    "full_batch_descent",
    "gaussian_dp_mu",
    "gaussian_sigma",
    "laplace_scale",
    "largest_affordable",
    "mu_for",
    "mu_of_pure",
    "poisson_descent",
    "sensitivity_of_flat_mean",
    "sensitivity_of_mean",
    "sensitivity_of_mean_at_center",
    "sensitivity_of_mean_gradient",
    "sensitivity_of_variance",
    "sigma_for_mu",
    "spent",
    "split",
]
