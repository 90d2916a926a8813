"""Splits captions into words as the COCO caption evaluation does; all caption scores compare these words.

Chen et al., "Microsoft COCO Captions" (arXiv:1504.00325): Stanford's PTB tokeniser with ``-lowerCase``, then a list of
punctuation is left out. This is that tokeniser in Python, for one caption at a time. Both sides of a score go through
it, so it does not matter whether a caption comes tokenised ("the dog 's ball") or as it was written ("The dog's
ball.").

How it works: a caption is cut at white space, and each piece is read from left to right. At each place the rule that
reaches furthest wins, of equals the first; what a rule looks at behind its token counts as reach.

Three habits of the evaluation are kept, because its numbers contain them: brackets become ``-lrb-`` and ``-rrb-`` and
stay, since its list has them in capitals; ``!!`` and ``?!`` stay; "end.The" is one word.

A few words are cut again when they come back in lower case ("AT&T" is one word, "at&t" three), there as here.

Deviations, none of which is in Flickr8k: curly apostrophes and typographic hyphens inside a word become plain ones; a
telephone number, a mixed fraction ("5 1/2") and a tag with attributes are cut at their spaces; rare symbols, which the
evaluation partly drops, all stay.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

PUNCTUATION = frozenset({
    "''", "'", "``", "`", "-LRB-", "-RRB-", "-LCB-", "-RCB-", ".", "?", "!", ",", ":", "-", "--", "...", ";",
})  # fmt: skip
"""What the evaluation leaves out. Brackets are in lower case when they are compared with it, and so stay."""


def ptb_tokens(text: str) -> list[str]:
    r"""The words of a caption, in lower case and without punctuation.

    >>> ptb_tokens('A dog\'s T-shirt isn\'t "red" (5%), is it?')
    ['a', 'dog', "'s", 't-shirt', 'is', "n't", 'red', '-lrb-', '5', '%', '-rrb-', 'is', 'it']
    """
    pieces = _with_plain_marks(text).split()
    words: list[str] = []
    for piece, following in zip(pieces, [*pieces[1:], ""]):
        words += _words_of(piece, following if piece.endswith(".") else "")
    return words


_ENTITIES = {
    "&amp;": "&", "&lt;": " < ", "&gt;": " > ", "&quot;": '"', "&apos;": "'", "&mdash;": "--", "&ndash;": "--",
    "&nbsp;": " ",
}  # fmt: skip
_ENTITY = re.compile("|".join(_ENTITIES), re.IGNORECASE)

_MARKS = (
    dict.fromkeys("’\x92", "'")
    | dict.fromkeys("‐‑", "-")
    | dict.fromkeys("‘‚‛‹›\x82\x8b\x91\x9b", " ` ")
    | dict.fromkeys("“”„‟«»\x84\x93\x94", ' " ')
    | dict.fromkeys("–—―\x96\x97", " -- ")
    | dict.fromkeys("…\x85", " ... ")
    | {"£": " # ", "€": " $ ", "\x80": " $ ", "¢": " cents "}
    | {"¼": " 1/4 ", "½": " 1/2 ", "¾": " 3/4 ", "⅓": " 1/3 ", "⅔": " 2/3 "}
    | {"\xad": ""}
)


class _PlainMarks(dict[int, str]):
    """For ``str.translate``: letters, digits and ASCII stay; a symbol stands alone; what has no form is left out."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        kind = unicodedata.category(character)
        if kind[0] in "LM" or kind == "Nd" or " " <= character <= "~":
            kept = character
        elif kind[0] in "NPS" and code <= 0xFFFF:
            kept = f" {character} "
        else:
            kept = " "
        self[code] = kept
        return kept


_PLAIN_MARKS = _PlainMarks({ord(character): kept for character, kept in _MARKS.items()})


def _with_plain_marks(text: str) -> str:
    if "&" in text:
        text = _ENTITY.sub(lambda found: _ENTITIES[found[0].lower()], text)
    return text if text.isascii() and text.isprintable() else text.translate(_PLAIN_MARKS)


