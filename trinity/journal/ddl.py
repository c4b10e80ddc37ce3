"""DDL: CREATE, ALTER, DROP and TRUNCATE of a journalled table apply to its journal; views read live rows."""

from __future__ import annotations

from sqlglot import exp

from trinity.errors import TrinityError
from trinity.journal import tree_parts as trees
from trinity.journal.scopes import Scopes
from trinity.journal.tables import JournalTable


def rewrite_ddl(tree: exp.Expr, scopes: Scopes) -> exp.Expr | None:
    """Rewrite a DDL statement; None for any other. Raise NOT_SUPPORTED, naming what a journal cannot have."""
    if isinstance(tree, exp.Create):
        return _create(tree, scopes)
    if isinstance(tree, exp.Alter):
        return _alter(tree, scopes)
    if isinstance(tree, exp.Drop):
        return _drop(tree, scopes)
    if isinstance(tree, exp.TruncateTable):
        return _truncate(tree, scopes)
    return None


# -- CREATE ---------------------------------------------------------------------------------------------


def _create(tree: exp.Create, scopes: Scopes) -> exp.Expr:
    kind = str(tree.args.get("kind")).upper()
    if kind == "INDEX":
        return _create_index(tree, scopes)
    if kind == "SCHEMA":
        scopes.renamed(tree.this)
        return tree
    if kind not in ("TABLE", "VIEW"):
        raise TrinityError("NOT_SUPPORTED", f"CREATE {kind} that names a journalled table is not supported.")
    target = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    table = scopes.find(target)
    if table is None:
        _check_likes(tree, scopes)
        _check_references(tree, scopes)
        scopes.replace(tree, target=target)
        return tree
    if kind == "VIEW" or tree.expression is not None or not isinstance(tree.this, exp.Schema):
        raise TrinityError(
            "NOT_SUPPORTED", f"{table} is journalled: create it by CREATE TABLE with a list of columns, then INSERT."
        )
    schema = tree.this
    schema.set("this", trees.journal(table))
    schema.set("expressions", _journal_columns(schema, table))
    if table.merged:
        _add_merge_properties(tree, table)
    return tree


def _add_merge_properties(tree: exp.Create, table: JournalTable) -> None:
    """Add properties that make a Trinity table a journal: watermark, tombstone, compactions that keep versions."""
    options = {"watermark-key": table.version, "tombstone-key": table.subsequent, "keep-versions": "true"}
    found = [exp.Property(this=exp.Literal.string(k), value=exp.Literal.string(v)) for k, v in options.items()]
    properties = tree.args.get("properties") or exp.Properties(expressions=[])
    tree.set("properties", exp.Properties(expressions=[*(p.copy() for p in properties.expressions), *found]))


def _journal_columns(schema: exp.Schema, table: JournalTable) -> list[exp.Expr]:
    """Return the columns and checks of the table, the version columns, and the key with the version."""
    found: list[exp.Expr] = []
    key: list[str] = []
    unique: list[tuple[str, ...]] = []
    for node in schema.expressions:
        inner = node.expressions[0] if isinstance(node, exp.Constraint) and len(node.expressions) == 1 else node
        if isinstance(node, exp.ColumnDef):
            _check_column(node, table)
            key += _remove_constraint(node, exp.PrimaryKeyColumnConstraint)
            unique += [(name,) for name in _remove_constraint(node, exp.UniqueColumnConstraint)]
            found.append(node)
        elif isinstance(inner, exp.PrimaryKey):
            key += _names(inner.expressions)
        elif isinstance(inner, exp.UniqueColumnConstraint):
            unique.append(tuple(_names(inner.this.expressions)))
        else:
            found.append(_refuse_constraints(node, table))
    _check_keys(table, key, unique)
    for column in found:
        if isinstance(column, exp.ColumnDef) and trees.folded(column.this) in table.key:
            _add_not_null(column)
    return [*found, *_version_columns(table)]


def _version_columns(table: JournalTable) -> list[exp.Expr]:
    if table.merged:
        return _merged_version_columns(table)
    now = table.version_type == "TIMESTAMP"
    kind = exp.DataType.build("TIMESTAMPTZ" if now else "BIGINT", dialect="postgres")
    first = exp.CurrentTimestamp() if now else exp.Literal.number(1)
    version = exp.ColumnDef(
        this=trees.identifier(table.version),
        kind=kind,
        constraints=[
            exp.ColumnConstraint(kind=exp.NotNullColumnConstraint()),
            exp.ColumnConstraint(kind=exp.DefaultColumnConstraint(this=first)),
        ],
    )
    subsequent = exp.ColumnDef(this=trees.identifier(table.subsequent), kind=kind.copy())
    key = exp.PrimaryKey(expressions=[trees.identifier(c) for c in (*table.key, table.version)])
    return [version, subsequent, key]


