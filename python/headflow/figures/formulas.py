"""Formulas in plain text, as verify and the configurations write them, as HTML: tau_s, m_h^T C m_h', D^(-1/2), 6e4, >=."""

import html
import re

LETTERS = {"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "eta": "η", "theta": "θ", "kappa": "κ", "lambda": "λ",
           "nu": "ν", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "chi": "χ", "xi": "ξ", "Theta": "Θ", "Sigma": "Σ"}
WORDS = {"sum": "Σ", "grad": "∇", "sqrt": "√", "infinity": "∞"}
ARTICLES = "aAI"  # letters that are words, or numbers of lemmas, unless they carry an index

INDEX = r"_(?:\{[^}]*\}|[A-Za-z0-9:]{1,3}'?(?![A-Za-z0-9_]))"
POWER = r"\^(?:\([^()]*\)|\{[^}]*\}|-?[A-Za-z0-9.]+)"
SCRIPTS = rf"(?:{INDEX}|{POWER})*"
TOKEN = re.compile(rf"""
      (?P<word>(?<![A-Za-z])(?:i\.e\.|e\.g\.)|(?<![A-Za-z])[A-Za-z]-[a-z]{{2,}}\w*|(?<![A-Za-z])sum(?![A-Za-z_]))
    | (?P<number>(?<![\w.])\d+(?:\.\d+)?(?:e[-+]?\d+)?) (?P<number_scripts>{SCRIPTS})
    | (?P<differential>(?<![A-Za-z])d) (?P<order>\^\d)? (?P<of>[bmvxRE](?![A-Za-z])) (?P<of_scripts>{SCRIPTS}) (?P<of_prime>'(?!\w))?
    | (?P<name>(?<![A-Za-z])(?:{'|'.join([*LETTERS, *WORDS])}|inf|RR|[A-Za-z])(?![A-Za-z]))
      (?P<mark>~|\*|\^(?=[\s|)]|$)|(?<=[cg])\d)? (?P<scripts>{SCRIPTS}) (?P<prime>'(?!\w))?
    | (?P<close>[)|\]]) (?P<close_scripts>(?:{INDEX}|{POWER})+)
    | (?P<relation>>=|<=|->|\+-|\.\.\.)
    | (?P<minus>(?<![\w\])'-])-(?=[\w(|])|(?<=[A-Za-z)])-(?=\d)|(?<=\d)-(?=\d+[A-Z])|(?<=\s)-(?=\s))
    | (?P<dot>\s\.\s(?=\S)|(?<=[A-Za-z'])\.(?=(?:theta|grad|E)\b)|\*)
    | (?P<prose>[A-Za-z]{{2,}}(?:[-'’][A-Za-z0-9]+)*|.)
""", re.VERBOSE | re.DOTALL)
RELATIONS = {">=": "≥", "<=": "≤", "->": "→", "+-": "±", "...": "…"}


def scripts(text):
    """Indices and powers that follow a letter."""
    out = ""
    for part in re.findall(rf"{INDEX}|{POWER}", text):
        tag = "sub" if part[0] == "_" else "sup"
        inside = re.sub(r"^[({](.*)[)}]$", r"\1", part[1:])
        out += f"<{tag}>{letters(inside)}</{tag}>"
    return out


def letters(text):
    """What stands in an index or a power: every letter is one of a formula."""
    inside = re.sub(r"(?<![\w])-|^-", "−", text)
    out = ""
    for token in re.finditer(rf"({'|'.join(LETTERS)})(?![a-z])|([A-Za-z])({SCRIPTS})|(.)", inside, re.DOTALL):
        greek, letter, more, rest = token.groups()
        if greek:
            out += f"<i>{LETTERS[greek]}</i>"
        elif letter:
            out += (letter if letter == "T" else f"<i>{letter}</i>") + scripts(more)
        else:
            out += "′" if rest == "'" else html.escape(rest)
    return out


def number(text, more):
    mantissa, _, exponent = text.partition("e")
    if not exponent:
        return mantissa + scripts(more)
    power = f"10<sup>{int(exponent)}</sup>".replace("-", "−")
    return (power if mantissa == "1" else f"{mantissa}·{power}") + scripts(more)


def name(text, mark, more, prime, after):
    """A letter, with what is above, below and behind it."""
    if text in WORDS:
        return WORDS[text] + scripts(more)
    if text == "inf":
        return "inf" + scripts(more)
    if text in ARTICLES and not more and not mark:
        return text + ("'" if prime else "")
    letter = LETTERS.get(text, text)
    expectation = text == "E" and not more and re.match(r"\[| (?:theta\b|\|)", after)
    out = letter if expectation or letter in "ΘΣ" else f"<i>{letter}</i>"
    if mark == "~":
        out = f"<i>{letter}\u0303</i>"
    elif mark == "^":
        out = f"<i>{letter}\u0302</i>"
    elif mark == "*":
        out += "<sup>*</sup>"
    elif mark:
        out += f"<sub>{mark}</sub>"
    return out + scripts(more) + ("′" if prime else "")


def typeset(text):
    """Plain text as HTML, which is escaped; formulas in it as they are written by hand."""
    out = ""
    for token in TOKEN.finditer(text):
        found = token.groupdict()
        if found["number"]:
            out += number(found["number"], found["number_scripts"])
        elif found["differential"]:
            out += "<i>d</i>" + scripts(found["order"] or "") + name(found["of"], "", found["of_scripts"], found["of_prime"], "")
        elif found["name"]:
            out += name(found["name"], found["mark"], found["scripts"], found["prime"], text[token.end():])
        elif found["close"]:
            out += found["close"] + scripts(found["close_scripts"])
        elif found["relation"]:
            out += RELATIONS[found["relation"]]
        elif found["minus"]:
            out += "−"
        elif found["dot"]:
            out += "·"
        else:
            out += html.escape(found["word"] or found["prose"])
    return out