_L = r"[^\s\d!-/:-@\[-`{-~]"  # a letter, or a symbol that stands alone
_A = r"[^\s!-/:-@\[-`{-~]"  # a letter or digit
_WORD = rf"{_L}{_A}*(?:[.!?]{_L}{_A}*)*"  # "end.The" too
_NUMBER = r"[-+]?(?:\d*(?:[.:,]\d+)+|\d+)"  # 2.5, .5, 10,000, 12:30
_CLITIC = r"'(?:[msd]|re|ve|ll)"
_NOT = r"n['`]t"
_INITIALS = r"[A-Za-z](?:\.[A-Za-z])*\."  # U.S., p.m., and "B."

_ABBREVIATIONS = (
    r"jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|mon|tues?|wed|thu|thurs|fri|"
    r"ala|ariz|(?-i:A)z|(?-i:A)rk|calif|colo|conn|ct|dak|(?-i:D)el|fla|ga|(?-i:I)ll|ind|kans?|ky|(?-i:L)a|(?-i:M)ass|md|"
    r"mich|minn|(?-i:M)iss|mo|mont|neb|nev|okla|(?-i:O)re|(?-i:P)a|penn|tenn|(?-i:T)ex|va|vt|(?-i:W)ash|wisc?|wyo|"
    r"inc|cos?|corp|(?-i:[Pp]t[ye])|ltd|plc|rt|bancorp|bhd|assn|univ|intl|sys|tel|est|ext|sq|jr|bros|(?:ed|ph)\.d|esq|"
    r"etc|al|seq|bldg|mr|mrs|ms|drs?|profs?|sens?|reps?|attys?|lt|col|gen|messrs|govs?|adm|rev|maj|sgt|cpl|pvt|capt|"
    r"ste?|ave|pres|lieut|hon|brig|co?mdr|pfc|spc|supts?|det|mt|ft|adj|adv|asst|assoc|ens|insp|mlle|mme|msgr|sfc|sr|"
    r"invt|elec|natl|(?-i:[Mm][ft]g)|dept|blvd|rd|vs|alex|wm|jos|cie|cf|treas|ph|a\.k\.a"
)
_APOSTROPHE_WORDS = (
    r"'n'|'n(?=\s)|[ldj]'|dunkin'|somethin'|ol'|'em|'[2-9]0s|'till?|'cause|nor'easter|c'mon|e'er|s'mores|ev'ry|li'l|"
    rf"nat'l|cap'n|c'est|o'o|(?-i:[A-HJ-XZn])'{_L}{{2,}}|{_L}+[aeiouy]'(?-i:[aeiouA-Z]){_L}*"
)
_STARTERS = frozenset({
    "About", "According", "Additionally", "After", "An", "A", "As", "At", "But", "Did", "During", "Earlier", "He",
    "Her", "Here", "How", "However", "If", "In", "It", "Last", "Many", "More", "Mr.", "Ms.", "Now", "Once", "One",
    "Other", "Our", "She", "Since", "So", "Some", "Such", "That", "The", "Their", "Then", "There", "These", "They",
    "This", "We", "When", "While", "What", "Who", "Why", "Yet", "You",
})  # fmt: skip
"""Words that start a sentence: before them the full stop of a single letter ends one."""

_BRACKETS = {"(": "-lrb-", ")": "-rrb-", "[": "-lsb-", "]": "-rsb-", "{": "-lcb-", "}": "-rcb-"}
_TWO_WORDS = {
    "cannot": 3, "gonna": 3, "gotta": 3, "lemme": 3, "gimme": 3, "wanna": 3, "'tis": 2, "'twas": 2,
}  # fmt: skip
"""Where words that have grown together are cut."""

