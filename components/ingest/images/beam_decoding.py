"""Decodes chunks of photos on Beam's workers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import apache_beam as beam

from components.ingest.images import chunks
from components.ingest.images.chunks import Chunk, Decoding


@dataclasses.dataclass(frozen=True)
class BeamDecoder:
    """Decodes every chunk in one Beam pipeline.

    Only names and small facts pass through Beam. Photos go from a worker straight into the work folder, which every
    worker has to see.

    Attributes:
        make_pipeline: Returns a new beam.Pipeline with the run's flags.
    """

    make_pipeline: Callable[[], Any]

    def __call__(self, pieces: Sequence[Chunk], decoding: Decoding) -> None:
        """Decodes the chunks; returns once all of them are done."""
        with self.make_pipeline() as pipeline:
            _ = (
                pipeline
                # Create spreads its elements over the workers by itself.
                | "Chunks" >> beam.Create(list(pieces))
                | "Decode" >> beam.ParDo(_DecodeChunk(decoding))
            )


class _DecodeChunk(beam.DoFn):
    """Decodes one chunk; its output is in the work folder."""

    def __init__(self, decoding: Decoding) -> None:
        super().__init__()
        self._decoding = decoding

    def process(self, element: Chunk) -> None:
        chunks.decode_chunk(element, self._decoding)
