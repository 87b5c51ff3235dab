from django.db import migrations, models
from django.db.models.functions import Coalesce


class Migration(migrations.Migration):
    dependencies = [("resources_app", "0009_pending_changes")]

    operations = [
        migrations.AddField(
            model_name="task",
            name="estimate",
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="task",
            name="estimate_order",
            field=models.GeneratedField(
                db_persist=True,
                expression=Coalesce("estimate", models.Value(1000000.0)),
                output_field=models.FloatField(),
            ),
        ),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(
                models.F("estimate_order"),
                models.F("number"),
                condition=models.Q(("archived_at__isnull", True)),
                name="task_estimate",
            ),
        ),
    ]
