"""DataGate: stops a run whose data breaks the schema, has drifted, or differs between its splits."""
