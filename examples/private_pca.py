"""Private principal components of images: what do scikit-learn's digits have in common, at ε = 1?

Each of the 1,797 images is one person's vector of 64 grey values from 0 to 16. Public is that a vector is no longer
than 64 once the middle grey, 8, is taken off (64 numbers within [−8, 8]). The figure has the exact components, which
leak, above the private ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

import dpmanifolds as dpm
from examples._shared import save_figure

COMPONENTS = 6
RADIUS = 64.0


def captured(components: np.ndarray, centered: np.ndarray) -> float:
    """The share of the images' variance that lies in the span of the components."""
    return float(np.sum((centered @ components.T) ** 2) / np.sum(centered**2))


def main(folder: str | Path = "out") -> None:
    """Learn with privacy, tell what it is worth beside exact components and chance."""
    images = load_digits().data - 8.0
    centered = images - images.mean(axis=0)  # private, as are all shares below: to show what the release is worth
    exact = PCA(COMPONENTS).fit(images).components_
    chance = COMPONENTS / images.shape[1]
    found = {}
    for name, budget in (("ε = 1", dpm.PureDP(1.0)), ("ε = 1, δ = 1e−6", dpm.ApproxDP(1.0, 1e-6))):
        model = dpm.PrivatePCA(COMPONENTS, budget, radius=RADIUS, center="mean", unit="image").fit(images)
        found[name] = model.components_
    print(f"{len(images)} images, {COMPONENTS} of {images.shape[1]} components: share of the variance they capture")
    print(f"  a random subspace        {100 * chance:5.1f} %")
    for name, components in found.items():
        print(f"  private, {name:15s} {100 * captured(components, centered):5.1f} %")
    print(f"  exact (leaks)            {100 * captured(exact, centered):5.1f} %")
    draw_components({"exact (leaks)": exact, **found}, Path(folder))


def draw_components(found: dict[str, np.ndarray], folder: Path) -> None:
    """A row of images for each way; signs are turned alike."""

    def paint(figure: Any) -> None:
        exact = next(iter(found.values()))
        for axes, (name, components) in zip(figure.subplots(len(found), COMPONENTS), found.items(), strict=True):
            for ax, component, like in zip(axes, components, exact, strict=True):
                ax.imshow(np.sign(component @ like) * component.reshape(8, 8), cmap="RdBu_r", vmin=-0.35, vmax=0.35)
                ax.set(xticks=[], yticks=[])
                ax.grid(visible=False)
            axes[0].set_ylabel(name.replace(", ", ",\n"))

    save_figure(folder / "components.png", (7.5, 1.4 * len(found)), paint)


if __name__ == "__main__":
    main()
