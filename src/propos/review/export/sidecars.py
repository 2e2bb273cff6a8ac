"""Names of clusters as keywords in XMP sidecars: a small file for each image, which photo programs read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from propos.common.errors import InputError, shown
from propos.data.files.names import unescape_name
from propos.review.export.originals import originals_of
from propos.runs import Cluster, Run

LEVEL = "|"  # between the levels of a hierarchical keyword, in a cluster's name as in lr:hierarchicalSubject
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
PACKET = """<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/">
 <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
  <rdf:Description rdf:about=""
    xmlns:dc="http://purl.org/dc/elements/1.1/"
    xmlns:lr="http://ns.adobe.com/lightroom/1.0/">
   <dc:subject><rdf:Bag>{subject}</rdf:Bag></dc:subject>
   <lr:hierarchicalSubject><rdf:Bag>{hierarchical}</rdf:Bag></lr:hierarchicalSubject>
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>
<?xpacket end="w"?>
"""


def write_sidecars(run: Run, out: Path) -> int:
    """Write IMAGE.xmp for each image of a cluster with a name, or below one in the tree, in the images' folders."""
    named = [cluster for cluster in run.corrected.clusters if keywords_of(cluster)]
    if not named:
        raise InputError(f"{run.path}: no cluster has a name, so there are no keywords: name them with propos open")
    originals_of(run)  # refuses images that are not files
    for cluster in named:
        content = sidecar(keywords_of(cluster)).encode()
        for row in cluster.members.tolist():
            path = out / _inside(run.table.images[row])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.with_name(f"{path.name}.xmp").write_bytes(content)
    return sum(len(cluster.members) for cluster in named)


def keywords_of(cluster: Cluster) -> list[str]:
    """Return the names above a cluster in the tree, and its own, the most general first."""
    return [word for name in (*(name for _, name in cluster.above), cluster.name or "") for word in levels(name)]


def levels(name: str) -> list[str]:
    """Return the keywords in a cluster's name, the most general first: `animals|dogs` has two."""
    clean = _NOT_XML.sub("", name)
    return [part for part in (" ".join(part.split()) for part in clean.split(LEVEL)) if part]


def sidecar(keywords: Sequence[str]) -> str:
    """Return an XMP packet with the keywords as a flat list, and as one path from the most general to the last."""
    return PACKET.format(subject=_items(dict.fromkeys(keywords)), hierarchical=_items([LEVEL.join(keywords)]))


def _inside(name: str) -> Path:
    """Return an image's path relative to the run's folder of images; raise InputError if it is outside."""
    path = Path(unescape_name(name))
    if path.is_absolute() or ".." in path.parts:
        raise InputError(f"{shown(name)}: is outside the run's folder of images: move it inside, or export a table")
    return path


def _items(keywords: Iterable[str]) -> str:
    return "".join(f"<rdf:li>{escape(keyword)}</rdf:li>" for keyword in keywords)
