"""Builds the project's site in build/docs/html: pages, READMEs and the reference of every public name.

usage: examples/guide/site/build [--links]

  --links   check the links between pages, and build nothing. Ends with `N passed, N failed`

Installs Doxygen and its theme if they are missing. Exits with 1 if a name is undocumented, or a reference or link is broken. Pages are
plain Markdown; links are relative paths in the project.
"""
import html
import re
import shutil
import subprocess
import sys
import zlib
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[3]
HERE = Path("examples/guide/site")
sys.path.insert(0, str(ROOT / HERE))
sys.dont_write_bytecode = True
from readable import names, readable  # noqa: E402

OUT = ROOT / "build/docs"
SOURCE = OUT / "source"
THEME = Path("/usr/share/doxygen-awesome-css")
# In the order of the site: first what is read, then what is looked up.
PAGES = [
    "README.md",
    *(f"examples/guide/{page}.md" for page in (
        "first-training", "one-command", "board", "models", "fit", "choosing-a-plan", "memory", "eight-bits", "product", "exporting", "pytorch",
        "field", "unlabeled", "both-cores", "power-cuts", "replay", "streaming", "same-bits", "pc", "c", "own-layer", "layers", "why", "errors",
        "limits", "support")),
    "lib/attune/README.md", "ports/packages/README.md", "ports/README.md", "ports/rtos/README.md", "ports/cycles/README.md",
    "examples/README.md",
    "tests/bench/README.md", "tests/budgets/README.md", "CONTRIBUTING.md", "CHANGELOG.md",
]


# Pages that stand below another in the site's tree; that one has a link to each.
BELOW = {"ports/README.md": ("ports/rtos/README.md", "ports/cycles/README.md")}


