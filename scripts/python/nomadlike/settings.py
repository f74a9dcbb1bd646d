"""Where the cluster is and who asks: found as the command line finds it.

In this order: arguments, NOMADLIKE_ADDR, NOMADLIKE_TOKEN, NOMADLIKE_CACERT and NOMADLIKE_PROJECT, and
what `nomadlike login` remembered in context.json.
"""

import json
import os
import tempfile
from typing import Any, Dict, List, Mapping, Optional, Tuple
from urllib.parse import urlsplit

from .errors import Error, Invalid
from .texts import text

DEFAULT_ADDRESS = "https://127.0.0.1:4646"
DEFAULT_PORT = 4646
CONTEXT_FILE = "context.json"


def failure(kind: type, id: str, language: str, **params: Any) -> Error:
    """An error of this package."""
    values = {key: str(value) for key, value in params.items()}
    error = kind(id, text(language, id, values), text(language, id + ".hint", values), values)
    assert isinstance(error, Error)
    return error


def context_dir(env: Mapping[str, str]) -> Optional[str]:
    """The directory of what is remembered; None where there is no home."""
    if env.get("NOMADLIKE_CONFIG_DIR"):
        return env["NOMADLIKE_CONFIG_DIR"]
    if os.path.isabs(env.get("XDG_CONFIG_HOME", "")):
        return os.path.join(env["XDG_CONFIG_HOME"], "nomadlike")
    if env.get("HOME"):
        return os.path.join(env["HOME"], ".config", "nomadlike")
    return None


def language_of(env: Mapping[str, str]) -> str:
    """The language that the locale asks for: en or zh."""
    for value in (env.get("NOMADLIKE_LANG"), env.get("LC_ALL"), env.get("LC_MESSAGES"), env.get("LANG")):
        if value:
            return "zh" if value.lower().startswith("zh") else "en"
    return "en"


def parse_addresses(written: str, language: str) -> List[Tuple[str, int]]:
    """Hosts and ports of addresses that stand between commas."""
    found = []
    for one in written.split(","):
        one = one.strip()
        try:
            parts = urlsplit(one if "://" in one else "https://" + one)
            host, port = parts.hostname, parts.port
        except ValueError:
            host = port = None
            parts = urlsplit("")
        if not host or parts.scheme != "https" or parts.path not in ("", "/") or parts.query or parts.fragment or parts.username is not None:
            raise failure(Invalid, "python.bad_address", language, address=one)
        found.append((host, port or DEFAULT_PORT))
    return found


class Settings:
    """How a client reaches its cluster."""

    def __init__(
        self,
        address: Optional[str] = None,
        token: Optional[str] = None,
        ca: Optional[str] = None,
        project: Optional[str] = None,
        language: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
    ):
        env = os.environ if env is None else env
        self.language = language or language_of(env)
        self.dir = context_dir(env)
        remembered = self.remembered()
        self.addresses = parse_addresses(address or env.get("NOMADLIKE_ADDR") or remembered.get("address") or DEFAULT_ADDRESS, self.language)
        self.token = (token or env.get("NOMADLIKE_TOKEN") or remembered.get("token") or "").strip()
        self.project = project or env.get("NOMADLIKE_PROJECT") or remembered.get("project") or ""
        ca = ca or env.get("NOMADLIKE_CACERT")
        self.remembers_ca = not ca  # another program may learn the one that takes its place
        self.ca = self._read_ca(ca) if ca else remembered.get("ca", "")
        if not self.ca:
            raise failure(Invalid, "python.no_ca", self.language)
        # When the end of the remembered token is to be put off; "" for never.
        self.extend_at = remembered.get("extend_at") or "" if self.token and self.token == remembered.get("token") else ""

    def _read_ca(self, ca: str) -> str:
        if "-----BEGIN" in ca:
            return ca
        try:
            with open(ca, encoding="ascii") as file:
                return file.read()
        except (OSError, ValueError) as err:
            raise failure(Invalid, "python.bad_ca", self.language, reason=err) from err

    def remembered(self) -> Dict[str, Any]:
        """What `nomadlike login` remembered; nothing is {}."""
        if self.dir is None:
            return {}
        path = os.path.join(self.dir, CONTEXT_FILE)
        try:
            with open(path, encoding="utf-8") as file:
                context = json.load(file)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as err:
            raise failure(Invalid, "python.bad_context", self.language, path=path, reason=err) from err
        return context if isinstance(context, dict) else {}

    def remember(self, changes: Dict[str, Any]) -> None:
        """Writes changes of what is remembered, in one step, unless somebody signed in meanwhile."""
        now = self.remembered()
        if self.dir is None or now.get("token") != self.token:
            return
        now.update(changes)
        handle, path = tempfile.mkstemp(prefix=CONTEXT_FILE + ".", dir=self.dir)  # mode 0600
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(now, file, indent=2)
                file.write("\n")
            os.replace(path, os.path.join(self.dir, CONTEXT_FILE))
        except OSError:
            os.unlink(path)
            raise
