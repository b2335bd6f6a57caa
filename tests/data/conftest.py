import pytest

from edgewise.core.errors import EdgewiseError
from edgewise.data.store import open_files


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """An empty cache, no mirror, no proxy: the store sees only what the test gives it."""
    monkeypatch.setenv("EDGEWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("EDGEWISE_DATA", raising=False)
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "cache"


@pytest.fixture(scope="session")
def need():
    """Skip a test, with the reason, where its data set is unavailable."""

    def check(name: str) -> None:
        try:
            open_files(name)
        except EdgewiseError as error:
            pytest.skip(f"{name} is unavailable here: {error}")

    return check
