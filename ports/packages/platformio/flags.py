# What every file that includes attune is compiled with: C++20, and one rounding for each operation. They stand behind all other
# options of the command, because the last one of a kind wins: build_flags, those of a framework, and those of later scripts.
import sys

Import("env", "projenv")  # noqa: F821: by PlatformIO

FLAGS = "-std=gnu++20 -ffp-contract=off"
for environment in (env, projenv):  # noqa: F821
    command = str(environment.get("CXXCOM", ""))
    if "$SOURCES" not in command:
        sys.stderr.write(f"attune: the command for C++ is not known, so its last options cannot be {FLAGS}: {command!r}\n")
        environment.Exit(1)
    elif FLAGS not in command:
        environment.Replace(CXXCOM=command.replace("$SOURCES", f"{FLAGS} $SOURCES"))
