"""The words of captions: how a sentence is cut, their stems, and those that name nothing.

Captions are cut as the COCO caption evaluation does (Chen et al., arXiv:1504.00325): Stanford's PTB tokeniser with
``-lowerCase``, then a list of punctuation is left out. A caption is cut at white space, and each piece is read from
left to right. At each place the rule that reaches furthest wins, of equals the first; what a rule looks at behind its
token counts as reach. Both sides of a score go through it, so a caption may come tokenised or as it was written.

Three habits of the evaluation are kept, because its numbers contain them: brackets become ``-lrb-`` and ``-rrb-`` and
stay, since its list has them in capitals; ``!!`` and ``?!`` stay; "end.The" is one word. Deviations, none of which is
in Flickr8k: curly apostrophes and typographic hyphens inside a word become plain ones; a telephone number, a mixed
fraction ("5 1/2") and a tag with attributes are cut at their spaces; all rare symbols stay.

Stems are those of Porter's second stemmer (Snowball 2001, without the exceptions added since); the step numbers below
are his. Two regions of a word decide whether an ending may go: R1 is what follows the first consonant after a vowel, R2
is R1 of R1.

``FUNCTION_WORDS`` name nothing to be seen: articles, prepositions, conjunctions, pronouns, auxiliaries, and words of
place ("behind", "on"). Numbers, nouns, adjectives, adverbs and full verbs are content words.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

PUNCTUATION = frozenset({
    "''", "'", "``", "`", "-LRB-", "-RRB-", "-LCB-", "-RCB-", ".", "?", "!", ",", ":", "-", "--", "...", ";",
})  # fmt: skip
"""What the evaluation leaves out. Brackets stay, as they are compared in lower case."""


def ptb_tokens(text: str) -> list[str]:
    r"""The words of a caption, in lower case and without punctuation.

    >>> ptb_tokens('A dog\'s T-shirt isn\'t "red" (5%), is it?')
    ['a', 'dog', "'s", 't-shirt', 'is', "n't", 'red', '-lrb-', '5', '%', '-rrb-', 'is', 'it']
    """
    if "&" in text:
        text = _ENTITY.sub(lambda entity: _ENTITIES[entity[0].lower()], text)
    if not (text.isascii() and text.isprintable()):
        text = "".join(map(_plain, text))
    pieces = text.split()
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


@lru_cache(maxsize=1 << 12)
def _plain(character: str) -> str:
    """Letters, digits and ASCII stay; symbols stand alone; the rest is left out."""
    kind = unicodedata.category(character)
    if character in _MARKS:
        return _MARKS[character]
    if kind[0] in "LM" or kind == "Nd" or " " <= character <= "~":
        return character
    return f" {character} " if kind[0] in "NPS" and character <= "\uffff" else " "


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
_STARTERS = frozenset(
    """
    About According Additionally After An A As At But Did During Earlier He Her Here How However If In It Last Many
    More Mr. Ms. Now Once One Other Our She Since So Some Such That The Their Then There These They This We When
    While What Who Why Yet You
    """.split()  # noqa: SIM905
)
"""Words that start a sentence: a single letter and full stop before them ends one."""

_BRACKETS = {"(": "-lrb-", ")": "-rrb-", "[": "-lsb-", "]": "-rsb-", "{": "-lcb-", "}": "-rcb-"}
_TWO_WORDS = {
    "cannot": 3, "gonna": 3, "gotta": 3, "lemme": 3, "gimme": 3, "wanna": 3, "'tis": 2, "'twas": 2,
}  # fmt: skip
"""Where to cut words written together."""

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
    """The words of a piece without white space; the piece after it matters for some rules."""
    if piece.isalpha() and piece.isascii() and piece.lower() not in _TWO_WORDS:
        return (piece.lower(),)
    text, place, words = f"{piece} ", 0, list[str]()
    while place < len(piece):
        token, is_two = _token(text, place, following)
        place += len(token)
        word, cut = token.lower(), _TWO_WORDS.get(token.lower(), 0)
        words += [word[:cut], word[cut:]] if is_two else [_as_compared(word)]
    return tuple(word for word in words if word not in PUNCTUATION)


def _token(text: str, place: int, following: str) -> tuple[str, bool]:
    """The longest match at ``place``, and whether it is two words."""
    match = max(filter(None, (rule.match(text, place) for rule in _RULES)), key=re.Match.end)
    numbered = _BEFORE_NUMBER.match(text + following, place)
    if numbered and numbered.end() > match.end():
        return numbered[1], False
    token = match[1]
    if _LETTER_AND_STOP.fullmatch(token) and following in _STARTERS:
        token = token[0]
    return token, match.re is _RULES[0]


def _as_compared(word: str) -> str:
    if word == '"':
        return "''"
    if _LONG_MARK.fullmatch(word):
        return word[:2] if word[0] == "-" else "..."
    if word in _BRACKETS or _SMILEY_END.search(word):
        return "".join(_BRACKETS.get(character, character) for character in word)
    return word


_EXCEPTIONS = {
    "skis": "ski", "skies": "sky", "dying": "die", "lying": "lie", "tying": "tie",
    "idly": "idl", "gently": "gentl", "ugly": "ugli", "early": "earli", "only": "onli", "singly": "singl",
} | {word: word for word in ("sky", "news", "howe", "atlas", "cosmos", "bias", "andes")}  # fmt: skip
_DONE_AFTER_PLURAL = {"inning", "outing", "canning", "herring", "earring", "proceed", "exceed", "succeed"}

# A Y is a consonant: a y at the start of a word or after a vowel.
_CONSONANT_Y = re.compile(r"(^|(?<=[aeiouy]))y")
_REGION = re.compile(r"[aeiouy][^aeiouy]")
_REGION_AFTER = re.compile(r"gener|commun|arsen")
_POSSESSIVE = re.compile(r"'(?:s'?)?$")
_VOWEL = re.compile(r"[aeiouy]")
_VOWEL_BEFORE_LAST = re.compile(r"[aeiouy].")
_SHORT_SYLLABLE = re.compile(r"(?:[^aeiouy][aeiouy][^aeiouywxY]|^[aeiouy][^aeiouy])$")
_DOUBLE = re.compile(r"(?:bb|dd|ff|gg|mm|nn|pp|rr|tt)$")

_STEP_2 = {
    "tional": "tion", "enci": "ence", "anci": "ance", "abli": "able", "entli": "ent", "izer": "ize", "ization": "ize",
    "ational": "ate", "ation": "ate", "ator": "ate", "alism": "al", "aliti": "al", "alli": "al", "fulness": "ful",
    "ousli": "ous", "ousness": "ous", "iveness": "ive", "iviti": "ive", "biliti": "ble", "bli": "ble", "ogi": "og",
    "fulli": "ful", "lessli": "less", "li": "",
}  # fmt: skip
_STEP_3 = {
    "tional": "tion", "ational": "ate", "alize": "al", "icate": "ic", "iciti": "ic", "ical": "ic", "ful": "",
    "ness": "", "ative": "",
}  # fmt: skip
_STEP_4 = dict.fromkeys(
    ("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ism", "ate", "iti", "ous", "ive",
     "ize", "ion"), "",
)  # fmt: skip
_MUST_FOLLOW = {"ogi": "l", "li": "cdeghkmnrt", "ion": "st"}  # endings that go only after one of these letters


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """The stem of a word in lower case; words of one or two letters stay as they are.

    >>> [stem(word) for word in ("running", "runs", "happily", "sky", "as")]
    ['run', 'run', 'happili', 'sky', 'as']
    """
    if len(word) <= 2:
        return word
    if word in _EXCEPTIONS:
        return _EXCEPTIONS[word]
    word = _CONSONANT_Y.sub("Y", word.removeprefix("'"))
    first = fixed.end() if (fixed := _REGION_AFTER.match(word)) else _end_of_region(word, 0)
    second = _end_of_region(word, first)
    word = _without_plural(_POSSESSIVE.sub("", word))  # steps 0 and 1a
    if word in _DONE_AFTER_PLURAL:
        return word
    word = _without_tense(word, first)
    if len(word) > 2 and word[-1] in "yY" and not _VOWEL.match(word[-2]):  # step 1c
        word = f"{word[:-1]}i"
    word = _replaced(word, _STEP_2, first, first)
    word = _replaced(word, _STEP_3, first, second)
    word = _replaced(word, _STEP_4, second, second)
    return _without_last(word, first, second).lower()


def _end_of_region(word: str, start: int) -> int:
    """Where R1 begins (or R2, from the start of R1); the length of the word if it is empty."""
    region = _REGION.search(word, start)
    return region.end() if region else len(word)


def _without_plural(word: str) -> str:
    """Step 1a."""
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith(("ied", "ies")):
        return word[:-2] if len(word) > 4 else word[:-1]
    if word.endswith("s") and not word.endswith(("us", "ss")) and _VOWEL_BEFORE_LAST.search(word, 0, len(word) - 1):
        return word[:-1]
    return word


def _without_tense(word: str, first: int) -> str:
    """Step 1b."""
    ending = _longest_ending(word, ("eedly", "ingly", "edly", "eed", "ing", "ed"))
    rest = word.removesuffix(ending)
    if ending in ("eed", "eedly"):
        return f"{rest}ee" if len(rest) >= first else word
    if not ending or not _VOWEL.search(rest):
        return word
    if rest.endswith(("at", "bl", "iz")):
        return f"{rest}e"
    if _DOUBLE.search(rest):
        return rest[:-1]
    is_short = len(rest) <= first and _SHORT_SYLLABLE.search(rest)
    return f"{rest}e" if is_short else rest


def _replaced(word: str, endings: dict[str, str], region: int, strict_region: int) -> str:
    """Steps 2, 3 and 4: the longest ending is replaced if it lies in the region; "ative" needs the strict one."""
    ending = _longest_ending(word, endings)
    rest = word.removesuffix(ending)
    if not ending or len(rest) < (strict_region if ending == "ative" else region):
        return word
    if ending in _MUST_FOLLOW and not rest.endswith(tuple(_MUST_FOLLOW[ending])):
        return word
    return rest + endings[ending]


def _without_last(word: str, first: int, second: int) -> str:
    """Step 5."""
    rest = word[:-1]
    if word.endswith("e"):
        goes = len(rest) >= second or (len(rest) >= first and not _SHORT_SYLLABLE.search(rest))
        return rest if goes else word
    return rest if word.endswith("ll") and len(rest) >= second else word


def _longest_ending(word: str, endings: dict[str, str] | tuple[str, ...]) -> str:
    return max((ending for ending in endings if word.endswith(ending)), key=len, default="")


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
