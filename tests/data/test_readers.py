"""Readers: what comes back is what was written, and damaged files end in one of our errors."""

from __future__ import annotations

import gzip
import io
import struct
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpmanifolds import SPD, PlanarShapes, Product, Sphere
from dpmanifolds.data import read_labels, read_nifti, read_points, read_tensors, read_tps
from dpmanifolds.data.readers import table_columns
from dpmanifolds.errors import ArgumentError, DPManifoldsError

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the real data are not on this machine")
MATRICES = SPD(3).random_point(7, rng=0)
TPS = (
    "# digitised twice\r\nLM=3\r\n0 0\r\n1 0\r\n0.3 0.8\r\nCURVES=1\r\nPOINTS=2\r\n5 5\r\n6 6\r\n"
    "IMAGE=C:\\wings\\fl\x85gel.jpg\r\nID=1\r\nSCALE=0.01\r\n\r\n"
    "LM=0\r\nIMAGE=empty.jpg\r\nID=2\r\n"
    "lm=3\r\n1 2\r\nNA NA\r\n-1.5e1 4\r\nCOMMENT=a = b\r\nID=3\r\n"
)


def nifti_bytes(array, code, order="<", version=1, slope=1.0, intercept=0.0):
    """A NIfTI file written from the standard's tables."""
    shape = [array.ndim, *array.shape, *[1] * (7 - array.ndim)]
    header = bytearray(352 if version == 1 else 544)
    if version == 1:
        struct.pack_into(order + "i", header, 0, 348)
        struct.pack_into(order + "8h", header, 40, *shape)
        struct.pack_into(order + "2h", header, 70, code, 8 * array.itemsize)
        struct.pack_into(order + "3f", header, 108, 352, slope, intercept)
        header[344:348] = b"n+1\0"
    else:
        struct.pack_into(order + "i", header, 0, 540)
        header[4:12] = b"n+2\0\r\n\x1a\n"
        struct.pack_into(order + "2h", header, 12, code, 8 * array.itemsize)
        struct.pack_into(order + "8q", header, 16, *shape)
        struct.pack_into(order + "q2d", header, 168, 544, slope, intercept)
    return bytes(header) + array.astype(array.dtype.newbyteorder(order)).tobytes(order="F")


def mat_bytes(compress=False):
    stream = io.BytesIO()
    pytest.importorskip("scipy.io").savemat(stream, {"x": MATRICES, "n": 3.0}, do_compression=compress)
    return stream.getvalue()


def npz_bytes():
    stream = io.BytesIO()
    np.savez_compressed(stream, x=MATRICES, other=np.arange(3))
    return stream.getvalue()


