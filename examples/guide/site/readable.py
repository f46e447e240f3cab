"""Headers as Doxygen should read them: the same lines, with what the project's style implies said in Doxygen's words.

* The namespace of the arithmetic is hidden: names are attune::Trainer, as they are written.
* A comment behind a declaration documents it, the one at the top of a header its file.
* A name of names.txt that has no comment of its own has the sentence that stands there.
* What is internal (namespaces detail and kernels, what a page or generated code is made of, macros) is hidden.
* Without a comment, a specialization or a guide for deduction is like its template, and what lies in a tape or in scratch is
  its layer's affair: neither is shown.
"""
import re

OPENS_SCOPE = re.compile(r"\b(?:struct|class|union|enum|namespace)\b")
MEMORY = {"Tape", "TapeOf", "Scratch", "ScratchOf", "InferenceScratch", "StepScratch"}
ACCESS = re.compile(r"(public|private|protected):")
INTERNAL = re.compile(r"namespace [\w:]*\b(detail|kernels|html|dispatch) *\{")
SPECIALIZATION = re.compile(r"(?:struct|class|inline constexpr \w+)\s+\w+\s*<|\w+\(.*\) *->")
FUNCTION = re.compile(r"\b(\w+)\s*\(")
DECLARED = (
    re.compile(r"\busing\s+(\w+)\s*="),
    re.compile(r"^(?:\[\[[^\]]*\]\]\s*)?(?:enum\s+)?(?:struct|class)\s+(?:ATTUNE_\w+\s+)?(\w+)(?:\s*[:{;]|\s*$)"),
    FUNCTION,
    re.compile(r"\b(\w+)\s*(?:\[[^\]]*\]\s*)*(?:=|;|\{|$)"),
)


def names(path):
    """name → sentence, of names.txt"""
    pairs = (line.split(": ", 1) for line in path.read_text().splitlines() if line and line[0] != "#")
    return dict(pairs)


def without_templates(head):
    """A declaration without its `template <…>` and attributes."""
    head = re.sub(r"\[\[.*?\]\]", "", head).strip()
    while match := re.match(r"template\s*<", head):
        depth, i = 1, match.end()
        while i < len(head) and depth:
            depth += {"<": 1, ">": -1}.get(head[i], 0)
            i += 1
        head = head[i:].strip()
    return re.sub(r"^requires\b\s*(?:\([^()]*\)|[\w:]+(?:<[^<>]*>)?)\s*", "", head)


def declared(head):
    """The name that a declaration declares, with () if it is a function's; None of what declares nothing."""
    head = without_templates(head)
    if re.match(r"(static_assert|friend|using namespace|#|public|private|protected)\b", head):
        return None
    if found := re.search(r"\boperator\b", head):
        return "operator"
    if not head.startswith("using"):
        head = re.split(r"(?<![=!<>])=", head)[0].strip()
    for pattern in DECLARED:
        if found := pattern.search(head):
            return found[1] + ("()" if pattern is FUNCTION else "")
    return None


def code_of(line):
    """A line without its comment and what is in quotes."""
    return re.sub(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'', '""', line).split("//")[0]


def of_file(lines):
    """The comment at the top of a header, and the #pragma below it, as Doxygen's comment on the file."""
    end = lines.index("#pragma once")
    comment = [re.sub(r"^// ?", "", line) for line in lines[:end]]
    if not comment:
        return lines
    prose = [line if line.startswith("  ") else re.sub(r"(`[^`]*`)|([<@\\])", escaped, line) for line in comment]
    # Empty lines around what is set apart become the ends of code.
    apart = [line.startswith("  ") for line in prose]
    for at, line in enumerate(prose):
        if not line:
            before, behind = apart[:at][-1:] == [True], apart[at + 1:at + 2] == [True]
            apart[at] = before and behind
            prose[at] = "" if before == behind else "@endcode" if before else "@code"
    rest = lines[end + 1:]
    if apart[-1] and not rest[0]:
        return ["/** @file", *prose, "@endcode */", *rest[1:]]
    return ["/** @file", *prose[:-1], prose[-1] + " */", *rest]


def escaped(match):
    return match[1] or "\\" + match[2]


