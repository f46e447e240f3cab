// The release of these headers. CMakeLists.txt has the same (compared by tests/packaging/packages).
#pragma once

#define ATTUNE_VERSION_MAJOR 2
#define ATTUNE_VERSION_MINOR 0
#define ATTUNE_VERSION_PATCH 0

/// Versions as numbers: #if ATTUNE_VERSION >= ATTUNE_VERSION_OF(1, 1, 0)
#define ATTUNE_VERSION_OF(major, minor, patch) ((major)*10000 + (minor)*100 + (patch))
#define ATTUNE_VERSION ATTUNE_VERSION_OF(ATTUNE_VERSION_MAJOR, ATTUNE_VERSION_MINOR, ATTUNE_VERSION_PATCH)
