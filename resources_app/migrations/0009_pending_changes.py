"""Positions for the changes that are there already, a chunk per transaction, while the site goes on
writing.

Interrupted, it goes on where it stopped. What is written meanwhile readers position afterwards: see
sequencing.py. The index of changes without a position comes last, when it is all but empty.
"""

from django.db import migrations, models, transaction

CHUNK = 1000
LOCK_KEY = 0x6261636B6C6F67
ASSIGN = f"""
UPDATE resources_app_change SET position = numbered.place
FROM (
    SELECT id, row_number() OVER (ORDER BY id) + (
        SELECT COALESCE(MAX(position), 0) FROM resources_app_change WHERE position IS NOT NULL
    ) AS place
    FROM (
        SELECT id FROM resources_app_change WHERE id > %s AND position IS NULL ORDER BY id LIMIT {CHUNK}
    ) AS pending
) AS numbered
WHERE resources_app_change.id = numbered.id
"""


def position_changes(apps, schema_editor):
    connection = schema_editor.connection
    is_postgresql = connection.vendor == "postgresql"
    if is_postgresql:
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE resources_app_change")
    positioned, last = CHUNK, 0
    while positioned == CHUNK:
        with transaction.atomic(connection.alias), connection.cursor() as cursor:
            if is_postgresql:
                cursor.execute(f"SELECT pg_advisory_xact_lock({LOCK_KEY})")
            cursor.execute(ASSIGN, [last])
            positioned = cursor.rowcount
            cursor.execute(
                "SELECT id FROM resources_app_change WHERE position IS NOT NULL ORDER BY position DESC LIMIT 1"
            )
            [last] = cursor.fetchone() or [0]
    if is_postgresql:
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE resources_app_change")
            # Every change is updated once. The index of pending changes stays short when they are
            # vacuumed often.
            cursor.execute("ALTER TABLE resources_app_change SET (autovacuum_vacuum_scale_factor = 0.02)")


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("resources_app", "0008_feed_positions")]
    operations = [
        migrations.RunPython(position_changes, migrations.RunPython.noop),
        migrations.AddIndex(
            model_name="change",
            index=models.Index(
                models.F("position"),
                models.F("id"),
                condition=models.Q(("position__isnull", True)),
                name="change_pending",
            ),
        ),
    ]
