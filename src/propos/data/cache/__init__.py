"""The cache on disk: decoded images, so that each is decoded once, and indexes of folders, so that each is read once.

`limit` checks the available space, `builder` appends pixels to an unfinished cache, `images` reads a finished one,
`index` keeps scans, and `store` locates, locks, lists and removes caches.
"""