def anchor(heading):
    """The name that a heading has in links, as code hosts make it."""
    plain = re.sub(r"[`*]|\]\([^)]*\)", "", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def label(page, fragment=""):
    """The site's name for a page or a heading on it."""
    name = re.sub(r"(/README)?\.md$", "", page) or "README"
    name = name.removeprefix(f"examples/guide/")
    return re.sub(r"\W+", "_", f"{name}_{fragment}" if fragment else f"page_{name}")


def outside_code(text, change):
    """Markdown with its lines changed, but for those of fenced code."""
    fence = None
    lines = []
    for line in text.splitlines():
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark:
            fence = None if fence else mark[1]
        lines.append(line if fence or mark else change(line))
    return "\n".join(lines) + "\n"


def headings(page):
    found = set()

    def note(line):
        if heading := re.match(r"#+ (.*)", line):
            found.add(anchor(heading[1]))
        return line

    outside_code((ROOT / page).read_text(), note)
    return found


def readable_page(page, pages, problems):
    """A page as Doxygen should read it: labels behind headings, links by labels, files by their names."""
    text = re.sub(r"<!--.*?-->\n?", "", (ROOT / page).read_text(), flags=re.S)
    first = True
    placed = set()

    def picture(match):
        file = (ROOT / page).parent / match[2]
        if not file.is_file():
            problems.append(f"{page}: no {match[2]}")
        return f'<div class="picture"><img src="{file.name}" alt="{html.escape(match[1])}"></div>'

    def link(match):
        shown, target = match[1], match[2]
        if re.match(r"\w+:", target):
            return match[0]
        path, _, fragment = target.partition("#")
        file = (ROOT / page).parent / unquote(path) if path else ROOT / page
        if not file.exists():
            problems.append(f"{page}: no {target}")
            return shown
        name = file.resolve().relative_to(ROOT).as_posix()
        if name not in pages and (file / "README.md").is_file():
            name += "/README.md"
        if name not in pages:  # a file of the project, which the site does not have
            plain = shown.strip("`")
            return f"`{name}`" if plain in (name, file.name, path, path.rstrip("/")) else f"{shown} (`{name}`)"
        if fragment and fragment not in pages[name]:
            problems.append(f"{page}: no heading #{fragment} in {name}")
        if name in BELOW.get(page, ()) and name not in placed and not fragment:
            placed.add(name)
            return f"@subpage {label(name)} \"{shown.strip('`')}\""
        return f"[{shown}](@ref {label(name, fragment)})"

    def change(line):
        nonlocal first
        line = re.sub(r"!\[([^\]]*)\]\((\S+\.svg)\)", picture, line)
        line = re.sub(r"\[((?:[^\[\]]|`[^`]*`)*)\]\(([^()\s]+)\)", link, line)
        heading = re.match(r"(#+ .*)", line)
        if heading and first:
            first = False
            return f"{line} {{#{'mainpage' if page == 'README.md' else label(page)}}}"
        if heading and page == "README.md":  # headings of the front page are not in the site's tree, beside the pages
            level, name = len(heading[1].split()[0]) - 1, heading[1].lstrip("# ")
            return f"@anchor {label(page, anchor(name))}\n<h{level}>{name}</h{level}>\n"
        return f"{line} {{#{label(page, anchor(heading[1].lstrip('# ')))}}}" if heading else line

    # Links may run over the end of a line.
    text = re.sub(r"\[([^\[\]`]*)\n\s*([^\[\]`]*)\]\(", r"[\1 \2](", text)
    # To Doxygen a ' would end code that one ` begins.
    quoted = re.compile(r"(```.*?```)|`([^`]+)`", flags=re.S)
    return quoted.sub(lambda code: f"``{code[2]}``" if code[2] and "'" in code[2] else code[0], outside_code(text, change))


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def broken_links(site):
    """Links of the site that lead nowhere within it."""
    files = {}
    for file in site.rglob("*.html"):
        text = file.read_text(errors="replace")
        text = re.sub(r"<(script|style)\b(?![^>]*\bsrc=).*?</\1>", "", text, flags=re.S)
        ids = {html.unescape(i) for i in re.findall(r"\b(?:id|name)=[\"']([^\"']+)[\"']", text)}
        files[file.resolve()] = text, ids
    for file, (text, _) in files.items():
        if "ilinebr" in text or re.search(r"\{#\w+\}|<a [^>]*>[^<]*`[^<]*</a>", text):
            yield f"{file.name}: markup among the text"
        for link in re.findall(r"\b(?:href|src)=[\"']([^\"']+)[\"']", text):
            link = html.unescape(link)
            # (Doxygen links to a list of nested classes also where all of them are private.)
            if re.match(r"[a-z]+:|//", link) or link in ("#", "#nested-classes"):
                continue
            path, _, fragment = link.partition("#")
            target = (file.parent / unquote(path)).resolve() if path else file
            if not target.exists():
                yield f"{file.name}: no {link}"
            elif fragment and target in files and unquote(fragment) not in files[target][1]:
                yield f"{file.name}: no place {link}"


def undocumented(folder):
    """Enumerators and empty types without a comment, of which Doxygen 1.9 says nothing."""
    for file in sorted(folder.glob("*.xml")):
        text = file.read_text()
        for enum in re.findall(r'<memberdef kind="enum".*?</memberdef>', text, flags=re.S):
            place = re.search(r'<location file="([^"]*)" line="(\d+)"', enum)
            for value in re.findall(r"<enumvalue.*?</enumvalue>", enum, flags=re.S):
                if "<para>" not in value:
                    name = re.search(r"<name>(\w+)</name>", value)[1]
                    yield f"lib/{place[1]}:{place[2]}: enumerator {name} is not documented"
        own = re.sub(r"<sectiondef.*?</sectiondef>", "", text, flags=re.S)
        if re.search(r'<compounddef [^>]*kind="(struct|class|union)"[^>]*prot="public"', own) and "<para>" not in own:
            name = html.unescape(re.search(r"<compoundname>(.*?)</compoundname>", own)[1])
            place = re.search(r'<location file="([^"]*)" line="(\d+)"', own)
            yield f"lib/{place[1]}:{place[2]}: {name} is not documented"


def messages_of(source):
    """Texts of a header's static assertions."""
    for assertion in re.findall(r"\bstatic_assert\((.*?)\);", source, flags=re.S):
        yield "".join(re.findall(r'"([^"\n]*)"', assertion))


def message_label(message):
    return f"message_{zlib.crc32(message.encode()):08x}"


def compiler_messages():
    """A page with the text of every static assertion, to be searched."""
    headers = {}
    for file in sorted((ROOT / "lib/attune").rglob("*.hpp")):
        for message in messages_of(file.read_text()):
            if message.startswith("attune"):
                headers.setdefault(message, {})[f"`{file.relative_to(ROOT / 'lib/attune').as_posix()}`"] = None
    rows = []
    for message, files in sorted(headers.items()):
        text = re.sub(r"([|*@\\#])", r"\\\1", html.escape(message.replace("`", ""), quote=False))
        rows.append(f"| @anchor {message_label(message)} {text} | {', '.join(files)} |")
    return ("# Compiler messages {#page_compiler_messages}\n\nThe text of every static assertion: the class that refuses, and the remedy. "
            "@ref page_errors explains the common ones.\n\n| message | header |\n|---|---|\n" + "\n".join(rows) + "\n") if rows else ""


def found_by_search(pages):
    """(text, link, shown beside it): headings, statuses and their texts, and messages of compilers and of the exporter."""
    status = ROOT / "lib/attune/core/status.hpp"
    texts = {name: "".join(re.findall(r'"([^"]*)"', literals)) for name, literals in
             re.findall(r'\{Status::(k\w+),\s*((?:"[^"]*"\s*)+)\}', status.read_text() if status.is_file() else "")}
    for page in pages:
        if page == "README.md":
            continue
        file, title, place, found = f"{label(page)}.html", "", "", []

        def note(line):
            nonlocal title, place
            if heading := re.match(r"#+ (.*)", line):
                plain = heading[1].replace("`", "")
                if title:  # Doxygen has the titles of pages
                    place = f"#{label(page, anchor(heading[1]))}"
                    found.append((plain, file + place, title))
                title = title or plain
            elif page.endswith("/errors.md") and (row := re.match(r"\| (`k\w+`(?:, `k\w+`)*) \|", line)):
                for name in re.findall(r"k\w+", row[1]):
                    found.extend((text, file + place, title) for text in (name, texts.get(name)) if text)
            elif page.endswith("/errors.md") and (question := re.match(r"\*\*([^*]+)\*\*", line)):
                found.append((question[1].replace("`", ""), file + place, title))
            elif page.endswith("/limits.md") and (row := re.match(r"\| `([^`]+)` \|", line)):
                found.append((row[1], file + place, title))
            return line

        outside_code((ROOT / page).read_text(), note)
        yield from found
    for file in sorted((ROOT / "lib/attune").rglob("*.hpp")):
        for message in messages_of(file.read_text()):
            if message.startswith("attune"):
                link = f"page_compiler_messages.html#{message_label(message)}"
                whose, _, text = message.partition(": ")
                yield from ((message, link, "Compiler messages"), (text or message, link, f"Compiler messages, {whose}"))


def add_to_search(site, entries):
    """Doxygen's index of all names finds these texts, too."""
    initials = re.search(r'0: "([^"]*)"', (site / "search/searchdata.js").read_text())
    by_initial = {}
    for text, link, beside in dict.fromkeys(entries):
        by_initial.setdefault(text[0].lower(), []).append((text, link, beside))
    for initial, found in by_initial.items():
        number = initials[1].find(initial)
        if number < 0:
            continue
        file = site / f"search/all_{number:x}.js"
        lines = []
        for text, link, beside in found:
            name = "".join(c if re.match(r"[a-z0-9\u0080-\uffff]", c) else f"_{ord(c):02x}" for c in text.lower())
            shown, scope = (html.escape(part).replace("&#x27;", "&#39;") for part in (text, beside))
            lines.append(f"  ['{name}_{1000000 + len(lines)}',['{shown}',['../{link}',1,'{scope}']]]")
        body = file.read_text().rstrip().removesuffix("];").rstrip()
        file.write_text(body + ",\n" + ",\n".join(lines) + "\n];\n")


def show_code_in_links(site):
    """Doxygen shows the quotes of code in a link."""
    for file in site.glob("*.html"):
        text = file.read_text()
        shown = re.sub(r"(<a [^>]*>)([^<`]*)`([^`<]+)`([^<`]*)(?=</a>)", r"\1\2<code>\3</code>\4", text)
        if shown != text:
            file.write_text(shown)


def header(folder):
    """Doxygen's own head of a page, and the theme's scripts in it."""
    subprocess.run(["doxygen", "-w", "html", "header.html", "footer.html", "style.css"], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    scripts = "".join(f'<script type="text/javascript" src="$relpath^{script.name}"></script>\n'
                      for script in sorted(THEME.glob("*.js")) if script.stem != "doxygen-awesome-interactive-toc")
    start = ("<script type=\"text/javascript\">\nDoxygenAwesomeDarkModeToggle.init();\n"
             "DoxygenAwesomeFragmentCopyButton.init();\nDoxygenAwesomeParagraphLink.init();\n</script>\n")
    file = folder / "header.html"
    file.write_text(file.read_text().replace("</head>", scripts + start + "</head>"))
    return file


def check_links(pages):
    """Every page whose links and pictures are there passes."""
    failed = 0
    for page in pages:
        problems = []
        readable_page(page, pages, problems)
        failed += bool(problems)
        for problem in problems:
            print(f"FAILED {problem}")
    print(f"{len(pages) - failed} passed, {failed} failed")
    return 1 if failed else 0


def main():
    if "--help" in sys.argv:
        print(__doc__.strip())
        return 0
    pages = {page: headings(page) for page in PAGES if (ROOT / page).is_file()}
    if "--links" in sys.argv:
        return check_links(pages)
    if subprocess.run([ROOT / "cmake/bootstrap.sh", "docs"]).returncode:
        return 1
    shutil.rmtree(OUT, ignore_errors=True)
    problems = []
    sentences = names(ROOT / HERE / "names.txt")
    for file in sorted((ROOT / "lib/attune").rglob("*.hpp")):
        write(SOURCE / file.relative_to(ROOT / "lib"), readable(file.read_text(), sentences))
    # A namespace without a comment would keep Doxygen silent about what is in it.
    write(SOURCE / "attune/namespaces.hpp", "/** All that runs everywhere. */ namespace attune {}\n"
          "/** What needs an operating system: threads, machines, files, pages. */ namespace attune::host {}\n")
    for page in pages:
        write(SOURCE / page, readable_page(page, pages, problems))

    messages = compiler_messages()
    if messages:
        write(SOURCE / "compiler-messages.md", messages)
    extra = " ".join(f'"{file}"' for file in [*THEME.glob("*.js"), *(ROOT / "examples/guide/pictures").glob("*.svg")])
    sheets = [THEME / "doxygen-awesome.css", THEME / "doxygen-awesome-sidebar-only.css",
              THEME / "doxygen-awesome-sidebar-only-darkmode-toggle.css", ROOT / HERE / "style.css"]
    settings = (ROOT / HERE / "Doxyfile").read_text() + f"""
INPUT = {" ".join(f'"{SOURCE / page}"' for page in pages)} {f'"{SOURCE / "compiler-messages.md"}"' if messages else ""} "{SOURCE / "attune"}"
OUTPUT_DIRECTORY = "{OUT}"
STRIP_FROM_PATH = "{SOURCE}"
STRIP_FROM_INC_PATH = "{SOURCE}"
LAYOUT_FILE = "{ROOT / HERE / "layout.xml"}"
HTML_HEADER = "{header(SOURCE)}"
HTML_EXTRA_STYLESHEET = {" ".join(f'"{sheet}"' for sheet in sheets)}
HTML_EXTRA_FILES = {extra}
USE_MDFILE_AS_MAINPAGE = "{SOURCE / "README.md"}"
"""
    doxygen = subprocess.run(["doxygen", "-"], input=settings, capture_output=True, text=True)
    for line in (doxygen.stdout + doxygen.stderr).splitlines():
        line = line.replace(f"{SOURCE}/attune/", "lib/attune/").replace(f"{SOURCE}/", "")
        if line.strip() and line not in problems:
            problems.append(line)
    show_code_in_links(OUT / "html")
    add_to_search(OUT / "html", found_by_search(pages))
    problems += dict.fromkeys(undocumented(OUT / "xml"))
    problems += sorted(set(broken_links(OUT / "html")))
    for problem in problems:
        print(problem)
    print(f"{OUT.relative_to(ROOT)}/html/index.html" if not problems else f"{len(problems)} problems")
    return 1 if problems or doxygen.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
