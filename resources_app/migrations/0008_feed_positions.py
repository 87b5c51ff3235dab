"""A place for positions in the change feed.

The release before writes changes without one and orders them by txid.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("resources_app", "0007_ib_written_at")]
    operations = [
        migrations.AddField(
            model_name="change",
            name="position",
            field=models.BigIntegerField(editable=False, null=True),
        ),
        migrations.AddConstraint(
            model_name="change",
            constraint=models.UniqueConstraint(
                condition=models.Q(("position__isnull", False)), fields=("position",), name="change_position_once"
            ),
        ),
    ]
