"""The example of five sites: each way has a row, and the figure is drawn."""

from __future__ import annotations

from examples import five_sites


def test_each_way_is_told(tmp_path, capsys):
    five_sites.main(tmp_path)
    told = capsys.readouterr().out
    for way in ("one trusted place", "secure sum, t = 1", "answers in plain", "each site alone"):
        assert f"\n{way}" in told
    assert "1 to the coordinator with up to 1 other site(s)" in told
    assert "Do the two treatments differ?" in told
    assert (tmp_path / "five_sites.png").stat().st_size > 0
