"""Test that the generated parts of docs/ are up to date with the code."""

from django.core.management import call_command

from bench import docs


def test_generated_docs_are_up_to_date() -> None:
    call_command("generate_docs", check=True)


def test_the_tables_and_plots_are_those_of_the_last_benchmark() -> None:
    assert docs.out_of_date() == []
