# What every file that includes attune is compiled with: C++20, and one rounding for each operation.
Import("env", "projenv")  # noqa: F821: by PlatformIO

for environment in (env, projenv):  # noqa: F821
    others = [flag for flag in environment.get("CXXFLAGS", []) if not str(flag).startswith("-std=")]
    environment.Replace(CXXFLAGS=others + ["-std=gnu++20", "-ffp-contract=off"])
