"""Image files and their headers, without decoding.

`listing` finds files, `scan` recognises images by their bytes (`content`), `headers` reads size and colours, `survey`
summarises a folder. An `entry` is the record of one file; `images` holds all of them as columns.
"""
