"""`python -m traceq`."""

from traceq.cli import main

if __name__ == "__main__":
    main()
