"""Names of clusters, proposed with their evidence by a network that knows words."""

from propos.review.naming.namer import Named, Namer, name_clusters, propose_names, propose_names_or_warn
from propos.review.naming.search import TextSearch, text_search
from propos.review.naming.words import Suggestion, Vocabulary, imagenet_words, read_words, suggest

__all__ = [
    "Named",
    "Namer",
    "Suggestion",
    "TextSearch",
    "Vocabulary",
    "imagenet_words",
    "name_clusters",
    "propose_names",
    "propose_names_or_warn",
    "read_words",
    "suggest",
    "text_search",
]
