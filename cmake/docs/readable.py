"""Headers as Doxygen should read them: the same lines, with what the project's style implies said in Doxygen's words.

* The namespace of the arithmetic is hidden: names are attune::Trainer, as they are written.
* A comment behind a declaration documents it.
* A name of names.txt that has no comment of its own has the sentence that stands there.
* Without a comment, a specialisation is like its template, and what lies in a tape or in scratch is its layer's affair: neither is shown.
"""
import re

OPENS_SCOPE = re.compile(r"\b(?:struct|class|union|enum|namespace)\b")
MEMORY = {"Tape", "TapeOf", "Scratch", "ScratchOf", "InferenceScratch", "StepScratch"}
SPECIALISATION = re.compile(r"^(?:struct|class)\s+\w+\s*<")
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
    return re.sub(r"^requires\s+(?:\([^()]*\)|[\w:]+(?:<[^<>]*>)?)\s*", "", head)


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


def readable(text, sentences):
    text = re.sub(r"attune::inline ATTUNE_ARITHMETIC", "attune", text)
    lines = text.splitlines()
    stack = []  # of each open brace: the name of a type, "namespace" or "body"
    hidden = None  # how deep what is hidden stands
    head = ""  # of the declaration so far
    parentheses = 0
    documented = trailing = False
    out = []
    for number, line in enumerate(lines):
        stripped = line.strip()
        code = code_of(line)
        declares = not stack or stack[-1] != "body"
        if stripped.startswith("#"):
            out.append(line)
            continue
        if stripped.startswith("//"):
            if trailing and not stripped.startswith("///"):
                line = re.sub(r"//\s?", "///< ", line, count=1)
            elif not head:
                documented = documented or stripped.startswith("///")
                trailing = False
            out.append(line)
            continue
        starts = not head.strip() and stripped
        trailing = False
        opens_type = re.match(r"(struct|class)\b", without_templates(code.strip()))
        if starts and declares and not documented and hidden is None and stack and not re.match(r"(public|private|protected):", stripped):
            rest, i = code, number + 1
            while not re.search(r"[;{}=(]", without_templates(rest)) and i < len(lines) and i < number + 8:
                rest += " " + code_of(lines[i])
                i += 1
            name = declared(rest) if stack[-1] != "namespace" else None
            sentence = sentences.get(name)
            behind = re.search(r"[;,]\s*//", line) and not opens_type
            if SPECIALISATION.match(without_templates(rest)) or (name and not behind and MEMORY & set(stack)):
                line = "/** @cond */" + line
                hidden = len(stack)
            elif sentence and not behind:
                line = re.sub(r"\S", lambda first: f"/** {sentence} */ {first[0]}", line, count=1)
        if starts:
            documented = False
        for character in code:
            if character == "{":
                bare = without_templates(head)
                if parentheses == 0 and OPENS_SCOPE.search(bare) and "(" not in bare.split("alignas")[0]:
                    stack.append("namespace" if "namespace" in bare else declared(bare) or "type")
                    head = ""
                else:
                    stack.append("body")
            elif character == "}":
                if stack and stack.pop() == "body" and not (stack and stack[-1] == "body"):
                    head = ""  # of a function; what follows a braced initialiser is ";"
                head = "" if not stack or stack[-1] != "body" else head
            elif character == ";" and parentheses == 0 and (not stack or stack[-1] != "body"):
                head = ""
            elif character == "," and parentheses == 0 and "enum" in head:
                head = ""
            else:
                parentheses += {"(": 1, ")": -1}.get(character, 0)
                if not stack or stack[-1] != "body":
                    head += character
        head = re.sub(r"^\s*(public|private|protected):\s*$", "", head)
        if head:
            head += " "
        if declares and not opens_type and re.search(r"[;,]\s*//(?!/)|\w\s+//(?!/)", line) and "///<" not in line:
            line = re.sub(r"([;,\w]\s*)//\s?(?!/)", r"\1///< ", line, count=1)
            trailing = True
        if hidden is not None and len(stack) == hidden and not head.strip():
            line += " /** @endcond */"
            hidden = None
        out.append(line)
    return "\n".join(out) + "\n"
