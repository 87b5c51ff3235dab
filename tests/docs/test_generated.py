"""What is generated into docs/ is up to date with the code."""

from django.core.management import call_command


def test_generated_docs_are_up_to_date() -> None:
    call_command("generate_docs", check=True)
