"""Image descriptors against a loop written from the formulas, and the bounds that their domain rests on."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmanifolds.data import DescriptorDomain, feature_names, image_descriptors
from dpmanifolds.data.descriptors import BLOCK_BYTES
from dpmanifolds.errors import ArgumentError, NotOnManifoldError

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
SOBEL = np.array([[1, 0, -1], [2, 0, -2], [1, 0, -1]]) / 4
TWICE = np.outer([1, 4, 6, 4, 1], [1, 0, -2, 0, 1]) / 32


def correlate(image, kernel):
    """The kernel at every pixel, one pixel at a time, border pixels repeated outwards."""
    reach = len(kernel) // 2
    padded = np.pad(image, reach, mode="edge")
    height, width = image.shape
    return np.array(
        [
            [np.sum(padded[i : i + len(kernel), j : j + len(kernel)] * kernel) for j in range(width)]
            for i in range(height)
        ]
    )


def pixel_features(image):
    """The features of one image (values in [0, 1]) straight from their definitions."""
    height, width = image.shape[:2]
    colours = [image] if image.ndim == 2 else [image[..., i] for i in range(3)]
    grey = image if image.ndim == 2 else image @ [0.299, 0.587, 0.114]
    across, down = np.abs(correlate(grey, SOBEL)), np.abs(correlate(grey, SOBEL.T))
    across[across < 2.0**-20] = 0
    down[down < 2.0**-20] = 0
    angle = np.zeros((height, width))
    for i, j in itertools.product(range(height), range(width)):
        a, d = across[i, j], down[i, j]
        if d > 0:
            angle[i, j] = math.atan(a / d)
        elif a > 0:
            angle[i, j] = math.pi / 2
    x = np.tile(np.arange(width) / (width - 1), (height, 1))
    y = np.tile(np.arange(height)[:, None] / (height - 1), (1, width))
    second = np.abs(correlate(grey, TWICE)), np.abs(correlate(grey, TWICE.T))
    return np.stack([x, y, *colours, across, down, *second, np.hypot(across, down), angle]).reshape(
        8 + len(colours), -1
    )


def slow_descriptor(image, eta):
    features = pixel_features(image)
    return np.cov(features, bias=True) + eta * np.eye(len(features))


@pytest.mark.parametrize("shape", [(3, 3), (3, 8), (9, 4), (28, 28), (3, 3, 3), (7, 5, 3), (16, 16, 3)], ids=str)
def test_descriptors_are_those_of_the_loop(shape):
    images = np.random.default_rng(0).uniform(size=(4, *shape))
    images[1] = images[1] > 0.5
    images[2, :, : shape[1] // 2] = 0.3
    slow = np.stack([slow_descriptor(image, 1e-3) for image in images])
    assert np.max(np.abs(image_descriptors(images, eta=1e-3) - slow)) < 1e-14


def test_the_second_derivative_is_sobel_twice():
    convolve = pytest.importorskip("scipy.signal").convolve2d
    assert np.array_equal(convolve(SOBEL, SOBEL) / 2, TWICE)


def test_blocks_and_threads_change_nothing():
    count = 2 * (BLOCK_BYTES // (8 * 9 * 16 * 16)) + 3
    images = np.random.default_rng(1).integers(0, 256, size=(count, 12, 12), dtype=np.uint8)
    whole = image_descriptors(images)
    assert np.array_equal(whole[-5:], image_descriptors(images[-5:]))
    assert np.array_equal(whole[[0, count // 2]], image_descriptors(images[[0, count // 2]]))


def test_the_number_type_does_not_matter():
    grey = np.random.default_rng(2).integers(0, 256, size=(6, 10, 11), dtype=np.uint8)
    grey[:, :, 5:] = 130
    expected = image_descriptors(grey)
    assert expected.dtype == np.float64
    assert np.allclose(image_descriptors(grey / 255), expected, rtol=0, atol=1e-12)
    assert np.allclose(image_descriptors((grey / 255).astype(np.float32)), expected, rtol=0, atol=1e-6)
    assert np.allclose(image_descriptors(grey.astype(np.uint16) * 257), expected, rtol=0, atol=1e-12)
    assert np.allclose(image_descriptors(grey.astype(np.int64), full_scale=255), expected, rtol=0, atol=1e-12)
    assert np.allclose(image_descriptors(grey.tolist(), full_scale=255), expected, rtol=0, atol=1e-12)
    assert np.array_equal(image_descriptors(grey > 100), image_descriptors((grey > 100).astype(float)))
    assert np.array_equal(image_descriptors(grey[..., None]), expected)


def test_read_only_strided_and_memory_mapped_images_are_read(tmp_path):
    images = np.random.default_rng(3).integers(0, 256, size=(8, 20, 18), dtype=np.uint8)
    view = images[::2, ::-1, 1::2]
    expected = image_descriptors(view.copy())
    images.setflags(write=False)
    assert np.array_equal(image_descriptors(view), expected)
    assert np.array_equal(image_descriptors(np.asfortranarray(view)), expected)
    np.save(tmp_path / "images.npy", view)
    assert np.array_equal(image_descriptors(np.load(tmp_path / "images.npy", mmap_mode="r")), expected)


def test_results_come_back_in_the_library_of_the_images(backend):
    images = np.random.default_rng(4).uniform(size=(5, 6, 7))
    result = image_descriptors(backend.array(images))
    assert type(result) is type(backend.array(images))
    assert np.array_equal(backend.numpy(result), image_descriptors(images))


def test_pixels_outside_the_range_are_clipped_one_by_one():
    images = np.random.default_rng(5).normal(0.5, 1.0, size=(4, 9, 9))
    images[0, 0, 0], images[1, 1, 1] = np.inf, -np.inf
    assert np.array_equal(image_descriptors(images), image_descriptors(np.clip(images, 0, 1)))


def test_one_image_does_not_change_the_descriptors_of_others():
    images = np.random.default_rng(6).uniform(size=(5, 8, 8))
    others = images.copy()
    others[2] = 1e9
    kept = [0, 1, 3, 4]
    assert np.array_equal(image_descriptors(images)[kept], image_descriptors(others)[kept])


@pytest.mark.parametrize("shape", [(5, 7), (28, 28), (3, 3, 3), (13, 13, 3), (28, 28, 3)], ids=str)
def test_an_image_has_the_same_bits_alone_and_in_any_place(shape):
    """A product of all pixels with the weights of colours rounded some by their place: NaN moved the images behind."""
    images = np.random.default_rng(2).random((9, *shape))
    together = image_descriptors(images)
    for first, end in ((0, 1), (3, 4), (8, 9), (1, 9), (2, 7), (5, 8)):
        assert np.array_equal(image_descriptors(images[first:end]), together[first:end])


@pytest.mark.parametrize("value", [0.0, 1.0, 1 / 3])
def test_a_constant_image_varies_in_position_alone(value):
    for shape, size in (((30, 20), 9), ((30, 20, 3), 11)):
        descriptor = image_descriptors(np.full((1, *shape), value), eta=1e-4)[0]
        expected = 1e-4 * np.eye(size)
        expected[0, 0] += 21 / (12 * 19)
        expected[1, 1] += 31 / (12 * 29)
        assert np.max(np.abs(descriptor - expected)) < 1e-14


def test_no_image_makes_an_empty_result():
    assert image_descriptors(np.zeros((0, 5, 5))).shape == (0, 9, 9)
    assert image_descriptors(np.zeros((0, 5, 5, 3))).shape == (0, 11, 11)


def test_bad_images_are_refused_with_what_to_do():
    for shape in ((5, 5), (2, 5, 5, 4), (2, 3, 5, 5), (1, 1, 2, 5, 5), (5,), ()):
        with pytest.raises(ArgumentError, match="shape"):
            image_descriptors(np.zeros(shape))
    for shape in ((2, 2, 5), (2, 5, 2), (2, 1, 1, 3), (1, 0, 0)):
        with pytest.raises(ArgumentError, match="at least 3 pixels"):
            image_descriptors(np.zeros(shape))
    with pytest.raises(ArgumentError, match="full_scale"):
        image_descriptors(np.zeros((1, 4, 4), dtype=np.int32))
    with pytest.raises(ArgumentError, match="real numbers"):
        image_descriptors(np.zeros((1, 4, 4), dtype=complex))
    with pytest.raises(ArgumentError, match="real numbers"):
        image_descriptors(np.full((1, 4, 4), "dark"))
    with pytest.raises(ArgumentError, match="different sizes"):
        image_descriptors([np.zeros((4, 4)), np.zeros((5, 4))])
    for eta in (0.0, -1.0, math.nan, "small"):
        with pytest.raises(ArgumentError, match="eta"):
            image_descriptors(np.zeros((1, 4, 4)), eta=eta)
    with pytest.raises(ArgumentError, match="channels"):
        feature_names(2)
    images = np.zeros((3, 4, 4))
    images[1, 2, 3] = math.nan
    with pytest.raises(NotOnManifoldError, match="NaN") as refusal:
        image_descriptors(images)
    assert not any(character.isdigit() for character in str(refusal.value))


def test_the_slope_is_at_most_the_root_of_five_quarters():
    """I_x² + I_y² is convex in the pixels, hence largest at a patch of zeros and ones: all 512 are tried."""
    patches = np.array(list(itertools.product([0.0, 1.0], repeat=9))).reshape(-1, 3, 3)
    across, down = np.sum(patches * SOBEL, axis=(1, 2)), np.sum(patches * SOBEL.T, axis=(1, 2))
    assert np.max(across**2 + down**2) == 1.25
    assert np.max(np.abs(across)) == 1.0
    assert np.sum(np.maximum(TWICE, 0)) == np.sum(np.maximum(-TWICE, 0)) == 1.0


def largest_variances(channels):
    """Popoviciu's (b − a)²/4 for the range of every feature."""
    ranges = [1.0] * (6 + channels) + [math.sqrt(1.25), math.pi / 2]
    return np.square(ranges) / 4


