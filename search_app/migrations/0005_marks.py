"""Store common filter values beside the words on SQLite, so that a filtered count reads no row per
match.
"""

from django.db import migrations

TABLES = {"a": "search_text_a", "b": "search_text_b"}
MARK = "\N{MIDDLE DOT}" * 2
WITH_MARKS = "CREATE VIRTUAL TABLE {table}_new USING fts5(title, body, marks, tokenize = 'ascii', detail = column)"
FILL = f"""
INSERT INTO {{table}}_new (rowid, title, body, marks)
SELECT f.rowid, f.title, f.body, '{MARK}' || replace(d.kind, '_', '')
    || CASE WHEN d.status IS NULL THEN '' ELSE ' {MARK}status' || d.status END
    || CASE WHEN d.archived THEN '' WHEN d.restricted THEN ' {MARK}limited' ELSE ' {MARK}shared' END
FROM {{table}} f JOIN search_app_document d ON d.id = f.rowid AND d.slot = '{{slot}}'
"""
WITHOUT_MARKS = "CREATE VIRTUAL TABLE {table}_new USING fts5(title, body, tokenize = 'ascii')"
FILL_BACK = "INSERT INTO {table}_new (rowid, title, body) SELECT rowid, title, body FROM {table}"


def replace(schema_editor, *statements):
    if schema_editor.connection.vendor != "sqlite":
        return
    for slot, table in TABLES.items():
        for statement in (*statements, "DROP TABLE {table}", "ALTER TABLE {table}_new RENAME TO {table}"):
            schema_editor.execute(statement.format(table=table, slot=slot))


def mark(apps, schema_editor):
    replace(schema_editor, WITH_MARKS, FILL)


def unmark(apps, schema_editor):
    replace(schema_editor, WITHOUT_MARKS, FILL_BACK)


class Migration(migrations.Migration):
    dependencies = [("search_app", "0004_texts_in_documents")]
    operations = [migrations.RunPython(mark, unmark)]
