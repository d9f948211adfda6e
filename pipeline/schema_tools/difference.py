"""What a proposed schema would change, one sentence a change."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import ConfigError

if TYPE_CHECKING:
    from tensorflow_metadata.proto.v0 import schema_pb2

_LISTED_VALUES = 5


@dataclasses.dataclass(frozen=True)
class Change:
    """One difference.

    Attributes:
        action: added, removed or changed.
        feature: Name of the feature.
        aspect: What of it: feature, type, presence, values, domain, lifecycle or other.
        before: The curated side in words; empty for an added feature.
        after: The proposed side in words; empty for a removed feature.
    """

    action: str
    feature: str
    aspect: str
    before: str
    after: str

    def to_dict(self) -> dict[str, str]:
        """Returns the JSON form."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        """Returns one line: a sign, the feature and what happens to it."""
        sign = {"added": "+", "removed": "-", "changed": "~"}[self.action]
        if self.action == "changed":
            return f"{sign} {self.feature}: {self.aspect} {self.before} -> {self.after}"
        return f"{sign} {self.feature}: {self.before or self.after}"


def compare(curated: schema_pb2.Schema, proposed: schema_pb2.Schema) -> list[Change]:
    """Returns every difference between two schemas, ordered by feature."""
    before, after = _features(curated), _features(proposed)
    listed, relisted = _values(curated), _values(proposed)
    changes = []
    for name in sorted({*before, *after}):
        if name not in before:
            changes.append(Change("added", name, "feature", "", _summary(after[name])))
        elif name not in after:
            changes.append(Change("removed", name, "feature", _summary(before[name]), ""))
        else:
            old, new = before[name], after[name]
            changes += _aspects(name, old, new, _exchanged(listed[name], relisted[name]))
    return changes


def render(changes: list[Change]) -> str:
    """Returns the differences as text, one a line, with a count at the end."""
    if not changes:
        return "no difference: the proposed schema equals the curated one"
    counts = {action: sum(change.action == action for change in changes) for action in ("added", "removed", "changed")}
    total = ", ".join(f"{number} {action}" for action, number in counts.items() if number)
    return "\n".join([*(str(change) for change in changes), total])


def _aspects(name: str, old: dict[str, str], new: dict[str, str], exchanged: str) -> list[Change]:
    """Returns what differs in a feature that both schemas have; `exchanged` tells the values that came and went."""
    after = {**new, "domain": new["domain"] + exchanged}
    return [
        Change("changed", name, aspect, old[aspect], after[aspect]) for aspect in old if old[aspect] != after[aspect]
    ]


def _exchanged(old: list[str], new: list[str]) -> str:
    """Returns which values of two lists came and went, in words; empty when either list is empty or they agree."""
    if not old or not new or set(old) == set(new):
        return ""
    came, went = [value for value in new if value not in old], [value for value in old if value not in new]
    parts = [f"{word} {', '.join(map(repr, values))}" for word, values in (("with", came), ("without", went)) if values]
    return f" ({'; '.join(parts)})"


def _values(schema: schema_pb2.Schema) -> dict[str, list[str]]:
    """Returns {feature: the texts that it may hold}; an empty list where the schema lists none."""
    domains = {domain.name: list(domain.value) for domain in schema.string_domain}
    return {item.name: domains.get(item.domain, list(item.string_domain.value)) for item in schema.feature}


def _summary(feature: dict[str, str]) -> str:
    return ", ".join(f"{aspect} {text}" for aspect, text in feature.items() if text != "none")


def _features(schema: schema_pb2.Schema) -> dict[str, dict[str, str]]:
    """Returns {feature: {aspect: words}}."""
    domains = {domain.name: list(domain.value) for domain in schema.string_domain}
    return {feature.name: _describe(feature, domains) for feature in schema.feature}


def _describe(feature: schema_pb2.Feature, domains: dict[str, list[str]]) -> dict[str, str]:
    """Returns one feature by aspect; a last aspect holds whatever the others do not name, so that nothing is hidden."""
    enums = type(feature).DESCRIPTOR.fields_by_name
    rest = type(feature)()
    rest.CopyFrom(feature)
    for field in ("name", "type", "presence", "value_count", "lifecycle_stage"):
        rest.ClearField(field)
    kind = feature.WhichOneof("domain_info")
    if kind in ("domain", "string_domain", "int_domain", "float_domain", "bool_domain"):
        rest.ClearField(kind)
    return {
        "type": enums["type"].enum_type.values_by_number[feature.type].name,
        "presence": _presence(feature),
        "count of values": _one_line(feature.value_count) if feature.HasField("value_count") else "none",
        "domain": _domain(feature, domains),
        "lifecycle": (
            enums["lifecycle_stage"].enum_type.values_by_number[feature.lifecycle_stage].name
            if feature.lifecycle_stage
            else "none"
        ),
        "other": _one_line(rest) or "none",
    }


def _presence(feature: schema_pb2.Feature) -> str:
    presence = feature.presence
    if presence.min_fraction:
        return f"in at least {100 * presence.min_fraction:g} % of the rows"
    return f"in at least {presence.min_count} rows" if presence.min_count else "none"


def _domain(feature: schema_pb2.Feature, domains: dict[str, list[str]]) -> str:
    kind = feature.WhichOneof("domain_info")
    if kind in ("int_domain", "float_domain"):
        domain = feature.int_domain if kind == "int_domain" else feature.float_domain
        if not domain.HasField("min") and not domain.HasField("max"):
            return "any number" + (" (codes)" if kind == "int_domain" and domain.is_categorical else "")
        low = f"{domain.min:.10g}" if domain.HasField("min") else "-inf"
        high = f"{domain.max:.10g}" if domain.HasField("max") else "inf"
        codes = " (codes)" if kind == "int_domain" and domain.is_categorical else ""
        return f"{low} to {high}{codes}"
    if kind in ("domain", "string_domain"):
        return _listed(domains.get(feature.domain, []) if kind == "domain" else list(feature.string_domain.value))
    if kind == "bool_domain":
        return "boolean"
    return "none"


def _listed(values: list[str]) -> str:
    more = f" and {len(values) - _LISTED_VALUES} more" if len(values) > _LISTED_VALUES else ""
    return f"{len(values)} values: " + ", ".join(map(repr, values[:_LISTED_VALUES])) + more


def _one_line(message: object) -> str:
    return " ".join(str(message).split())


def refuse_another_table(curated: schema_pb2.Schema, proposed: schema_pb2.Schema, path: Path) -> None:
    """Refuses a proposal that would deprecate most of the curated columns: the data is of another table.

    Args:
        curated: The schema as it is kept.
        proposed: What the data made of it.
        path: The curated file, for the message.

    Raises:
        ConfigError: More than half of the curated columns would go.
    """
    known = {feature.name for feature in curated.feature if not _is_deprecated(feature)}
    lost = known & {feature.name for feature in proposed.feature if _is_deprecated(feature)}
    if 2 * len(lost) > len(known):
        raise ConfigError(
            f"{len(lost)} of its {len(known)} columns are not in this data: it describes another table",
            place=f"schema.path {path}",
            hint="Name a schema file of this table's own, or replace it with --from-scratch.",
        )


def _is_deprecated(feature: schema_pb2.Feature) -> bool:
    from tensorflow_metadata.proto.v0 import schema_pb2

    return bool(feature.lifecycle_stage == schema_pb2.DEPRECATED)
