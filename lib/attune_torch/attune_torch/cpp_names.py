"""Names that a folder cannot have, as its name becomes a namespace, a library and a header."""
import re

KEYWORDS = frozenset("""alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class co_await
co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default delete do double dynamic_cast else enum
explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private
protected public register reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch template this
thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq""".split())
# Names that headers of the C library put beside a program's own; of many, those that a model might have.
C_LIBRARY = frozenset("""abort abs acos acosh asin asinh atan atan2 atanh basename calloc cbrt ceil clock clone copysign cos cosh ctime
daylight difftime div drem erf erfc errno exit exp exp2 expm1 fabs fdim ffs finite floor fma fmax fmin fmod free frexp gamma getc hypot
index j0 j1 jn labs ldexp lgamma log log10 log1p log2 logb lround malloc memcpy memmove memset modf nan pow printf putc puts qsort rand
random realloc remainder remove rename rewind rindex rint round scanf select significand sin sinh sqrt srand stderr stdin stdout system tan
tanh time timezone tolower toupper trunc y0 y1 yn""".split())
HEADERS = frozenset("assert ctype errno float limits locale math setjmp stdarg stdbool stddef stdint stdio stdlib string time wchar".split())
RESERVED = frozenset(["attune", "Eigen", "std", "main", "posix", "arguments", "console", "instructions", "port", "ticks"])


def refuse_name(name):
    """Raises ValueError of a folder's name that is not a namespace of one's own."""
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise ValueError(f"'{name}' is to be a C++ namespace: letters, digits and _, no digit first")
    if name.endswith("_file"):
        raise ValueError(f"'{name}' is what the weights of a model '{name.removesuffix('_file')}' are called in C++: take a name that does not end in _file")
    kinds = {"a keyword of C++": KEYWORDS, "a name of the C library": C_LIBRARY | HEADERS, "a name that programs with attune have": RESERVED}
    owner = next((kind for kind, names in kinds.items() if {name, name.lower()} & names), None)
    if owner:
        raise ValueError(f"'{name}' is {owner}, and the folder's name becomes a C++ namespace and a library: take another one, as {name}_model")
