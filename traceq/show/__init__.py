"""One renderer for each way to show a result; nothing here knows where rows come from."""
