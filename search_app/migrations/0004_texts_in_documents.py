"""Move PostgreSQL's texts into the documents table, so that a filtered count reads one table
instead of joining two.
"""

from django.db import migrations

TABLES = {"a": "search_text_a", "b": "search_text_b"}
# Long rows are stored out of line, so that filtered columns stay together on few pages.
ADD = """
ALTER TABLE search_app_document ADD COLUMN title text, ADD COLUMN body text, ADD COLUMN terms tsvector;
ALTER TABLE search_app_document SET (toast_tuple_target = 128, fillfactor = 85);
ALTER TABLE search_app_document
    ALTER COLUMN title SET STORAGE EXTERNAL, ALTER COLUMN body SET STORAGE EXTERNAL, ALTER COLUMN terms SET STORAGE EXTERNAL,
    ALTER COLUMN parent SET STORAGE MAIN, ALTER COLUMN title_key SET STORAGE MAIN, ALTER COLUMN labels SET STORAGE MAIN;
"""
# Appending an empty string decompresses the text. Title words get separate tokens, because the
# index holds no weights.
MOVE = """
UPDATE search_app_document d SET title = f.title, body = f.body || '', terms = strip(f.terms) || array_to_tsvector(
    ARRAY(SELECT '^' || token FROM unnest(string_to_array(f.title, ' ')) token WHERE token <> ''))
FROM {table} f WHERE f.document_id = d.id;
DROP TABLE {table};
CREATE INDEX search_terms_{slot} ON search_app_document USING gin (terms) WITH (fastupdate = off) WHERE slot = '{slot}';
"""
MOVE_BACK = """
CREATE TABLE {table} (
    document_id bigint PRIMARY KEY, title text NOT NULL, body text NOT NULL, terms tsvector NOT NULL);
CREATE INDEX {table}_terms ON {table} USING gin (terms) WITH (fastupdate = off);
DROP INDEX search_terms_{slot};
"""


def move(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(ADD)
        for slot, table in TABLES.items():
            schema_editor.execute(MOVE.format(slot=slot, table=table))


def move_back(apps, schema_editor):
    """Move back without the texts: `reindex` fills them again."""
    if schema_editor.connection.vendor == "postgresql":
        for slot, table in TABLES.items():
            schema_editor.execute(MOVE_BACK.format(slot=slot, table=table))
        schema_editor.execute("ALTER TABLE search_app_document DROP COLUMN title, DROP COLUMN body, DROP COLUMN terms")


class Migration(migrations.Migration):
    dependencies = [("search_app", "0003_passages")]
    operations = [migrations.RunPython(move, move_back)]
