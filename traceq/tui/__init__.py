"""The terminal interface: screens that draw what queries answer. The only part that imports textual."""
