"""One screen a file; each is a `traceq.tui.view.View`, and `traceq.tui.app.SCREENS` lists them."""
