"""Words of English captions that name nothing to be seen: articles, prepositions, conjunctions, pronouns, auxiliaries.

A closed list, so that nothing has to be learned or downloaded. Numbers, nouns, adjectives, adverbs and full verbs are
content words. Words of place ("behind", "on") are function words here, as in lists of stop words: what they speak of is
no thing.
"""

from __future__ import annotations

FUNCTION_WORDS = frozenset(
    """
    a an the this that these those each every all both some any no another other such
    and or but nor so yet as if while because than then
    of in on at by for with without from to into onto out off up down over under above below behind beside besides
    between among through across along around against about near next upon within toward towards after before during
    inside outside past beneath underneath beyond via like
    he she it they we you i him her them us me his hers its their theirs our ours your yours my mine
    himself herself itself themselves who whom whose which what where when there here one ones something someone
    is are was were be been being am has have had having do does did doing can could may might will would shall should
    must not n't 's very too also just
    """.split()  # noqa: SIM905
)
