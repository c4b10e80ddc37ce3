"""No secret is shown, in whichever option it is given (N4): messages, causes, reprs, logs, files."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pyarrow as pa
import pytest
from psycopg.pq import Conninfo
from typer.testing import CliRunner

import trinity
from trinity import Column, Session, TrinityError, dbapi
from trinity.cli.main import app
from trinity.journal.model import load_model
from trinity.secrets import HIDDEN, chain, redacted
from trinity.sql.show import create_statement

pytestmark = pytest.mark.inner

CORE = "kanarienvogel"
SECRETS = (f"{CORE}77", f'7/7 {CORE}\'s@"käfig"%&=')
"""A plain secret, and one that URLs, JSON and Python escape."""
NOBODY = "127.0.0.1:1"
"""An address without a server."""
CONNECTORS = [
    p.name for p in entry_points(group="trinity.formats") if p.name in ("parquet", "delta", "iceberg", "memory")
]
FACTORY = "org.apache.calcite.adapter.jdbc.JournalledJdbcSchema$Factory"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to an empty folder: a call that takes an option for a folder makes it there."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(params=SECRETS, ids=["plain", "awkward"])
def secret(request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture) -> Iterator[str]:
    """Yield a secret, and check after the test that Trinity has not logged it."""
    caplog.set_level(logging.DEBUG)
    yield str(request.param)
    assert_silent("\n".join(r.getMessage() for r in caplog.records if r.name.startswith("trinity")))


def assert_silent(text: str) -> None:
    assert CORE not in text, text


def assert_tells_nothing(error: BaseException) -> None:
    """Check that neither the error nor its causes contain a secret, as text, repr or traceback."""
    for link in chain(error):
        assert_silent(f"{link} {link!r}")
    assert_silent("".join(traceback.format_exception(error)))


def refusal(work: Callable[[], Any]) -> TrinityError:
    """Return the error that a function must raise, and check that it contains no secret."""
    with pytest.raises(TrinityError) as caught:
        work()
    assert_tells_nothing(caught.value)
    return caught.value


def urls(secret: str, scheme: str = "postgresql+psycopg") -> list[str]:
    """Return the forms of an address with a password."""
    coded = quote(secret, safe="")
    return [
        f"{scheme}://user:{coded}@{NOBODY}/db",
        f"{scheme}://{NOBODY}/db?user=u&password={coded}",
        f"jdbc:mysql://user:{coded}@{NOBODY}/db",
        f"jdbc:oracle:thin:user/{coded}@//{NOBODY}",
        f"host=127.0.0.1 port=1 password='{secret}'",
    ]


# -- catalogs ------------------------------------------------------------------------------------------------


def catalog_options(folder: Path, secret: str) -> Iterator[dict[str, Any]]:
    """Yield options of catalogs that cannot be opened, with the secret in each option that may hold one."""
    base = {"warehouse": str(folder)}
    for connector in CONNECTORS:
        for name in ("password", "token", "s3.secret-access-key", "checkpoint-interval", "uri", "type", "credential"):
            yield {"connector": connector, **base, name: secret}
        for name in ("warehouse", "uri", "unknown"):
            yield from ({"connector": connector, **base, name: url} for url in urls(secret))
        yield {"connector": connector, "warehouse": {"password": secret}}
        yield {"connector": connector, "password": secret, "warehouse": ["x", secret]}
    for kind in ("rest", "sql", "nonsense"):
        for url in (*urls(secret), *urls(secret, "http"), f"sqlite:///{folder}/c.db?password={quote(secret)}"):
            yield {
                "connector": "iceberg",
                **base,
                "type": kind,
                "uri": url,
                "token": secret,
                "credential": f"id:{secret}",
            }
    yield {"connector": secret, **base, "password": secret}
    yield {"password": secret}


def test_options_of_catalogs_are_not_shown(tmp_path: Path, secret: str, recwarn: pytest.WarningsRecorder) -> None:
    failed = 0
    for number, options in enumerate(catalog_options(tmp_path / "w", secret)):
        given = {k: v for k, v in options.items() if k != "warehouse" or v != str(tmp_path / "w")}
        if len(given) < len(options):
            given["warehouse"] = str(tmp_path / f"w{number}")
        try:
            with trinity.connect(catalogs={"c": given}, catalog="c") as session:
                assert_silent(repr(session) + repr(session.catalogs) + repr(session.connector("c")))
        except TrinityError as error:
            failed += 1
            assert_tells_nothing(error)
    assert failed > 60
    assert_silent("\n".join(str(w.message) for w in recwarn))


def test_what_a_catalog_stores_and_shows_has_no_secret_of_its_options(tmp_path: Path, secret: str) -> None:
    """Metadata, manifests and data files, SHOW CREATE TABLE, and the repr of every object on the way."""
    options = {"connector": "iceberg", "warehouse": str(tmp_path), "s3.secret-access-key": secret, "token": secret}
    with trinity.connect(catalogs={"c": options}, catalog="c") as session:
        table = session.create_table("t", [Column("k", "int"), Column("v", "string")], primary_key=["k"])
        table.upsert(pa.table({"k": [1], "v": ["x"]}))
        connector = session.connector("c")
        for shown in (session, connector, connector.metadata, table, table.handle, table.definition, table.splits()):
            assert_silent(f"{shown!r} {shown}")
        assert_silent(repr(connector._options))  # type: ignore[attr-defined]
        assert_silent(create_statement(table))
        assert_silent(str(refusal(lambda: session.table("u"))))
    stored = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert stored
    assert not [p for p in stored if CORE.encode() in p.read_bytes()]


def test_a_tables_property_is_no_place_for_a_secret(tmp_path: Path, secret: str) -> None:
    columns = [Column("k", "int")]
    with trinity.connect(tmp_path) as session:
        for catalog, name in (
            ("iceberg", "write.object-store.password"),
            ("delta", "delta.token"),
            ("parquet", "comment"),
        ):
            for value in (secret, *urls(secret)[:1]) if name != "comment" else urls(secret)[:1]:
                make = lambda: session.create_table(f"{catalog}.default.t", columns, properties={name: value})  # noqa: B023, E731
                assert refusal(make).code == "INVALID_TABLE_PROPERTY"
        table = session.create_table(
            "iceberg.default.t", columns, properties={"write.parquet.compression-codec": "zstd"}
        )
        assert refusal(lambda: table.set_properties({"write.token": secret})).code == "INVALID_TABLE_PROPERTY"
        bloom = {"write.parquet.bloom-filter-enabled.column.password": "true"}
        session.create_table("iceberg.default.u", [Column("password", "string")], properties=bloom)


def test_spark_settings_are_not_shown(tmp_path: Path, secret: str) -> None:
    settings = {"spark.hadoop.fs.s3a.secret.key": secret, "spark.sql.session.timeZone": "UTC"}
    with trinity.connect(catalogs={"p": {"connector": "memory"}}, spark_settings=settings) as session:
        assert_silent(repr(session))
    assert_silent(TrinityError("BAD_DATA", f"Spark said: {secret}").message)


# -- journals ------------------------------------------------------------------------------------------------


def a_model(**operand: Any) -> dict[str, Any]:
    given = {"journalTables": {"t": ["k"]}, **operand}
    return {"schemas": [{"name": "s", "type": "custom", "factory": FACTORY, "operand": given}]}


def backends(secret: str) -> Iterator[dict[str, Any]]:
    """Yield operands of backends that cannot be reached, with the secret in each property that names the backend."""
    good = f"jdbc:postgresql://{NOBODY}/db"
    for url in (good, *(f"jdbc:{u}" for u in urls(secret, "postgresql")), *urls(secret)):
        yield {"jdbcUrl": url, "jdbcUser": "u", "jdbcPassword": secret}
        yield {"jdbcUrl": url}
    for name in ("jdbcDriver", "dataSource", "journalVersionType", "jdbcPassword"):
        yield {"jdbcUrl": good, "jdbcPassword": secret, name: [secret]}
        yield {"jdbcUrl": good, "jdbcPassword": secret, name: secret}
    yield {"jdbcUrl": f"{good}?passwort={quote(secret)}", "jdbcPasswort": secret, "jdbcPassword": secret}


def test_backends_of_models_are_not_shown(tmp_path: Path, secret: str) -> None:
    for number, operand in enumerate(backends(secret)):
        model = a_model(**operand)
        file = tmp_path / f"connection{number}.json"
        file.write_text(json.dumps(operand))
        for given in (model, f"inline:{json.dumps(model)}", a_model(connection=str(file))):
            refusal(lambda: dbapi.connect(given))  # noqa: B023
            try:
                assert_silent(repr(load_model(given)))
            except TrinityError as error:
                assert_tells_nothing(error)
    torn = json.dumps(a_model(jdbcUrl="x", jdbcPassword=secret))[:-1]
    refusal(lambda: dbapi.connect(f"inline:{torn}"))
    refusal(lambda: dbapi.connect(torn))  # taken for a path


def test_libpqs_parameters_are_not_shown(secret: str) -> None:
    model = a_model(jdbcUrl=f"jdbc:postgresql://{NOBODY}/db")
    for known in Conninfo.get_defaults():
        name = known.keyword.decode()
        wrong = [secret] if known.dispchar == b"*" else urls(secret, "postgresql")
        for value in wrong:
            refusal(lambda: dbapi.connect(model, autocommit=None, **{"password": secret, name: value}))  # noqa: B023
    refusal(lambda: dbapi.connect(model, passwort=secret, password=secret))


def make_guarded(database: dict[str, str], password: str) -> None:
    """Make a user with a password, and a schema of its own."""
    with psycopg.connect(**database, autocommit=True) as plain:  # type: ignore[arg-type]  # not all are str
        plain.execute("DROP ROLE IF EXISTS guarded")
        plain.execute(f"CREATE ROLE guarded LOGIN PASSWORD '{password}'")
        plain.execute("CREATE SCHEMA guarded AUTHORIZATION guarded")


def test_a_server_that_refuses(database: dict[str, str], tmp_path: Path, secret: str) -> None:
    """A wrong password, host and database; then the right password, and statements that fail with it in their text."""
    right = f"{CORE} is right"
    make_guarded(database, right)
    url = f"jdbc:postgresql://{database['host']}:{database['port']}/{database['dbname']}"
    model = a_model(jdbcUrl=url, jdbcUser="guarded", jdbcPassword=secret)
    wrong: tuple[dict[str, str], ...] = ({}, {"dbname": f"x{secret}"}, {"port": "1"}, {"host": f"{secret}.invalid"})
    for options in wrong:
        refusal(lambda: dbapi.connect(model, autocommit=None, **options))  # noqa: B023
    path = tmp_path / "model.json"
    path.write_text(json.dumps(model))
    found = CliRunner().invoke(app, ["shell", "-m", str(path), "-e", "SELECT 1"])
    assert found.exit_code == 2
    assert 'password authentication failed for user "guarded"' in " ".join(found.output.split())
    assert_silent(found.output)
    with dbapi.connect(a_model(jdbcUrl=url, jdbcUser="guarded", jdbcPassword=right)) as connection:
        assert_silent(f"{connection!r} {connection.backend!r} {connection.cursor()!r}")
        for text in (
            f"SELECT '{right}' FROM nowhere",
            f"ALTER ROLE nobody PASSWORD '{secret}' 5",
            f"SELECT '{right}'::int",
        ):
            refusal(lambda: connection.execute(text))  # noqa: B023
            connection.rollback()


def test_a_catalog_in_postgresql(database: dict[str, str], tmp_path: Path) -> None:
    """The address holds its password; Spark, which shows addresses, gets it separately."""
    right = f"{CORE} is @right"
    make_guarded(database, right)
    place = f"{database['host']}:{database['port']}/{database['dbname']}"

    def opened(password: str) -> Session:
        uri = f"postgresql+psycopg://guarded:{quote(password)}@{place}"
        options = {"connector": "iceberg", "type": "sql", "uri": uri, "warehouse": str(tmp_path)}
        return trinity.connect(catalogs={"c": options}, catalog="c")

    refusal(lambda: opened(f"{CORE} is wrong"))
    with opened(right) as session:
        table = session.create_table("t", [Column("k", "int")])
        table.append(pa.table({"k": [1]}))
        settings = session.connector("c").spark_catalog_settings("c")  # type: ignore[attr-defined]
        assert settings["spark.sql.catalog.c.uri"] == f"jdbc:postgresql://{place}"
        assert settings["spark.sql.catalog.c.jdbc.user"] == "guarded"
        assert settings["spark.sql.catalog.c.jdbc.password"] == right
        assert_silent(f"{session.connector('c')!r} {table!r}")
        with psycopg.connect(**database, autocommit=True) as plain:  # type: ignore[arg-type]  # not all are str
            plain.execute("ALTER ROLE guarded NOLOGIN")
            plain.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'guarded'")
        with pytest.raises(TrinityError) as caught:
            session.table("t").splits()
        assert_tells_nothing(caught.value)


# -- forms ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://u:{}@h:5/db",
        "postgresql://u:x@{}@h:5/db",
        "jdbc:postgresql://h:5432/db?user=x&password={}&ssl=true",
        "host=h password={} user=x",
        "host=h password='x {}\\' x' user=x",
        "{{'password': 'x\"{}', 'user': 'x'}}",
        '{{"jdbcPassword": "x\\"{}", "a": 1}}',
        '"{{\\"jdbcPassword\\": \\"{}\\"}}"',
        "s3.secret-access-key={}",
        "https://h/x?X-Amz-Signature={}&sig={}",
        "AccountName=x;AccountKey={}==",
        "Authorization: Bearer {}",
        "ALTER ROLE x PASSWORD '{}'",
        "fs.s3a.secret.key = \"{}\"",
        "IcebergOptions(token='{}')",
    ],
)  # fmt: skip
def test_secrets_are_told_by_their_form(text: str) -> None:
    unheard = f"{CORE}-as-nobody-has-said-it"
    found = TrinityError("BAD_DATA", text.replace("{}", unheard)).message
    assert_silent(found)
    assert HIDDEN in found


@pytest.mark.parametrize(
    "text",
    [
        'FATAL: password authentication failed for user "x"',
        "jdbc:postgresql://host:5432/db",
        "abfss://container@account.dfs.core.windows.net/x",
        "file:///warehouse/a:b@c/d",
        "Line 1, column 3: unexpected token at: SELECT",
        "Table property 'watermark-key' = 'ts' names 'token', which is no column. Key (password) = (1)",
        "Column 'secret': TYPE_MISMATCH",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redacted(text) == text