@pytest.mark.parametrize("channels", [1, 3])
def test_no_variance_exceeds_popoviciu(channels):
    rng = np.random.default_rng(7)
    shape = (400, 6, 5) if channels == 1 else (400, 6, 5, 3)
    images = (rng.uniform(size=shape) < rng.uniform(size=(400,) + (1,) * (len(shape) - 1))).astype(float)
    variances = np.diagonal(image_descriptors(images, eta=1e-9), axis1=1, axis2=2) - 1e-9
    bounds = largest_variances(channels)
    assert np.all(variances <= bounds + 1e-15)
    assert bounds.sum() == pytest.approx(DescriptorDomain(channels).trace_bound, rel=1e-12)


def test_images_climbing_towards_a_large_trace_stay_below_the_bound():
    """Flip the pixels that raise the trace most, from many starts, on several small sizes."""
    rng = np.random.default_rng(8)
    domain = DescriptorDomain(1)
    best = 0.0
    for height, width in ((3, 3), (4, 5), (6, 6)):
        images = rng.integers(0, 2, size=(8, height, width)).astype(float)
        for _ in range(25):
            flips = np.eye(height * width).reshape(-1, height, width)
            tried = np.abs(images[:, None] - flips).reshape(-1, height, width)
            traces = np.trace(image_descriptors(tried), axis1=1, axis2=2).reshape(len(images), -1)
            images = tried.reshape(len(images), -1, height, width)[np.arange(len(images)), traces.argmax(axis=1)]
            best = max(best, traces.max() - 9e-6)
    assert 1.5 < best < domain.trace_bound


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(3, 12),
    st.integers(3, 12),
    st.sampled_from([1, 3]),
    st.sampled_from([1e-6, 1e-3, 1.0]),
)
def test_every_descriptor_lies_in_its_domain(seed, height, width, channels, eta):
    rng = np.random.default_rng(seed)
    shape = (3, height, width) if channels == 1 else (3, height, width, 3)
    images = rng.integers(0, 1 + rng.integers(1, 256), size=shape).astype(np.uint8)
    points = image_descriptors(images, eta=eta)
    domain = DescriptorDomain(channels, eta)
    assert np.all(domain.contains(points))
    assert domain.clip(points) is points
    assert np.all(np.linalg.eigvalsh(points) >= eta - 1e-14)


@pytest.mark.skipif(not DATA.is_dir(), reason="the real data are not on this machine")
@pytest.mark.parametrize("name", ["mnist10k", "fashion_mnist_sprite900", "breastmnist", "pneumoniamnist"])
def test_real_images_lie_in_the_domain_and_agree_with_the_loop(name):
    with np.load(DATA / "images" / f"{name}.npz") as arrays:
        images = next(arrays[key] for key in arrays.files if arrays[key].ndim == 3)[:200]
    points = image_descriptors(images)
    domain = DescriptorDomain(1)
    assert np.all(domain.contains(points))
    assert np.max(domain.manifold.dist(domain.center, points)) <= domain.radius
    slow = np.stack([slow_descriptor(image / 255, 1e-6) for image in images[:3]])
    assert np.max(np.abs(points[:3] - slow)) < 1e-13
