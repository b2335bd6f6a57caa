"""Whatever the source does, the cache holds whole, verified files or none."""

import gzip
import hashlib
import http.server
import io
import os
import subprocess
import sys
import tarfile
import threading
import zipfile

import pytest

from edgewise.core.errors import EdgewiseError
from edgewise.core.files import write_atomically
from edgewise.data.archives import gunzip
from edgewise.data.catalogue import CATALOGUE, DataFile, Dataset, Edition, dataset
from edgewise.data.store import fetch, open_files, verify

WORDS, LINKS = b"a\t1\nb\t0\n", b"a\tb\n"


def sha256(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def toy(*addresses: str) -> Dataset:
    files = (
        DataFile("content", (Edition("toy/toy.content", sha256(WORDS), len(WORDS)),)),
        DataFile("cites", (Edition("toy/toy.cites", sha256(LINKS), len(LINKS)),)),
    )
    return Dataset("toy", "citation", "two papers", files, addresses, "nobody", "none")


@pytest.fixture
def mirror(own_cache, tmp_path, monkeypatch):
    folder = tmp_path / "mirror"
    (folder / "toy").mkdir(parents=True)
    (folder / "toy" / "toy.content.gz").write_bytes(gzip.compress(WORDS))
    (folder / "toy" / "toy.cites").write_bytes(LINKS)
    monkeypatch.setenv("EDGEWISE_DATA", str(folder))
    monkeypatch.setitem(CATALOGUE, "toy", toy("http://127.0.0.1:9/toy.tgz"))
    return folder


@pytest.fixture
def serve(own_cache, monkeypatch):
    """Serve bytes by path from this machine; a second item in a value is a false length."""
    pages: dict[str, tuple[bytes, int]] = {}
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            if self.path not in pages:
                self.send_error(404)
                return
            body, length = pages[self.path]
            self.send_response(200)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()

    def publish(path: str, body: bytes, length: int | None = None) -> None:
        pages[path] = (body, len(body) if length is None else length)
        address = f"http://127.0.0.1:{server.server_port}{path}"
        known = CATALOGUE["toy"].addresses if "toy" in CATALOGUE else ()
        monkeypatch.setitem(CATALOGUE, "toy", toy(*known, address))

    publish.asked = asked
    yield publish
    server.shutdown()
    thread.join()
    server.server_close()


def tar_of(members: dict[str, bytes], link: str | None = None) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        if link is not None:
            entry = tarfile.TarInfo(link)
            entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(entry)
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def test_a_mirror_serves_packed_and_plain_files_in_place(mirror, own_cache):
    files = open_files("toy")
    assert files["content"].data == WORDS
    assert files["cites"].path == mirror / "toy" / "toy.cites"
    assert not own_cache.exists()


def test_fetching_copies_the_mirror_into_the_cache(mirror, own_cache, monkeypatch):
    assert "EDGEWISE_DATA" in fetch("toy")
    monkeypatch.delenv("EDGEWISE_DATA")
    assert open_files("toy")["content"].path == own_cache / "toy" / "toy.content"
    assert fetch("toy") == f"the cache {own_cache}"


def test_a_damaged_mirror_file_is_named_with_its_checksum(mirror):
    (mirror / "toy" / "toy.cites").write_bytes(b"a\tB\n")
    with pytest.raises(EdgewiseError, match=r"toy\.cites \(4 bytes\) does not match its checksum"):
        open_files("toy")


def test_a_truncated_gzip_is_named(mirror):
    path = mirror / "toy" / "toy.content.gz"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(EdgewiseError, match=r"toy\.content\.gz is not a complete gzip file"):
        open_files("toy")


def test_a_damaged_cache_file_gives_way_to_the_mirror_aloud(mirror, own_cache, caplog):
    fetch("toy")
    (own_cache / "toy" / "toy.cites").write_bytes(b"half")
    assert open_files("toy")["cites"].data == LINKS
    assert "does not match its checksum" in caplog.text
    assert "another copy is used" in caplog.text
    fetch("toy")
    assert (own_cache / "toy" / "toy.cites").read_bytes() == LINKS


def test_an_archive_is_unpacked_from_a_public_address(serve, own_cache):
    serve("/toy.tgz", tar_of({"toy/toy.content": WORDS, "toy/toy.cites": LINKS}))
    seen = []
    fetch("toy", lambda *step: seen.append(step))
    assert open_files("toy")["cites"].data == LINKS
    assert seen[-1][1] == seen[-1][2]  # the bar ends full


@pytest.mark.slow
def test_no_member_of_an_archive_escapes_the_folder(serve, own_cache, tmp_path):
    members = {"../../../toy.content": WORDS, "/toy.cites": LINKS, "../../evil": b"x"}
    serve("/toy.tgz", tar_of(members, link="elsewhere/toy.cites"))
    fetch("toy")
    written = sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*") if p.is_file())
    assert [str(p) for p in written] == ["cache/toy/toy.cites", "cache/toy/toy.content"]


def test_a_zip_member_escapes_no_more_than_a_tar_member(serve, own_cache, tmp_path):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("../../toy.content", WORDS)
        archive.writestr("C:/x/toy.cites", LINKS)
    serve("/toy.zip", out.getvalue())
    fetch("toy")
    assert len([p for p in tmp_path.rglob("*") if p.is_file()]) == 2


def test_a_connection_that_breaks_off_is_retried_then_left_for_the_next_address(serve, own_cache):
    whole = tar_of({"toy.content": WORDS, "toy.cites": LINKS})
    serve("/cut.tgz", whole[:50], length=len(whole))
    serve("/toy.tgz", whole)
    assert fetch("toy").endswith("/toy.tgz")
    assert serve.asked == ["/cut.tgz", "/cut.tgz", "/toy.tgz"]


@pytest.mark.slow
def test_when_nothing_serves_the_message_names_all_that_was_tried_and_the_cure(serve, own_cache):
    serve("/other.tgz", tar_of({"toy.content": b"other", "toy.cites": LINKS}))
    serve("/broken.tgz", b"\x1f\x8bnot an archive")
    serve("/empty.zip", b"")
    CATALOGUE["toy"] = toy(
        *dataset("toy").addresses, "http://127.0.0.1:9/gone.tgz", "http://127.0.0.1:9/again.tgz"
    )
    with pytest.raises(EdgewiseError) as caught:
        open_files("toy")
    message = str(caught.value)
    assert "other.tgz: toy.content (5 bytes) does not match its checksum" in message
    assert "broken.tgz is not a complete archive" in message
    assert "gone.tgz: not reached" in message
    assert "again.tgz" not in message  # its host has been silent once already
    assert message.endswith("below it: toy/toy.content, toy/toy.cites")
    assert not list(own_cache.rglob("*"))


def test_a_zip_bomb_ends_early(monkeypatch):
    monkeypatch.setattr("edgewise.data.archives.LARGEST", 1000)
    with pytest.raises(EdgewiseError, match="unpacks to more than"):
        gunzip(gzip.compress(b"0" * 5000), "bomb.gz")


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(EdgewiseError, match="no data set named 'corra'; the names are cora"):
        dataset("corra")


def test_a_git_blob_id_is_a_checksum_too():
    edition = Edition("x", "git:ce013625030ba8dba906f756967f9e9ca394464a")
    assert verify(b"hello\n", edition)
    assert not verify(b"hello", edition)


def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(EdgewiseError, match=r"cannot write .*choose another place"):
        write_atomically(tmp_path / "file" / "below", b"x")


def test_a_write_that_fails_leaves_the_old_file_and_no_scrap(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full_disk)
    with pytest.raises(EdgewiseError, match="No space left"):
        write_atomically(path, b"new")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
    assert path.read_bytes() == b"old"


FETCH_OVER_AND_OVER = """
import sys
from edgewise.data.catalogue import CATALOGUE, DataFile, Dataset, Edition
from edgewise.data.store import cache_folder, fetch, open_files
file = DataFile("content", (Edition("toy/big", sys.argv[1], None),))
CATALOGUE["toy"] = Dataset("toy", "citation", "", (file,), ("http://127.0.0.1:9/",), "", "")
for _ in range(25):
    (cache_folder() / "toy" / "big").unlink(missing_ok=True)
    fetch("toy")
    assert len(open_files("toy")["content"].data) == 2_000_000
"""


@pytest.mark.slow
def test_two_processes_may_fetch_the_same_data_set_at_once(own_cache, tmp_path):
    data = os.urandom(2_000_000)
    (tmp_path / "mirror" / "toy").mkdir(parents=True)
    (tmp_path / "mirror" / "toy" / "big").write_bytes(data)
    command = [sys.executable, "-c", FETCH_OVER_AND_OVER, sha256(data)]
    environment = {**os.environ, "EDGEWISE_DATA": str(tmp_path / "mirror")}
    both = [
        subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    errors = [process.communicate(timeout=60)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], errors
    assert errors == ["", ""]  # nobody saw a file that is not whole
    assert [p.name for p in (own_cache / "toy").iterdir()] == ["big"]
    assert (own_cache / "toy" / "big").read_bytes() == data
