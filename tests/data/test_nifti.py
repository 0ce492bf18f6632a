"""Where voxels lie, and maps written back."""

from __future__ import annotations

import struct

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds.data import read_affine, read_nifti, read_tensors, write_nifti
from dpmanifolds.data._tables import columns_from_matrices

AFFINE = np.array([[-2.0, 0.0, 0.1, 90.0], [0.0, 2.0, 0.0, -126.0], [0.1, 0.0, 2.5, -72.0], [0.0, 0.0, 0.0, 1.0]])


@pytest.mark.parametrize("name", ["map.nii", "map.nii.gz"])
def test_what_is_written_is_read_again(name, tmp_path):
    values = np.random.default_rng(0).normal(size=(3, 4, 2, 6))
    path = write_nifti(tmp_path / name, values, affine=AFFINE)
    np.testing.assert_array_equal(read_nifti(path), values)
    np.testing.assert_allclose(read_affine(path), AFFINE, rtol=1e-6)


@pytest.mark.parametrize("layout", ["full", "upper", "lower"])
def test_tensors_survive_the_way_to_a_file_and_back(layout, tmp_path):
    tensors = dpm.SPD(3).random_point((2, 2, 3), rng=0)
    path = write_nifti(tmp_path / "map.nii", columns_from_matrices(tensors, layout))
    np.testing.assert_array_equal(read_tensors(path, layout=layout), tensors.reshape(-1, 3, 3))


def test_the_same_map_gives_the_same_bytes(tmp_path):
    one, two = (write_nifti(tmp_path / name, np.ones((2, 2, 2))) for name in ("a.nii.gz", "b.nii.gz"))
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("version", [1, 2])
def test_a_quaternion_turns_the_axes(order, version, tmp_path):
    """A quarter turn around z with voxels of 2, 3 and 4 mm, mirrored in z: x goes to y, y to −x."""
    head = bytearray(544)
    half = np.sqrt(0.5)
    struct.pack_into(order + "i", head, 0, 348 if version == 1 else 540)
    if version == 1:
        struct.pack_into(order + "4f", head, 76, -1.0, 2.0, 3.0, 4.0)
        struct.pack_into(order + "2h", head, 252, 1, 0)
        struct.pack_into(order + "6f", head, 256, 0.0, 0.0, half, 5.0, 6.0, 7.0)
    else:
        struct.pack_into(order + "4d", head, 104, -1.0, 2.0, 3.0, 4.0)
        struct.pack_into(order + "2i", head, 344, 1, 0)
        struct.pack_into(order + "6d", head, 352, 0.0, 0.0, half, 5.0, 6.0, 7.0)
    path = tmp_path / "turned.nii"
    path.write_bytes(bytes(head))
    expected = [[0, -3, 0, 5], [2, 0, 0, 6], [0, 0, -4, 7], [0, 0, 0, 1]]
    np.testing.assert_allclose(read_affine(path), expected, atol=1e-6)


def test_without_an_orientation_the_size_of_the_voxels_counts(tmp_path):
    head = bytearray(352)
    struct.pack_into("<i", head, 0, 348)
    struct.pack_into("<4f", head, 76, 0.0, 2.0, 3.0, 4.0)
    path = tmp_path / "bare.nii"
    path.write_bytes(bytes(head))
    np.testing.assert_allclose(read_affine(path), np.diag([2.0, 3.0, 4.0, 1.0]))


def test_a_file_that_exists_is_kept(tmp_path):
    path = write_nifti(tmp_path / "map.nii", np.zeros((1, 1, 1)))
    before = path.read_bytes()
    with pytest.raises(dpm.ArgumentError, match="exists"):
        write_nifti(path, np.ones((1, 1, 1)))
    assert path.read_bytes() == before


def test_wrong_arguments_are_told(tmp_path):
    with pytest.raises(dpm.ArgumentError, match=r"\.nii"):
        write_nifti(tmp_path / "map.png", np.zeros((1, 1, 1)))
    with pytest.raises(dpm.ArgumentError, match="4×4"):
        write_nifti(tmp_path / "map.nii", np.zeros((1, 1, 1)), affine=np.eye(3))
    with pytest.raises(dpm.ArgumentError, match="layout"):
        columns_from_matrices(np.eye(3)[None], "diagonal")
    (tmp_path / "short.nii").write_bytes(b"x")
    with pytest.raises(dpm.ArgumentError):
        read_affine(tmp_path / "short.nii")
