"""From files and images to points of a manifold: readers, descriptors, pre-processing."""

from dpmanifolds.data.descriptor_domain import DescriptorDomain
from dpmanifolds.data.descriptors import feature_names, image_descriptors
from dpmanifolds.data.nifti import read_affine, read_nifti, read_tensors, write_nifti
from dpmanifolds.data.readers import read_labels, read_points
from dpmanifolds.data.simulated import simulate_tensors
from dpmanifolds.data.tps import TpsSpecimens, read_tps

__all__ = [
    "DescriptorDomain",
    "TpsSpecimens",
    "feature_names",
    "image_descriptors",
    "read_affine",
    "read_labels",
    "read_nifti",
    "read_points",
    "read_tensors",
    "read_tps",
    "simulate_tensors",
    "write_nifti",
]
