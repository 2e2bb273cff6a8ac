"""Image files: which there are and what their headers say, without decoding one.

In the order an image passes: `listing` finds its file, `scan` tells by the bytes of `content` that it is an image,
`headers` reads its size and colours, `survey` compares it with the others. An `entry` is what is known of it so far.
"""
