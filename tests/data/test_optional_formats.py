"""Parquet, Zarr and FIF files: what comes back, what is refused, and that nothing in them is run.

They need packages that are no requirement: without one of them, its tests are skipped, and what is left is the line
that says how to install it.
"""

from __future__ import annotations

import contextlib
import json
import sys
import warnings

import numpy as np
import pytest

from dpmanifolds import SPD, ArgumentError, Ball, Euclidean, PureDP, private_mean
from dpmanifolds.data import read_labels, read_points
from dpmanifolds.data._array_files import FileRecords
from dpmanifolds.data.readers import open_store
from dpmanifolds.errors import DPManifoldsError, NotAvailableError
from tests.command_line import type_line

MATRICES = SPD(3).random_point(12, rng=0)
UPPER = MATRICES[:, [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]
NAMES = ["xx", "xy", "xz", "yy", "yz", "zz"]


def opened(path, *, key=None, record_axis=0, layout=None, manifold=None, max_bytes=1 << 30):
    return open_store(path, key, record_axis, layout, manifold, max_bytes)


@pytest.mark.parametrize(
    ("packages", "name", "line"),
    [
        (("pyarrow",), "x.parquet", r"dpmanifolds\[parquet\]"),
        (("pyarrow.parquet",), "x.parquet", r"dpmanifolds\[parquet\]"),
        (("zarr",), "x.zarr.zip", r"dpmanifolds\[zarr\]"),
        (("mne",), "x-cov.fif", r"dpmanifolds\[mne\]"),
    ],
)
def test_a_missing_package_is_named_with_the_line_that_installs_it(tmp_path, monkeypatch, packages, name, line):
    for package in packages:
        monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / name).write_bytes(b"PK")
    with pytest.raises(NotAvailableError, match=f"pip install .*{line}"):
        read_points(tmp_path / name)


