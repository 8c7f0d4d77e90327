"""Locks by a library of Python, as it is told on standard input; one lock at a time.

    peer.py LIBRARY URL

    try|wait exclusive|shared NAME   granted, or refused
    release                          released
"""

import sys
from urllib.parse import unquote, urlsplit


def django_pglock(url):
    import django
    from django.conf import settings

    server = urlsplit(url)
    connection = {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": server.hostname,
        "PORT": server.port,
        "USER": unquote(server.username),
        "PASSWORD": unquote(server.password or ""),
        "NAME": server.path[1:],
    }
    apps = ["pgactivity", "pglock"]
    settings.configure(DATABASES={"default": connection}, INSTALLED_APPS=apps)
    django.setup()
    import pglock

    class Lock:
        def __init__(self, name, waits, shared):
            timeout = None if waits else 0
            self.lock = pglock.advisory(name, timeout=timeout, shared=shared)
            self.acquire = self.lock.acquire
            self.release = self.lock.release

    return Lock


def sqlalchemy_dlock(url):
    import sqlalchemy
    from sqlalchemy_dlock import create_sadlock

    scheme = url.index(":")
    engine = sqlalchemy.create_engine("postgresql+psycopg" + url[scheme:])
    connection = engine.connect()

    class Lock:
        def __init__(self, name, waits, shared):
            self.lock = create_sadlock(connection, name, shared=shared)
            self.waits = waits
            self.release = self.lock.release

        def acquire(self):
            return self.lock.acquire(block=self.waits)

    return Lock


def main():
    library, url = sys.argv[1:]
    make = {"django-pglock": django_pglock, "sqlalchemy-dlock": sqlalchemy_dlock}
    Lock = make[library](url)
    sys.stdin.reconfigure(encoding="utf-8")
    held = None
    print("ready", flush=True)
    for line in sys.stdin:
        verb, *what = line.rstrip("\n").split(" ", 2)
        if verb == "release":
            held.release()
            print("released", flush=True)
        else:
            mode, name = what
            held = Lock(name, verb == "wait", mode == "shared")
            print("granted" if held.acquire() else "refused", flush=True)


main()
