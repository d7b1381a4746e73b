"""From files that profilers wrote to base tables: `pipeline.ingest` is the way in."""