@pytest.mark.needs("pyarrow")
class TestParquet:
    """Tables of numbers in columns."""

    @pytest.fixture
    def write(self, tmp_path):
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

        def save(name="x.parquet", group=5, **columns):
            parquet.write_table(arrow.table(columns), tmp_path / name, row_group_size=group)
            return tmp_path / name

        return save

    def test_columns_are_numbers_as_in_csv(self, write):
        path = write(**dict(zip(NAMES, UPPER.T, strict=True)))
        assert np.array_equal(read_points(path), UPPER)
        assert np.array_equal(read_points(path, layout="upper", manifold=SPD(3)), MATRICES)
        assert np.array_equal(read_points(path, columns=["yy", "xx"]), UPPER[:, [3, 0]])

    def test_lists_are_spread_out(self, write):
        arrow = pytest.importorskip("pyarrow")
        lists = arrow.array(UPPER.tolist())
        fixed = arrow.FixedSizeListArray.from_arrays(arrow.array(UPPER.ravel()), 6)
        nested = arrow.array(MATRICES.tolist())
        assert np.array_equal(read_points(write(x=lists)), UPPER)
        assert np.array_equal(read_points(write(x=fixed), layout="upper"), MATRICES)
        assert np.array_equal(read_points(write(x=nested), manifold=SPD(3)), MATRICES)
        both = write(a=arrow.array(range(12), arrow.int16()), x=lists)
        assert np.array_equal(read_points(both), np.column_stack([np.arange(12), UPPER]))

    def test_a_column_of_names_goes_beside_the_numbers(self, write):
        arrow = pytest.importorskip("pyarrow")
        persons = [f"p{each // 3}" for each in range(12)]
        path = write(person=arrow.array(persons).dictionary_encode(), x=UPPER[:, 0], __index_level_0__=np.arange(12))
        assert read_labels(path, "person").tolist() == persons
        assert np.array_equal(read_points(path, columns=["x"]), UPPER[:, :1])
        with pytest.raises(ArgumentError, match="'person' holds no numbers"):
            read_points(path)
        with pytest.raises(ArgumentError, match="no column 'y'; its columns are 'person', 'x'"):
            read_points(path, columns=["y"])

    def test_what_is_missing_ragged_or_too_large_is_refused(self, write):
        arrow = pytest.importorskip("pyarrow")
        for columns, message in (
            ({"x": arrow.array([1.0, None, 2.0])}, "missing values"),
            ({"x": arrow.array([[1.0, 2.0], [3.0]])}, "same length"),
            ({"x": arrow.array([[1.0, None], [3.0, 4.0]])}, "missing values"),
            ({"x": arrow.array([], arrow.float64())}, "no rows"),
            ({"x": arrow.array(["1", "2"])}, "no numbers"),
        ):
            with pytest.raises(ArgumentError, match=message):
                read_points(write(**columns))
        bomb = write(group=1 << 18, x=np.zeros(1 << 18))
        assert bomb.stat().st_size < 1 << 16
        with pytest.raises(ArgumentError, match="max_bytes"):
            read_points(bomb, max_bytes=1 << 16)

    def test_damaged_files_end_in_our_errors(self, write):
        path = write(**dict(zip(NAMES, UPPER.T, strict=True)))
        whole, rng = path.read_bytes(), np.random.default_rng(0)
        for _ in range(150):
            content = bytearray(whole[: rng.integers(1, len(whole) + 1)] if rng.random() < 0.3 else whole)
            for place in rng.integers(0, len(content), size=4):
                content[place] = rng.integers(256)
            path.write_bytes(bytes(content))
            try:
                table = read_points(path, max_bytes=1 << 20)
            except DPManifoldsError:
                continue
            assert table.ndim == 2

    def test_the_command_line_groups_by_a_column(self, write, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        write(
            "visits.parquet", person=[f"p{each // 3}" for each in range(12)], **dict(zip(NAMES, UPPER.T, strict=True))
        )
        line = "mean visits.parquet --layout upper --manifold spd:3 --radius 2 --epsilon 9 --yes --group-by person"
        outcome = type_line(f"{line} --out out")
        assert outcome.exit_code == 0, outcome.stderr
        assert json.loads((tmp_path / "out/release.json").read_text())["n"] == 4


@pytest.mark.needs("zarr")
class TestZarr:
    """Stores that are read in slices."""

    @pytest.fixture
    def zarr(self):
        return pytest.importorskip("zarr")

    def written(self, zarr, store, array, chunk=5, **options):
        made = zarr.create_array(
            store, shape=array.shape, chunks=(chunk, *array.shape[1:]), dtype=array.dtype, **options
        )
        made[:] = array

    @pytest.mark.parametrize("version", [2, 3])
    def test_folders_and_archives_of_both_versions(self, zarr, tmp_path, version):
        self.written(zarr, tmp_path / "x.zarr", MATRICES, zarr_format=version)
        store = zarr.storage.ZipStore(tmp_path / "x.zarr.zip", mode="w")
        self.written(zarr, store, UPPER, name="covariances", zarr_format=version)
        store.close()
        assert np.array_equal(read_points(tmp_path / "x.zarr", manifold=SPD(3)), MATRICES)
        assert np.array_equal(read_points(tmp_path / "x.zarr.zip", layout="upper"), MATRICES)
        with pytest.raises(ArgumentError, match="no array 'y'; it has 'covariances'"):
            read_points(tmp_path / "x.zarr.zip", key="y")

    def test_one_of_several_arrays_shards_and_another_axis(self, zarr, tmp_path):
        group = zarr.open_group(tmp_path / "many.zarr", mode="w")
        turned = np.moveaxis(MATRICES, 0, -1).copy()
        group.create_array("a/turned", shape=turned.shape, chunks=(3, 3, 4), shards=(3, 3, 8), dtype="f8")[:] = turned
        group.create_array("b", shape=(4,), chunks=(2,), dtype="f4")
        with pytest.raises(ArgumentError, match="pass key, one of 'a/turned', 'b'"):
            read_points(tmp_path / "many.zarr")
        assert np.array_equal(read_points(tmp_path / "many.zarr", key="a/turned", record_axis=-1), MATRICES)

    def test_slices_give_the_same_release_as_the_array(self, zarr, tmp_path):
        points = np.random.default_rng(0).uniform(-1, 1, size=(1000, 2))
        self.written(zarr, tmp_path / "x.zarr", points, chunk=100)
        lazy = opened(tmp_path / "x.zarr", manifold=Euclidean(2))
        assert isinstance(lazy, FileRecords)
        assert (lazy.shape, lazy.chunks, len(lazy)) == ((1000, 2), (100, 2), 1000)
        ball = Ball(Euclidean(2), np.zeros(2), 1.5)
        in_slices, at_once = (private_mean(each, ball, PureDP(1.0), rng=0) for each in (lazy, points))
        assert np.allclose(in_slices.value, at_once.value, rtol=0, atol=1e-12)

    def test_the_command_line_reads_no_more_than_a_slice_at_a_time(self, zarr, tmp_path, monkeypatch):
        points = 1e-12 * np.random.default_rng(0).uniform(-1, 1, size=(30_000, 200))
        self.written(zarr, tmp_path / "x.zarr", points, chunk=1000)
        monkeypatch.chdir(tmp_path)
        longest = []
        take = FileRecords.__getitem__

        def watched(self, rows):
            part = take(self, rows)
            longest.append(len(part))
            return part

        monkeypatch.setattr(FileRecords, "__getitem__", watched)
        place = (
            "--manifold euclidean:200 --radius 20 --unit-scale 1e12 --epsilon 9 --delta 1e-6 --yes --numerics lattice"
        )
        outcome = type_line(f"mean x.zarr {place} --out out")
        assert outcome.exit_code == 0, outcome.stderr
        assert max(longest) < 30_000
        assert np.all(np.isfinite(json.loads((tmp_path / "out/release.json").read_text())["sigma"]))
        assert "30000 × 200" in type_line("info x.zarr").stdout

    @pytest.mark.parametrize("group", ["", "--group-by persons.npy"], ids=["records", "persons"])
    def test_every_command_takes_a_store(self, zarr, tmp_path, monkeypatch, group):
        monkeypatch.chdir(tmp_path)
        self.written(zarr, tmp_path / "x.zarr", SPD(3).random_point(60, rng=0))
        np.save("persons.npy", np.arange(60) // 3)
        for command in ("mean", "median", "variance", "pca -k 1", "descend --steps 2"):
            line = f"{command} x.zarr --manifold spd:3 --radius 2 --mu 1 --yes --out {command[:4]} {group}"
            outcome = type_line(line)
            assert outcome.exit_code == 0, outcome.stderr
            assert ("20 persons" if group else "60 records") in outcome.stdout

    def test_a_codec_that_unpickles_is_never_opened(self, zarr, tmp_path):
        class Trap:
            def __reduce__(self):
                return (pytest.fail, ("a pickle was opened",))

        import pickle

        self.written(zarr, tmp_path / "x.zarr", UPPER, chunk=12, zarr_format=2)
        about = tmp_path / "x.zarr/.zarray"
        found = json.loads(about.read_text())
        (tmp_path / "x.zarr/0.0").write_bytes(pickle.dumps(Trap()))
        for change in (
            {"compressor": {"id": "pickle"}},
            {"compressor": None, "filters": [{"id": "pickle"}]},
            {"dtype": "|O", "filters": [{"id": "pickle"}]},
        ):
            about.write_text(json.dumps(found | change))
            with pytest.raises(ArgumentError, match=r"not opened here|must hold numbers"):
                read_points(tmp_path / "x.zarr")
        self.written(zarr, tmp_path / "y.zarr", UPPER, chunk=12)
        about = tmp_path / "y.zarr/zarr.json"
        found = json.loads(about.read_text())
        inner = {"chunk_shape": [12, 6], "codecs": [{"name": "numcodecs.pickle"}], "index_codecs": ["bytes"]}
        for codecs in ([{"name": "numcodecs.pickle"}], [{"name": "sharding_indexed", "configuration": inner}]):
            about.write_text(json.dumps(found | {"codecs": codecs}))
            with pytest.raises(ArgumentError, match=r"numcodecs\.pickle"):
                read_points(tmp_path / "y.zarr")

    def test_sizes_are_checked_before_anything_is_read(self, zarr, tmp_path):
        self.written(zarr, tmp_path / "x.zarr", UPPER)
        about = tmp_path / "x.zarr/zarr.json"
        found = json.loads(about.read_text())
        grid = {"name": "regular", "configuration": {"chunk_shape": [1 << 30, 1 << 30]}}
        for change in ({"shape": [1 << 40, 6]}, {"chunk_grid": grid}):
            about.write_text(json.dumps(found | change))
            with pytest.raises(ArgumentError, match="max_bytes"):
                read_points(tmp_path / "x.zarr")

    def test_damaged_stores_end_in_our_errors(self, zarr, tmp_path):
        self.written(zarr, tmp_path / "x.zarr", UPPER)
        rng = np.random.default_rng(0)
        files = [path for path in (tmp_path / "x.zarr").rglob("*") if path.is_file()]
        whole = {path: path.read_bytes() for path in files}
        for _ in range(120):
            path = files[rng.integers(len(files))]
            content = bytearray(whole[path])
            for place in rng.integers(0, len(content), size=3):
                content[place] = rng.integers(256)
            path.write_bytes(bytes(content[: rng.integers(len(content) + 1)] if rng.random() < 0.3 else content))
            with warnings.catch_warnings():
                # zarr tells of metadata that it does not know
                warnings.simplefilter("ignore")
                with contextlib.suppress(DPManifoldsError):
                    assert read_points(tmp_path / "x.zarr", max_bytes=1 << 20).dtype.kind in "biufc"
            path.write_bytes(whole[path])
        (tmp_path / "empty.zarr").mkdir()
        with pytest.raises(ArgumentError, match="several arrays"):
            read_points(tmp_path / "empty.zarr")
        (tmp_path / "x.zarr.zip").write_bytes(b"PK")
        with pytest.raises(ArgumentError, match="cannot be read as a Zarr store"):
            read_points(tmp_path / "x.zarr.zip")


CHANNELS = ["Fz", "Cz", "Pz", "EOG"]


@pytest.mark.needs("mne")
class TestFif:
    """Covariances and epochs of MNE."""

    @pytest.fixture
    def mne(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return pytest.importorskip("mne")

    def covariance(self, mne, path, matrix, names=CHANNELS):
        mne.Covariance(matrix, list(names), bads=[], projs=[], nfree=100).save(path, verbose="error")
        return path

    def epochs(self, mne, path, data):
        info = mne.create_info(CHANNELS, 100.0, ["eeg", "eeg", "eeg", "eog"], verbose="error")
        mne.EpochsArray(data, info, verbose="error").save(path, verbose="error")
        return path

    def trials(self, seed, count=20):
        return 1e-5 * np.random.default_rng(seed).standard_normal((count, 4, 150))

    def test_a_covariance_file_is_one_record(self, mne, tmp_path):
        matrix = 1e-11 * SPD(4).random_point(rng=0)
        path = self.covariance(mne, tmp_path / "sub-1-cov.fif", matrix)
        assert np.allclose(read_points(path, manifold=SPD(4)), matrix[None], rtol=1e-12)
        chosen = read_points(path, picks=["Pz", "Fz"])
        assert np.allclose(chosen, matrix[np.ix_([2, 0], [2, 0])][None], rtol=1e-12)
        diagonal = self.covariance(mne, tmp_path / "d-cov.fif", np.array([1.0, 2.0, 3.0, 4.0]))
        assert np.array_equal(read_points(diagonal), np.diag([1.0, 2.0, 3.0, 4.0])[None])
        for picks in (["Fz", "Oz"], ["Fz", "Fz"], []):
            with pytest.raises(ArgumentError, match="picks must name channels"):
                read_points(path, picks=picks)
        with pytest.raises(ArgumentError, match="knows no types"):
            read_points(path, picks="eeg")

    def test_epochs_give_one_covariance_each(self, mne, tmp_path):
        data = self.trials(0)
        path = self.epochs(mne, tmp_path / "sub-1-epo.fif", data)
        expected = np.stack([np.cov(trial, ddof=0) for trial in data])
        # files hold single precision
        assert np.allclose(read_points(path), expected, rtol=1e-4, atol=1e-15)
        assert np.allclose(read_points(path, picks="eeg"), expected[:, :3, :3], rtol=1e-4, atol=1e-15)
        with pytest.raises(ArgumentError, match="one of 'eeg', 'eog'; got 'mag'"):
            read_points(path, picks="mag")
        with pytest.raises(ArgumentError, match="max_bytes"):
            read_points(path, max_bytes=1000)

    def test_other_and_damaged_files_are_refused(self, mne, tmp_path):
        (tmp_path / "x-raw.fif").write_bytes(b"x")
        with pytest.raises(ArgumentError, match=r"must end in -cov\.fif"):
            read_points(tmp_path / "x-raw.fif")
        for source in (
            self.covariance(mne, tmp_path / "a-cov.fif", SPD(4).random_point(rng=0)),
            self.epochs(mne, tmp_path / "a-epo.fif", self.trials(0, 3)),
        ):
            whole, rng = source.read_bytes(), np.random.default_rng(0)
            for _ in range(30):
                content = bytearray(whole[: rng.integers(1, len(whole) + 1)] if rng.random() < 0.5 else whole)
                for place in rng.integers(0, len(content), size=6):
                    content[place] = rng.integers(256)
                source.write_bytes(bytes(content))
                try:
                    read_points(source)
                except DPManifoldsError:
                    continue

    def test_the_command_line_puts_the_channels_of_all_files_in_one_order(self, mne, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        # a channel of its own size each: a mixed-up order shows
        matrix = np.diag([1.0, 4.0, 9.0, 16.0]) * 1e-12
        for person in range(30):
            order = np.random.default_rng(person).permutation(4)
            names = [CHANNELS[place] for place in order]
            self.covariance(mne, tmp_path / f"sub-{person:02}-cov.fif", matrix[np.ix_(order, order)], names)
        files = " ".join(f"sub-{person:02}-cov.fif" for person in range(30))
        line = (
            f"mean {files} --picks Fz,Cz,Pz,EOG --unit-scale 1e12 --center 4*I --radius 4 --epsilon 500 --yes --out out"
        )
        outcome = type_line(line)
        assert outcome.exit_code == 0, outcome.stderr
        value = np.load(tmp_path / "out/release.npz")["value"]
        assert np.allclose(np.diag(value), [1, 4, 9, 16], rtol=0.5)

    def test_the_command_line_counts_persons_where_each_file_is_one(self, mne, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        for person in range(6):
            self.epochs(mne, tmp_path / f"sub-{person}-epo.fif", self.trials(person))
        files = " ".join(f"sub-{person}-epo.fif" for person in range(6))
        line = f"mean {files} --picks eeg --unit-scale 1e12 --center 100*I --radius 2 --epsilon 9 --yes"
        by_epoch, by_person = type_line(f"{line} --out a"), type_line(f"{line} --group-by files --out b")
        assert by_epoch.exit_code == by_person.exit_code == 0, by_epoch.stderr + by_person.stderr
        found = [json.loads((tmp_path / folder / "release.json").read_text()) for folder in "ab"]
        assert [each["n"] for each in found] == [120, 6]
        assert [each["guarantee"]["unit"] for each in found] == ["epoch", "person"]
        assert "an epoch, not a person" in " ".join(by_epoch.stderr.split())
        assert "an epoch" not in by_person.stderr
