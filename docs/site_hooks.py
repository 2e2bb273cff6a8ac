"""What the site adds to the pages: equations as MathML, which browsers set by themselves.

They are written as GitHub reads them: a fence called `math`, and $`…`$ within a line.
"""

from __future__ import annotations

import html
import re

from latex2mathml.converter import convert

BLOCK = re.compile(r'<div class="math">(.*?)</div>', flags=re.DOTALL)
PRIME = "<mi>&#x02032;</mi>"
PRIMED = re.compile(rf"<msup>(<mi>[^<]+</mi>){PRIME}</msup>")
PRIMED_BELOW = re.compile(rf"<msubsup>(<mi>[^<]+</mi>)(<mi>[^<]+</mi>){PRIME}</msubsup>")
WITHIN = re.compile(r"\$<code>(.*?)</code>\$")


def on_page_content(content: str, **_: object) -> str:
    """Set equations."""
    content = BLOCK.sub(lambda found: f'<div class="math">{_set(found[1], "block")}</div>', content)
    return WITHIN.sub(lambda found: _set(found[1], "inline"), content)


def _set(escaped: str, display: str) -> str:
    found = convert(html.unescape(escaped).strip(), display=display)
    # A prime is high by itself: as an exponent, browsers without a font for mathematics raise it out of the line.
    primed = r'<mrow>\1<mo lspace="0" rspace="0">&#x02032;</mo></mrow>'
    return PRIMED.sub(primed, PRIMED_BELOW.sub(rf"<msub>{primed}\2</msub>", found))