def npy_bytes(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def test_arrays_come_back_from_every_kind_of_file(tmp_path):
    files = {
        "a.npy": (npy_bytes(MATRICES), {}),
        "b.npy": (npy_bytes(np.asfortranarray(MATRICES)), {}),
        "c.npz": (npz_bytes(), {"key": "x"}),
        "d.mat": (mat_bytes(), {"key": "x"}),
        "e.mat": (mat_bytes(compress=True), {"key": "x"}),
    }
    for name, (content, options) in files.items():
        (tmp_path / name).write_bytes(content)
        assert np.array_equal(read_points(tmp_path / name, **options), MATRICES)
        points = read_points(str(tmp_path / name), manifold=SPD(3), **options)
        assert np.array_equal(points, MATRICES)
        assert points.flags.writeable


def test_matlab_files_of_every_kind_of_number_agree_with_what_was_saved(tmp_path):
    matlab = pytest.importorskip("scipy.io")
    rng = np.random.default_rng(0)
    arrays = {kind: rng.integers(0, 100, size=(2, 3, 4)).astype(kind) for kind in ("f8", "f4", "i1", "u2", "i4", "u8")}
    arrays |= {"complex": rng.normal(size=(4, 2)) + 1j * rng.normal(size=(4, 2)), "large": rng.normal(size=(40, 50))}
    for compress in (False, True):
        matlab.savemat(tmp_path / "all.mat", {**arrays, "text": "words", "cell": {"a": 1}}, do_compression=compress)
        for name, array in arrays.items():
            read = read_points(tmp_path / "all.mat", key=name)
            assert read.dtype == array.dtype
            assert np.array_equal(read, array)
        for name in ("text", "cell"):
            with pytest.raises(ArgumentError, match="ordinary array"):
                read_points(tmp_path / "all.mat", key=name)


def test_records_may_lie_along_another_axis(tmp_path):
    np.save(tmp_path / "matlab.npy", np.moveaxis(MATRICES, 0, -1))
    assert np.array_equal(read_points(tmp_path / "matlab.npy", record_axis=-1), MATRICES)
    with pytest.raises(ArgumentError, match="record_axis=5"):
        read_points(tmp_path / "matlab.npy", record_axis=5)


@pytest.mark.parametrize("layout", ["full", "upper", "lower"])
@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize(("ending", "mark"), [("csv", ","), ("tsv", "\t")])
def test_tables_of_matrices_come_back(tmp_path, layout, header, ending, mark):
    rows, columns = {"full": np.indices((3, 3)), "upper": np.triu_indices(3), "lower": np.tril_indices(3)}[layout]
    flat = MATRICES[:, np.ravel(rows), np.ravel(columns)]
    lines = [mark.join(map(repr, row)) for row in flat.tolist()]
    names = [mark.join(f'"c{i}"' for i in range(flat.shape[1]))] if header else []
    path = tmp_path / f"tensors.{ending}"
    path.write_text("\n".join(names + lines) + "\n", newline="\r\n" if header else "\n", encoding="utf-8-sig")
    assert np.array_equal(read_points(path, layout=layout), MATRICES)
    assert np.array_equal(read_points(path, layout=layout, manifold=SPD(3), header="yes" if header else "no"), MATRICES)


def test_rows_take_the_shape_of_the_points(tmp_path):
    landmarks = np.random.default_rng(0).normal(size=(4, 5, 2))
    np.savetxt(tmp_path / "shapes.csv", landmarks.reshape(4, 10), delimiter=",", fmt="%.17g")
    shapes = read_points(tmp_path / "shapes.csv", manifold=PlanarShapes(5))
    assert np.array_equal(shapes, PlanarShapes(5).from_landmarks(landmarks))
    directions = Sphere(2).random_point(4, rng=1)
    np.savetxt(tmp_path / "directions.csv", directions, delimiter=",", fmt="%.17g")
    assert np.array_equal(read_points(tmp_path / "directions.csv", manifold=Sphere(2)), directions)
    np.save(tmp_path / "nested.npy", np.zeros((2, 2, 3)))
    with pytest.raises(ArgumentError, match="one axis of records"):
        read_points(tmp_path / "nested.npy", manifold=Sphere(2))
    with pytest.raises(ArgumentError, match="shape"):
        read_points(tmp_path / "directions.csv", manifold=Sphere(3))


def test_tps_files_with_all_their_oddities(tmp_path):
    path = tmp_path / "wings.TPS"
    path.write_bytes(TPS.encode("latin-1"))
    with pytest.raises(ArgumentError, match="LM=0"):
        read_tps(path)
    specimens = read_tps(path, missing="drop")
    expected = [[[0, 0], [1, 0], [0.3, 0.8]], [[1, 2], [np.nan, np.nan], [-15, 4]]]
    assert np.array_equal(specimens.landmarks, expected, equal_nan=True)
    assert specimens.identifiers == ("1", "3")
    assert specimens.images == ("C:\\wings\\fl\x85gel.jpg", "")
    assert np.array_equal(specimens.scales, [0.01, np.nan], equal_nan=True)
    with pytest.raises(DPManifoldsError, match="finite"):
        read_points(path, manifold=PlanarShapes(3), missing="drop")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("LM3=1\n1 2 3\n", "three dimensions"),
        ("ID=1\nLM=1\n1 2\n", "begin with"),
        ("LM=2\n1 2\nID=1\n", "fewer landmarks"),
        ("LM=1\n1 2\n3 4\n", "belongs to no landmark"),
        ("LM=1\n1 2\nLM=2\n1 2\n3 4\n", "same number"),
        ("LM=1\n1 2 3\n", "cannot be read"),
        ("LM=x\n", "cannot be read"),
        ("LM=-1\n", "fewer landmarks"),
        ("", "no landmarks"),
    ],
)
def test_bad_tps_files_are_refused(tmp_path, text, message):
    (tmp_path / "bad.tps").write_text(text)
    with pytest.raises(ArgumentError, match=message):
        read_tps(tmp_path / "bad.tps")


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("order", ["<", ">"])
def test_nifti_tensors_in_both_orders_with_masks(tmp_path, version, order):
    tensors = MATRICES[:6].reshape(1, 2, 3, 3, 3)
    upper = tensors[..., [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]
    lower = tensors[..., [0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]
    (tmp_path / "upper.nii").write_bytes(nifti_bytes(upper, 64, order, version))
    (tmp_path / "lower.nii.gz").write_bytes(gzip.compress(nifti_bytes(lower[:, :, :, None], 64, order, version)))
    assert np.array_equal(read_points(tmp_path / "upper.nii", layout="upper", manifold=SPD(3)), MATRICES[:6])
    assert np.array_equal(read_tensors(tmp_path / "lower.nii.gz", layout="lower"), MATRICES[:6])
    mask = np.array([[[1, 0, 1], [0, 0, 2]]], dtype=np.uint8)
    (tmp_path / "mask.nii").write_bytes(nifti_bytes(mask, 2, order, version))
    assert np.array_equal(read_tensors(tmp_path / "upper.nii", layout="upper", mask=mask), MATRICES[[0, 2, 5]])
    masked = read_tensors(tmp_path / "upper.nii", layout="upper", mask=tmp_path / "mask.nii")
    assert np.array_equal(masked, MATRICES[[0, 2, 5]])
    with pytest.raises(ArgumentError, match="layout"):
        read_points(tmp_path / "upper.nii")
    with pytest.raises(ArgumentError, match="mask must have the shape"):
        read_tensors(tmp_path / "upper.nii", layout="upper", mask=np.ones((2, 2, 2)))
    with pytest.raises(ArgumentError, match="square number"):
        read_tensors(tmp_path / "upper.nii", layout="full")


def test_slope_and_intercept_of_nifti_files_are_applied(tmp_path):
    stored = np.arange(6, dtype=np.int16).reshape(1, 2, 3)
    (tmp_path / "scaled.nii").write_bytes(nifti_bytes(stored, 4, slope=0.5, intercept=-1.0))
    assert np.array_equal(read_nifti(tmp_path / "scaled.nii"), stored * 0.5 - 1)
    (tmp_path / "plain.nii").write_bytes(nifti_bytes(stored, 4, slope=0.0))
    assert np.array_equal(read_nifti(tmp_path / "plain.nii"), stored)


@needs_data
@pytest.mark.parametrize("name", ["small_64D.nii", "small_101D.nii.gz"])
def test_real_nifti_files_agree_with_nibabel(name):
    nibabel = pytest.importorskip("nibabel")
    path = DATA / "formats" / name
    assert np.allclose(read_nifti(path), nibabel.load(path).get_fdata(), rtol=1e-7)


@needs_data
def test_real_files_become_points():
    wings = read_points(DATA / "shapes" / "drosophila_cactophilic_wings.npz", key="x", manifold=PlanarShapes(9))
    assert wings.shape == (263, 9)
    assert np.all(PlanarShapes(9).belongs(wings))
    assert read_points(DATA / "spd" / "dti_dipy_small_25.npz", key="x", manifold=SPD(3)).shape == (160, 3, 3)
    assert read_nifti(DATA / "formats" / "small_64D.nii").ndim == 4


def test_choices_among_arrays_and_other_arguments_are_checked(tmp_path):
    (tmp_path / "two.npz").write_bytes(npz_bytes())
    (tmp_path / "two.mat").write_bytes(mat_bytes())
    for name in ("two.npz", "two.mat"):
        with pytest.raises(ArgumentError, match="pass key, one of 'x'"):
            read_points(tmp_path / name)
        with pytest.raises(ArgumentError, match="no array 'y'"):
            read_points(tmp_path / name, key="y")
    (tmp_path / "x.pkl").write_bytes(b"x")
    with pytest.raises(ArgumentError, match="must end in one of"):
        read_points(tmp_path / "x.pkl")
    for path in (tmp_path, tmp_path / "none.npy", None, 3.5, "a\0b.npy"):
        with pytest.raises(ArgumentError, match="path must be a file"):
            read_points(path)
    with pytest.raises(ArgumentError, match="manifold"):
        read_points(tmp_path / "two.npz", manifold="SPD")
    with pytest.raises(ArgumentError, match="layout"):
        read_points(tmp_path / "two.npz", layout="diagonal")
    with pytest.raises(ArgumentError, match="already"):
        read_points(tmp_path / "two.npz", key="x", layout="full")
    (tmp_path / "new.mat").write_bytes(b"MATLAB 7.3 MAT-file, Platform: GLNXA64" + bytes(200))
    with pytest.raises(ArgumentError, match="-v7"):
        read_points(tmp_path / "new.mat")
    np.save(tmp_path / "x.npy", np.zeros((2, 3)))
    with pytest.raises(DPManifoldsError):
        read_points(tmp_path / "x.npy", manifold=Product(Sphere(2), Sphere(2)))


def test_pickles_are_never_opened(tmp_path):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was opened",))

    np.save(tmp_path / "trap.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "trap.npz", x=np.array([Trap()], dtype=object))
    for name in ("trap.npy", "trap.npz"):
        with pytest.raises(ArgumentError, match="must hold numbers"):
            read_points(tmp_path / name)


def test_a_header_that_promises_too_much_allocates_nothing(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (1 << 27, 3)})
    (tmp_path / "liar.npy").write_bytes(header.getvalue() + bytes(100))
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", npy_bytes(np.zeros(1 << 20)))
    (tmp_path / "bomb.nii.gz").write_bytes(gzip.compress(nifti_bytes(np.zeros((1 << 10, 1 << 10)), 64)))
    (tmp_path / "liar.nii").write_bytes(nifti_bytes(np.zeros((1 << 10, 1 << 10)), 64)[:1000])
    tracemalloc.start()
    try:
        for name in ("liar.npy", "bomb.npz", "bomb.nii.gz"):
            with pytest.raises(ArgumentError, match="max_bytes"):
                read_points(tmp_path / name, layout="full", max_bytes=1 << 20)
        for name in ("liar.npy", "liar.nii"):
            with pytest.raises(ArgumentError, match="cut short"):
                read_points(tmp_path / name, layout="full")
        assert tracemalloc.get_traced_memory()[1] < 1 << 22
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("text", ["", "\n", "a,b\n", "1,2\n3\n", "1,2\n3,secret\n", "1,,2\n", "\xff\xfe1,2"])
def test_bad_tables_are_refused_without_quoting_them(tmp_path, text):
    (tmp_path / "bad.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(ArgumentError, match=r"cannot be read|names of columns or a record") as refusal:
        read_points(tmp_path / "bad.csv")
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize("cell", ['"', '"ann', '"ann""', '"a\nb"'])
def test_no_quote_of_one_record_takes_the_records_below_into_its_cell(tmp_path, cell):
    path = tmp_path / "visits.csv"
    path.write_text(f'person,x\nbob,1\n{cell},2\neve,3\n"zoe",4\n', newline="\n")
    for read in (lambda: read_points(path, columns=["x"]), lambda: read_labels(path, "person")):
        with pytest.raises(ArgumentError, match="must stand in one line") as refusal:
            read()
        assert "ann" not in str(refusal.value)


def test_quoted_cells_hold_separators_and_quotes(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text('person,x\n"bob, jr",1\n"ann ""a""",2\n5\' 11",3\n"zoe', newline="\n")
    assert read_labels(path, "person").tolist() == ["bob, jr", 'ann "a"', "5' 11\"", "zoe"]


@pytest.mark.parametrize(
    "text", ["x\n1\n\n3\n", "1\n\n3\n", "\n1\n3\n", "x\n1\n3\n\n", "1\r\n \r\n3\r\n", '""\n1\n3\n']
)
def test_in_one_column_a_line_without_a_number_is_no_record_less(tmp_path, text):
    path = tmp_path / "values.csv"
    path.write_text(text, newline="\n")
    with pytest.raises(ArgumentError, match=r"one column and a blank line|names of columns or a record"):
        read_points(path)


@pytest.mark.parametrize("name", ["x.tsv", "x.csv"])
def test_a_first_record_of_empty_cells_is_no_blank_line(tmp_path, name):
    (tmp_path / name).write_text("\t\n1\t2\n3\t4\n")
    with pytest.raises(ArgumentError, match="names of columns or a record"):
        read_points(tmp_path / name)
    (tmp_path / name).write_text("\n  \na\tb\n1\t2\n3\t4\n")
    assert read_points(tmp_path / name).tolist() == [[1.0, 2.0], [3.0, 4.0]]


VALID = {
    "x.npy": npy_bytes(MATRICES),
    "x.npz": npz_bytes(),
    "x.csv": b"a,b\n1,2\n3,4.5\n",
    "x.mat": mat_bytes(),
    "y.mat": mat_bytes(compress=True),
    "x.tps": TPS.encode("latin-1"),
    "x.nii": nifti_bytes(np.ones((2, 2, 2, 6)), 64),
    "x.nii.gz": gzip.compress(nifti_bytes(np.ones((2, 2, 2, 6)), 64)),
}


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(sorted(VALID)),
    start=st.integers(0, 400),
    noise=st.binary(max_size=60),
    cut=st.one_of(st.none(), st.integers(0, 1200)),
    alone=st.booleans(),
)
def test_damaged_files_end_in_our_errors(tmp_path, name, start, noise, cut, alone):
    content = noise if alone else VALID[name][:start] + noise + VALID[name][start + len(noise) :]
    (tmp_path / name).write_bytes(content[:cut])
    try:
        array = read_points(
            tmp_path / name,
            key="x" if name.endswith(("npz", "mat")) else None,
            layout="upper" if ".nii" in name else None,
            missing="drop",
            max_bytes=1 << 20,
        )
    except DPManifoldsError:
        return
    assert array.dtype.kind in "biufc"


class TestNamesOfColumns:
    """A name that stands one column off makes row numbers persons: each record would be protected, and no person."""

    VISITS = "{}person,x,y\n0,7,1.5,2.5\n1,7,3.5,4.5\n2,8,5.5,6.5\n"

    @pytest.mark.parametrize(("ending", "delimiter"), [("tsv", "\t"), ("csv", "\t"), ("csv", ","), ("csv", ";")])
    def test_row_numbers_without_a_name_take_a_column(self, tmp_path, ending, delimiter):
        path = tmp_path / f"visits.{ending}"
        path.write_text("\n  \n" + self.VISITS.format(",").replace(",", delimiter))
        assert read_labels(path, "person").tolist() == ["7", "7", "8"]
        assert read_points(path, columns=["x", "y"]).tolist() == [[1.5, 2.5], [3.5, 4.5], [5.5, 6.5]]

    @pytest.mark.parametrize(("ending", "delimiter"), [("tsv", "\t"), ("csv", ",")])
    def test_row_numbers_that_the_first_line_leaves_out_are_refused(self, tmp_path, ending, delimiter):
        path = tmp_path / f"visits.{ending}"
        path.write_text(self.VISITS.format("").replace(",", delimiter))
        for read in (lambda: read_labels(path, "person"), lambda: read_points(path, columns=["x", "y"])):
            with pytest.raises(ArgumentError, match="fewer names in its first line than cells in a row"):
                read()

    def test_a_delimiter_at_the_end_of_rows_is_no_column(self, tmp_path):
        path = tmp_path / "visits.csv"
        path.write_text("person,x,y\n7,1.5,2.5,\n8,3,4,\n")
        assert read_labels(path, "person").tolist() == ["7", "8"]
        assert read_points(path, columns=["x", "y"]).tolist() == [[1.5, 2.5], [3.0, 4.0]]

    @pytest.mark.parametrize("first", ["NA,86420", "86420,", "NA,NA", ",", "null,-", "86420,secret"])
    def test_a_first_record_with_a_cell_that_is_no_number_is_never_left_out(self, tmp_path, first):
        """It was taken for names of columns: one record less was released, and its cells were told as names."""
        path = tmp_path / "visits.csv"
        path.write_text(f"{first}\n1.5,2.5\n3,4\n")
        ways = (read_points, lambda it: read_labels(it, "x"), lambda it: read_points(it, columns=["x"]), table_columns)
        for read in ways:
            with pytest.raises(ArgumentError, match="names of columns or a record") as refusal:
                read(path)
            assert "86420" not in str(refusal.value)
            assert "secret" not in str(refusal.value)
        assert read_points(path, header="yes").tolist() == [[1.5, 2.5], [3.0, 4.0]]

    def test_numbers_may_be_names_if_that_is_said(self, tmp_path):
        path = tmp_path / "visits.csv"
        path.write_text("person,1,2\nann,1.5,2.5\n")
        assert read_points(path, columns=["2"], header="yes").tolist() == [[2.5]]
        assert read_labels(path, "person", header="yes").tolist() == ["ann"]
