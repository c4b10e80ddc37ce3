"""A case written by hand as a program that stands alone: it holds the functions of the suite that play the case."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Final

from trinity_conformance.playing import capabilities, commits, engine_refusals, meanwhile, refusals, sink_checks
from trinity_conformance.playing.again import case_of
from trinity_conformance.playing.cases import Case
from trinity_conformance.report.bundle import Bundle
from trinity_conformance.report.script import TAIL, catalog_of, titled

_HEAD: Final = '''"""{title}

It plays a case of the check '{check}' of trinity-conformance, by the functions of the suite that do so.

{story}
"""

from __future__ import annotations

import tempfile
from collections import Counter
from contextlib import nullcontext

import trinity
{imports}


class NonConformance(AssertionError):
    """The adapter did what the rules do not allow."""

    def __init__(self, check, message):
        super().__init__(f"{{check}}: {{message}}")
        self.message = message


class LeftToSpark(Exception):
    """This process does not execute it, and without Spark nothing is shown by it."""


class Record:
    """Notes nothing of what is done."""

    def __getattr__(self, name):
        return lambda *_: nullcontext()


class Subject:
    """The adapter, as the suite's functions know it."""

    def __init__(self, session):
        self.session, self.executors = session, [{executor!r}]
        self.spark = None if session.engine == "local" else session.spark

    def executed_by(self, executor):
        pass

    def run(self, action):
        try:
            return action()
        except trinity.TrinityError as error:
            if " needs Spark: " in error.message:
                raise LeftToSpark from error
            raise


class Tally:
    """Counts what was played, for nobody."""

    def __init__(self):
        self.observations, self.coverage = Counter(), Record()


def Recorded(table, record):
    return table


def in_words(value):
    return ""


def Case(*_, **__):
    return None


def shows(findings):
    for finding in findings:
        raise finding


{definitions}


def play(warehouse):
    settings = {{"connector": {connector}, "warehouse": warehouse{options}}}
    session = trinity.connect(catalogs={{"c": settings}}, catalog="c", engine={engine!r})
    {played}
'''
_GIVEN: Final = frozenset((
    "NonConformance", "LeftToSpark", "Record", "Subject", "Tally", "Recorded", "Case", "in_words", "shows", "session",
    "trinity", "Counter", "nullcontext", "tempfile",
))  # fmt: skip
"""Names that the program defines already."""
_TEST: Final = """

def test_case_{id}(tmp_path):
    play(str(tmp_path))
"""
_SUBJECT: Final = "Subject(session), Tally()"
_PLAYED: Final[Mapping[str, tuple[ModuleType, Callable[[str, Any], str]]]] = {
    "commits": (commits, lambda _, case: f"{case.__name__}(_Bench(session, session.capabilities('c'), Record()))"),
    "merge-sinks": (sink_checks, lambda _, case: f"{case.__name__}(SinkBench(session, 'c'))"),
    "concurrency": (meanwhile, lambda _, case: f"{case.__name__}(_Bench(session, Record()))"),
    "bad-input": (refusals, lambda name, _: _shows(f"refuse_all({_SUBJECT}, {_named(name, 'REFUSALS')})")),
    "engine-options": (
        engine_refusals,
        lambda name, _: _shows(f"refuse_engines({_SUBJECT}, {_named(name, 'ENGINE_REFUSALS')})"),
    ),
    "capabilities": (
        capabilities,
        lambda name, _: _shows(f"verify({_SUBJECT}, {_probe(name)}).findings"),
    ),
}
"""Check -> the module of its cases, and a function: name and object of a case -> the source text that plays it."""


def _shows(findings: str) -> str:
    return f"shows({findings})"


def _named(name: str, cases: str) -> str:
    return f"[case for case in {cases} if case.name == {name!r}]"


def _probe(name: str) -> str:
    probes = "OF_CALLS" if any(c.value == name for c in capabilities.OF_CALLS) else "PROBES"
    return f"{{c: probe for c, probe in {probes}.items() if c.value == {name!r}}}"


def case_script(case: Case, connector: str, title: str, options: Mapping[str, str] | None = None) -> str:
    """Return a program that ends with an error where the case finds something.

    Arguments as for :func:`~trinity_conformance.report.script.script`, with a case in place of the history.

    Raises:
        ValueError: this version of the suite has no such case.
    """
    return _program(case, connector, title, options or {}) + TAIL


def case_test(case: Case, connector: str, title: str, options: Mapping[str, str] | None = None) -> str:
    """Return the program of :func:`case_script`, with its errors, as a pytest test."""
    return _program(case, connector, title, options or {}) + _TEST.format(id=case.id)


def _program(case: Case, connector: str, title: str, options: Mapping[str, str]) -> str:
    module, played = _PLAYED[case.check]
    text = played(case.name, case_of(case))
    bundle = Bundle(_GIVEN)
    bundle.add(text, module.__name__)
    origin, given = catalog_of(connector, options)
    return _HEAD.format(
        title=titled(title),
        check=case.check,
        story=titled(case.story),
        imports="\n".join(filter(None, (bundle.imports, origin))),
        executor=case.executor,
        definitions=bundle.definitions,
        engine="local" if case.executor == "local" else "auto",
        played=text,
        **given,
    )