def _merged_version_columns(table: JournalTable) -> list[exp.Expr]:
    kind = exp.DataType.build(table.version_type, dialect="spark")
    columns = [exp.ColumnDef(this=trees.identifier(c), kind=kind.copy()) for c in (table.version, table.subsequent)]
    columns[0].set("constraints", [exp.ColumnConstraint(kind=exp.NotNullColumnConstraint())])
    return [*columns, exp.PrimaryKey(expressions=[trees.identifier(k) for k in table.key])]


def _remove_constraint(node: exp.ColumnDef, kind: type[exp.Expr]) -> list[str]:
    """Remove a constraint of a column; return the column's name if it had the constraint."""
    constraints = list(node.args.get("constraints") or [])
    kept = [c for c in constraints if not isinstance(c.kind, kind)]
    node.set("constraints", kept)
    return [trees.folded(node.this)] if len(kept) < len(constraints) else []


def _add_not_null(node: exp.ColumnDef) -> None:
    constraints = list(node.args.get("constraints") or [])
    if not any(isinstance(c.kind, exp.NotNullColumnConstraint) for c in constraints):
        node.set("constraints", [*constraints, exp.ColumnConstraint(kind=exp.NotNullColumnConstraint())])


def _names(nodes: list[exp.Expr]) -> list[str]:
    found = [n.this if isinstance(n, (exp.Ordered, exp.Column)) else n for n in nodes]
    inner = [n.this if isinstance(n, exp.Column) else n for n in found]
    return [trees.folded(n) for n in inner if isinstance(n, exp.Identifier)]


def _check_column(node: exp.ColumnDef, table: JournalTable) -> None:
    if trees.folded(node.this) in (table.version, table.subsequent):
        raise TrinityError(
            "COLUMN_ALREADY_EXISTS", f"CREATE TABLE {table}: '{node.name}' is a version column; it is added by itself."
        )
    for constraint in node.args.get("constraints") or []:
        _refuse_constraints(constraint.kind, table)


def _refuse_constraints(node: exp.Expr, table: JournalTable) -> exp.Expr:
    """Refuse constraints that old versions of rows would break."""
    if node.find(exp.Reference, exp.ForeignKey):
        raise TrinityError(
            "NOT_SUPPORTED",
            f"CREATE TABLE {table}: REFERENCES would hold for deleted and old versions too; leave it out.",
        )
    if node.find(exp.ExcludeColumnConstraint):
        raise TrinityError("NOT_SUPPORTED", f"CREATE TABLE {table}: EXCLUDE is not supported on a journalled table.")
    return node


def _check_keys(table: JournalTable, key: list[str], unique: list[tuple[str, ...]]) -> None:
    if key and set(key) != set(table.key):
        raise TrinityError(
            "INVALID_ARGUMENTS",
            f"CREATE TABLE {table}: PRIMARY KEY ({', '.join(key)}) is not the model's key ({', '.join(table.key)}).",
        )
    for columns in unique:
        if not any(set(columns) == set(u) for u in (table.key, *table.unique_keys)):
            raise TrinityError(
                "NOT_SUPPORTED",
                f"CREATE TABLE {table}: UNIQUE ({', '.join(columns)}) cannot be the journal's; list it in the model's "
                "journalUniqueKeys.",
            )


def _check_likes(tree: exp.Create, scopes: Scopes) -> None:
    for like in tree.find_all(exp.LikeProperty):
        if isinstance(like.this, exp.Table) and (table := scopes.find(like.this)) is not None:
            raise TrinityError(
                "NOT_SUPPORTED", f"LIKE {table}: its journal has the version columns too; list the columns instead."
            )


def _check_references(tree: exp.Create, scopes: Scopes) -> None:
    for reference in tree.find_all(exp.Reference):
        inner = reference.this.this if isinstance(reference.this, exp.Schema) else reference.this
        if isinstance(inner, exp.Table) and (table := scopes.find(inner)) is not None:
            raise TrinityError("NOT_SUPPORTED", f"REFERENCES {table}: a journal has several rows for a key.")


