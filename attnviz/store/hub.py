"""Whether the hub of Hugging Face can be asked. Knows sockets and environment variables; asks the hub for nothing.

Without a network its libraries would try for half a minute before they say so: here the host is looked up first.
"""

import os
import socket
from contextlib import suppress
from threading import Thread
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from huggingface_hub import constants

LOOK_UP_SECONDS = 0.5  # a resolver that answers does so in milliseconds; one that does not would take ten seconds
CONNECT_SECONDS = 3.0
TRUE = {"1", "ON", "YES", "TRUE"}


def explain_offline(*variables: str) -> str:
    """Explain why the hub cannot be asked; "" where it can. A proxy, where there is one, stands for the hub.

    `variables` of the environment that forbid it, besides HF_HUB_OFFLINE.
    """
    if constants.HF_HUB_OFFLINE or any(os.environ.get(name, "").upper() in TRUE for name in variables):
        return "HF_HUB_OFFLINE is set"
    endpoint = urlsplit(constants.ENDPOINT)
    proxies = {} if endpoint.hostname and proxy_bypass(endpoint.hostname) else getproxies()
    proxy = proxies.get(endpoint.scheme) or proxies.get("all")
    asked = urlsplit(proxy if proxy and "://" in proxy else f"//{proxy}") if proxy else endpoint
    try:
        port = asked.port or (443 if asked.scheme == "https" else 80)
    except ValueError:  # a port that is no number
        port = 0
    if not asked.hostname or not port:
        return f"{proxy or constants.ENDPOINT!r} is not an address"
    return "" if _can_connect(asked.hostname, port) else f"{asked.hostname} cannot be reached"


def _can_connect(host: str, port: int) -> bool:
    """Check whether the host's name resolves and its port takes a connection, each within its seconds."""
    found: list[object] = []

    def look_up() -> None:
        with suppress(OSError):
            found.extend(socket.getaddrinfo(host, port))

    thread = Thread(target=look_up, daemon=True)  # a look-up cannot be stopped, only left alone
    thread.start()
    thread.join(LOOK_UP_SECONDS)
    with suppress(OSError):
        if found:
            socket.create_connection((host, port), timeout=CONNECT_SECONDS).close()
            return True
    return False
