"""What a GPU is asked to do for the sum of matrices beyond 3×3: products, inverses, kernels and bytes, counted.

    python benchmarks/gpu_work.py

PyTorch on the processor stands in for the device: the calls are the same. Bytes are what every kernel but products and
inverses reads and writes, in passes over the records. The last column is a prediction and no measurement: counts times
what one product, one inverse and one pass were measured to cost on an NVIDIA H200, whole tiles at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch.utils._python_dispatch import TorchDispatchMode

import dpmanifolds as dpm
from dpmanifolds.manifolds import _logarithms
from dpmanifolds.sums import total
from dpmanifolds.sums.contribution import TangentContribution

# k, records, milliseconds of one product and of one inverse of all of them: H200, PyTorch, float64
MEASURED = ((10, 1_000_000, 3.3, 12.0), (30, 100_000, 0.52, 10.7), (64, 20_000, 0.38, 15.6), (100, 10_000, 0.75, 21.5))
# bytes per second that a copy moves there, read and written
BANDWIDTH = 4.2e12
VIEWS = (
    "view",
    "expand",
    "squeeze",
    "permute",
    "transpose",
    "slice",
    "select",
    "alias",
    "unbind",
    "diagonal",
    "detach",
)


class Counted(TorchDispatchMode):
    """Every call of PyTorch: whether it is a product or an inverse, and the bytes that it reads and writes."""

    def __init__(self) -> None:
        super().__init__()
        self.products, self.inverses, self.kernels, self.moved = 0.0, 0, 0, 0

    def __torch_dispatch__(self, call: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = call(*args, **(kwargs or {}))
        name = call.name()
        if name.endswith("aten::t") or any(view in name for view in VIEWS):
            return found
        self.kernels += 1
        if "mm" in name:
            # the product by the table of coefficients is bound by what it moves
            if args[-2].shape[-2] == args[-1].shape[-1]:
                self.products += 1
                return found
        elif "inv" in name and args[0].ndim > 2:
            self.inverses += 1
            return found
        given = [one for each in args for one in (each if isinstance(each, (list, tuple)) else [each])]
        made = found if isinstance(found, (list, tuple)) else [found]
        self.moved += sum(
            one.untyped_storage().nbytes() if 0 in one.stride() else one.nbytes
            for one in given + list(made)
            if isinstance(one, torch.Tensor)
        )
        return found


def count(k: int) -> tuple[Counted, int]:
    """The calls for one tile of matrices like the identity, and its bytes."""
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((256, k, 6 * k))
    records = torch.as_tensor(factors @ factors.swapaxes(1, 2) / (6 * k))
    base = np.eye(k) + 0.1
    pull = TangentContribution(dpm.SPD(k), base, radius=float(k), exponent=25)
    with Counted() as counted:
        total.sum_block(pull, records)
    return counted, records.nbytes


def main() -> None:
    """Print the table."""
    for module in (total, _logarithms):
        module.on_accelerator = lambda array: not isinstance(array, np.ndarray)
    total._DEVICE_TILE = 256
    table = Table(title="Affine-invariant sum, PyTorch, float64: counted, and predicted for an H200")
    for heading in ("k", "records", "tiles", "products", "inverses", "kernels", "passes", "predicted"):
        table.add_column(heading, justify="right")
    for k, records, product, inverse in MEASURED:
        counted, read = count(k)
        passes = counted.moved / read
        tile = min(1 << 20, (1 << 28) // (8 * k * k))
        tiles = -(-records // tile)
        whole = tiles * tile / records
        spent = counted.products * product + counted.inverses * inverse
        spent = whole * (spent + 1e3 * passes * 8 * k * k * records / BANDWIDTH)
        table.add_row(
            str(k),
            f"{records:,}",
            str(tiles),
            f"{counted.products:g}",
            str(counted.inverses),
            str(counted.kernels),
            f"{passes:.0f}",
            f"{spent:.0f} ms",
        )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
