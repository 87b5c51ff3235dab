"""The three roles as groups, and the counters that give out task and epic numbers."""

from django.db import migrations


def create_rows(apps, schema_editor):
    group = apps.get_model("auth", "Group")
    for role in ("viewer", "contributor", "admin"):
        group.objects.get_or_create(name=role)
    sequence = apps.get_model("resources_app", "Sequence")
    for prefix in ("TASK", "EPIC"):
        sequence.objects.get_or_create(prefix=prefix)


class Migration(migrations.Migration):
    dependencies = [("resources_app", "0001_initial"), ("auth", "0012_alter_user_first_name_max_length")]
    operations = [migrations.RunPython(create_rows, migrations.RunPython.noop)]
