"""Small made-up files of every kind, written into the folder that is current."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import dpmanifolds as dpm
from dpmanifolds.data import write_nifti

__all__ = ["write_files"]


def write_files(seed: int = 0) -> None:
    """Tensors, directions, vectors, shapes, tensor maps and what goes with them."""
    rng = np.random.default_rng(seed)
    spd = dpm.SPD(3)
    rows, columns = np.triu_indices(3)
    tensors = 1e-3 * spd.random_point(60, rng=rng)
    np.savetxt(
        "tensors.csv", tensors[:, rows, columns], delimiter=",", header="xx,xy,xz,yy,yz,zz", comments="", fmt="%.17g"
    )
    np.save("directions.npy", dpm.Sphere(2).random_point(90, rng=rng))
    np.save("vectors.npy", rng.normal(size=(200, 4)) * [3.0, 2.0, 0.5, 0.5])
    np.savez("eeg.npz", cov=1e-10 * dpm.SPD(3).random_point(50, rng=rng), other=np.ones(3))
    np.save("not-spd.npy", np.concatenate([tensors[:5], -tensors[:1]]))
    for person in range(4):
        image = (1e-3 * spd.random_point((3, 3, 2), rng=rng))[..., rows, columns]
        write_nifti(f"sub-{person}.nii.gz", image, affine=np.diag([2.0, 2.0, 2.5, 1.0]))
    write_nifti("shifted.nii.gz", image, affine=np.eye(4))
    mask = np.zeros((3, 3, 2))
    mask[1:, 1:] = 1
    write_nifti("mask.nii.gz", mask, affine=np.diag([2.0, 2.0, 2.5, 1.0]))
    _write_shapes(rng)
    Path("persons.txt").write_text("person\n" + "\n".join(f"p{record // 3}" for record in range(90)) + "\n")
    Path("too-few.txt").write_text("p1\np2\n")
    Path("unnamed.csv").write_text("person,x,y\nann,1,2\n,3,4\n")
    Path("visits.csv").write_text(
        "\n".join(
            [
                "x,person,y",
                *(
                    f'{x:.6f},"person {row // 3}, ward 2",{y:.6f}'
                    for row, (x, y) in enumerate(rng.normal(size=(90, 2)))
                ),
            ]
        )
    )
    Path("bounds.csv").write_text("-9,-9,-9,-9\n9,9,9,9\n")
    Path("table.xlsx").write_bytes(b"PK")
    Path("letter.json").write_text('{"dear": "sir"}')
    Path("full").mkdir()
    Path("full/release.json").write_text("{}")


def _write_shapes(rng: np.random.Generator) -> None:
    angles = np.linspace(0, 2 * np.pi, 9)[:-1]
    template = 100 * (2 + np.cos(2 * angles)) * np.exp(1j * angles)
    specimens = template + 5 * (rng.normal(size=(30, 8)) + 1j * rng.normal(size=(30, 8)))
    lines = ["LM=8\r\n" + "\r\n".join(f"{z.real:.3f} {z.imag:.3f}" for z in each) for each in specimens]
    Path("wings.tps").write_text("\r\n".join(lines) + "\r\n", newline="")
    np.savetxt("template.csv", np.stack([template.real, template.imag], axis=1), delimiter=",")
