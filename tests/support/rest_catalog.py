"""Iceberg's own REST catalog, the server of its tests, with SQLite: in a temporary folder, on a free port."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape

from tests.support.object_store import free_ports, wait_for
from trinity.storage.s3 import S3
from trinity_iceberg.format import SQLITE_JAR

_ICEBERG: Final = "1.11.0"
_JETTY: Final = "12.1.4"
_DEPENDENCIES: Final = (
    ("org.eclipse.jetty.ee10", "jetty-ee10-servlet", _JETTY),
    ("org.eclipse.jetty.compression", "jetty-compression-gzip", _JETTY),
    ("org.eclipse.jetty.compression", "jetty-compression-server", _JETTY),
    *(package.split(":") for package in (SQLITE_JAR, *S3.spark.packages)),
)
_EXCLUDED: Final = ("bundle", "hadoop-client-api", "hadoop-client-runtime")


@contextlib.contextmanager
def running_rest_catalog(jars: Path, bucket_options: Mapping[str, Any], warehouse: str | None = None) -> Iterator[str]:
    """Start a server whose tables may be in buckets; stop it at the end of the block.

    Args:
        jars: the folder that :func:`fetch_rest_catalog` filled.
        bucket_options: the ``storage_options`` by which the server reaches the buckets.
        warehouse: where tables without a location of their own are made; by default a folder.

    Yields:
        the server's address.
    """
    folder = Path(tempfile.mkdtemp(prefix="trinity-rest-"))
    try:
        (folder / "core-site.xml").write_text(_hadoop(bucket_options))
        [port] = free_ports(1)
        settings = {
            "CATALOG_REST_PORT": str(port),
            "CATALOG_URI": f"jdbc:sqlite:{folder}/catalog.db",
            "CATALOG_WAREHOUSE": warehouse or str(folder / "warehouse"),
            "CATALOG_IO__IMPL": "org.apache.iceberg.hadoop.HadoopFileIO",
            "CATALOG_JDBC_SCHEMA__VERSION": "V1",  # this version supports views
        }
        # Iceberg's test JAR has its own copy of an S3A class, which must come second
        shared = ":".join(map(str, (*jars.glob("hadoop-aws-*.jar"), *_jars().glob("hadoop-client-*.jar"))))
        path = f"{folder}:{shared}:{jars}/*"
        command = ["java", "-Xmx512m", "-cp", path, "org.apache.iceberg.rest.RESTCatalogServer"]
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(command, env={**os.environ, **settings}, stdout=log, stderr=log)
        try:
            wait_for(server, port, folder / "log")
            yield f"http://127.0.0.1:{port}"
        finally:
            server.kill()
            server.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _jars() -> Path:
    """Return the folder of pyspark's JARs."""
    import pyspark  # not before: the tests without Spark load this module, too

    return Path(pyspark.__file__).parent / "jars"


def fetch_rest_catalog(folder: Path) -> None:
    """Fetch the server's JARs by Ivy, which pyspark brings, as Spark fetches its own packages."""
    found = [_dependency(*one) for one in _DEPENDENCIES]
    found.append(_dependency("org.apache.iceberg", "iceberg-core", _ICEBERG, "", "tests"))
    found.append(_dependency("org.apache.iceberg", "iceberg-open-api", _ICEBERG, "test-fixtures"))  # the server
    excluded = [f'<exclude module="{name}" matcher="exact"/>' for name in _EXCLUDED]
    folder.mkdir(parents=True)
    module = folder / "ivy.xml"
    module.write_text(
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
        '<info organisation="tests" module="rest"/><configurations><conf name="default"/></configurations>'
        f"<dependencies>{''.join([*found, *excluded])}</dependencies></ivy-module>"
    )
    [ivy] = _jars().glob("ivy-*.jar")
    pattern = f"{folder}/[artifact]-[revision](-[classifier]).[ext]"
    done = subprocess.run(
        ["java", "-jar", str(ivy), "-m2compatible", "-ivy", str(module), "-retrieve", pattern],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def _dependency(organisation: str, name: str, revision: str, *classifiers: str) -> str:
    """Return a dependency of Ivy: a module with its own dependencies, or only the artifacts of these classifiers."""
    settings = [f'm:classifier="{kind}"' if kind else "" for kind in classifiers]
    wanted = "".join(f'<artifact name="{name}" type="jar" {one}/>' for one in settings)
    known = f'org="{organisation}" name="{name}" rev="{revision}"'
    return f'<dependency {known} conf="default->master,compile,runtime">{wanted}</dependency>'


def _hadoop(options: Mapping[str, Any]) -> str:
    known = {
        "fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "fs.s3a.endpoint": options["endpoint"],
        "fs.s3a.endpoint.region": options["region"],
        "fs.s3a.access.key": options["access_key_id"],
        "fs.s3a.secret.key": options["secret_access_key"],
        "fs.s3a.path.style.access": "true",
        "fs.s3a.connection.ssl.enabled": "false",
    }
    properties = [f"<name>{name}</name><value>{escape(str(value))}</value>" for name, value in known.items()]
    return f"<configuration>{''.join(f'<property>{one}</property>' for one in properties)}</configuration>"
