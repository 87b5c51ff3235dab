"""Run a fake IntelligenceBank on this machine, to try things out without an account."""

import socket
import time
from argparse import ArgumentParser, ArgumentTypeError
from dataclasses import fields
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from resources_app.intelligencebank.fake import demo
from resources_app.intelligencebank.fake.keeping import keep_sessions
from resources_app.intelligencebank.fake.profile import FAULTS, STAGES, Fault, Profile, switched
from resources_app.intelligencebank.fake.server import ROLES, serving
from resources_app.intelligencebank.fake.service import FakeIB


class Command(BaseCommand):
    help = (
        "Serves a fake IntelligenceBank on four ports until Ctrl-C: platform, older API, newer API,"
        " CDN."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=9400, help="the first of four ports")
        parser.add_argument(
            "--sockets",
            type=_sockets,
            default=[],
            metavar="FD,FD,FD,FD",
            help="inherited sockets instead of ports",
        )
        parser.add_argument(
            "--sessions", type=Path, metavar="FILE", help="keep sessions there, across restarts"
        )
        parser.add_argument(
            "--resources",
            type=int,
            default=0,
            help="a tenant of this many generated resources as well",
        )
        parser.add_argument(
            "--fault",
            type=_fault,
            action="append",
            default=[],
            metavar="KIND[@STAGE]",
            help=(
                f"calls fail, all or those of one stage; kinds: {' '.join(FAULTS)}; stages:"
                f" {' '.join(STAGES)}"
            ),
        )
        parser.add_argument(
            "--set",
            action="append",
            default=[],
            dest="switches",
            metavar="NAME=VALUE",
            help=(
                "behave differently where the documents are silent; names:"
                f" {' '.join(one.name for one in fields(Profile))}"
            ),
        )

    def handle(
        self, *_args: Any, port: int, resources: int, verbosity: int, **options: Any
    ) -> None:
        fake = FakeIB(_profile(options["switches"]), session_hours=120)
        fake.faults = options["fault"]
        demo.fill(fake)
        if resources:
            demo.fill_large(fake, resources)
        if options["sessions"]:
            keep_sessions(fake, options["sessions"])
        with serving(fake, first_port=port, sockets=options["sockets"]):
            if verbosity:
                self._announce(fake)
            try:
                while True:
                    time.sleep(3600)
            except KeyboardInterrupt:
                return

    def _announce(self, fake: FakeIB) -> None:
        origins = ",".join(fake.urls[role] for role in ROLES)
        tenants = ", ".join(fake.tenants)
        self.stdout.write(f"A fake IntelligenceBank is running, with the tenants {tenants}.")
        self.stdout.write(f"  platform  {fake.urls['platform']}")
        self.stdout.write(
            f"  account   {demo.SERVICE} (of the large tenant {demo.LARGE_SERVICE}), password"
            f" {demo.PASSWORD}"
        )
        self.stdout.write(f"  the site needs BACKLOG_IB_LOCAL_ORIGINS={origins}")
        self.stdout.flush()


def _sockets(text: str) -> list[socket.socket]:
    try:
        sockets = [socket.socket(fileno=int(number)) for number in text.split(",")]
    except (ValueError, OSError):
        raise ArgumentTypeError(f"{text!r} does not name open sockets.") from None
    if len(sockets) != len(ROLES):
        raise ArgumentTypeError(
            f"{len(ROLES)} sockets are needed, one for each of {' '.join(ROLES)}."
        )
    return sockets


def _fault(text: str) -> Fault:
    kind, _, stage = text.partition("@")
    if kind not in FAULTS or (stage and stage not in STAGES):
        raise ArgumentTypeError(f"{text!r} is not KIND or KIND@STAGE as --help lists them.")
    return Fault(kind, stage, times=10**9)


def _profile(switches: list[str]) -> Profile:
    profile = Profile()
    for switch in switches:
        name, _, value = switch.partition("=")
        try:
            profile = switched(profile, name, value)
        except ValueError as error:
            raise CommandError(f"--set {switch}: {error}") from None
    return profile
