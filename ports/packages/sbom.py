"""The software bill of materials of a release: SPDX 2.3 in JSON (https://spdx.github.io/spdx-spec/v2.3)."""
import hashlib
import json
import time

# The archive of the sources contains a data set (examples/digits/DATA.md); packages contain the library alone.
LICENSE_OF_SOURCES = "{license} AND CC-BY-4.0"
EIGEN_LICENSE = "MPL-2.0"


def package(identifier, name, version, location, license, **more):
    return {"SPDXID": f"SPDXRef-{identifier}", "name": name, "versionInfo": version, "downloadLocation": location,
            "filesAnalyzed": False, "licenseConcluded": license, "licenseDeclared": license, "copyrightText": "NOASSERTION", **more}


def document(values, archives, sources, seconds):
    """The document for archives, bytes by file name; `sources` names the archive of the sources. Equal arguments, equal text."""
    packages, relationships = [], []

    def relate(one, kind, other):
        relationships.append({"spdxElementId": f"SPDXRef-{one}", "relationshipType": kind, "relatedSpdxElement": f"SPDXRef-{other}"})

    for name, data in sorted(archives.items()):
        identifier = "Archive-" + name.replace("_", "-")
        license = LICENSE_OF_SOURCES.format(license=values["LICENSE"]) if name == sources else values["LICENSE"]
        packages.append(package(identifier, "attune", values["VERSION"], f"{values['HOMEPAGE']}/releases/{name}", license,
                                packageFileName=name, supplier=f"Organization: {values['AUTHORS']}",
                                checksums=[{"algorithm": "SHA256", "checksumValue": hashlib.sha256(data).hexdigest()}]))
        relate("DOCUMENT", "DESCRIBES", identifier)
        relate(identifier, "DEPENDS_ON", "Eigen")
    packages.append(package("Eigen", "Eigen", values["EIGEN"], "https://gitlab.com/libeigen/eigen", EIGEN_LICENSE,
                            comment="Header-only, and not included: version 3.4 or 5 of the user's own."))
    return json.dumps({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"attune-{values['VERSION']}",
        "documentNamespace": f"{values['HOMEPAGE']}/releases/attune-{values['VERSION']}.spdx.json",
        "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds)),
                         "creators": [f"Organization: {values['AUTHORS']}", "Tool: attune-release"]},
        "packages": packages, "relationships": relationships}, indent=1) + "\n"