class Reader:
    """Goes through the lines of a header, and knows in which scope each of them stands."""

    def __init__(self, lines, sentences):
        self.lines = lines
        self.sentences = sentences
        self.scopes = []  # of each open brace: the name of a type, "namespace" or "body"
        self.head = ""  # of the declaration so far
        self.parentheses = 0  # that are open in it
        self.hidden = None  # how deep what is hidden stands
        self.documented = False  # by a comment in front
        self.continued = False  # the last line ended with a comment behind a declaration
        self.in_file_comment = self.in_directive = self.in_macro = False

    def declares(self):
        """Whether declarations stand here, and not statements."""
        return not self.scopes or self.scopes[-1] != "body"

    def read(self):
        return [self.line(number, line) for number, line in enumerate(self.lines)]

    def line(self, number, line):
        stripped = line.strip()
        self.in_directive = stripped.startswith("#") or self.in_directive and self.lines[number - 1].endswith("\\")
        if self.in_directive:
            self.in_macro = bool(re.match(r"#\s*define\b", stripped)) or self.in_macro and not stripped.startswith("#")
            return "" if self.in_macro else line  # macros are between the headers
        if line.startswith("/** @file") or self.in_file_comment:
            self.in_file_comment = not line.endswith("*/")
            return line
        if stripped.startswith("//"):
            return self.comment(line, stripped)
        return self.code(number, line, stripped)

    def comment(self, line, stripped):
        line = re.sub(r"^( *///)(   )", r"\1    \2", line)  # a line that is set apart is code
        if self.continued and not stripped.startswith("///"):
            return re.sub(r"//\s?", "///< ", line, count=1)
        if not self.head:
            self.documented = self.documented or stripped.startswith("///")
            self.continued = False
        return line

    def code(self, number, line, stripped):
        code = code_of(line)
        declares = self.declares()
        opens_type = re.match(r"(struct|class)\b", without_templates(code.strip()))
        self.continued = False
        if stripped and not self.head.strip():  # a declaration begins
            line = self.begun(number, line, stripped, opens_type)
            self.documented = False
        self.follow(code)
        if declares and not opens_type and "///<" not in line and re.search(r"[;,]\s*//(?!/)|\w\s+//(?!/)", line):
            line = re.sub(r"([;,\w]\s*)//\s?(?!/)", r"\1///< ", line, count=1)
            self.continued = True
        if self.hidden == len(self.scopes) and not self.head.strip():
            line += " /** @endcond */"
            self.hidden = None
        return line

    def begun(self, number, line, stripped, opens_type):
        """The first line of a declaration, hidden or with a sentence where it needs that."""
        if self.hidden is not None:
            return line
        if INTERNAL.match(stripped):
            return self.hide(line)
        if self.documented or not self.scopes or not self.declares() or ACCESS.match(stripped):
            return line
        whole = code_of(line)
        for more in self.lines[number + 1:number + 8]:
            if re.search("[;{}]", without_templates(whole)):
                break
            whole += " " + code_of(more)
        name = declared(whole)
        behind = not opens_type and re.search(r"[;,]\s*//", line)
        if SPECIALIZATION.match(without_templates(whole)) or name and not behind and MEMORY & set(self.scopes):
            return self.hide(line)
        if name in self.sentences and not behind:
            return re.sub(r"\S", lambda first: f"/** {self.sentences[name]} */ {first[0]}", line, count=1)
        return line

    def hide(self, line):
        self.hidden = len(self.scopes)
        return "/** @cond */" + line

    def follow(self, code):
        """Scopes that open and close in a line, and the head of the declaration that it leaves."""
        for character in code:
            if character == "{":
                bare = without_templates(self.head)
                if self.parentheses == 0 and OPENS_SCOPE.search(bare) and "(" not in bare.split("alignas")[0]:
                    self.scopes.append("namespace" if "namespace" in bare else declared(bare) or "type")
                    self.head = ""
                else:
                    self.scopes.append("body")
            elif character == "}":
                if self.scopes:
                    self.scopes.pop()
                if self.declares():
                    self.head = ""
            elif not self.declares():
                continue
            elif self.parentheses == 0 and (character == ";" or character == "," and "enum" in self.head):
                self.head = ""
            else:
                self.parentheses += {"(": 1, ")": -1}.get(character, 0)
                self.head += character
        self.head = ACCESS.sub("", self.head.strip()).strip()
        if self.head:
            self.head += " "


def readable(text, sentences):
    """A header's text with as many lines, for Doxygen; `sentences` are those of names.txt."""
    text = text.replace("ATTUNE_NAMESPACE", "attune")
    return "\n".join(Reader(of_file(text.splitlines()), sentences).read()) + "\n"
