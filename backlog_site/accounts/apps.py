from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "backlog_site.accounts"
    label = "backlog_accounts"
