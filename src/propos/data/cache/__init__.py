"""Decoded images kept on the disk, so that training decodes each once.

In the order an image passes: `limit` says whether there is room, `building` appends its pixels to an unfinished cache,
`images` maps the finished one. `store` knows where all caches are, locks, lists and removes them.
"""
