"""`traceq reclassify`."""

from __future__ import annotations

from pathlib import Path

import click

from traceq import query
from traceq.cli.options import Output, output_options, rules_option, store_option
from traceq.show import narrate
from traceq.store import files, rules

EPILOG = """
\b
Examples:
  traceq reclassify
  traceq reclassify --rules rules.toml

\b
A file of rules (TOML; or CSV with the same names as header):
  [[rule]]
  pattern = "my_fused_attn"     # regular expression, looked for anywhere in the name
  category = "attention"
  origin = "custom"             # optional; so are the following
  decisive = true               # false: the operator that launched the kernel knows better
  applies_to = "kernel"         # or "op": names of operators

\b
Rules are tried by priority, smallest first; a user's begin at 1, before the built-in ones (from 1000 on). The file
takes the place of the user's rules that the store has; `traceq sql "FROM rules"` shows them all.
"""


@click.command("reclassify", epilog=EPILOG)
@rules_option
@store_option
@output_options
def command(rules_file: Path | None, store: Path | None, output: Output) -> int:
    """Apply the rules to the kernels of the store again, without reading any trace.

    The built-in rules are those of this version, the user's those of --rules, else of the configuration folder, else
    those that the store has. Shows the categories as they are now.
    """
    path = files.store_path(store)
    wanted = rules.read(rules_file) if rules_file else None
    files.open_store(path).close()
    with files.publishing(path) as con:
        rules.replace_built_in(con)
        if wanted is not None:
            rules.replace_users(con, wanted)
        changed = rules.reclassify(con)
    with files.open_store(path) as con:
        output.write(query.run(con, query.load("categories"), {}, output.limit))
    if not output.is_quiet:
        narrate.note(f"{changed:,} kernels changed their category or origin")
    return 0
