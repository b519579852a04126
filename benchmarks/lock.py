"""Write locked.txt: every version of constraints.txt with the SHA-256 of each of its files, for pip's --require-hashes.

It asks the index that pip is set up with. Torch is the one exception: it is often a build that was found locally (the
CPU build, of another place), whose hash no index knows, so its line has none.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pip._internal.commands import create_command

ROOT = Path(__file__).parent.parent
LOCAL = "torch"
HEADER = f"""\
# constraints.txt with hashes, written by benchmarks/lock.py. pip installs no folder while constraints have hashes, so
# that they have a file of their own: pip install --no-deps --require-hashes -r locked.txt
# Not here: {LOCAL}. Its CPU build comes from another place than all else, and its hash depends on that place.
"""


def hashes(names: dict[str, str]) -> dict[str, list[str]]:
    """The hashes of all files of each version."""
    command: Any = create_command("download")
    options, _ = command.parse_args(["--no-deps", "x"])
    found: dict[str, list[str]] = {}
    with command.main_context():
        finder = command._build_package_finder(options, command.get_default_session(options))
        links: Any = finder._link_collector
        for name, version in names.items():
            pages = links.collect_sources(name, candidates_from_page=list)
            files = [link for source in pages.index_urls if source for link in _links(links, source)]
            wanted = [link for link in files if _version(link.filename, name) == version]
            found[name] = sorted({link.hash for link in wanted if link.hash_name == "sha256"})
    return found


def _links(collector: Any, source: Any) -> list[Any]:
    from pip._internal.index.collector import parse_links

    page = collector.fetch_response(source.link)
    return [] if page is None else list(parse_links(page))


def _version(file: str, name: str) -> str | None:
    """The version in the name of a wheel or of a source archive."""
    from pip._vendor.packaging.utils import parse_sdist_filename, parse_wheel_filename

    try:
        parsed = parse_wheel_filename(file) if file.endswith(".whl") else parse_sdist_filename(file)
    except ValueError:
        return None
    return str(parsed[1])


def main() -> None:
    """Write the file."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    names = dict(line.split("==") for line in lines if line and not line.startswith(("#", LOCAL + "==")))
    found = hashes(names)
    missing = [name for name, known in found.items() if not known]
    if missing:
        raise SystemExit(f"No hashes for {', '.join(missing)}: nothing is written.")
    texts = [
        f"{name}=={version} {' '.join(f'--hash=sha256:{one}' for one in found[name])}"
        for name, version in names.items()
    ]
    (ROOT / "locked.txt").write_text(HEADER + "\n".join(texts) + "\n")
    print(f"locked.txt: {len(names)} packages, {sum(map(len, found.values()))} files")


if __name__ == "__main__":
    main()
