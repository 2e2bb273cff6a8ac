"""Image files to squares of bytes: `decode` one image, in a `worker` process, one of the many of a `pool`."""
