"""Studio: the whole way in the browser, from a folder of images to exported labels.

Everything that takes long is a child process: an ordinary `propos` command that continues if the server ends. All state
lies in folders, so a server that starts again, and every window, sees the same.
"""

from propos.review.studio.serving import serve_studio

__all__ = ["serve_studio"]
