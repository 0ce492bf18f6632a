"""A made-up register: tensors of 400 controls and 400 patients as tables, and maps of 300 persons as NIfTI; mm²/s."""

import numpy as np

from dpmanifolds.data import simulate_tensors, write_nifti

UPPER = np.triu_indices(3)
for seed, (group, anisotropy) in enumerate({"controls": 1.0, "patients": 0.5}.items()):
    rows = simulate_tensors(400, anisotropy=anisotropy, rng=seed)[:, *UPPER]
    np.savetxt(f"{group}.csv", rows, delimiter=",", header="xx,xy,xz,yy,yz,zz", comments="", fmt="%.6e")
for person, tensors in enumerate(simulate_tensors(600, rng=2).reshape(300, 2, 1, 1, 3, 3)):
    write_nifti(f"sub-{person + 1:03}.nii.gz", tensors[..., *UPPER], affine=np.diag([2.0, 2.0, 2.0, 1.0]))
