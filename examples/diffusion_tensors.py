"""Diffusion tensors: one NIfTI map per person in, a private mean map and a report for the ethics board out.

Simulated maps of four voxels, in mm²/s, as registered to an atlas. Where records live is what water does in tissue
(`Ball.typical` has the sources); one record is one person, so that all four voxels of a person are protected at once.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import dpmanifolds as dpm
from dpmanifolds.data import read_affine, read_tensors, simulate_tensors, write_nifti
from dpmanifolds.show import write_report
from examples._shared import draw_release, tell_usefulness

VOXELS = (2, 2, 1)
UPPER = np.triu_indices(3)


def write_maps(folder: Path, n: int) -> list[Path]:
    """One file per person, with the six numbers of a tensor in each voxel, in FSL's order."""
    tensors = simulate_tensors(4 * n, rng=0).reshape(n, *VOXELS, 3, 3)
    for person, one in enumerate(tensors):
        write_nifti(folder / f"sub-{person:03}.nii.gz", one[..., *UPPER], affine=np.diag([2.0, 2.0, 2.0, 1.0]))
    return sorted(folder.glob("sub-*.nii.gz"))


def main(folder: str | Path = "out", n: int = 300) -> None:
    """Write the files, read them, plan, release, report."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as private:
        files = write_maps(Path(private), n)
        maps = np.stack([read_tensors(file, layout="upper") for file in files])
        affine = read_affine(files[0])
    space = dpm.Power(dpm.SPD(3, "log-euclidean"), maps.shape[1])
    tissue = dpm.Ball.typical(space.manifold, "diffusion-tensor", unit="mm²/s")
    ball = dpm.Ball(space, np.broadcast_to(tissue.center, space.point_shape), tissue.radius * np.sqrt(space.m))
    budget = dpm.ApproxDP(1.0, 1e-6)
    planned = dpm.plan(ball, n, budget).best().error
    print(f"{n} maps of {space.m} voxels; expected before a record is read: {planned}")
    release = dpm.private_mean(maps, ball, budget, unit="person")
    values = np.linalg.eigvalsh(release.value)
    print(f"Released at {release.spent!r}")
    print(f"Mean diffusivity by voxel: {np.round(1e4 * values.mean(axis=-1), 2)} · 1e−4 mm²/s; simulated: 6.9")
    tell_usefulness(release, spread=1.0)
    write_nifti(Path(folder) / "mean.nii.gz", release.value.reshape(*VOXELS, 3, 3)[..., *UPPER], affine=affine)
    write_report(release, Path(folder) / "report.html", overwrite=True)
    print("Written: mean.nii.gz, report.html")
    draw_release(release, Path(folder) / "maps.png")


if __name__ == "__main__":
    main()
