"""What SQL cannot say: noise, matching of kernels, ceilings. Everything starts from rows of `queries/`."""
