"""The store: its tables, the SQL that derives the hard facts, and how its file is opened, locked and published."""
