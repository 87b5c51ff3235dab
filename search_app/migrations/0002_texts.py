"""Create the text tables, one for each slot: FTS5 on SQLite, a tsvector with GIN on PostgreSQL."""

from django.db import migrations

TABLES = ("search_text_a", "search_text_b")
CREATE = {
    "sqlite": ("CREATE VIRTUAL TABLE {table} USING fts5(title, body, tokenize = 'ascii')",),
    "postgresql": (
        "CREATE TABLE {table} ("
        "document_id bigint PRIMARY KEY, title text NOT NULL, body text NOT NULL, terms tsvector NOT NULL)",
        "CREATE INDEX {table}_terms ON {table} USING gin (terms) WITH (fastupdate = off)",
    ),
}


def create(apps, schema_editor):
    for table in TABLES:
        for statement in CREATE[schema_editor.connection.vendor]:
            schema_editor.execute(statement.format(table=table))


def drop(apps, schema_editor):
    for table in TABLES:
        schema_editor.execute(f"DROP TABLE {table}")


class Migration(migrations.Migration):
    dependencies = [("search_app", "0001_index")]
    operations = [migrations.RunPython(create, drop)]
