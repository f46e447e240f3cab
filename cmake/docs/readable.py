"""Headers as Doxygen should read them: the same lines, with what the project's style implies said in Doxygen's words.

* The namespace of the arithmetic is hidden: names are attune::Trainer, as they are written.
* A comment behind a declaration documents it, the one at the top of a header its file.
* A name of names.txt that has no comment of its own has the sentence that stands there.
* What is internal (namespaces detail and kernels, what a page or generated code is made of, macros) is hidden.
* Without a comment, a specialisation or a guide for deduction is like its template, and what lies in a tape or in scratch is its layer's affair: neither is shown.
"""
import re

OPENS_SCOPE = re.compile(r"\b(?:struct|class|union|enum|namespace)\b")
MEMORY = {"Tape", "TapeOf", "Scratch", "ScratchOf", "InferenceScratch", "StepScratch"}
ACCESS = re.compile(r"(public|private|protected):")
INTERNAL = re.compile(r"namespace [\w:]*\b(detail|kernels|html|dispatch) *\{")
SPECIALISATION = re.compile(r"(?:struct|class|inline constexpr \w+)\s+\w+\s*<|\w+\(.*\) *->")
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


def readable(text, sentences):
    text = re.sub(r"attune::inline ATTUNE_ARITHMETIC", "attune", text)
    lines = of_file(text.splitlines())
    stack = []  # of each open brace: the name of a type, "namespace" or "body"
    hidden = None  # how deep what is hidden stands
    head = ""  # of the declaration so far
    parentheses = 0
    documented = trailing = directive = in_file = in_macro = False
    out = []
    for number, line in enumerate(lines):
        stripped = line.strip()
        code = code_of(line)
        declares = not stack or stack[-1] != "body"
        directive = stripped.startswith("#") or directive and lines[number - 1].endswith("\\")
        if directive:
            in_macro = re.match(r"#\s*define\b", stripped) or in_macro and not stripped.startswith("#")
            out.append("" if in_macro else line)  # macros are between the headers
            continue
        if line.startswith("/** @file"):
            in_file = True
        if in_file:
            in_file = not line.endswith("*/")
            out.append(line)
            continue
        if stripped.startswith("//"):
            line = re.sub(r"^( *///)(   )", r"\1    \2", line)  # a line that is set apart is code
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
        if starts and hidden is None and INTERNAL.match(stripped):
            line = "/** @cond */" + line
            hidden = len(stack)
        elif starts and declares and not documented and hidden is None and stack and not ACCESS.match(stripped):
            rest, i = code, number + 1
            while not re.search(r"[;{}]", without_templates(rest)) and i < len(lines) and i < number + 8:
                rest += " " + code_of(lines[i])
                i += 1
            name = declared(rest)
            sentence = sentences.get(name)
            behind = re.search(r"[;,]\s*//", line) and not opens_type
            special = SPECIALISATION.match(without_templates(rest))
            if special or (name and not behind and MEMORY & set(stack)):
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
