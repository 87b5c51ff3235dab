"""Counts of live things by status and priority, so that a list tells its total without counting
rows.
"""

from django.db import migrations, models
from django.db.models import Count, F, Q


def count_what_is_there(apps, schema_editor):
    tally = apps.get_model("resources_app", "Tally")
    for kind in ("task", "epic"):
        rows = apps.get_model("resources_app", kind).objects.filter(restricted=False, archived_at__isnull=True)
        counted = rows.values_list("status", "priority").annotate(count=Count("pk")).order_by("status", "priority")
        tally.objects.bulk_create(
            tally(kind=kind, status=status, priority=priority, step=count) for status, priority, count in counted
        )


def restricted_index(name):
    condition = Q(archived_at__isnull=True, restricted=True)
    return models.Index(F("status"), F("priority"), condition=condition, name=f"{name}_restricted")


class Migration(migrations.Migration):
    dependencies = [("resources_app", "0002_roles_and_counters")]
    operations = [
        migrations.CreateModel(
            name="Tally",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kind", models.CharField(max_length=10)),
                ("status", models.PositiveSmallIntegerField()),
                ("priority", models.PositiveSmallIntegerField()),
                ("step", models.BigIntegerField()),
            ],
            options={"verbose_name_plural": "tallies"},
        ),
        migrations.AddIndex(model_name="epic", index=restricted_index("epic")),
        migrations.AddIndex(model_name="task", index=restricted_index("task")),
        migrations.RunPython(count_what_is_there, migrations.RunPython.noop),
    ]
