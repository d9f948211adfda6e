"""What every stage says of itself, so that it can be planned without TFX and built with it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from core.settings import Settings

# Where an input comes from: "<node id>.<output key>".
Source = str
Channels = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class RunFacts:
    """What a stage may know about the run it is built for, besides the settings.

    Attributes:
        run_id: Name of the run.
        source_digest: Content digest of the input files.
        digests: Named content digests for the manifest (`data`, `code`, `settings`).
        accept_new_baseline: Reason why a missing or incompatible baseline may be passed over; None otherwise.
    """

    run_id: str = ""
    source_digest: str = ""
    digests: Mapping[str, str] = dataclasses.field(default_factory=dict)
    accept_new_baseline: str | None = None


@dataclasses.dataclass(frozen=True)
class Stage:
    """One node of the graph.

    Attributes:
        id: Node id: TFX's own or one of ours; people read it in ML Metadata, logs and the Kubeflow UI.
        inputs: Input key to its source.
        build: Makes the TFX node from the settings, the run's facts and the input channels; imports TFX itself.
        settings: Returns the settings that decide the node's result, JSON-serializable. They enter its cache key.
        code: Dotted modules whose content, with the project modules they import, enters the cache key.
        after: Nodes that must have passed although none of their outputs is read.
        summary: Returns the one number that matters from {output key: directory}; reads plain files only.
        refusal: Returns why the run must stop after this node, from its output directories; "" when it may go on.
        publication: Returns what this node published: `version`, `path`, `reused`, `warnings`, and `serving` when
            servers load another version. {} for nothing.
        facts: Names of the RunFacts that decide the node's result; they enter its cache key.
        still_good: Returns why earlier outputs that are all there may yet not be reused; "" when they may.
        resolves: The kind of baseline that this node looks up in ML Metadata; None for a node that computes.
    """

    id: str
    inputs: Mapping[str, Source]
    build: Callable[[Settings, RunFacts, Channels], Any]
    settings: Callable[[Settings], Mapping[str, Any]] = lambda settings: {}
    code: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    summary: Callable[[Mapping[str, str]], str] = lambda outputs: ""
    refusal: Callable[[Mapping[str, str]], str] = lambda outputs: ""
    publication: Callable[[Settings, Mapping[str, str]], Mapping[str, Any]] = lambda settings, outputs: {}
    facts: tuple[str, ...] = ()
    still_good: Callable[[Settings, Mapping[str, str]], str] = lambda settings, outputs: ""
    resolves: str | None = None

    def upstream(self) -> list[str]:
        """Returns the ids of the nodes that must be finished before this one, each once."""
        return list(dict.fromkeys([source.partition(".")[0] for source in self.inputs.values()] + list(self.after)))


def dump(section: Any) -> Any:
    """Returns a settings section as JSON values, with the key names that people type."""
    return section.model_dump(mode="json", by_alias=True)
