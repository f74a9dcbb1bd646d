"""Builds the wheel of this package, for pip, with nothing but the standard library (PEP 517)."""

import base64
import hashlib
import os
import re
import zipfile

ROOT = os.path.dirname(os.path.abspath(__file__))
MADE = (1980, 1, 1, 0, 0, 0)  # the same files give the same bytes


def _version():
    with open(os.path.join(ROOT, "nomadlike", "__init__.py"), encoding="utf-8") as file:
        return re.search(r'^__version__ = "(.+)"$', file.read(), re.MULTILINE).group(1)


def get_requires_for_build_wheel(config_settings=None):
    return []


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    version = _version()
    about = "nomadlike-%s.dist-info/" % version
    files = {}
    for name in sorted(os.listdir(os.path.join(ROOT, "nomadlike"))):
        if name.endswith((".py", ".typed")):
            with open(os.path.join(ROOT, "nomadlike", name), "rb") as file:
                files["nomadlike/" + name] = file.read()
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        readme = file.read()
    files[about + "METADATA"] = (
        "Metadata-Version: 2.1\nName: nomadlike\nVersion: %s\nSummary: A client of nomadlike clusters, in the standard library alone\n"
        "License: MPL-2.0\nRequires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n%s" % (version, readme)
    ).encode()
    files[about + "WHEEL"] = b"Wheel-Version: 1.0\nGenerator: nomadlike\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += "%s,sha256=%s,%d\n" % (name, digest, len(data))
    files[about + "RECORD"] = (record + about + "RECORD,,\n").encode()
    wheel = "nomadlike-%s-py3-none-any.whl" % version
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, MADE)
            entry.external_attr = 0o644 << 16
            packed.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return wheel


if __name__ == "__main__":
    print(build_wheel(os.getcwd()))
