"""The answers of `forebay models` as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core import label_map

_COLUMNS = ("VERSION", "STANDING", "PUSHED (UTC)", "BY", "SIZE", "METRICS")
_MOST_METRICS = 3
_MOST_FILES = 12


def listing(root: str, models: Sequence[Mapping[str, Any]]) -> str:
    """Returns the table of `models list`."""
    if not models:
        return f"nothing is pushed under {root}. `forebay run -c configs/taxi.yaml` pushes a first version."
    lines = []
    for model in models:
        lines.append(f"{model['project']}/{model['model']}  {model['location']}")
        rows = [_COLUMNS, *(_cells(row) for row in model["versions"])] if model["versions"] else []
        lines += _table(rows) or ["  no version that Forebay pushed"]
        lines += [f"  warning: {warning}" for warning in model["warnings"]]
    return "\n".join(lines)


def version(record: Mapping[str, Any]) -> str:
    """Returns the page of `models show`."""
    manifest = record["manifest"]
    lines = [
        f"{record['project']}/{record['model']} {record['version']}: {record['standing']}",
        f"  location   {record['location']}",
    ]
    if manifest is None:
        return "\n".join([*lines, f"  problem    {record['problem']}"])
    lines += [
        f"  pushed     {_moment(record['pushed_at'])} UTC by {_origin(record)}",
        f"  model      {record['model_digest'][:16]}, {len(manifest['files'])} files, {_size(record['size_bytes'])}",
    ]
    link = manifest["rollback"]
    if link:
        lines.append(f"  rollback   from {link['left_version']} to {link['source_version']}: {link['reason']}")
    lines += [f"  {'digest':<10} {name} {digest[:16]}" for name, digest in sorted(manifest["digests"].items())]
    lines += [f"  {'metric':<10} {name} {_number(value)}" for name, value in sorted(manifest["metrics"].items())]
    lines += _classes(record, manifest)
    lines += [f"  {'gate':<10} {gate.get('name')}: {gate.get('status')}" for gate in manifest["gates"]]
    lines += [f"  host       {_host(manifest['host'])}"] if manifest["host"] else []
    lines.append(f"  optimizer  {manifest['optimizer'] or 'none'}")
    files = sorted(manifest["files"].items())
    for path, entry in files[:_MOST_FILES]:
        lines.append(f"  {entry['sha256'][:12]}  {_size(entry['size_bytes']):>10}  {path}")
    if len(files) > _MOST_FILES:
        lines.append(f"  and {len(files) - _MOST_FILES} more files: --output json lists them all")
    return "\n".join(lines)


def changes(record: Mapping[str, Any]) -> str:
    """Returns the lines of `models diff`."""
    lines = [f"{record['project']}/{record['model']}: {record['before']} -> {record['after']}"]
    lines.append("  the model is the same" if record["same_model"] else "  the model differs")
    for group in ("metrics", "gates", "digests", "host"):
        for name, pair in record[group].items():
            delta = f" ({pair['delta']:+.4f})" if "delta" in pair else ""
            lines.append(f"  {group:<8} {name}: {_short(pair['before'])} -> {_short(pair['after'])}{delta}")
    for kind, paths in record["files"].items():
        lines += [f"  {'files':<8} {kind}: {path}" for path in paths]
    return "\n".join(lines)


def rolled_back(record: Mapping[str, Any]) -> str:
    """Returns the lines of `models rollback`."""
    lines = [
        f"{record['project']}/{record['model']} {record['version']}: the files of {record['source_version']} again",
        f"  left {record['left_version']}: {record['reason']}",
        f"  {record['location']}",
    ]
    lines += [f"  deleted old version {removed}" for removed in record["removed"]]
    lines += [f"  warning: {warning}" for warning in record["warnings"]]
    return "\n".join(lines)


def verification(record: Mapping[str, Any]) -> str:
    """Returns the lines of `models verify`."""
    lines = [f"{record['location']}"]
    for kind in ("changed", "missing", "unlisted"):
        lines += [f"  {kind}: {path}" for path in record[kind]]
    count = record["files"]
    verdict = f"{count} file{'s' * (count != 1)}: what was pushed" if record["intact"] else "not what was pushed"
    lines.append(f"  {verdict}")
    for name, pair in record["host"].items():
        lines.append(f"  other host: {name}: pushed on {_short(pair['pushed'])}, here {_short(pair['here'])}")
    return "\n".join(lines)


def _classes(record: Mapping[str, Any], manifest: Mapping[str, Any]) -> list[str]:
    """Returns what only a classifier has: the class it knows worst, and where the names of its outputs are."""
    worst = manifest["worst_class"]
    lines = []
    if worst:
        recall = f"recall {_number(worst['recall'])} of {worst['examples']} examples"
        lines.append(f"  {'worst':<10} {worst['label']}: {recall}")
    if label_map.FILE_NAME in manifest["files"]:
        lines.append(f"  {'label map':<10} {record['location']}/{label_map.FILE_NAME}")
    return lines


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    metrics = [f"{name} {_number(value)}" for name, value in sorted(row["metrics"].items())][:_MOST_METRICS]
    if row["problem"]:
        return (str(row["version"]), row["standing"], "", "", "", "")
    return (
        str(row["version"]),
        row["standing"],
        _moment(row["pushed_at"]),
        _origin(row),
        _size(row["size_bytes"]),
        ", ".join(metrics),
    )


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        "  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _host(host: Mapping[str, Any]) -> str:
    gpus = [gpu["name"] for gpu in host["gpus"]] or ["no GPU"]
    tensorrt = host["tensorrt"]["version"] or "absent"
    return ", ".join(
        [host["cpu"]["model"], *gpus, f"TensorFlow {host['versions']['tensorflow']}", f"TensorRT {tensorrt}"]
    )


def _origin(row: Mapping[str, Any]) -> str:
    if row["pushed_by"] == "rollback":
        return f"rollback to {row['source_version']}"
    return f"run {row['run_id']}".rstrip()


def _moment(text: str) -> str:
    return text.replace("T", " ").removesuffix("+00:00")


def _number(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _short(value: Any) -> str:
    text = _number(value)
    return text if len(text) <= 40 else f"{text[:16]}…"


def _size(size_bytes: int) -> str:
    size, unit = float(size_bytes), "B"
    for larger in ("KiB", "MiB", "GiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
