"""An asset is there whole or not at all, and is the file that was pinned."""

from __future__ import annotations

import os
import stat
import time
import zipfile
from dataclasses import replace

import pytest

from dse.errors import PluginError
from dse.resources.asset import assets_folder
from dse.resources.install import install, remove, unpack

FILES = {"tiny/text.txt": b"seven words of text are enough here\n"}


@pytest.mark.slow
def test_an_installed_asset_has_the_files_of_its_wheel(cache, make_wheel):
    asset = make_wheel(FILES)
    assert install(asset)
    assert (asset.folder / "tiny/text.txt").read_bytes() == FILES["tiny/text.txt"]
    assert [path.name for path in cache.iterdir()] == ["tiny-1.0"]


@pytest.mark.slow
def test_what_is_there_already_is_not_fetched_again(cache, make_wheel, index):
    asset = make_wheel(FILES)
    install(asset)
    (index / asset.wheel).unlink()
    assert not install(asset)
    assert asset.installed


@pytest.mark.slow
def test_a_removed_asset_is_gone_and_can_be_installed_again(cache, make_wheel):
    asset = make_wheel(FILES)
    install(asset)
    assert remove(asset)
    assert list(cache.iterdir()) == []
    assert install(asset)


def test_removing_what_is_not_there_says_so(cache, make_wheel):
    assert not remove(make_wheel(FILES))


@pytest.mark.slow
def test_another_file_than_the_pinned_one_is_not_unpacked(cache, make_wheel):
    asset = replace(make_wheel(FILES), sha256="0" * 64)
    with pytest.raises(PluginError, match="is not the file that was pinned"):
        install(asset)
    assert list(cache.iterdir()) == []


@pytest.mark.slow
def test_a_version_that_the_index_lacks_is_told_in_pips_words(cache, make_wheel):
    asset = replace(make_wheel(FILES), version="2.0", wheel="tiny_data-2.0-py3-none-any.whl")
    with pytest.raises(PluginError, match=r"No matching distribution found for tiny-data==2\.0"):
        install(asset)
    assert list(cache.iterdir()) == []


@pytest.mark.slow
def test_an_index_with_another_wheel_of_the_version_is_told(cache, make_wheel):
    asset = replace(make_wheel(FILES), wheel="tiny_data-1.0-py2.py3-none-any.whl")
    with pytest.raises(PluginError, match=r"another file for tiny-data 1\.0: tiny_data-1\.0-py3"):
        install(asset)
    assert list(cache.iterdir()) == []


@pytest.mark.slow
def test_the_bytes_that_arrive_end_at_the_size_of_the_wheel(cache, make_wheel):
    asset = make_wheel({"tiny/noise.bin": os.urandom(3_000_000)})
    arrived = []
    install(asset, arrived.append)
    assert arrived == sorted(arrived)
    assert arrived[-1] == asset.size_bytes


@pytest.mark.parametrize(
    "name", ["../outside.txt", "tiny/../../outside.txt", "/outside.txt", "..\\outside.txt", "c:x"]
)
def test_an_entry_that_would_lie_outside_stops_all_before_the_first_file(tmp_path, name):
    wheel = tmp_path / "bad.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny/text.txt", b"harmless")
        archive.writestr(name, b"outside")
    with pytest.raises(PluginError, match="could lie outside its folder"):
        unpack(wheel, tmp_path / "files")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.whl"]


def test_a_link_in_a_wheel_is_refused(tmp_path):
    wheel = tmp_path / "bad.whl"
    link = zipfile.ZipInfo("tiny/link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(link, "/etc")
    with pytest.raises(PluginError, match="could lie outside its folder"):
        unpack(wheel, tmp_path / "files")


def test_a_cut_wheel_is_no_wheel(tmp_path, make_wheel, index):
    asset = make_wheel(FILES)
    whole = (index / asset.wheel).read_bytes()
    (tmp_path / "cut.whl").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(PluginError, match=r"cut\.whl cannot be unpacked"):
        unpack(tmp_path / "cut.whl", tmp_path / "files")


def test_a_cache_that_is_no_folder_is_one_clear_error(tmp_path, monkeypatch, make_wheel):
    asset = make_wheel(FILES)
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("DSE_CACHE", str(tmp_path / "file"))
    with pytest.raises(PluginError, match=r"'tiny' cannot be stored: .*Not a directory") as caught:
        install(asset)
    assert "DSE_CACHE" in caught.value.hint


@pytest.mark.slow
def test_drafts_of_killed_processes_are_swept_after_a_day(cache, make_wheel):
    old, young = cache / ".draft-old", cache / ".draft-young"
    old.mkdir(parents=True)
    young.mkdir()
    os.utime(old, (time.time() - 90_000,) * 2)
    install(make_wheel(FILES))
    assert not old.exists()
    assert young.exists()


def test_what_is_missing_is_told_with_the_command_that_gets_it(cache, make_wheel):
    with pytest.raises(PluginError, match="a test needs the asset 'tiny': one line") as caught:
        make_wheel(FILES).check_installed()
    assert caught.value.hint == "dse assets install tiny"
    assert assets_folder() == cache