def _create_index(tree: exp.Create, scopes: Scopes) -> exp.Expr:
    index = tree.this
    target = index.args.get("table")
    table = scopes.journalled(target) if isinstance(target, exp.Table) else None
    if table is None:
        if isinstance(target, exp.Table):
            scopes.renamed(target)
        return tree
    if tree.args.get("unique"):
        raise TrinityError(
            "NOT_SUPPORTED", f"CREATE UNIQUE INDEX on {table}: list the columns in the model's journalUniqueKeys."
        )
    _check_named(index, table)
    index.set("table", trees.journal(table))
    return tree


def _check_named(node: exp.Expr, table: JournalTable) -> None:
    for column in node.find_all(exp.Column):
        if isinstance(column.this, exp.Identifier):
            table.visible_column(trees.folded(column.this))


# -- ALTER, DROP, TRUNCATE ------------------------------------------------------------------------------


def _alter(tree: exp.Alter, scopes: Scopes) -> exp.Expr:
    target, find = tree.this, scopes.find if tree.args.get("exists") else scopes.journalled
    table = find(target) if isinstance(target, exp.Table) else None
    if table is None:
        if isinstance(target, exp.Table):
            scopes.renamed(target)
        return tree
    fixed = {*table.key, table.version, table.subsequent}
    for action in tree.args.get("actions") or []:
        if _is_of_check(action, table):
            continue
        if isinstance(action, exp.AlterRename) or not isinstance(
            action, (exp.ColumnDef, exp.Drop, exp.RenameColumn, exp.AlterColumn)
        ):
            raise TrinityError(
                "NOT_SUPPORTED",
                f"ALTER TABLE {table}: columns and CHECKs can be added and dropped, columns renamed and altered; "
                f"'{action.sql(dialect='postgres')}' cannot be done on a journal.",
            )
        if isinstance(action, exp.ColumnDef):
            _check_column(action, table)
            if _remove_constraint(action, exp.UniqueColumnConstraint) or _remove_constraint(
                action, exp.PrimaryKeyColumnConstraint
            ):
                raise TrinityError("NOT_SUPPORTED", f"ALTER TABLE {table}: the model lists the keys.")
            continue
        name = action.args["tables"][0] if isinstance(action, exp.Drop) else action.this
        named = trees.folded(name.this if isinstance(name, exp.Column) else name)
        if named in fixed:
            raise TrinityError("NOT_SUPPORTED", f"ALTER TABLE {table}: '{named}' is a key or version column.")
        if table.columns and not (isinstance(action, exp.Drop) and action.args.get("exists")):
            table.visible_column(named)
        if isinstance(action, exp.AlterColumn) and action.args.get("allow_null") is False:
            # sqlglot reads SET NOT NULL, and cannot write it
            name = trees.identifier(named).sql(dialect="postgres")
            action.replace(exp.Var(this=f"ALTER COLUMN {name} SET NOT NULL"))
    tree.set("this", trees.journal(table))
    return tree


def _is_of_check(action: exp.Expr, table: JournalTable) -> bool:
    """Return True for an action that adds a CHECK, which then holds for old versions too, or drops a constraint.

    Raises:
        TrinityError: NOT_SUPPORTED for the journal's key, COLUMN_NOT_FOUND for a version column.
    """
    if isinstance(action, exp.AddConstraint):
        inner = [c for e in action.expressions for c in (e.expressions if isinstance(e, exp.Constraint) else [e])]
        for check in inner if table.columns else ():
            _check_named(check, table)
        return all(isinstance(c, exp.CheckColumnConstraint) for c in inner)
    if not isinstance(action, exp.Drop) or str(action.args.get("kind")).upper() != "CONSTRAINT":
        return False
    name = trees.folded(action.args["tables"][0].this)
    if name == f"{table.journal}_pkey":
        raise TrinityError("NOT_SUPPORTED", f"ALTER TABLE {table}: constraint '{name}' is the key of the journal.")
    return True


def _drop(tree: exp.Drop, scopes: Scopes) -> exp.Expr:
    for node in list(tree.args.get("tables") or []):
        if not isinstance(node, exp.Table):
            continue
        if (table := scopes.find(node)) is None:
            scopes.renamed(node)
            continue
        if str(tree.args.get("kind")).upper() != "TABLE":
            raise TrinityError("NOT_SUPPORTED", f"{table} is a journalled table: DROP TABLE drops it.")
        node.replace(trees.journal(table))
    return tree


def _truncate(tree: exp.TruncateTable, scopes: Scopes) -> exp.Expr:
    """Rewrite TRUNCATE, which empties the journal: its history is lost as well."""
    for node in list(tree.expressions):
        if (table := scopes.journalled(node)) is not None:
            node.replace(trees.journal(table))
        else:
            scopes.renamed(node)
    return tree