_RULES = [
    re.compile(rf"(?i:{rule})")
    for rule in (
        rf"({'|'.join(_TWO_WORDS)})",
        r"(</?[a-z][a-z0-9_:.-]*/?>|<[!?][a-z-][^>]*>)",  # tags
        rf"({_WORD}){_CLITIC}(?!{_L})",
        rf"([a-z]*(?-i:[A-MO-Za-mo-z])){_NOT}",
        rf"({_WORD})",
        rf"({_APOSTROPHE_WORDS})",
        rf"(y'){_L}",
        r"""((?:https?|ftp)://[^\s"<>|(){}]+[^\s"'<>|.!?(){},;:&-])""",
        r"""((?:mailto:)?<?[a-z0-9][^\s"<>|(){}@]*@(?:[^\s"<>|(){}.@]+\.)*[^\s"<>|(){}.,;:@]+>?)""",
        rf"(@[a-z_][a-z_0-9]*|\#{_L}{_A}*)",
        rf"({_CLITIC})[^A-Za-z]",
        rf"({_NOT})[^A-Za-z]",
        r"(\d{1,2}[-/]\d{1,2}[-/]\d{2,4})",
        rf"({_NUMBER})",
        r"((?:\d{1,4}-)?\d{1,4}/\d{1,4})",
        r"(-(?:[lr][rcs]b)-|pro-|anti-|s&p-500|s&ls|c\+\+|c\#)",
        rf"((?:[dol]'{_A})?{_A}+(?:[-_](?:[dol]'{_A})?{_A}+)*)",  # t-shirt, d'Avignon
        rf"({_A}(?:{_A}|[.,])*(?:-(?:[a-z](?:\.[a-z])+\.|{_A}+))+)",  # 5.5-inch, non-U.S.
        r"((?-i:[A-Z]+(?:[+&][A-Z]+)+))",  # AT&T
        rf"({_A}+(?:-{_L}+){{0,2}}(?:/{_A}+(?:-{_L}+){{0,2}}){{1,2}})",  # black/white
        r"((?-i:[A-Z]*)\$)",
        rf"((?:{_ABBREVIATIONS})\.)",
        rf"({_INITIALS}(?:-{_A}+)*)",
        rf"((?:{_WORD}|{_A}+(?:[-_]{_A}+)*)\.)[,;:]",
        r"('\d\d)\s",
        r"([<>]?[:;=][-o*']?(?-i:[()DPdpO\\{@|\[\]]))[^A-Za-z\d]",  # smileys
        r"([-^x=~<>']_[-^x=~<>'])",
        r"(:3)\s",
        r"(<<|>>|\.\.\.+|[?!]+|-+|@+|\#+|_+|\*+|''|``)",
        r"(.)",
    )
]
_BEFORE_NUMBER = re.compile(r"((?i:ca|figs?|prop|nos?|art|pp|op)\.)\s?\d")
_LETTER_AND_STOP = re.compile(r"[A-Za-z]\.")
_LONG_MARK = re.compile(r"-{3,4}|\.{3,}")
_SMILEY_END = re.compile(r"[:;=][-o*']?[()]$")


@lru_cache(maxsize=1 << 16)
def _words_of(piece: str, following: str) -> tuple[str, ...]:
    """The words of a piece without white space, with the piece after it where that matters."""
    if piece.isalpha() and piece.isascii() and piece.lower() not in _TWO_WORDS:
        return (piece.lower(),)
    text, place, words = f"{piece} ", 0, list[str]()
    while place < len(piece):
        token, is_two = _token(text, place, following)
        place += len(token)
        words += _cut(token.lower()) if is_two else [_as_compared(token.lower())]
    return tuple(word for word in words if word not in PUNCTUATION)


def _token(text: str, place: int, following: str) -> tuple[str, bool]:
    """What the rule that reaches furthest takes from ``text`` at ``place``, and whether that is two words."""
    found = max(filter(None, (rule.match(text, place) for rule in _RULES)), key=re.Match.end)
    numbered = _BEFORE_NUMBER.match(text + following, place)
    if numbered and numbered.end() > found.end():
        return numbered[1], False
    token = found[1]
    if _LETTER_AND_STOP.fullmatch(token) and following in _STARTERS:
        token = token[0]
    return token, found.re is _RULES[0]


def _cut(word: str) -> list[str]:
    return [word[: _TWO_WORDS[word]], word[_TWO_WORDS[word] :]]


def _as_compared(word: str) -> str:
    """A token in lower case as the evaluation writes it."""
    if word == '"':
        return "''"
    if _LONG_MARK.fullmatch(word):
        return word[:2] if word[0] == "-" else "..."
    if word in _BRACKETS or _SMILEY_END.search(word):
        return "".join(_BRACKETS.get(character, character) for character in word)
    return word
