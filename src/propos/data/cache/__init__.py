"""The cache of decoded images on disk, so that each image is decoded once.

`limit` checks the available space, `building` appends pixels to an unfinished cache, `images` reads a finished one, and
`store` locates, locks, lists and removes caches.
"""
